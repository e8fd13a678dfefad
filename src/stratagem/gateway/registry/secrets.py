"""Secrets of handlers: references in definitions, values only while a call runs.

What may be sent where is a grant (`gateway/secret_grants.py`); where a value comes from is
`secret_values.py`. A value is never returned, logged, or sent to another origin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import AuthorizationRequired, PermissionDenied, SecretUnavailable
from stratagem.gateway.registry.credentials import CredentialStore
from stratagem.gateway.registry.secret_values import SecretValues
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.secret_grants import (
    GrantRecord,
    effective_state,
    fingerprint,
    grants_of,
    origin_of,
)
from stratagem.redaction import mask_values
from stratagem.search.foundation import Foundation

__all__ = ["REFERENCE", "GrantedSecrets", "SecretGrants", "references"]

REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OF_USER: Final = re.compile(r"\$\{user\.([A-Za-z_][A-Za-z0-9_]*)\}")


def references(definition: Mapping[str, Any]) -> set[str]:
    """Return the names of the secrets that a handler, or a definition of a server, refers to."""
    return set(REFERENCE.findall(orjson.dumps(definition).decode()))


@dataclass(slots=True)
class GrantedSecrets:
    """The secrets of one tool or server, for one call.

    `granted` are the origins of each name; `suspended` says why a name is granted no longer.
    `of_user` is what a user has given for this server, and the origin that it is at.
    """

    owner: str
    granted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str | SecretUnavailable] = field(default_factory=dict)
    user: str = ""
    of_user: Mapping[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def resolve(self, text: str, *, origin: str) -> str:
        """Return a text with each reference replaced, for one origin."""
        text = _OF_USER.sub(lambda match: self._value_of_user(match[1]), text)
        return REFERENCE.sub(lambda match: self._value(match[1], origin), text)

    def scrub(self, value: Any) -> Any:
        """Return an answer without the secrets that were sent; tools like to echo them."""
        return mask_values(value, self._used)

    def _value(self, name: str, origin: str) -> str:
        if origin not in self.granted.get(name, ()):
            raise self._refusal(name, origin)
        value = self.values[name]
        if isinstance(value, SecretUnavailable):
            raise value
        self._used.add(value)
        return value

    def _value_of_user(self, name: str) -> str:
        value = self.of_user.get(name)
        if value is None:
            command = f"stratagem tools credential {self.owner} {name} --user {self.user}"
            raise AuthorizationRequired(
                f"{self.owner} needs a {name} of each user, and {self.user} has given none.",
                reason="credential_missing",
                server=self.owner,
                user=self.user,
                credential=name,
                command=command,
                hint=f"Have the user run: {command}, or PUT "
                f"/api/mcp/credentials/{self.owner}/{name} with the value. Then call again.",
            )
        self._used.add(value)
        return value

    def _refusal(self, name: str, origin: str) -> PermissionDenied:
        command = f"stratagem tools grant {self.owner} {name} {origin}"
        if (reason := self.suspended.get(name)) is not None:
            return PermissionDenied(
                f"{self.owner} may no longer send the secret {name}: {reason}.",
                reason="grant_suspended",
                secret=name,
                origin=origin,
                command=command,
                hint=f"Check its handler (stratagem tools show {self.owner}); if it is right, "
                f"have a person run: {command}",
            )
        return PermissionDenied(
            f"{self.owner} may not send the secret {name} to {origin}.",
            reason="not_granted",
            secret=name,
            origin=origin,
            command=command,
            hint=f"An administrator can grant it: {command}",
        )


class SecretGrants:
    """Looks up what was granted, for the calls of a gateway."""

    def __init__(
        self, foundation: Foundation, values: SecretValues, credentials: CredentialStore
    ) -> None:
        self._foundation = foundation
        self.values = values
        self.credentials = credentials

    async def for_tool(self, tool: Tool) -> GrantedSecrets:
        """Return the secrets of a tool; one without references needs no look-up."""
        if tool.has_references:
            return await self._look_up(tool.name, "tool", tool.handler)
        return GrantedSecrets(tool.name)

    async def for_server(self, definition: Mapping[str, Any], user: str | None) -> GrantedSecrets:
        """Return the secrets of an upstream server, by the definition it is connected with.

        With a user, also what that user has given for the server.
        """
        found = await self._look_up(definition["name"], "server", definition)
        if user is not None:
            found.user = user
            found.of_user = await self._foundation.read_async(
                lambda: self._values_of(definition, user)
            )
        return found

    def _values_of(self, definition: Mapping[str, Any], user: str) -> Mapping[str, str]:
        name = definition["name"]
        origin = f"mcp:{name}" if "url" not in definition else origin_of(definition["url"]) or ""
        kept = self.credentials.read(name, user, origin)
        return {} if kept is None else kept.get("values", {})

    def stamp(self, definition: Mapping[str, Any]) -> str:
        """Return a value that changes whenever the secrets of a server change."""
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        wanted = references(definition)
        if not wanted:
            return ""
        held = [
            [each["name"], each["origin"], each["state"], each["handler"]]
            for each in grants_of(reader.records, view, definition["name"])
        ]
        return orjson.dumps([held, self.values.stamp(reader, wanted)]).decode()

    async def _look_up(
        self, owner: str, kind: str, definition: Mapping[str, Any]
    ) -> GrantedSecrets:
        found = await self._foundation.read_async(lambda: self._read(owner))
        wanted, own_fingerprint = references(definition), fingerprint(definition)
        granted: dict[str, frozenset[str]] = {}
        suspended: dict[str, str] = {}
        own: set[str] = set()
        for each in found:
            state, reason = effective_state(each, kind, own_fingerprint)
            name = each["name"]
            if state == "active" and name in wanted:
                granted[name] = granted.get(name, frozenset()) | {each["origin"]}
                if each.get("own"):
                    own.add(name)
            elif reason is not None:
                suspended[name] = reason
        values = await self.values.fetch(granted, own)
        return GrantedSecrets(owner, granted, suspended, values)

    def _read(self, owner: str) -> list[GrantRecord]:
        # Only the default branch counts: the right to write to another branch must not be enough to
        # grant a secret.
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        return grants_of(reader.records, view, owner)
