"""Secrets of handlers: references in definitions, values only while a call runs.

A definition says `${NAME}`. An administrator grants that name to one tool for one host; the value
is taken from the environment of the server when the tool is called, and is never stored, returned
or sent to any other host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import PermissionDenied
from stratagem.gateway import names
from stratagem.gateway.registry.answers import SecretGrant
from stratagem.gateway.registry.tools import Tool
from stratagem.redaction import mask_values
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import RecordReader, Transaction

__all__ = ["REFERENCE", "GrantedSecrets", "SecretGrants", "grant", "grants", "withdraw"]

REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# The server's environment variable of a secret begins with this, so that no definition can
# reach what else is in the environment.
PREFIX: Final = "STRATAGEM_SECRET_"


def grant(transaction: Transaction, view: View, *, tool: str, name: str, host: str) -> None:
    """Let a tool send a secret to a host."""
    content = {"tool": tool, "name": name, "host": host.casefold()}
    key = f"{tool}\x1f{name}\x1f{host.casefold()}"
    transaction.append(view.branch, [Draft(names.SECRET_GRANTED, content, names.GRANTS, key)])


def withdraw(transaction: Transaction, view: View, *, tool: str, name: str) -> int:
    """Take a secret away from a tool; return for how many hosts it was granted."""
    doomed = [
        each
        for each in grants(transaction.records, view)
        if (each["tool"], each["name"]) == (tool, name)
    ]
    drafts = [
        Draft(names.SECRET_WITHDRAWN, each, names.GRANTS, f"{tool}\x1f{name}\x1f{each['host']}")
        for each in doomed
    ]
    transaction.append(view.branch, drafts)
    return len(doomed)


def grants(records: RecordReader, view: View) -> list[SecretGrant]:
    """Return what was granted, without values."""
    found: list[SecretGrant] = []
    after: str | None = ""
    while after is not None:
        page, after = records.page(view.lineage, names.GRANTS, after=after)
        found += [orjson.loads(version.payload) for _key, version in page if version.payload]
    return found


class GrantedSecrets:
    """The secrets of one tool, for one call."""

    def __init__(
        self, tool: str, granted: Mapping[str, frozenset[str]], environment: Mapping[str, str]
    ) -> None:
        self._tool = tool
        self._granted = granted
        self._environment = environment
        self._used: set[str] = set()

    def resolve(self, text: str, *, host: str) -> str:
        """Return a text with each reference replaced, for one host."""
        return REFERENCE.sub(lambda match: self._value(match[1], host.casefold()), text)

    def scrub(self, value: Any) -> Any:
        """Return an answer without the secrets that were sent; tools like to echo them."""
        return mask_values(value, self._used)

    def _value(self, name: str, host: str) -> str:
        hosts = self._granted.get(name, frozenset())
        if host not in hosts and host.partition(":")[0] not in hosts:
            raise PermissionDenied(
                f"{self._tool} may not send the secret {name} to {host}.",
                secret=name,
                host=host,
                hint=f"An administrator can: stratagem tools grant {self._tool} {name} {host}",
            )
        value = self._environment.get(PREFIX + name)
        if value is None:
            raise PermissionDenied(
                f"The server has no secret {name}.",
                secret=name,
                hint=f"Start it with the environment variable {PREFIX}{name}.",
            )
        self._used.add(value)
        return value


class SecretGrants:
    """Looks up what was granted, for the calls of a gateway."""

    def __init__(self, foundation: Foundation, environment: Mapping[str, str]) -> None:
        self._foundation = foundation
        self._environment = environment

    async def for_tool(self, tool: Tool) -> GrantedSecrets:
        """Return the secrets of a tool; one without references needs no look-up."""
        if "${" in str(tool.handler):
            return await self.of(tool.name)
        return GrantedSecrets(tool.name, {}, self._environment)

    async def of(self, owner: str) -> GrantedSecrets:
        """Return the secrets that were granted to a tool, or to an upstream server."""
        return await self._foundation.read_async(lambda: self._read(owner))

    def _read(self, owner: str) -> GrantedSecrets:
        granted: dict[str, frozenset[str]] = {}
        # Whoever may write to another branch must not be able to grant anything by it.
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, "default")
        for each in grants(reader.records, view):
            if each["tool"] == owner:
                hosts = granted.get(each["name"], frozenset())
                granted[each["name"]] = hosts | {each["host"]}
        return GrantedSecrets(owner, granted, self._environment)
