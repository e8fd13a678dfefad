"""debug and env: what debug memory knows, and where one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.exports import export_place, import_name, import_place, is_standard
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.output import confirm, printable
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "app",
    "purge",
    "show_details",
    "show_incidents",
    "show_outcomes",
    "show_solutions",
    "show_statistics",
]

Answer = Mapping[str, Any]

app = typer.Typer()
debug = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(debug, name="debug", rich_help_panel="Debugging")


@debug.callback()
@command
def _debug(session: Session) -> None:
    """Maintain debug memory, share it, and see how well it works."""
    del session  # It has actions only.


@app.command("env", rich_help_panel="Debugging")
@command
def _env(session: Session) -> None:
    """Show this machine's environment in the form that debugging uses."""
    from stratagem.debugging.detection import detect
    from stratagem.debugging.environments import canonical
    from stratagem.surfaces.cli.tables import show_fields

    found = detect()
    session.output.answer({"bucket": canonical(found).bucket, **found}, show_fields)


@debug.command("export")
@command
def _export(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; - is stdout.")],
) -> None:
    """Write incidents, solutions and evidence into a file that others can import."""
    from stratagem.debugging.transfer import export_file

    with export_place(file) as place, session.runtime(must_exist=True) as runtime:
        done = export_file(runtime.foundation, place, branch=session.branch)
    if not is_standard(file):
        session.output.answer(asdict(done), _say("Exported"))


@debug.command("import")
@command
def _import(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that export wrote; - is stdin.")
    ],
) -> None:
    """Take incidents, solutions and evidence from a file; importing it again changes nothing."""
    from stratagem.debugging.transfer import import_file

    with import_place(file) as place, session.runtime() as runtime:
        done = import_file(runtime.foundation, session.caller, place)
    session.output.answer({**asdict(done), "file": import_name(file)}, _say("Imported"))


def _say(verb: str) -> Any:
    def render(console: Console, answer: Mapping[str, Any]) -> None:
        from stratagem.surfaces.cli.tables import plural

        counts = ", ".join(
            plural(answer[name], name[:-1]) for name in ("incidents", "solutions", "outcomes")
        )
        console.print(f"{verb} {counts} ({answer['file']}).", soft_wrap=True)
        if answer["known"]:
            console.print(f"{answer['known']:,} were known already.")

    return render


