"""copy: moving a database between a file and a server, either way."""

from __future__ import annotations

from typing import Annotated

import typer

from stratagem.places import is_address
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.upkeep import PANEL

__all__ = ["app"]

app = typer.Typer()
Place = typer.Argument(help="A file, or postgresql://…; after a # the workspace.")


@app.command("copy", rich_help_panel=PANEL)
@command
def _copy(
    session: Session, *, source: Annotated[str, Place], target: Annotated[str, Place]
) -> None:
    """Copy a database, history and all, into another that is empty.

    What was interrupted goes on where it ended when the command is repeated.
    """
    from stratagem.bootstrap import copy

    with progress(session.output) as report:
        copied = copy(source, target, report)
    head = copied.head
    answer = {
        "events": copied.events,
        "requests": copied.requests,
        "vectors": copied.vectors,
        "head": f"{head.sequence}:{head.hash.hex()}",
    }
    what = "workspace" if is_address(target) else "file"
    session.output.answer(
        answer,
        lambda console, _: console.print(
            f"Copied {copied.events:,} events, {copied.requests:,} remembered requests and "
            f"{copied.vectors:,} vectors. The chain of the {what} ends like the source's."
        ),
    )
