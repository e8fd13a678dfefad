"""backup and restore: a copy of a database in one file, made while it is in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from stratagem.surfaces.cli.database_copies import Discard, discard_unfinished
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.rescue import RescueOption, end_rescue, loss_report, show_losses
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.upkeep import PANEL

if TYPE_CHECKING:
    from stratagem.backups import WorkspaceCopy
    from stratagem.bootstrap import Rescued

__all__ = ["app"]

app = typer.Typer()
Workspace = Annotated[
    list[str] | None,
    typer.Option(
        "--workspace", metavar="NAME", help="Only this workspace; repeatable. Default: all."
    ),
]


@app.command("backup", rich_help_panel=PANEL)
@command
def _backup(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The new file; it must not exist yet.")
    ],
    workspace: Workspace = None,
    rescue: RescueOption = False,
) -> None:
    """Write the whole database, every workspace with its history, into one file, and verify it.

    The database may be in use meanwhile. A backup that was interrupted goes on when repeated.
    """
    from stratagem.backups import backup

    rescued: dict[str, Rescued] | None = {} if rescue else None
    with progress(session.output) as report:
        kept = backup(session.database, file, workspace or (), report, rescued=rescued)
    answer = _answer(file, kept)
    losses = {name: loss_report(each) for name, each in (rescued or {}).items()}
    session.output.answer(answer | ({"rescued": losses} if rescue else {}), _show_backup)
    end_rescue(losses.values())


@app.command("restore", rich_help_panel=PANEL)
@command
def _restore(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    workspace: Workspace = None,
    discard: Discard = False,
) -> None:
    """Restore a backup into an empty database: the one of --db, or your own.

    What was interrupted goes on when the command is repeated; until then the database cannot be
    used. With --discard it is thrown away instead, and nothing is restored.
    """
    from stratagem.backups import restore

    if discard:
        discard_unfinished(session, session.database)
        return

    with progress(session.output) as report:
        kept = restore(file, session.database, workspace or (), report)
    session.output.answer(_answer(file, kept), _show_restored)


def _answer(file: Path, kept: list[WorkspaceCopy]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "file": str(file),
        "events": sum(each.events for each in kept),
        "workspaces": [each._asdict() for each in kept],
    }
    # What `doctor --expect` takes, where there is only one.
    return answer | {"head": kept[0].head} if len(kept) == 1 else answer


def _show_backup(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(f"Wrote {answer['file']}: {_summary(answer)}, examined.", soft_wrap=True)
    _show_heads(console, answer)
    for name, losses in answer.get("rescued", {}).items():
        show_losses(console, losses, of=printable(name))


def _show_restored(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(f"Restored {_summary(answer)}, examined.", soft_wrap=True)
    _show_heads(console, answer)


def _summary(answer: Mapping[str, Any]) -> str:
    count = len(answer["workspaces"])
    parts = f" in {count} workspaces" if count > 1 else ""
    return f"{answer['events']:,} events{parts}"


def _show_heads(console: Console, answer: Mapping[str, Any]) -> None:
    for each in answer["workspaces"]:
        name = printable(each["workspace"])
        console.print(f"{name} ends with {each['head']}", style="dim", soft_wrap=True)
