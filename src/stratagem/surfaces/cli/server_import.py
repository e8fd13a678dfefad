"""tools import: MCP servers out of the settings files of other programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from stratagem.errors import StratagemError, ValidationFailed
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session

if TYPE_CHECKING:
    from stratagem.gateway.registry.server_imports import ImportedServer

__all__ = ["import_servers", "show_import"]


def import_servers(
    session: Session,
    text: str,
    paths: Mapping[str, str],
    only: Sequence[str],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """Add the servers of a file; one that cannot be added keeps none of the others out."""
    from stratagem.gateway.registry.server_imports import read_servers

    found = read_servers(text, paths)
    unknown = sorted(set(only) - {each.name for each in found})
    if unknown:
        raise ValidationFailed(
            f"The file has no server {unknown[0]!r}.",
            field="only",
            allowed=[each.name for each in found],
        )
    chosen = [each for each in found if not only or each.name in only]
    return {"servers": [_import(session, each, dry_run=dry_run) for each in chosen]}


def _import(session: Session, server: ImportedServer, *, dry_run: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": server.name,
        "state": "skipped" if server.problem else "planned",
        "definition": server.definition,
        "notes": [*([server.problem] if server.problem else ()), *server.notes],
        "grants": [_grant(server, each) for each in server.secrets],
        "registered": [],
    }
    if dry_run or server.problem:
        return entry
    try:
        added = session.call("server_add", **server.definition)
    except StratagemError as error:
        note = " ".join(filter(None, (error.message, error.hint)))
        return {**entry, "state": "failed", "notes": [*entry["notes"], note]}
    return {**entry, "state": "added", "registered": added["registered"] + added["updated"]}


def _grant(server: ImportedServer, secret: str) -> str:
    """Return the command that lets a server have a secret."""
    from stratagem.gateway.secret_grants import origin_of

    definition = server.definition
    url = definition.get("url")
    origin = origin_of(url) if url else f"mcp:{server.name}"
    return shlex.join(filter(None, ["stratagem", "tools", "grant", server.name, secret, origin]))


def show_import(console: Console, answer: Mapping[str, Any]) -> None:
    """Show what became of each server, and what is still to be done for it."""
    for each in answer["servers"]:
        definition = each["definition"]
        words = [definition.get("command", ""), *definition.get("args", ())]
        where = definition.get("url") or shlex.join(filter(None, words))
        console.print(printable(f"{each['name']}: {each['state']}  {where}"), soft_wrap=True)
        for part in ("env", "headers"):
            for name, value in definition.get(part, {}).items():
                console.print(printable(f"  {name}={value}"), soft_wrap=True)
        if each["registered"]:
            console.print(printable(f"  tools: {', '.join(each['registered'])}"), soft_wrap=True)
        for note in each["notes"]:
            console.print(printable(f"  {note}"), style="dim", soft_wrap=True)
        for grant in each["grants"]:
            console.print(printable(f"  needs: {grant}"), soft_wrap=True)
