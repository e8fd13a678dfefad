"""Secrets and what they are granted to, for one caller. No answer ever has a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.engine.lineage import DEFAULT_BRANCH, View
from stratagem.errors import ToolNotFound, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.calls import result_cache
from stratagem.gateway.calls.result_cache import Cache
from stratagem.gateway.registry.answers import (
    KeptSecret,
    NewGrant,
    RemovedSecret,
    SecretGrant,
    SecretList,
    WithdrawnGrants,
)
from stratagem.gateway.registry.secret_values import RESERVED_NAMES, SecretSource, SecretValues
from stratagem.gateway.registry.secrets import references
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.secret_grants import (
    GrantRecord,
    effective_state,
    fingerprint,
    grants_with_versions,
    origin_of,
    withdraw_grants,
    withdraw_suspended,
    write_grant,
)
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["SecretService"]


class _Owner(NamedTuple):
    """What a secret is granted to: a tool or an upstream server, as it is now."""

    name: str
    kind: Literal["tool", "server"]
    definition: Mapping[str, Any]

    @property
    def origin(self) -> str | None:
        if self.definition.get("transport") == "stdio":
            return f"mcp:{self.name}"
        url = self.definition.get("url")
        return origin_of(url) if isinstance(url, str) else None


class SecretService:
    """See the module."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        registry: Registry,
        values: SecretValues,
        cache: Cache,
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._registry = registry
        self._values = values
        self._cache = cache

    def set(self, given: inputs.SecretInput) -> KeptSecret:
        """Keep a secret, or where its value is, encrypted."""
        _check_name(given.name)
        sources = {"value": given.value, "file": given.file, "command": given.command}
        source = {kind: each for kind, each in sources.items() if each is not None}
        if len(source) != 1:
            raise ValidationFailed("Give one of `value`, `file` and `command`.", field="value")
        if given.command is not None and not all(given.command[:1]):
            raise ValidationFailed("`command` names a program.", field="command")
        with self._foundation.store.snapshot() as reader:
            if len(self._values.entries(reader)) >= limits.SECRETS_MAX:
                raise ValidationFailed(
                    "There are too many secrets.", field="name", limit=limits.SECRETS_MAX
                )
        kind = self._values.set(given.name, cast("SecretSource", source), self._caller)
        return {"name": given.name, "source": kind, "key": self._values.cipher.key_place()}

    def remove(self, given: inputs.SecretNameInput) -> RemovedSecret:
        """Forget a secret for good; what was granted stays, and finds no value."""
        self._values.remove(given.name, self._caller)
        return {"name": given.name, "removed": True}

    def grant(self, given: inputs.GrantInput) -> NewGrant:
        """Let a tool, or an upstream server, send a secret to an origin."""
        _check_name(given.name)

        def work(transaction: Transaction) -> NewGrant:
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            own = self._values.is_set(transaction, given.name)
            if not own:
                self._require_host(given)
            owner = self._find_owner(transaction, view, given.tool)
            grant: GrantRecord = {
                "tool": owner.name,
                "name": given.name,
                "origin": _chosen_origin(owner, given.origin),
                "kind": owner.kind,
                "handler": fingerprint(owner.definition),
                "state": "active",
            }
            if own:
                grant["own"] = True
            # One that was suspended may have been for another origin.
            withdraw_suspended(transaction, view, owner.name, given.name)
            write_grant(transaction, view, grant)
            return _new_grant(grant, references(owner.definition))

        return self._foundation.write(self._caller, work)

    def withdraw(self, given: inputs.WithdrawInput) -> WithdrawnGrants:
        """Revoke a tool's right to a secret."""
        tool, name = given.tool, given.name

        def work(transaction: Transaction) -> WithdrawnGrants:
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            count = withdraw_grants(transaction, view, tool, name, "withdrawn")
            # Results that were computed with it are dropped too, on every server.
            result_cache.forget_results(transaction, view, tool)
            return {"tool": tool, "name": name, "withdrawn": count}

        answer = self._foundation.write(self._caller, work)
        self._cache.clear(tool)
        return answer

    def list(self, _given: inputs.NothingInput) -> SecretList:
        """Return which secrets there are, and to which tools they were granted."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, DEFAULT_BRANCH)
            grants = [
                self._entry(reader, view, each, version.at, version.actor)
                for version, each in grants_with_versions(reader.records, view)
            ]
            return {"secrets": self._values.entries(reader), "grants": grants}

    def _entry(
        self, reader: Reader, view: View, grant: GrantRecord, at: int, actor: str
    ) -> SecretGrant:
        owner = self._get_owner(reader, view, grant["tool"], grant["kind"])
        now = None if owner is None else fingerprint(owner.definition)
        state, reason = effective_state(grant, grant["kind"], now)
        entry: SecretGrant = {
            "tool": grant["tool"],
            "name": grant["name"],
            "origin": grant["origin"],
            "state": state,
            "grantedAt": moments.iso(at),
            "grantedBy": actor,
        }
        if reason is not None:
            entry["reason"] = reason
        return entry

    def _require_host(self, given: inputs.GrantInput) -> None:
        """Require an administrator of the machine: the secret is from its environment."""
        self._caller.require_person(
            "gateway",
            "secret_grant",
            "gives a tool a secret of the server",
            ["tools", "grant", given.tool, given.name, *filter(None, [given.origin])],
            of_host=True,
        )

    def _find_owner(self, reader: Reader, view: View, name: str) -> _Owner:
        found = self._get_owner(reader, view, name, "tool")
        found = found or self._get_owner(reader, view, name, "server")
        if found is None:
            # Says which one may have been meant.
            self._registry.find(reader, view, name)
            raise ToolNotFound(f"There is no tool or server {name!r}.", field="tool")
        return found

    def _get_owner(
        self, reader: Reader, view: View, name: str, kind: Literal["tool", "server"]
    ) -> _Owner | None:
        if kind == "tool":
            tool = self._registry.get(reader, view, name)
            return None if tool is None else _Owner(tool.name, "tool", tool.handler)
        version = reader.records.current(view.lineage, names.SERVERS, name)
        if version is None or version.payload is None:
            return None
        return _Owner(name, "server", orjson.loads(version.payload))


def _new_grant(grant: GrantRecord, wanted: Collection[str]) -> NewGrant:
    tool, name = grant["tool"], grant["name"]
    answer: NewGrant = {"tool": tool, "name": name, "origin": grant["origin"], "granted": True}
    if name not in wanted:
        answer["note"] = (
            f"{tool} does not refer to ${{{name}}} yet; once it does, this grant is "
            "suspended until a person confirms it."
        )
    return answer


def _check_name(name: str) -> None:
    if name in RESERVED_NAMES:
        raise ValidationFailed(
            f"A secret cannot be named {name}: the variable of that name holds the key of "
            "all secrets.",
            field="name",
            hint="Choose another name.",
        )


def _chosen_origin(owner: _Owner, given: str | None) -> str:
    """Return the exact origin of a grant: that of the handler, which whoever grants may name.

    Raises:
        ValidationFailed: Another one was named.
    """
    actual = owner.origin
    if actual is None:
        named = origin_of(given if given and "://" in given else f"https://{given}")
        if given is None or named is None:
            raise ValidationFailed(
                f"{owner.name} has no fixed address: name the origin, as https://api.example.org.",
                field="origin",
            )
        return named
    if given is None or _is_same(given, actual):
        return actual
    raise ValidationFailed(
        f"{owner.name} is at {actual}, not at {given}.",
        field="origin",
        hint=f"If that is where the secret may go: stratagem tools grant {owner.name} NAME "
        f"{actual}",
    )


def _is_same(given: str, actual: str) -> bool:
    """Whether an origin is meant by what somebody wrote: its port and scheme may be left out."""
    given = given.strip().casefold().rstrip("/")
    if "://" in given:
        return origin_of(given) == actual
    if actual.startswith("mcp:"):
        return given == actual.casefold()
    host_and_port = actual.partition("://")[2]
    return given in {host_and_port, host_and_port.rpartition(":")[0]}
