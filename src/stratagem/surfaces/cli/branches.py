"""branch: the group of its actions, and what they need besides their operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from stratagem.errors import MergeConflict, SwitchUnavailable, ValidationFailed
from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.inputs import read_json
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app", "merge", "show_done", "switch"]

app = typer.Typer()
branch = typer.Typer(cls=OperationGroup)
app.add_typer(branch, name="branch", rich_help_panel="Memory")


@branch.callback(invoke_without_command=True)
@command
def _list(session: Session) -> None:
    """Work in isolation: fork, try something, compare, merge it back or delete it."""
    from stratagem.surfaces.cli.tables import show_branches

    session.output.answer(session.call("strata_branch", action="list"), show_branches)


def switch(invocation: Invocation) -> None:
    """Say how to work on another branch."""
    name = invocation.arguments["name"]
    try:
        invocation.run()
    except SwitchUnavailable as error:
        raise SwitchUnavailable(
            "Each command is a separate process and does not remember a branch.",
            hint=f"Add --branch {name}, or set STRATAGEM_BRANCH={name} for this shell.",
        ) from error


def merge(
    invocation: Invocation,
    *,
    decide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONFLICT=WHAT",
            help='source, target, or JSON like {"value": 1}; repeat for several.',
        ),
    ] = None,
) -> None:
    """Merge a branch; say at the command line how conflicts are decided."""
    if decide:
        decisions = dict(_decision(each) for each in decide)
        invocation.arguments["decisions"] = invocation.arguments.get("decisions", {}) | decisions
    try:
        answer = invocation.run()
    except MergeConflict as error:
        error.hint = "Add --decide CONFLICT=source (or =target) for each, or --strategy."
        raise
    invocation.show(answer)


def show_done(console: Console, answer: Mapping[str, Any]) -> None:
    """Show what was done to a branch."""
    name = answer["name"]
    done = {
        "create": f"Created {name}, empty.",
        "fork": f"Forked {name} from {answer.get('parent')} at @{answer.get('forked_at')}.",
        "delete": f"Deleted {name}. `stratagem branch restore {name}` brings it back.",
        "restore": f"Restored {name}.",
    }
    console.print(printable(done[answer["action"]]), soft_wrap=True)


def _decision(given: str) -> tuple[str, Any]:
    # A key may hold a =, so the decision is what follows the last one, unless it is JSON.
    conflict, separator, what = given.partition("={") if "={" in given else given.rpartition("=")
    if not separator:
        raise ValidationFailed(
            f"{given!r} is not a decision.", field="decisions", hint="Write CONFLICT=source."
        )
    if separator == "={":
        return conflict, read_json("{" + what, field="decisions")
    return conflict, what
