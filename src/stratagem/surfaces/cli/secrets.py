"""secrets: what tools and upstream servers are let in by, kept encrypted and never shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console

from stratagem import limits
from stratagem.errors import InvalidInput
from stratagem.surfaces.cli.operation_commands import Invocation, OperationGroup
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app", "read_secret", "set_secret", "show_secrets"]

app = typer.Typer()
secrets = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(secrets, name="secrets", rich_help_panel="Gateway")


@secrets.callback()
@command
def _secrets(session: Session) -> None:
    """Keep secrets of tools encrypted, and see who may send them."""
    del session  # It has actions only.


def set_secret(invocation: Invocation) -> None:
    """Read a secret without showing it, unless a file or a command has it."""
    given = invocation.arguments
    if "command" in given and len(given["command"]) == 1:
        given["command"] = shlex.split(given["command"][0])
    if not {"file", "command"}.intersection(given):
        given["value"] = read_secret(given["name"])
    invocation.show(invocation.run())


def read_secret(name: str) -> str:
    """Return a secret from the terminal, where it is not shown, or from stdin.

    Raises:
        InvalidInput: There is none.
    """
    if sys.stdin.isatty():
        value: str = typer.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = sys.stdin.read(limits.SECRET_BYTES_MAX + 1).rstrip("\r\n")
    if not value:
        raise InvalidInput("Nothing was given.", hint=f"printf %s VALUE | … {name}")
    return value


def show_secrets(console: Console, answer: Mapping[str, Any]) -> None:
    """Show which secrets there are, and who may send them."""
    from stratagem.surfaces.cli.tables import show, table

    if not answer["secrets"] and not answer["grants"]:
        console.print("No secret was set or granted. Set one: stratagem secrets set NAME")
        return
    rows = table("SECRET", "FROM", "SET BY")
    for each in answer["secrets"]:
        rows.add_row(printable(each["name"]), each["source"], printable(each.get("setBy", "")))
    show(console, rows)
    if not answer["grants"]:
        return
    rows = table("TOOL", "SECRET", "ORIGIN", "STATE")
    for each in answer["grants"]:
        state = each["state"] + (f": {each['reason']}" if "reason" in each else "")
        rows.add_row(*map(printable, (each["tool"], each["name"], each["origin"], state)))
    show(console, rows)
