"""The operations that maintain debug memory: the toolset `debugging_admin`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.answers import fit_list
from stratagem.debugging.curation import CuratedDebugging
from stratagem.debugging.record_lists import page_cursor
from stratagem.operation import Caller, CommandHint, Operation, PersonNeeded, operation
from stratagem.search.foundation import Foundation

__all__ = ["CURATION_OPERATIONS"]

Answer = dict[str, Any]

_TOOLSET: Final = "debugging_admin"
_TAGS: Final = {"tags": ("--tag", "-t")}
_ENVIRONMENT: Final = {"environment": ("--env",)}


def _service(foundation: Foundation, caller: Caller) -> CuratedDebugging:
    return CuratedDebugging(foundation, caller)


def _fit_page(listed: str) -> Callable[[Answer, Mapping[str, Any]], Answer]:
    """Return what keeps as many results of a list as fit, and continues after the last of them."""

    def fit(answer: Answer, given: Mapping[str, Any]) -> Answer:
        upto = int(answer["as_of"].removeprefix("@"))

        def cursor_after(count: int) -> str:
            return page_cursor(listed, upto, answer["results"][count - 1]["version"])

        return fit_list(answer, given.get("max_chars", limits.ANSWER_CHARS_DEFAULT), cursor_after)

    return fit


def _say_list(line: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    def say(answer: Mapping[str, Any]) -> str:
        lines = [line(each) for each in answer["results"]] or ["Nothing fits."]
        if "note" in answer:
            lines.append(answer["note"])
        elif answer.get("next"):
            lines.append(f"There are more: call again with cursor={answer['next']!r}.")
        return "\n".join(lines)

    return say


def _incident_line(each: Mapping[str, Any]) -> str:
    return (
        f"- {each['incident_id']} [{_standing_words(each)}] {each['title']} "
        f"({each['solutions']} fixes; {each['worked']} worked, {each['failed']} failed)"
    )


def _solution_line(each: Mapping[str, Any]) -> str:
    return (
        f"- {each['solution_id']} [{_standing_words(each)}] {' / '.join(each['steps'])[:300]} "
        f"({each['worked']} worked, {each['failed']} failed; {each['env_bucket']}) of "
        f"{each['incident_id']} ({each['incident_title']})"
    )


def _outcome_line(each: Mapping[str, Any]) -> str:
    words = f"- {each['outcome_id']} {'worked' if each['worked'] else 'failed'} "
    words += (
        f"[{_standing_words(each)}] {each['at']} in {each['env_bucket']}, of {each['solution_id']}"
    )
    return f"{words}: {each['notes'][:300]}" if each.get("notes") else words


def _standing_words(each: Mapping[str, Any]) -> str:
    if each.get("merged_into"):
        return f"merged into {each['merged_into']}"
    if each.get("retired"):
        return f"retired: {each['retired']['reason']}"
    return str(each["standing"])


def _say_details(answer: Mapping[str, Any]) -> str:
    lines = [answer["note"]] if "note" in answer else []
    if incident := answer.get("incident"):
        lines.append(_incident_line(incident).removeprefix("- "))
        lines += [incident["summary"]] if incident.get("summary") else []
        lines += [answer["error_signature"]] if answer.get("error_signature") else []
    lines += [_solution_line(each) for each in answer.get("solutions", ())]
    lines += [_outcome_line(each) for each in answer.get("outcomes", ())]
    if answer.get("merged_from"):
        lines.append(f"Merged into it: {', '.join(answer['merged_from'])}.")
    lines += [
        f"@{each['version']} {each['at']} {each['did']} by {each['actor']}"
        + (f": {each['reason']}" if each.get("reason") else "")
        for each in answer["versions"]
    ]
    return "\n".join(lines)


_PAST: Final = {"amended": "changed"}


def _say_changed(answer: Mapping[str, Any]) -> str:
    words = f"The {answer['kind']} {answer['id']} was {_PAST.get(answer['did'], answer['did'])}"
    if answer.get("merged_into"):
        words += f" into {answer['merged_into']}"
    elif answer["standing"] != answer["did"]:
        words += f"; it is {answer['standing']} now"
    words += "."
    if answer.get("also"):
        words += f" Also: {', '.join(answer['also'])}."
    return f"{words} {answer['note']}" if answer.get("note") else words


def _say_split(answer: Mapping[str, Any]) -> str:
    return (
        f"{answer['incident_id']} was split off {answer['split_from']}, with "
        f"{_count(len(answer['solutions']), 'solution')} and "
        f"{_count(len(answer['outcomes']), 'moved outcome')}. {answer['note']}"
    )


def _say_purged(answer: Mapping[str, Any]) -> str:
    parts = [
        _count(answer[f"{name}s"], name)
        for name in ("incident", "solution", "outcome")
        if answer[f"{name}s"]
    ]
    what = f"{answer['id']}: {', '.join(parts)}"
    if not answer["purged"]:
        return f"Would erase {what}, from every branch and every past moment. {answer['note']}"
    said = [f"Erased {what} ({_count(answer['erased'], 'event')})."]
    if answer["copies"]:
        said.append(f"Records that quoted it lost their content: {_kinds(answer['copies'])}.")
    if answer["elsewhere"]:
        said.append(f"The same text is still in: {_kinds(answer['elsewhere'])}.")
    if answer.get("stand_again"):
        said.append(
            f"Restored, because they were merged into it: {', '.join(answer['stand_again'])}."
        )
    return " ".join([*said, answer["note"]])


def _say_statistics(answer: Mapping[str, Any]) -> str:
    words = (
        f"{answer['lookups']} lookups ({answer['automatic']} more were made by the gateway), "
        f"{answer['no_match']} without a match; {answer['answered']} first recommendations were "
        "reported on"
    )
    if answer.get("hit_rate") is not None:
        words += f", {answer['hit_rate']:.0%} of them worked"
    if answer.get("promised") is not None:
        words += f" ({answer['promised']:.0%} was promised)"
    return (
        f"{words}. {len(answer['stopped_working'])} fixes stopped working, "
        f"{len(answer['without_solutions'])} incidents have none, "
        f"{len(answer['no_match_then_added'])} were added after a lookup without a match."
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{count} x {kind.replace('_', ' ')}" for kind, count in sorted(counts.items())
    )


def _purge_command(given: Mapping[str, Any]) -> list[str]:
    return ["debug", "purge", "--", given["record_id"]]


def _is_confirmed(given: Mapping[str, Any]) -> bool:
    return bool(given.get("confirm"))


def _list_row(
    noun: str,
    method: Callable[..., Any],
    line: Callable[[Mapping[str, Any]], str],
    *,
    description: str,
    help_text: str,
) -> Operation:
    return operation(
        f"list_{noun}",
        method,
        service=_service,
        toolset=_TOOLSET,
        title=f"List {noun}",
        description=description,
        fit=_fit_page(noun),
        answer_options=("max_chars",),
        own_cursor=True,
        answer_fields=("results", "as_of", "truncated", "next"),
        summarise=_say_list(line),
        read_only=True,
        idempotent=True,
        commands=(
            CommandHint(
                ("debug", noun),
                help_text,
                positional=("text",),
                joined="text",
                flags=_ENVIRONMENT,
                renderer=f"debugging.show_{noun}",
            ),
        ),
    )


def _change_row(
    name: str,
    method: Callable[..., Any],
    title: str,
    description: str,
    command: CommandHint,
) -> Operation:
    return operation(
        name,
        method,
        service=_service,
        toolset=_TOOLSET,
        title=title,
        description=description,
        summarise=_say_changed,
        answer_fields=("kind", "id", "did", "standing", "version", "note"),
        right="admin",
        commands=(command,),
    )


CURATION_OPERATIONS: tuple[Operation, ...] = (
    _list_row(
        "incidents",
        CuratedDebugging.list_incidents,
        _incident_line,
        description="Page through incidents, last changed first, and how well their fixes worked.",
        help_text="List incidents, last changed first.",
    ),
    _list_row(
        "solutions",
        CuratedDebugging.list_solutions,
        _solution_line,
        description="Page through fixes, last changed first, with their evidence.",
        help_text="List fixes with their evidence, last changed first.",
    ),
    _list_row(
        "outcomes",
        CuratedDebugging.list_outcomes,
        _outcome_line,
        description="Page through outcomes, newest first, and whether each counts.",
        help_text="List outcomes, newest first, and whether each counts.",
    ),
    operation(
        "show_record",
        CuratedDebugging.show_record,
        service=_service,
        toolset=_TOOLSET,
        title="Show record",
        description="An incident, a fix or an outcome by its id, with what belongs to it and its "
        "versions. An id that was merged away shows its replacement.",
        summarise=_say_details,
        answer_fields=("kind", "id", "versions", "incident", "solutions", "outcomes"),
        read_only=True,
        idempotent=True,
        commands=(
            CommandHint(
                ("debug", "show"),
                "Show an incident, a fix or an outcome with its history.",
                positional=("record_id",),
                renderer="debugging.show_details",
            ),
        ),
    ),
    _change_row(
        "edit_incident",
        CuratedDebugging.edit_incident,
        "Edit incident",
        "Change title, summary, tags or error of an incident: a new version; history keeps the "
        "old one.",
        CommandHint(
            ("debug", "edit-incident"),
            "Change the title, summary, tags or error of an incident.",
            positional=("incident_id",),
            flags=_TAGS,
        ),
    ),
    _change_row(
        "edit_solution",
        CuratedDebugging.edit_solution,
        "Edit solution",
        "Change the steps of a fix: a new version, with or without the old evidence.",
        CommandHint(
            ("debug", "edit-solution"),
            "Change the steps of a fix; its evidence is kept or starts again.",
            positional=("solution_id",),
        ),
    ),
    _change_row(
        "retire_record",
        CuratedDebugging.retire_record,
        "Retire record",
        "Withdraw an incident or a fix from recommendations, or an outcome from the evidence, and "
        "say why. History keeps it; it can be restored.",
        CommandHint(
            ("debug", "retire"),
            "Withdraw an incident, a fix or an outcome, and say why. It can be restored.",
            positional=("record_id",),
        ),
    ),
    _change_row(
        "restore_record",
        CuratedDebugging.restore_record,
        "Restore record",
        "Undo that a record was retired, merged away or split off, or undo edits since a version.",
        CommandHint(
            ("debug", "restore"),
            "Undo a retirement, a merge, a split or edits.",
            positional=("record_id",),
        ),
    ),
    _change_row(
        "merge_records",
        CuratedDebugging.merge_records,
        "Merge records",
        "Merge a duplicate into another incident or solution. Evidence is joined once; the "
        "duplicate's id still works.",
        CommandHint(
            ("debug", "merge"),
            "Merge a duplicate incident or solution into another. It can be restored.",
            positional=("record_id", "into"),
        ),
    ),
    operation(
        "split_incident",
        CuratedDebugging.split_incident,
        service=_service,
        toolset=_TOOLSET,
        title="Split incident",
        description="Move solutions, outcomes or the error of an incident to a new incident.",
        summarise=_say_split,
        right="admin",
        commands=(
            CommandHint(
                ("debug", "split"),
                "Move solutions, outcomes or the error of an incident to a new incident.",
                positional=("incident_id",),
                flags={
                    **_TAGS,
                    "solutions": ("--solution",),
                    "outcomes": ("--outcome",),
                },
            ),
        ),
    ),
    operation(
        "purge_record",
        CuratedDebugging.purge_record,
        service=_service,
        toolset="admin",
        title="Purge record",
        description="Erase an incident (with its fixes), a fix (with its outcomes) or an outcome "
        "for good: from the log, every branch, every past moment and the index. Without "
        "confirm it shows what would be erased.",
        summarise=_say_purged,
        answer_fields=("purged", "incidents", "solutions", "outcomes", "copies", "elsewhere"),
        destructive=True,
        idempotent=True,
        right="admin",
        person=PersonNeeded("erases for good", _purge_command, applies=_is_confirmed),
        irreversible=True,
        commands=(
            CommandHint(
                ("debug", "purge"),
                "Erase an incident, a fix or an outcome for good. This cannot be undone.",
                positional=("record_id",),
                only=("record_id",),
                handler="debugging.purge",
            ),
        ),
    ),
    operation(
        "debugging_statistics",
        CuratedDebugging.statistics,
        service=_service,
        toolset=_TOOLSET,
        title="Debugging statistics",
        description="How well recommendations worked, by month: what was predicted and what "
        "happened; fixes that stopped working, incidents without a fix, and "
        "what was added after NO_MATCH.",
        summarise=_say_statistics,
        null_fields=("hit_rate", "promised", "calibration_error"),
        answer_fields=(
            "lookups",
            "answered",
            "hit_rate",
            "promised",
            "by_month",
            "calibration",
            "no_match_then_added",
            "without_solutions",
            "stopped_working",
        ),
        read_only=True,
        idempotent=True,
        commands=(
            CommandHint(
                ("debug", "stats"),
                "Show what was predicted and what happened, and what needs attention.",
                renderer="debugging.show_statistics",
            ),
        ),
    ),
)
