"""System: health and proof of the log, sizes, backups, read models, tokens and settings.

Tokens are read by no operation (ADR 10): they are looked after here as on the command line, by
the same service, and only by whoever may administer the server.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from stratagem.access.scopes import PRESETS, ROLES
from stratagem.access.service import Access
from stratagem.access.tokens import Token
from stratagem.answers import plural
from stratagem.engine.moments import duration, iso
from stratagem.errors import PermissionDenied, ServiceUnavailable
from stratagem.gateway.names import AUDITED
from stratagem.places import display_place, is_address
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute
from stratagem.surfaces.console.visits import Visit

__all__ = ["SYSTEM_PAGES"]

_AUDIT_LINES: Final = 30
_PRESENT: Final = "This page shows the system as it is now."
# What each line of the audit has; the rest differs by what happened.
_AUDIT_FACTS: Final = ("at", "event", "sequence")


async def system(visit: Visit) -> ConsolePage:
    """Show how the database is, what it takes, and who may use the server."""
    data = await _system_data(visit)
    return ConsolePage("system.html", "System", data, "system", present=_PRESENT)


async def _system_data(visit: Visit, **more: Any) -> dict[str, Any]:
    status = await visit.call("strata_status")
    operator = visit.is_operator
    tokens = await asyncio.to_thread(_tokens, visit) if operator else None
    return {
        "status": status,
        "sizes": await asyncio.to_thread(_sizes, visit) if visit.caller.workspace is None else [],
        "stores": await visit.try_read("get_server_stats"),
        "operator": operator,
        "may_examine": visit.caller.may("memory", "admin"),
        "tokens": tokens,
        "audit": await asyncio.to_thread(_audit, visit) if operator else [],
        "presets": list(PRESETS),
        "roles": list(ROLES),
        "workspaces": await _workspaces(visit) if operator else [visit.workspace],
        "settings": list(visit.console.settings.described) if operator else [],
        "report": None,
        "secret": None,
        **more,
    }


async def _workspaces(visit: Visit) -> list[str]:
    home = visit.console.authenticator.home
    found = await asyncio.to_thread(visit.console.database.workspaces)
    return [each or home for each in found]


def _sizes(visit: Visit) -> list[dict[str, Any]]:
    """Return the files of a database and how large each is."""
    place = visit.console.settings.database
    if is_address(place):
        return []
    own = Path(place)
    files = [own, *sorted(own.parent.glob(f"{own.name}[-.]*"))]
    return [{"name": each.name, "bytes": each.stat().st_size} for each in files if each.is_file()]


def _access(visit: Visit) -> Access:
    """Return the tokens of the server, for whoever may administer it.

    Raises:
        PermissionDenied: No administrator of the server asks.
    """
    visit.caller.require_person(
        "admin", "This", "decides who may use the server", ["token", "list"], of_host=True
    )
    return Access(visit.console.database.runtime().foundation, visit.caller, os.urandom)


def _tokens(visit: Visit) -> list[dict[str, Any]]:
    access = _access(visit)
    now = access.now()
    return [_describe(each, now) for each in access.every()]


def _describe(token: Token, now: int) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "state": token.state(now),
        "scopes": sorted(token.scopes),
        "workspaces": dict(token.roles),
        "created": iso(token.created_at),
        "expires": None if token.expires_at is None else iso(token.expires_at),
    }


def _audit(visit: Visit) -> list[dict[str, Any]]:
    return [
        {
            **{name: each[name] for name in _AUDIT_FACTS},
            "details": {
                name: value
                for name, value in each.items()
                if name not in _AUDIT_FACTS and value is not None
            },
        }
        for each in _access(visit).audit(_AUDIT_LINES, AUDITED)
    ]


async def _check(visit: Visit, _fields: dict[str, str]) -> ConsolePage:
    """Examine the database: its file, the chain of the log, read models and index."""
    runtime = await asyncio.to_thread(visit.console.database.runtime, visit.caller.workspace)

    def examine() -> dict[str, Any]:
        store = runtime.foundation.store
        findings = store.examine(lambda *_: None, None)
        head = store.reader().log.head()
        return {
            "healthy": not findings,
            "findings": [asdict(each) for each in findings],
            "events": head.sequence,
            "head": f"{head.sequence}:{head.hash.hex()}",
        }

    visit.caller.require("memory", "admin", "examining the database")
    if visit.console.examining.locked():
        # It reads all there is: one at a time leaves the others their server.
        raise ServiceUnavailable(
            "A database of this server is being examined already.", hint="Try again in a while."
        )
    async with visit.console.examining:
        report = await asyncio.to_thread(examine)
    return ConsolePage("system.html", "System", await _system_data(visit, report=report), "system")


async def _create_token(visit: Visit, fields: dict[str, str]) -> ConsolePage:
    name, preset = fields.get("name", "").strip(), fields.get("preset", "full")
    chosen = fields.get("scopes", "").replace(",", " ").split() or list(PRESETS.get(preset, ()))
    ends = fields.get("expires", "").strip()
    seconds = duration(ends, field="expires") // 1_000_000 if ends else None
    workspace = fields.get("workspace") or visit.console.authenticator.home
    role = fields.get("role") or ("admin" if preset == "admin" else "member")

    def create() -> str:
        _, secret = _access(visit).create(name, chosen, {workspace: role}, seconds=seconds)
        return secret

    secret = await asyncio.to_thread(create)
    made = {"name": name, "token": secret}
    return ConsolePage("system.html", "System", await _system_data(visit, secret=made), "system")


async def _revoke_token(visit: Visit, fields: dict[str, str]) -> Done:
    which = fields.get("id", "")
    ended = await asyncio.to_thread(lambda: _access(visit).revoke(which))
    said = f"Revoked {ended.name}: every server refuses it within a second."
    return Done(visit.url("/system"), said)


async def _back_up(visit: Visit, fields: dict[str, str]) -> Done:
    """Write every workspace into one file beside the database."""
    from stratagem.backups import backup

    visit.caller.require_person(
        "admin", "This", "copies everything that the server has", ["backup", "FILE"], of_host=True
    )
    place = visit.console.settings.database
    if is_address(place):
        raise PermissionDenied(
            "A PostgreSQL database is backed up from the command line.",
            hint="Run: stratagem backup FILE",
        )
    name = fields.get("file", "").strip() or "stratagem.backup"
    target = Path(place).parent / Path(name).name
    kept = await asyncio.to_thread(backup, place, target, (), lambda *_: None)
    events = sum(each.events for each in kept)
    copied = f"{plural(len(kept), 'workspace')}, {plural(events, 'event')}"
    said = f"Backed up {copied}, to {display_place(str(target))}."
    return Done(visit.url("/system"), said)


SYSTEM_PAGES: Final = (
    PageRoute(
        "/system",
        system,
        {
            "check": _check,
            "create_token": _create_token,
            "revoke_token": _revoke_token,
            "back_up": _back_up,
        },
    ),
)
