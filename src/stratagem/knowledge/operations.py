"""The operations of knowledge, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Concatenate

from stratagem import limits
from stratagem.answers import AS_DATA, minute_of, plural, read_cursor
from stratagem.errors import StratagemError
from stratagem.knowledge import budgets
from stratagem.knowledge.models import Availability
from stratagem.knowledge.service import Knowledge, make_pong
from stratagem.knowledge.services import SERVICE_GROUPS, TOOLS
from stratagem.operation import Caller, CommandHint, Operation, PersonNeeded, operation
from stratagem.search.foundation import Foundation

__all__ = ["OPERATIONS"]

Answer = dict[str, Any]
# Takes an answer, a budget in characters, and where to begin.
Fit = Callable[[Answer, int, int], Answer]

# The document names these even where they are empty.
_NULLABLE = frozenset({"area", "topic", "subtopic", "relationship_to_next"})
_TOOLSET = "knowledge"
# What the document does not know: offered where it is asked for.
_MORE = "knowledge_plus"
_FIT_LIST: Fit = partial(budgets.fit_results, field="results")


def _plain(answer: Any) -> Any:
    """Return an answer as JSON, with the documented fields and without other empty ones."""
    if is_dataclass(answer):
        return {
            each.name: _plain(value)
            for each in fields(answer)
            if (value := getattr(answer, each.name)) is not None or each.name in _NULLABLE
        }
    if isinstance(answer, list):
        return [_plain(each) for each in answer]
    return answer


def _knowledge(foundation: Foundation, caller: Caller) -> Knowledge:
    return Knowledge(foundation, caller)


def _by_budget(fit: Fit) -> Callable[[Answer, Mapping[str, Any]], Answer]:
    """Return what cuts an answer to the budget that a caller has given."""

    def cut(answer: Answer, given: Mapping[str, Any]) -> Answer:
        budget = given.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
        return fit(answer, budget, read_cursor(given.get("cursor")))

    return cut


def _say_ping(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']} ({answer['timestamp']})."


def _say_stats(answer: Mapping[str, Any]) -> str:
    events, outbox = answer["event_store"], answer["outbox"]
    said = (
        f"{answer['status']}: {events['total_events']} events, {events['concept_events']} of them "
        f"about concepts; outbox: {outbox['pending']} pending, {outbox['failed']} failed."
    )
    return " ".join([said, *_notes(answer)])


def _say_availability(answer: Mapping[str, Any]) -> str:
    words = [f"{len(answer['available'])} of {answer['total_tools']} tools are available."]
    if missing := answer["unavailable"]:
        words.append(f"Not available: {', '.join(missing)}.")
    return " ".join([*words, *_notes(answer)])


def _say_written(answer: Mapping[str, Any]) -> str:
    said = f"{answer['message']}: {answer['concept_id']} (version {answer['version']})."
    return " ".join([said, *_notes(answer)])


def _say_concept(answer: Mapping[str, Any]) -> str:
    concept = answer["concept"]
    about = (
        f"{concept['concept_id']}; {_place(concept)}; certainty {_certainty(concept)}, version "
        f"{concept['version']}, changed {concept['last_modified']}"
    )
    earlier = [
        f"Earlier, {each['timestamp']}: {each['explanation']}"
        for each in concept.get("explanation_history", ())[:-1]
    ]
    return "\n".join(
        [
            f"{concept['name']} ({about})",
            concept["explanation"],
            *_standing_words(concept),
            *_evidence_words(concept),
            *earlier,
            AS_DATA,
            *_notes(answer),
        ]
    )


def _evidence_words(concept: Mapping[str, Any]) -> list[str]:
    """Say what a certainty is made of, and where the concept was learnt."""
    words = [f"source: {concept['source']}"] if "source" in concept else []
    if counts := concept.get("evidence"):
        named = ", ".join(
            f"{label} {count}" for label, count in counts.items() if label != "latest"
        )
        since = f"; latest {counts['latest']}" if "latest" in counts else ""
        words.append(f"evidence: {named}{since}")
    return [f"({'; '.join(words)})"] if words else []


def _standing_words(each: Mapping[str, Any]) -> list[str]:
    """Say what a concept was superseded by, is contested by, and when it holds."""
    words = [
        f"{label} {', '.join(other['name'] for other in each[field])}"
        for field, label in (("superseded_by", "superseded by"), ("contested_by", "contested by"))
        if field in each
    ]
    period = [each.get("valid_from"), each.get("valid_to")]
    if any(period):
        words.append(f"holds from {period[0] or 'ever'} to {period[1] or 'now on'}")
    return [f"({'; '.join(words)})"] if words else []


def _say_relationship(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']}: {answer['relationship_id']}."


def _say_list(answer: Mapping[str, Any]) -> str:
    lines = [_line(each) for each in answer["results"]]
    shown = [*lines, AS_DATA] if lines else ["Nothing found."]
    return "\n".join([*shown, *_notes(answer), *_more(answer)])


def _more(answer: Mapping[str, Any]) -> list[str]:
    """Say how to go on, unless the note of a cut answer does."""
    if "next" not in answer or "cursor=" in answer.get("note", ""):
        return []
    return [f"There are more: call again with cursor={answer['next']!r}."]


def _notes(answer: Mapping[str, Any]) -> list[str]:
    return [answer["note"]] if "note" in answer else []


def _line(each: Mapping[str, Any]) -> str:
    words = f"- {each['name']} [{each['concept_id']}]"
    if "direction" in each:
        words += f" {each['direction']} {each['relationship_type']} ({each['strength']:g})"
        return f"{words}: {each['notes']}" if "notes" in each else words
    words += f" ({_place(each)}"
    if "certainty_score" in each:
        words += f"; certainty {_certainty(each)}"
    if "similarity" in each:
        words += f"; similarity {each['similarity']:.2f}"
    if "created_at" in each:
        words += f"; created {minute_of(each['created_at'])}"
    return " ".join([words + ")", *_standing_words(each)])


def _say_prerequisites(answer: Mapping[str, Any]) -> str:
    lines = [
        f"- {each['name']} [{each['concept_id']}] (depth {each['depth']}; learn as "
        f"{_order_words(each)})"
        for each in answer["prerequisites"]
    ]
    return "\n".join([f"{answer['message']}.", *_as_data(lines), *_notes(answer)])


def _as_data(lines: list[str]) -> list[str]:
    """Mark what was stored as data, where there is any."""
    return [*lines, AS_DATA] if lines else []


def _order_words(each: Mapping[str, Any]) -> str:
    needs = ", ".join(map(str, each["requires"]))
    return f"no. {each['order']}" + (f", after {needs}" if needs else "")


def _say_path(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['target']}: {answer['message']}."]
    for step in answer["steps"]:
        lines.append(f"Step {step['step']} (certainty {step['certainty']:g}):")
        lines += [
            f"- {each['name']} [{each['concept_id']}] ({_order_words(each)})"
            for each in step["concepts"]
        ]
    if answer["known"]:
        lines.append(f"Known to {answer['learner']}: {', '.join(answer['known'])}.")
    return "\n".join([*lines, AS_DATA, *_notes(answer)])


def _say_batch(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['message']}."]
    lines += [f"- {each['name']} [{each['concept_id']}]" for each in answer["created"]]
    lines += [
        f"- {each['name']} [{each['concept_id']}] existed already" for each in answer["duplicates"]
    ]
    return "\n".join(lines)


def _say_declared(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']}: {answer['relationship_type']}."


def _say_context(answer: Mapping[str, Any]) -> str:
    return "\n\n".join([answer["context"] or f"{answer['message']}.", *_notes(answer)])


def _say_evidence(answer: Mapping[str, Any]) -> str:
    said = (
        f"{answer['message']}: {answer['name']} ({answer['confirmed']} for, {answer['refuted']} "
        f"against; certainty {_certainty(answer)})."
    )
    return " ".join([said, *_notes(answer)])


def _say_review(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['message']}."]
    for kind in ("contested", "stale", "orphaned"):
        lines += [
            f"- {kind}: {each['name']} [{each['concept_id']}]: {each['why']}"
            for each in answer[kind]
        ]
    for group in answer["duplicates"]:
        names = ", ".join(f"{each['name']} [{each['concept_id']}]" for each in group)
        lines.append(f"- duplicates: {names}")
    return "\n".join([lines[0], *_as_data(lines[1:]), *_notes(answer)])


def _say_merged(answer: Mapping[str, Any]) -> str:
    said = (
        f"{answer['message']}: {answer['merged_id']} into {answer['concept_id']}; "
        f"{plural(answer['related'], 'relationship')} carried over."
    )
    skipped = [f"- skipped: {each}" for each in answer.get("skipped", ())]
    return "\n".join([said, *skipped, *map(_say_replaced, answer.get("replaced", ()))])


def _say_replaced(verdict: Mapping[str, Any]) -> str:
    note = f", noting: {verdict['note']}" if verdict.get("note") else ""
    return (
        f"- {verdict['source']} judged both: {verdict['verdict']} at {verdict['said_at']}{note}; "
        f"its later verdict counts: {verdict['now']}."
    )


def _say_purged(answer: Mapping[str, Any]) -> str:
    what = ", ".join(f"{count} {kind}" for kind, count in answer["records"].items())
    words = f"{'Erased' if answer['purged'] else 'Would erase'} {what}, from every branch."
    return f"{words} {answer['note']}"


def _purge_command(given: Mapping[str, Any]) -> list[str]:
    return ["purge-knowledge", "--", given["record_id"]]


def _is_confirmed(given: Mapping[str, Any]) -> bool:
    return bool(given.get("confirm"))


def _say_marked(answer: Mapping[str, Any]) -> str:
    return " ".join([f"{answer['message']} ({answer['changed']} changed).", *_notes(answer)])


def _say_known(answer: Mapping[str, Any]) -> str:
    lines = [
        f"- {each['name']} [{each['concept_id']}] since {each['since']}"
        for each in answer["results"]
    ]
    return "\n".join([f"{answer['message']}.", *_as_data(lines), *_notes(answer), *_more(answer)])


def _say_chain(answer: Mapping[str, Any]) -> str:
    words = []
    for step in answer["path"]:
        words.append(f"{step['name']} [{step['concept_id']}]")
        if label := step["relationship_to_next"]:
            outgoing = step["direction_to_next"] == "outgoing"
            words.append(f"—{label}→" if outgoing else f"←{label}—")
    return f"{answer['message']}: {' '.join(words)}\n{AS_DATA}"


def _say_hierarchy(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['message']}."]
    for area in answer["areas"]:
        lines.append(f"- {area['name']} ({area['concept_count']})")
        for topic in area["topics"]:
            parts = [f"{each['name']} ({each['concept_count']})" for each in topic["subtopics"]]
            lines.append(f"  - {topic['name']} ({topic['concept_count']}): {', '.join(parts)}")
    return "\n".join([lines[0], *_as_data(lines[1:]), *_notes(answer)])


def _place(each: Mapping[str, Any]) -> str:
    names = [each.get(level) for level in ("area", "topic", "subtopic")]
    return " / ".join(name for name in names if name) or "Uncategorized"


def _certainty(each: Mapping[str, Any]) -> str:
    return f"{each['certainty_score']:g}{' computed' if 'certainty_source' in each else ''}"


def _answer_options(fit: Fit | None, *, pages: bool) -> tuple[str, ...]:
    """Return the parameters of an answer that its method does not take itself."""
    if fit is None:
        return ()
    return ("max_chars",) if pages else ("cursor", "max_chars")


def _ping_unopened(_error: StratagemError, now: int) -> Answer:
    """Answer that the server runs, though its database cannot be read."""
    return dict(_plain(make_pong(now)))


def _availability_unopened(error: StratagemError, _now: int) -> Answer:
    """Answer which tools work while the database cannot be read, and why the others do not."""
    available = sorted(("get_tool_availability", "ping"))
    absent = {group: dict.fromkeys(services, False) for group, services in SERVICE_GROUPS.items()}
    note = f"{error.message} {error.hint}"
    unavailable = sorted(TOOLS.keys() - set(available))
    return dict(_plain(Availability(available, unavailable, len(TOOLS), absent, {}, note=note)))


def _row(
    name: str,
    method: Callable[Concatenate[Knowledge, ...], Any],
    title: str,
    description: str,
    *,
    says: Callable[[dict[str, Any]], str],
    fit: Fit | None = None,
    pages: bool = False,
    writes: bool = False,
    toolset: str = _TOOLSET,
    unopened: Callable[[StratagemError, int], Answer] | None = None,
    example: Mapping[str, Any] | None = None,
) -> Operation:
    return operation(
        name,
        method,
        service=_knowledge,
        toolset=toolset,
        title=title,
        description=description,
        summarise=says,
        render=_plain,
        fit=_by_budget(fit) if fit else None,
        answer_options=_answer_options(fit, pages=pages or fit is _FIT_LIST),
        read_only=not writes,
        idempotent=not writes,
        run_unopened=unopened,
        example=example,
    )


OPERATIONS: tuple[Operation, ...] = (
    _row(
        "ping",
        Knowledge.ping,
        "Ping",
        "Check that the knowledge server answers.",
        says=_say_ping,
        unopened=_ping_unopened,
    ),
    _row(
        "get_server_stats",
        Knowledge.get_server_stats,
        "Server statistics",
        "Figures of the event store and the outbox.",
        says=_say_stats,
    ),
    _row(
        "get_tool_availability",
        Knowledge.get_tool_availability,
        "Tool availability",
        "Which knowledge tools can be used, and which services are available.",
        says=_say_availability,
        unopened=_availability_unopened,
    ),
    _row(
        "create_concept",
        Knowledge.create_concept,
        "Create concept",
        "Add a concept to the knowledge base.",
        says=_say_written,
        writes=True,
        example={
            "name": "Recursion",
            "explanation": "A function that calls itself on a smaller part of the problem.",
            "area": "Programming",
        },
    ),
    _row(
        "get_concept",
        Knowledge.get_concept,
        "Get concept",
        "A concept by its id or name, now or in the past.",
        says=_say_concept,
        fit=budgets.fit_concept,
    ),
    _row(
        "update_concept",
        Knowledge.update_concept,
        "Update concept",
        "Change the given fields of a concept; earlier explanations stay in its history.",
        says=_say_written,
        writes=True,
    ),
    _row(
        "delete_concept",
        Knowledge.delete_concept,
        "Delete concept",
        "Delete a concept; it can be restored.",
        says=_say_written,
        writes=True,
    ),
    _row(
        "search_concepts_semantic",
        Knowledge.search_concepts_semantic,
        "Search by meaning",
        "Find concepts by meaning and words, most similar first.",
        says=_say_list,
        fit=_FIT_LIST,
        example={"query": "functions that call themselves"},
    ),
    _row(
        "search_concepts_exact",
        Knowledge.search_concepts_exact,
        "Search by name and place",
        "Find concepts by part of the name, area, topic, subtopic and certainty, newest first.",
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _row(
        "get_recent_concepts",
        Knowledge.get_recent_concepts,
        "Recent concepts",
        "The concepts created last.",
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _row(
        "create_relationship",
        Knowledge.create_relationship,
        "Create relationship",
        "Relate one concept to another. A prerequisite that would close a cycle is refused.",
        says=_say_relationship,
        writes=True,
    ),
    _row(
        "delete_relationship",
        Knowledge.delete_relationship,
        "Delete relationship",
        "Delete a relationship.",
        says=_say_relationship,
        writes=True,
    ),
    _row(
        "get_related_concepts",
        Knowledge.get_related_concepts,
        "Related concepts",
        "The concepts related to one, strongest relationships first.",
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _row(
        "get_prerequisites",
        Knowledge.get_prerequisites,
        "Prerequisites",
        "What to know before a concept, nearest first; `order` is the order to learn in.",
        says=_say_prerequisites,
        fit=budgets.fit_prerequisites,
        pages=True,
    ),
    _row(
        "get_concept_chain",
        Knowledge.get_concept_chain,
        "Concept chain",
        "A shortest path between two concepts; length counts relationships.",
        says=_say_chain,
    ),
    _row(
        "list_hierarchy",
        Knowledge.list_hierarchy,
        "Hierarchy",
        "Areas, topics and subtopics with how many concepts each has.",
        says=_say_hierarchy,
        fit=budgets.fit_hierarchy,
    ),
    _row(
        "get_concepts_by_certainty",
        Knowledge.get_concepts_by_certainty,
        "Concepts by certainty",
        "Concepts in a range of certainty, least certain first.",
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _row(
        "restore_concept",
        Knowledge.restore_concept,
        "Restore concept",
        "Bring a deleted concept back as it was, with its relationships.",
        says=_say_written,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "get_learning_path",
        Knowledge.get_learning_path,
        "Learning path",
        "What to learn for a concept, step by step, without what the learner knows.",
        says=_say_path,
        fit=budgets.fit_path,
        toolset=_MORE,
    ),
    _row(
        "create_concepts",
        Knowledge.create_concepts,
        "Create concepts",
        "Add concepts and their relationships, by name, in one call; those that exist "
        "are reported.",
        says=_say_batch,
        writes=True,
        toolset=_MORE,
        example={
            "concepts": [
                {"name": "Lists", "explanation": "Ordered values."},
                {"name": "Sorting", "explanation": "Putting values in order."},
            ],
            "relationships": [{"source": "Lists", "target": "Sorting", "type": "prerequisite"}],
        },
    ),
    _row(
        "declare_relationship_type",
        Knowledge.declare_relationship_type,
        "Declare a relationship type",
        "Declare a relationship type of your own, such as works_at.",
        says=_say_declared,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "get_context",
        Knowledge.get_context,
        "Context for a question",
        "What is known about a question, as one text: explanations, relationships, contradictions.",
        says=_say_context,
        toolset=_MORE,
        example={"query": "how does sorting work"},
    ),
    _row(
        "confirm_concept",
        Knowledge.confirm_concept,
        "Confirm concept",
        "Record that a concept was found to be true, by whom and how; its certainty rises.",
        says=_say_evidence,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "refute_concept",
        Knowledge.refute_concept,
        "Refute concept",
        "Record that a concept was found to be false; its certainty falls.",
        says=_say_evidence,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "review_knowledge",
        Knowledge.review_knowledge,
        "Review knowledge",
        "What needs attention: contested, stale, orphaned and duplicate concepts.",
        says=_say_review,
        toolset=_MORE,
    ),
    _row(
        "get_graph",
        Knowledge.get_graph,
        "Graph",
        "Concepts with their coordinates in a picture: in layers by prerequisites, with "
        "their links.",
        says=lambda answer: answer["message"],
        toolset=_MORE,
    ),
    _row(
        "merge_concepts",
        Knowledge.merge_concepts,
        "Merge concepts",
        "Merge two concepts that mean the same; the duplicate can be restored.",
        says=_say_merged,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "mark_known",
        Knowledge.mark_known,
        "Mark known",
        "Mark concepts as known to a learner; learning paths leave them out.",
        says=_say_marked,
        writes=True,
        toolset=_MORE,
    ),
    _row(
        "list_known",
        Knowledge.list_known,
        "Known concepts",
        "The concepts that a learner knows, newest first.",
        says=_say_known,
        fit=_FIT_LIST,
        toolset=_MORE,
    ),
    operation(
        "purge_knowledge",
        Knowledge.purge_knowledge,
        service=_knowledge,
        toolset="admin",
        title="Purge knowledge",
        description="Erase a concept with everything about it, or a relationship, for good: from "
        "the log, every branch, every past moment and the index. Without confirm it "
        "shows what would be erased.",
        summarise=_say_purged,
        render=_plain,
        destructive=True,
        idempotent=True,
        right="admin",
        person=PersonNeeded("erases for good", _purge_command, applies=_is_confirmed),
        irreversible=True,
        commands=(
            CommandHint(
                ("purge-knowledge",),
                "Erase a concept or a relationship for good. This cannot be undone.",
                panel="Knowledge",
                positional=("record_id",),
                only=("record_id",),
                handler="debugging.purge",
            ),
        ),
    ),
)
