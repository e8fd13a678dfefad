"""corrections: the group of its commands, and what they need besides their operation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stratagem.errors import InvalidInput
from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.inputs import read_value
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app", "backup", "circuits", "configure", "diagnose", "try_out"]

app = typer.Typer()
corrections = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(corrections, name="corrections", rich_help_panel="Gateway")


@corrections.callback()
@command
def _corrections(session: Session) -> None:
    """Corrections of calls: state, policy, figures, lessons."""
    del session  # It has actions only.


def diagnose(invocation: Invocation) -> None:
    """Refuse a diagnosis of nothing."""
    if not {"error", "parameters"}.intersection(invocation.arguments):
        raise InvalidInput(
            "There is nothing to diagnose.",
            hint="Give the arguments of the call as JSON, or what it said with --error.",
        )
    invocation.show(invocation.run())


def configure(
    invocation: Invocation,
    *,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help="Settings to change, such as maxRetries=2."),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what would change.")
    ] = False,
) -> None:
    """Take settings as NAME=VALUE, too."""
    arguments = invocation.arguments
    if not (pairs or {"settings", "preset", "reset"}.intersection(arguments)):
        raise InvalidInput(
            "Nothing to change was given.",
            hint="For example: stratagem corrections configure maxRetries=2, or --preset "
            "production. `stratagem corrections status` shows the settings.",
        )
    if pairs:
        arguments["settings"] = arguments.get("settings", {}) | dict(map(_read_setting, pairs))
    if preview:
        arguments["applyImmediately"] = False
    invocation.show(invocation.run())


def try_out(
    invocation: Invocation,
    *,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="A tool to make a wrong call for.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="With --tool: what is wrong with it.")
    ] = "typeMismatch",
) -> None:
    """Make a wrong call for a tool, too."""
    cases: Any = invocation.arguments.get("testCases", [])
    if tool is not None and isinstance(cases, list):
        invocation.arguments["testCases"] = [*cases, {"tool": tool, "type": kind}]
    invocation.show(invocation.run())


def backup(invocation: Invocation) -> None:
    """Print a backup and nothing else."""
    invocation.session.output.data(invocation.run()["backup"])


def circuits(
    invocation: Invocation,
    *,
    reset: Annotated[
        str | None, typer.Option(metavar="TOOL", help="Close the breaker of a tool.")
    ] = None,
) -> None:
    """Name the tool whose breaker is to be closed with one flag, too."""
    if reset is not None:
        invocation.arguments.update(action="reset", toolName=reset)
    invocation.show(invocation.run())


def _read_setting(given: str) -> tuple[str, Any]:
    """Return the name and the value of a setting.

    Raises:
        InvalidInput: It has no value.
    """
    name, sign, value = given.partition("=")
    if not sign or not name:
        raise InvalidInput(
            f"{given!r} is not NAME=VALUE.", field="settings", hint="For example: maxRetries=2"
        )
    return name, read_value(value)
