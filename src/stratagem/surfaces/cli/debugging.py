"""debug and env: what debug memory knows, and where one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
debug = typer.Typer(help="Share debug memory, and see how well it does.", no_args_is_help=True)
app.add_typer(debug, name="debug", rich_help_panel="Debugging")


@debug.callback()
@command
def _debug(session: Session) -> None:
    """Share debug memory, and see how well it does."""
    del session  # It has actions only.


@app.command("env", rich_help_panel="Debugging")
@command
def _env(session: Session) -> None:
    """Show this machine's environment, as debugging takes it."""
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write.")],
) -> None:
    """Write incidents, solutions and evidence into a file that others can import."""
    from stratagem.debugging.transfer import export_file

    with session.runtime(must_exist=True) as runtime:
        done = export_file(runtime.foundation, file, branch=session.branch)
    session.output.answer(asdict(done), _say("Exported"))


@debug.command("import")
@command
def _import(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that export wrote.")],
) -> None:
    """Take incidents, solutions and evidence from a file; importing it again changes nothing."""
    from stratagem.debugging.transfer import import_file

    with session.runtime() as runtime:
        done = import_file(runtime.foundation, session.caller, file)
    session.output.answer(asdict(done), _say("Imported"))


@debug.command("stats")
@command
def _stats(session: Session) -> None:
    """Show how often the first recommendation worked, and what needs attention."""
    from stratagem.debugging.statistics import statistics

    with session.runtime(must_exist=True) as runtime:
        foundation = runtime.foundation
        with foundation.store.snapshot() as reader:
            found = statistics(reader, foundation.views.view(reader, session.branch))
    session.output.answer(asdict(found), _show_stats)


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


def _show_stats(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, show_fields, table

    counts = {name: value for name, value in answer.items() if not isinstance(value, list)}
    if counts["hit_rate"] is None:
        counts["hit_rate"] = "nothing reported yet"
    show_fields(console, counts)
    for name, columns in (
        ("by_month", ("month", "answered", "hit_rate")),
        ("without_solutions", ("incident_id", "title")),
        ("stopped_working", ("solution_id", "incident_id", "failures_since", "last_success")),
    ):
        if answer[name]:
            console.print(f"\n{name.replace('_', ' ')}", style="bold")
            rows = table(*(column.replace("_", " ").upper() for column in columns))
            for each in answer[name]:
                rows.add_row(*(printable(str(each[column])) for column in columns))
            show(console, rows)
