"""outbox and projections: read models outside of the database, and what waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from stratagem import errors
from stratagem.errors import DatabaseCorrupt, ServiceUnavailable
from stratagem.surfaces.cli.output import confirm
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
PANEL = "External read models"
DIFFERENT = errors.TABLE[DatabaseCorrupt.code].exit_code
UNDELIVERED = errors.TABLE[ServiceUnavailable.code].exit_code

outbox = typer.Typer(
    help="Changes that external read models have not received yet.", no_args_is_help=True
)
projections = typer.Typer(help="External read models: Neo4j and Chroma.", no_args_is_help=True)
app.add_typer(outbox, name="outbox", rich_help_panel=PANEL)
app.add_typer(projections, name="projections", rich_help_panel=PANEL)

Name = Annotated[str, typer.Argument(metavar="NAME", help="neo4j or chroma.")]


@outbox.callback()
@command
def _outbox(session: Session) -> None:
    """Show or retry what read models elsewhere still have to be told."""
    del session  # It has actions only.


@projections.callback()
@command
def _projections(session: Session) -> None:
    """External read models: Neo4j and Chroma."""
    del session  # It has actions only.


@outbox.command("status")
@command
def _status(session: Session) -> None:
    """Show how much waits, was delivered and was given up, and why."""
    with session.runtime(must_exist=True) as runtime:
        found = runtime.projections.status()
    session.output.answer({"projections": found}, _show_status)


@outbox.command("retry")
@command
def _retry(
    session: Session,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One projection; default: all.")
    ] = None,
) -> None:
    """Try again at once what waits or was given up, as far as this process can deliver it."""
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        retried = runtime.projections.retry(name)
        for each in runtime.projections.status():
            if each["configured"] and each["name"] in retried:
                runtime.projections.deliver(each["name"], report)
        left = {
            each["name"]: each["pending"] + each["failed"]
            for each in runtime.projections.status()
            if each["name"] in retried
        }
    session.output.answer({"retried": retried, "left": left}, _show_retry)
    if any(left.values()):
        raise typer.Exit(UNDELIVERED)


@projections.command("list")
@command
def _list(session: Session) -> None:
    """Show the read models elsewhere, and whether they are there."""
    with session.runtime(must_exist=True) as runtime:
        troubles = runtime.projections.troubles()
        found = [
            {
                **{name: value for name, value in each.items() if name != "rows"},
                "available": each["configured"] and troubles[each["name"]] is None,
                "trouble": troubles.get(each["name"]),
            }
            for each in runtime.projections.status()
        ]
    session.output.answer({"projections": found}, _show_list)


@projections.command("rebuild")
@command
def _rebuild(session: Session, *, name: Name) -> None:
    """Make a read model anew from the log."""
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        records = runtime.projections.rebuild(name, report)
    answer = {"name": name, "records": records}
    session.output.answer(
        answer, lambda console, _: console.print(f"Rebuilt {name} from {records:,} records.")
    )


@projections.command("verify")
@command
def _verify(session: Session, *, name: Name) -> None:
    """Compare a read model with the log, and list what differs."""
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        found = runtime.projections.verify(name, report)
    answer = asdict(found)
    answer["differences"] = [each._asdict() for each in found.differences]
    session.output.answer({"name": name, **answer}, _show_comparison)
    if found.different:
        raise typer.Exit(DIFFERENT)


@projections.command("remove")
@command
def _remove(
    session: Session,
    *,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Keep nothing in the outbox for a read model that is no longer used."""
    question = (
        f"Forget {name} and all changes that wait for it? The data in the external service stays."
    )
    if not confirm(session.output, question, yes=yes):
        raise typer.Abort
    with session.runtime(must_exist=True) as runtime:
        runtime.projections.remove(name)
    session.output.answer({"removed": name}, lambda console, _: console.print(f"Forgot {name}."))


def _show_status(console: Console, answer: Mapping[str, Any]) -> None:
    if not answer["projections"]:
        console.print("There are no external read models, so nothing is waiting.")
    for each in answer["projections"]:
        console.print(
            f"{each['name']}: {each['pending']:,} pending, {each['failed']:,} failed, "
            f"{each['processed']:,} processed",
            highlight=False,
        )
        for row in each["rows"]:
            if row["error"]:
                told = f"  @{row['sequence']} {row['status']} after {row['attempts']} attempts: "
                console.print(told + row["error"], markup=False, highlight=False, soft_wrap=True)


def _show_retry(console: Console, answer: Mapping[str, Any]) -> None:
    if not answer["retried"]:
        console.print("There are no external read models, so nothing is waiting.")
    for name, count in answer["retried"].items():
        left = answer["left"][name]
        console.print(f"{name}: {count:,} had failed; {left:,} are still waiting.", highlight=False)


def _show_list(console: Console, answer: Mapping[str, Any]) -> None:
    if not answer["projections"]:
        console.print("There are none. STRATAGEM_GRAPH=neo4j or STRATAGEM_VECTORS=chroma adds one.")
    for each in answer["projections"]:
        state = "there" if each["available"] else each["trouble"] or "not configured here"
        made = "made" if each["built"] else "not made yet"
        console.print(f"{each['name']}: {state}; {made}", highlight=False, soft_wrap=True)


def _show_comparison(console: Console, answer: Mapping[str, Any]) -> None:
    name, items = answer["name"], answer["items"]
    for each in answer["differences"]:
        waits = " (waits in the outbox)" if each["waiting"] else ""
        console.print(f"{each['what']}: {each['id']}{waits}", markup=False, highlight=False)
    if answer["different"]:
        told = f"{name} differs from the log in {answer['different']:,} places."
        console.print(f"{told} `stratagem projections rebuild {name}` rebuilds it.")
    else:
        console.print(f"{name} equals the log: {items:,} items.", highlight=False)
