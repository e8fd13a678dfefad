"""Credentials for upstream servers, for one caller. No answer ever contains one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from stratagem.errors import ValidationFailed
from stratagem.gateway import inputs
from stratagem.gateway.definitions.contract import Runner
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.registry.answers import (
    CredentialList,
    SignedIn,
    SignedOut,
    SignInAnswer,
)
from stratagem.gateway.registry.credentials import UserCredentials
from stratagem.gateway.registry.upstream_runner import UpstreamRunner
from stratagem.gateway.secret_grants import origin_of
from stratagem.operation import Caller

__all__ = ["CredentialService"]


class CredentialService:
    """Signs users in to upstream servers and out, and keeps what they give for one."""

    def __init__(self, caller: Caller, *, runners: Mapping[str, Runner], home: HomeLoop) -> None:
        self._caller = caller
        self._runners = runners
        self._home = home

    async def sign_in(self, given: inputs.SignInInput) -> SignInAnswer:
        """Begin a sign-in; return the address at which the user goes on with it."""
        user = self._user(given.user, "server_sign_in", ["tools", "sign-in", given.name])

        async def work() -> SignInAnswer:
            definition = await self._runner.definition(given.name)
            if "auth" not in definition:
                raise ValidationFailed(
                    f"{given.name} has no sign-in: its definition has no `auth`.",
                    field="name",
                    hint="Add it again with --oauth, or set the credential that its headers name: "
                    f"stratagem tools credential {given.name} NAME",
                )
            return await self._runner.sign_ins.begin(definition, user, given.redirect_uri)

        return await self._home.join(work)

    async def finish(self, given: inputs.FinishSignInInput) -> SignedIn:
        """Finish a sign-in whose browser returned to a program of the user."""
        sign_ins = self._runner.sign_ins
        waiting = await asyncio.to_thread(sign_ins.find, given.state)
        self._user(waiting.user, "sign_in_finish", ["tools", "sign-in", waiting.server])
        return await self._home.join(lambda: sign_ins.finish(given.state, given.code, given.issuer))

    async def give(self, given: inputs.CredentialInput) -> SignedIn:
        """Store a user's value for a server, whose definition names it `${user.NAME}`."""
        command = ["tools", "credential", given.server, given.name]
        user = self._user(given.user, "credential_set", command)
        definition = await self._home.join(lambda: self._runner.definition(given.server))
        wanted = f"${{user.{given.name}}}"
        if wanted not in str(definition):
            raise ValidationFailed(
                f"{given.server} does not need {given.name} from its users.",
                field="name",
                hint=f"Its definition has to refer to it as {wanted}: see servers_list.",
            )
        await asyncio.to_thread(self._keep, definition, user, given.name, given.value)
        return {"server": given.server, "user": user, "signedIn": True}

    async def sign_out(self, given: inputs.SignOutInput) -> SignedOut:
        """Remove a user's credentials for a server."""
        user = self._user(given.user, "credential_remove", ["tools", "sign-out", given.server])
        credentials = self._runner.sign_ins.credentials
        removed = await asyncio.to_thread(credentials.remove, given.server, user, self._caller)
        upstreams = self._runner.upstreams
        await self._home.join(lambda: upstreams.disconnect(given.server, user))
        return {"server": given.server, "user": user, "removed": removed}

    def list(self, _given: inputs.NothingInput) -> CredentialList:
        """Return the caller's own credentials; to administrators, everybody's."""
        everybody = self._caller.speaks_for_person("gateway")
        user = None if everybody else self._caller.actor
        return {"credentials": self._runner.sign_ins.credentials.entries(user)}

    @property
    def _runner(self) -> UpstreamRunner:
        runner = self._runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        return runner

    def _user(self, given: str | None, operation: str, command: Sequence[str]) -> str:
        """Return whose credentials are meant; those of other users need a person."""
        if given is None or given == self._caller.actor:
            return self._caller.actor
        line = [*command, "--user", given]
        self._caller.require_person("gateway", operation, "is about another user", line)
        return given

    def _keep(self, definition: ServerDocument, user: str, name: str, value: str) -> None:
        server = definition["name"]
        url = definition.get("url")
        origin = f"mcp:{server}" if url is None else origin_of(url) or ""
        store = self._runner.sign_ins.credentials
        known = store.read(server, user, origin)
        credentials: UserCredentials = {**known} if known is not None else {"origin": origin}
        values: dict[str, Any] = {**credentials.get("values", {}), name: value}
        credentials["values"] = values
        store.write(server, user, credentials, self._caller)
