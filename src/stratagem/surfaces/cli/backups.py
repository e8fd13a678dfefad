"""backup and restore: a copy of a database in one file, made while it is in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from stratagem.errors import InvalidInput, StorageUnavailable
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.upkeep import PANEL

__all__ = ["app"]

app = typer.Typer()


@app.command("backup", rich_help_panel=PANEL)
@command
def _backup(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; it must not exist yet.")],
) -> None:
    """Write a whole copy of the database, history and all, into one file, and examine it.

    The database may be in use meanwhile. A backup that was interrupted goes on when repeated.
    """
    from stratagem.bootstrap import copy

    partial = file.with_name(f"{file.name}.part")
    if file.exists():
        raise InvalidInput(
            f"{file} exists already.", hint="Name another file: a backup never replaces one."
        )
    with progress(session.output) as report:
        copied = copy(session.database, str(partial), report)
    _finish(partial, file)
    answer = {
        "file": str(file),
        "events": copied.head.sequence,
        "head": f"{copied.head.sequence}:{copied.head.hash.hex()}",
    }
    session.output.answer(answer, _show_backup)


@app.command("restore", rich_help_panel=PANEL)
@command
def _restore(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
) -> None:
    """Put a backup into a database that is empty: the one of --db, or your own."""
    from stratagem.bootstrap import copy

    if not file.is_file():
        raise StorageUnavailable(f"There is no backup at {file}.", path=str(file))
    with progress(session.output) as report:
        copied = copy(str(file), session.database, report)
    answer = {
        "file": str(file),
        "events": copied.head.sequence,
        "head": f"{copied.head.sequence}:{copied.head.hash.hex()}",
    }
    session.output.answer(answer, _show_restored)


def _finish(partial: Path, file: Path) -> None:
    """Give a backup its name, without what a closed database leaves beside its file."""
    written = partial.with_name(f"{partial.name}-wal")
    if written.exists() and written.stat().st_size:
        raise StorageUnavailable(
            f"{partial} is in use by another program.",
            path=str(partial),
            hint="End that program and repeat the command: the backup goes on.",
        )
    for end in ("-wal", "-shm", "-vectors", ".lock"):
        partial.with_name(f"{partial.name}{end}").unlink(missing_ok=True)
    partial.rename(file)


def _show_backup(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(f"Wrote {answer['file']}: {answer['events']:,} events, examined.", soft_wrap=True)
    console.print(f"It ends with {answer['head']}", style="dim", soft_wrap=True)


def _show_restored(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(f"Restored {answer['events']:,} events, examined.", soft_wrap=True)
