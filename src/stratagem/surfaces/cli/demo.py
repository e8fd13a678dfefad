"""demo: an example database to look at."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratagem.places import typed_command
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

__all__ = ["app"]

app = typer.Typer()


@app.command("demo", rich_help_panel="For agents")
@command
def _demo(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The new file; it must not exist yet.")
    ] = Path("demo.db"),
) -> None:
    """Create an example database to explore: a month of work by a team of agents."""
    from stratagem.bootstrap import Settings
    from stratagem.demo import make_demo

    with progress(session.output) as report:
        answer = make_demo(
            str(file),
            Settings(str(file)).adapters.clock(),
            lambda done, total: report(done, total, "days"),
        )
    session.output.answer(answer, _show)


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    place = shlex.quote(str(answer["path"]))
    console.print(
        f"Created {answer['path']}: {answer['events']:,} events of a month.", soft_wrap=True
    )
    console.print(f"Open it:\n  {typed_command()} --db {place} console", soft_wrap=True)
