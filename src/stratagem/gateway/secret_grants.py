"""Who may send which secret where: grants, as records of the log.

A definition says `${NAME}`. An administrator grants that name to one tool or one upstream server.
The grant is bound to the handler as it is at that moment, and to one exact origin (scheme, host and
port). Any change of the handler suspends the grant, and removing the tool withdraws it, both as
events of the log: otherwise a caller who may change a tool could have the secret sent elsewhere. A
call compares the handler that it runs with the one that the grant is for, so that a change on
another branch, or one that reached the default branch by a merge, cannot bypass this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict
from urllib.parse import urlsplit

import orjson

from stratagem.deferred_modules import hashlib
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH, Branch, View
from stratagem.gateway import names
from stratagem.storage.contract import RecordReader, Transaction, Version

__all__ = [
    "GrantRecord",
    "effective_state",
    "fingerprint",
    "follow_change",
    "grants_of",
    "grants_with_versions",
    "origin_of",
    "read_grants",
    "settle_grants",
    "withdraw_grants",
    "withdraw_suspended",
    "write_grant",
]

_PORTS: Final = {"http": 80, "https": 443}
_OLD: Final = "it was granted by an earlier release, for any port and any handler"
_CHANGED: Final = "the handler has changed since it was granted"

GrantState = Literal["active", "suspended"]


class GrantRecord(TypedDict):
    """A grant as it is kept.

    `handler` is the fingerprint of what it is bound to. `own`: only a secret that was set in this
    workspace is meant, none of the server's environment.
    """

    tool: str
    name: str
    origin: str
    kind: Literal["tool", "server"]
    handler: str | None
    state: GrantState
    own: NotRequired[bool]
    reason: NotRequired[str]


def fingerprint(handler: Mapping[str, Any]) -> str:
    """Return the fingerprint of a handler, or of a server's definition."""
    return hashlib.sha256(orjson.dumps(handler, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def origin_of(url: str) -> str | None:
    """Return the origin of an address, with its port; None where it has no fixed one."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if port is None or not parts.hostname or "{" in parts.netloc:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def write_grant(transaction: Transaction, view: View, grant: GrantRecord) -> None:
    """Let a tool or a server send a secret to an origin."""
    _append(transaction, view, names.SECRET_GRANTED, grant)


def withdraw_grants(
    transaction: Transaction, view: View, owner: str, name: str | None, reason: str
) -> int:
    """Take a secret, or every secret, away from a tool; return how many grants that ended."""
    doomed = [
        each
        for each in grants_of(transaction.records, view, owner)
        if name is None or each["name"] == name
    ]
    for each in doomed:
        _append(transaction, view, names.SECRET_WITHDRAWN, {**each, "reason": reason})
    return len(doomed)


def withdraw_suspended(transaction: Transaction, view: View, owner: str, name: str) -> None:
    """End the suspended grants of a secret, which is granted again."""
    for each in grants_of(transaction.records, view, owner):
        if each["name"] == name and each["state"] == "suspended":
            ended = {**each, "reason": "granted again"}
            _append(transaction, view, names.SECRET_WITHDRAWN, ended)


def follow_change(
    transaction: Transaction,
    view: View,
    owner: str,
    *,
    kind: Literal["tool", "server"],
    handler: Mapping[str, Any] | None,
) -> None:
    """Suspend the grants of a handler that has changed; withdraw those of one that is gone.

    Grants are those of the default branch: what a tool is elsewhere changes none of them.
    """
    if view.branch.name != DEFAULT_BRANCH:
        return
    now = None if handler is None else fingerprint(handler)
    for each in grants_of(transaction.records, view, owner):
        if each["kind"] != kind:
            continue
        if now is None:
            gone = {**each, "reason": f"the {kind} was removed"}
            _append(transaction, view, names.SECRET_WITHDRAWN, gone)
        elif each["state"] == "active" and each["handler"] != now:
            suspended = {**each, "state": "suspended", "reason": _CHANGED}
            _append(transaction, view, names.SECRET_SUSPENDED, suspended)


def settle_grants(transaction: Transaction, branch: Branch, drafts: Sequence[Draft]) -> None:
    """Follow what a merge, or the commit of a transaction, has changed about tools."""
    view = View(branch, transaction.branches.lineage(branch), transaction.wall)
    for draft in drafts:
        if draft.space == names.TOOLS and draft.key is not None:
            gone = draft.kind == names.TOOL_REMOVED
            handler = None if gone else draft.content.get("handler")
            follow_change(transaction, view, draft.key, kind="tool", handler=handler)


def read_grants(records: RecordReader, view: View) -> list[GrantRecord]:
    """Return every grant."""
    return [each for _version, each in grants_with_versions(records, view)]


def grants_of(records: RecordReader, view: View, owner: str) -> list[GrantRecord]:
    """Return the grants of a tool or a server."""
    return [each for _version, each in grants_with_versions(records, view, owner)]


def grants_with_versions(
    records: RecordReader, view: View, owner: str | None = None
) -> list[tuple[Version, GrantRecord]]:
    """Return every grant, or those of a tool or server, each with the event that wrote it."""
    found: list[tuple[Version, GrantRecord]] = []
    after: str | None = "" if owner is None else f"{owner}{names.PART}"
    while after is not None:
        page, after = records.page(view.lineage, names.GRANTS, after=after)
        for key, version in page:
            if owner is not None and not key.startswith(f"{owner}{names.PART}"):
                return found
            if version.payload is not None:
                found.append((version, _read(orjson.loads(version.payload))))
    return found


def effective_state(
    grant: GrantRecord, kind: str, handler: str | None
) -> tuple[GrantState, str | None]:
    """Return whether a grant holds for a handler, by its fingerprint, and why if it does not."""
    if grant["state"] == "active" and (grant["kind"], grant["handler"]) != (kind, handler):
        return "suspended", _CHANGED
    return grant["state"], grant.get("reason")


def _read(content: dict[str, Any]) -> GrantRecord:
    """Return a grant; one of an earlier release holds no longer, for it was bound to too little."""
    if "origin" in content:
        grant: GrantRecord = content  # type: ignore[assignment]
        return grant
    return {
        "tool": content["tool"],
        "name": content["name"],
        "origin": content["host"],
        "kind": "tool",
        "handler": None,
        "state": "suspended",
        "reason": _OLD,
    }


def _append(transaction: Transaction, view: View, event: str, grant: Mapping[str, Any]) -> None:
    key = names.PART.join((grant["tool"], grant["name"], grant["origin"]))
    transaction.append(view.branch, [Draft(event, grant, names.GRANTS, key)])
