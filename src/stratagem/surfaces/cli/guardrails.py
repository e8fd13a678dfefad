"""guardrails: checks before and after calls of tools."""

from __future__ import annotations

import typer

from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
guardrails = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(guardrails, name="guardrails", rich_help_panel="Gateway")


@guardrails.callback()
@command
def _guardrails(session: Session) -> None:
    """Check calls of tools, before they are made, and their results."""
    del session  # It has actions only.
