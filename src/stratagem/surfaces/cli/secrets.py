"""secrets: what tools and upstream servers are let in by, kept encrypted and never shown."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from stratagem import limits
from stratagem.answers import plural
from stratagem.errors import InvalidInput
from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from stratagem.gateway.registry.encryption import SecretCipher
    from stratagem.search.foundation import Foundation

T = TypeVar("T")

if TYPE_CHECKING:
    from stratagem.gateway.registry.answers import SecretList

__all__ = ["app", "read_secret", "set_secret", "show_secrets"]

app = typer.Typer()
secrets = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(secrets, name="secrets", rich_help_panel="Gateway")


@secrets.callback()
@command
def _secrets(session: Session) -> None:
    """Store secrets of tools encrypted, and see which tools may send them."""
    del session  # It has actions only.


@secrets.command("rotate-key")
@command
def _rotate_key(
    session: Session,
    *,
    drop_old: Annotated[
        bool,
        typer.Option(
            help="Drop the old keys from the file afterwards; other databases may need them."
        ),
    ] = False,
) -> None:
    """Make a new key, and encrypt every secret and credential with it, in all workspaces."""
    from stratagem.gateway.registry.encryption import SecretCipher

    cipher = SecretCipher(session.options.file_settings.environment, os.urandom)
    with cipher.sole_change():
        answer = _change_key(session, cipher, drop_old=drop_old)
    session.output.answer(answer, _show_rotation)


def _change_key(session: Session, cipher: SecretCipher, *, drop_old: bool) -> dict[str, Any]:
    from stratagem.access.workspaces import HOME
    from stratagem.bootstrap import workspaces
    from stratagem.gateway.registry.key_rotation import encrypt_anew, is_current

    every = workspaces(session.database) or [HOME]

    def through(work: Callable[[Foundation], T]) -> list[T]:
        found = []
        for each in every:
            with session.runtime(must_exist=True, read_only=False, workspace=each) as runtime:
                found.append(work(runtime.foundation))
        return found

    keys = cipher.key_ids()
    # Of several keys, the first was made by a run that was interrupted, or for another database.
    finished = all(through(lambda foundation: is_current(foundation, keys[0])))
    if finished and not (drop_old and len(keys) > 1):
        cipher.add_key()
    changed = through(lambda foundation: encrypt_anew(foundation, cipher, session.caller))
    dropped = cipher.drop_old_keys() if drop_old else 0
    return {
        "encrypted": sum(changed),
        "workspaces": len(every),
        "key": cipher.key_place(),
        "oldKeys": len(cipher.key_ids()) - 1,
        "droppedKeys": dropped,
    }


def _show_rotation(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(
        f"{plural(answer['encrypted'], 'value')} of {plural(answer['workspaces'], 'workspace')} "
        f"encrypted with the new key of {printable(answer['key'])}: keep a copy of it apart from "
        "the database and its backups.",
        soft_wrap=True,
    )
    if answer["droppedKeys"]:
        console.print(f"{plural(answer['droppedKeys'], 'old key')} dropped.")
    if answer["oldKeys"]:
        console.print(
            f"{plural(answer['oldKeys'], 'old key')} can still be read there. Once no other "
            "database and no backup needs them: stratagem secrets rotate-key --drop-old",
            soft_wrap=True,
        )


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


def show_secrets(console: Console, answer: SecretList) -> None:
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
    for grant in answer["grants"]:
        state = grant["state"] + (f": {grant['reason']}" if "reason" in grant else "")
        rows.add_row(*map(printable, (grant["tool"], grant["name"], grant["origin"], state)))
    show(console, rows)
