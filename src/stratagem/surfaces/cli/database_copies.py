"""copy: moving a database between a file and a server, either way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.upkeep import PANEL

__all__ = ["Discard", "app", "discard_unfinished"]

app = typer.Typer()
Discard = Annotated[
    bool,
    typer.Option(
        "--discard", metavar="", help="Delete what an interrupted run of this command wrote."
    ),
]
Place = typer.Argument(help="A file, or postgresql://…; after a # one workspace of it.")


@app.command("copy", rich_help_panel=PANEL)
@command
def _copy(
    session: Session,
    *,
    source: Annotated[str, Place],
    target: Annotated[str, Place],
    discard: Discard = False,
) -> None:
    """Copy a database, with all workspaces and their history, into an empty one.

    What was interrupted goes on where it ended when the command is repeated; until then the target
    cannot be used. With --discard it is thrown away instead, and nothing is copied.
    """
    from stratagem.backups import copy_all

    if discard:
        discard_unfinished(session, target)
        return
    with progress(session.output) as report:
        copied, left_out = copy_all(source, target, report)
    parts = [
        {
            "workspace": name,
            "events": each.events,
            "requests": each.requests,
            "vectors": each.vectors,
            "head": f"{each.head.sequence}:{each.head.hash.hex()}",
        }
        for name, each in copied.items()
    ]
    answer: dict[str, Any] = {
        name: sum(part[name] for part in parts) for name in ("events", "requests", "vectors")
    }
    if len(parts) == 1:
        answer["head"] = parts[0]["head"]
    answer |= {"workspaces": parts, "leftOut": left_out}
    session.output.answer(answer, _show)


def discard_unfinished(session: Session, target: str) -> None:
    """Throw away what an interrupted copy or restore wrote into a database."""
    from stratagem.backups import discard

    names = discard(target)
    said = ", ".join(map(printable, names))
    session.output.answer(
        {"discarded": names},
        lambda console, _: console.print(f"Deleted the unfinished copy: {said}."),
    )


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    names = [printable(part["workspace"]) for part in answer["workspaces"]]
    ends = "The chain of each ends" if len(names) > 1 else "Its chain ends"
    console.print(
        f"Copied {answer['events']:,} events, {answer['requests']:,} results of requests "
        f"and {answer['vectors']:,} vectors of {', '.join(names)}. {ends} like the source's.",
        soft_wrap=True,
    )
    if answer["leftOut"]:
        said = ", ".join(map(printable, answer["leftOut"]))
        console.print(f"Not copied, because one workspace was named: {said}.", soft_wrap=True)
