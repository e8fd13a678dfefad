"""review: the group of its commands; `stratagem review` alone lists."""

from __future__ import annotations

import typer

from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
review = typer.Typer(cls=OperationGroup, invoke_without_command=True)
app.add_typer(review, name="review", rich_help_panel="For agents")


@review.callback()
@command
def _review(session: Session) -> None:
    """Review what hooks captured: keep it, pin it, correct it or discard it."""
    from stratagem.operations import find

    answer = session.call("review_list")
    if session.output.json:
        session.output.data(answer)
    else:
        session.output.prose(find("review_list").describe(answer))
