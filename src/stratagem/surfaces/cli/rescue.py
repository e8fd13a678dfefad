"""The report of a rescue: how much of a damaged database was lost, and which records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.upkeep import UNHEALTHY

if TYPE_CHECKING:
    from stratagem.bootstrap import Rescued

__all__ = ["RescueOption", "end_rescue", "loss_report", "show_losses"]

RescueOption = Annotated[
    bool,
    typer.Option(
        "--rescue",
        metavar="",
        help="Skip damaged parts: save what can be read, and list what is lost.",
    ),
]
# As many lines as still fit a screen; --json has them all.
_SHOWN_MAX = 20


def loss_report(rescued: Rescued) -> dict[str, Any]:
    """Return what was lost, each event with the record it was about where that is known."""
    return {
        "lost": [
            {
                "sequence": loss.sequence,
                "kind": loss.space.kind if loss.space else None,
                "namespace": loss.space.namespace if loss.space else None,
                "key": loss.key,
            }
            for loss in rescued.losses
        ],
        "unverified": rescued.unverified,
    }


def show_losses(console: Console, report: Mapping[str, Any], *, of: str) -> None:
    """Say what a rescue could not save."""
    lost, unverified = report["lost"], report["unverified"]
    if not lost and not unverified:
        console.print(f"Nothing of {of} is lost.")
        return
    console.print(f"Lost of {of}: {_events(len(lost))}.")
    for loss in lost[:_SHOWN_MAX]:
        about = f" {loss['kind']} {printable(loss['key'])}" if loss["key"] else ""
        where = f" in {printable(loss['namespace'])}" if loss["namespace"] else ""
        console.print(f"  @{loss['sequence']}{about}{where}", soft_wrap=True, markup=False)
    if len(lost) > _SHOWN_MAX:
        console.print(f"  and {len(lost) - _SHOWN_MAX:,} more: --json lists them.")
    if unverified:
        console.print(f"Saved, but out of the chain: {_events(len(unverified))}.")
    if lost:
        console.print("Where the newest version of a record is lost, the one before it was saved.")


def _events(count: int) -> str:
    return f"{count:,} {'event' if count == 1 else 'events'}"


def end_rescue(reports: Iterable[Mapping[str, Any]]) -> None:
    """End as `doctor` does where something is lost: the file is written, and not all is in it."""
    if any(report["lost"] or report["unverified"] for report in reports):
        raise typer.Exit(UNHEALTHY)