def purge(
    invocation: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Say what would be erased, ask, and erase it."""
    output, summarise = invocation.session.output, invocation.operation.summarise
    planned = invocation.run()
    what = summarise(planned).partition(", from every")[0].removeprefix("Would erase ")
    question = f"Erase {what} for good, from the log, every branch and every past moment?"
    if not confirm(output, question, yes=yes):
        raise typer.Abort
    invocation.arguments["confirm"] = True
    answer = invocation.run()
    if output.json:
        output.data(answer)
    else:
        output.prose(summarise(answer))


def show_incidents(console: Console, answer: Answer) -> None:
    """Show a page of incidents."""
    from stratagem.surfaces.cli.tables import brief, table, when

    rows = table("INCIDENT", "STANDING", "FIXES", "WORKED", "CHANGED", "TITLE")
    for each in answer["results"]:
        rows.add_row(
            printable(each["incident_id"]),
            _standing_words(each),
            str(each["solutions"]),
            _ratio(each),
            when(each["changed"])[:16],
            brief(_with_tags(each)),
        )
    _show_page(console, rows, answer)


def show_solutions(console: Console, answer: Answer) -> None:
    """Show a page of fixes."""
    from stratagem.surfaces.cli.tables import brief, table

    rows = table("SOLUTION", "STANDING", "WORKED", "ENVIRONMENT", "INCIDENT", "STEPS")
    for each in answer["results"]:
        rows.add_row(
            printable(each["solution_id"]),
            _standing_words(each),
            _ratio(each),
            printable(each["env_bucket"]),
            printable(each["incident_id"]),
            brief(" / ".join(each["steps"])),
        )
    _show_page(console, rows, answer)


def show_outcomes(console: Console, answer: Answer) -> None:
    """Show a page of outcomes."""
    from stratagem.surfaces.cli.tables import brief, table, when

    rows = table("OUTCOME", "RESULT", "STANDING", "WHEN", "ENVIRONMENT", "SOLUTION", "NOTES")
    for each in answer["results"]:
        rows.add_row(
            printable(each["outcome_id"]),
            "worked" if each["worked"] else "failed",
            _standing_words(each),
            when(each["at"])[:16],
            printable(each["env_bucket"]),
            printable(each["solution_id"]),
            brief(each.get("notes", "")),
        )
    _show_page(console, rows, answer)


def show_details(console: Console, answer: Answer) -> None:
    """Show a record with what belongs to it, and its versions."""
    from stratagem.surfaces.cli.tables import brief, show, table, when

    if incident := answer.get("incident"):
        _show_incident(console, incident, answer)
    for name, render in (("solutions", show_solutions), ("outcomes", show_outcomes)):
        if answer.get(name):
            console.print(f"\n{name}", style="bold")
            render(console, {"results": answer[name]})
    if merged := answer.get("merged_from"):
        console.print(printable(f"\nMerged into it: {', '.join(merged)}"), soft_wrap=True)
    console.print("\nversions", style="bold")
    rows = table("VERSION", "WHEN", "BY", "DID", "WHY")
    for each in answer["versions"]:
        rows.add_row(
            str(each["version"]),
            when(each["at"]),
            printable(each["actor"]),
            each["did"],
            brief(each.get("reason", "")),
        )
    show(console, rows)


def show_statistics(console: Console, answer: Answer) -> None:
    """Show what was predicted and what happened, and what needs attention."""
    from stratagem.surfaces.cli.tables import show_fields

    counts = {name: answer[name] for name in _COUNTS}
    if answer["automatic"]:
        counts["lookups"] = f"{answer['lookups']} ({answer['automatic']} more by the gateway)"
    for name in ("promised", "hit_rate", "calibration_error"):
        counts[name] = _percent(answer[name]) or "nothing reported yet"
    show_fields(console, counts)
    for title, name, columns in _STATISTICS:
        if answer[name]:
            _show_rows(console, title, answer[name], columns)


_COUNTS: Final = (
    *("incidents", "solutions", "outcomes", "lookups", "no_match", "answered"),
    "first_recommendation_worked",
)
_STATISTICS: Final = (
    ("by month", "by_month", ("month", "lookups", "answered", "promised", "hit_rate")),
    (
        "calibration: what was predicted, and what happened",
        "calibration",
        ("from", "to", "answered", "promised", "happened"),
    ),
    (
        "added after a lookup without a match",
        "no_match_then_added",
        ("incident_id", "asked", "title"),
    ),
    ("incidents without a fix", "without_solutions", ("incident_id", "title")),
    (
        "fixes that stopped working",
        "stopped_working",
        ("solution_id", "incident_id", "failures_since", "last_success", "steps"),
    ),
)
_SHARES: Final = frozenset({"promised", "hit_rate", "happened", "from", "to"})
_TIMES: Final = frozenset({"asked", "last_success"})
_LONG: Final = frozenset({"title", "steps"})


def _show_rows(
    console: Console, title: str, listed: Sequence[Answer], columns: Sequence[str]
) -> None:
    from stratagem.surfaces.cli.tables import show, table

    console.print(f"\n{title}", style="bold")
    rows = table(*(column.replace("_", " ").upper() for column in columns))
    for each in listed:
        rows.add_row(*(_cell(column, each[column]) for column in columns))
    show(console, rows)


def _cell(column: str, value: Any) -> str | Text:
    from stratagem.surfaces.cli.tables import brief, when

    if column in _SHARES:
        return _percent(value)
    if column in _TIMES:
        return when(value)[:16]
    return brief(str(value)) if column in _LONG else printable(str(value))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _show_incident(console: Console, incident: Answer, answer: Answer) -> None:
    from stratagem.surfaces.cli.tables import show_fields

    names = ("incident_id", "title", "summary", "error", "tags", "environments", "split_from")
    fields = {name: incident[name] for name in names if incident.get(name)}
    fields["standing"] = _standing_words(incident)
    show_fields(console, fields)
    signature = answer.get("error_signature") or ""
    if "\n" in signature.strip():
        console.print(printable(f"\n{signature.strip()}"), style="dim", soft_wrap=True)


def _standing_words(each: Answer) -> str:
    if each.get("merged_into"):
        return printable(f"merged into {each['merged_into']}")
    if each.get("retired"):
        return printable(f"retired: {each['retired']['reason']}")
    return str(each["standing"])


def _ratio(each: Answer) -> str:
    tried = each["worked"] + each["failed"]
    return f"{each['worked']} of {tried}" if tried else "untried"


def _with_tags(each: Answer) -> str:
    return " ".join([each["title"], *(f"#{tag}" for tag in each["tags"])])


def _show_page(console: Console, rows: Table, answer: Answer) -> None:
    from stratagem.surfaces.cli.tables import show

    if answer["results"]:
        show(console, rows)
    else:
        console.print("Nothing fits." if answer.get("truncated") else "None.")
