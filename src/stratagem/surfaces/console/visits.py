"""A request of the console: its caller, workspace, branch, moment and rights.

The branch and the moment stand in the address (`?branch=...&at=...`), so that an address shows the
same to everybody. Whoever looks at a past moment changes nothing there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from cachetools import TTLCache
from starlette.requests import Request

from stratagem import limits
from stratagem.answers import whole
from stratagem.engine.moments import iso
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.operation import Caller
from stratagem.operations import TABLE, authorise, find
from stratagem.surfaces.admission.authenticator import Authenticator, Principal
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.request_scope import PRINCIPAL
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["Console", "Visit"]

_MOMENT_NAMES: Final = ("as_of", "asOf")


class Console:
    """What all requests of a server's console share."""

    def __init__(
        self, settings: ServerSettings, database: Database, authenticator: Authenticator
    ) -> None:
        self.settings = settings
        self.database = database
        self.authenticator = authenticator
        self.examining = asyncio.Lock()
        # Counts over the whole database, cached by everything that they depend on.
        self.counts: TTLCache[str, dict[str, Any]] = TTLCache(
            limits.CONSOLE_COUNTS_MAX, limits.CONSOLE_COUNTS_SECONDS
        )


class Visit:
    """One request, see the module."""

    def __init__(self, console: Console, request: Request, cookie: str) -> None:
        self.console = console
        self.request = request
        self.cookie = cookie
        self.query = request.query_params
        self._known_head: int | None = None
        self._known_shown: dict[str, Any] | None = None

    @property
    def principal(self) -> Principal | None:
        """Who signed in; None where no token is needed."""
        found: Principal | None = self.request.scope[PRINCIPAL]
        return found

    @cached_property
    def caller(self) -> Caller:
        """Who calls operations, on the branch that is looked at."""
        caller = self.console.authenticator.new_caller(self.principal, "console")
        return replace(caller, branch=self.query.get("branch") or caller.branch)

    @property
    def branch(self) -> str:
        """The branch that is looked at."""
        return self.caller.branch

    @property
    def moment(self) -> str | None:
        """The past moment that is looked at, in the words of `as_of`; None is now."""
        return self.query.get("at") or None

    async def last_shown(self) -> str | None:
        """Return when the last of what a past moment shows was written; None if nothing was.

        Raises:
            StratagemError: It is no moment, or there is no such branch.
        """
        if self._known_shown is None:
            self._known_shown = await self.read("strata_history")
        latest: str | None = self._known_shown.get("latest")
        return latest

    @property
    def now(self) -> str:
        """The present, by the clock of the database."""
        return iso(self.console.database.runtime().foundation.store.now())

    @property
    def workspace(self) -> str:
        """The name of the workspace that is looked at."""
        return self.caller.workspace or self.console.authenticator.home

    @cached_property
    def settings(self) -> dict[str, str]:
        """What every address of this visit says besides its own."""
        kept = {name: self.query[name] for name in ("branch", "at") if self.query.get(name)}
        if self.caller.workspace is not None:
            kept["workspace"] = self.caller.workspace
        return kept

    def url(self, path: str, /, **query: Any) -> str:
        """Return the address of a page for whoever looks at the same branch and moment.

        What is given as None is left out, also of the branch and the moment.
        """
        given = {**self.settings, **query}
        kept = {name: str(each) for name, each in given.items() if each not in {None, ""}}
        return f"{path}?{urlencode(kept)}" if kept else path

    def here(self, **query: Any) -> str:
        """Return the address of this page with another query."""
        return self.url(self.request.url.path, **{**dict(self.query), **query})

    async def read(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation that reads, on the branch and at the moment that are looked at."""
        declared = find(name).parameters.get("properties", {})
        if "branch" in declared:
            arguments.setdefault("branch", self.branch)
        for words in _MOMENT_NAMES:
            if words in declared and self.moment is not None:
                arguments.setdefault(words, self.moment)
        return await self.call(name, **arguments)

    async def read_counts(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Read counts over the whole database, cached for a few seconds while nothing is written.

        Where it fails or is not allowed, return the error.
        """
        # What expires, expires by the clock: that is why it is not kept for long.
        depends = [name, arguments, await self._head(), self.moment, self.caller.reach()]
        key = orjson.dumps(depends, option=orjson.OPT_SORT_KEYS).decode()
        found = self.console.counts.get(key)
        if found is None:
            found = self.console.counts[key] = await self.try_read(name, **arguments)
        return found

    async def _head(self) -> int:
        if self._known_head is None:
            self._known_head = int((await self.call("strata_activity", buckets=1))["head"])
        return self._known_head

    async def write(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation that writes, on the branch that is looked at.

        Raises:
            ValidationFailed: A past moment is looked at.
        """
        if self.moment is not None:
            raise ValidationFailed(
                "This is a past moment, where nothing can be changed.",
                field="at",
                hint="Go back to now, or fork a branch from this moment.",
            )
        if "branch" in find(name).parameters.get("properties", {}):
            arguments.setdefault("branch", self.branch)
        return await self.call(name, **arguments)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation; what is None is not given. Values are read whole."""
        given = {key: value for key, value in arguments.items() if value is not None}
        with whole():
            return await self.console.database.call_async(name, given, self.caller)

    async def try_read(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation that reads; where it fails or is not allowed, return the error."""
        try:
            return await self.read(name, **arguments)
        except StratagemError as error:
            return {"results": [], "error": error.message, "hint": error.hint}

    def can(self, name: str, **arguments: Any) -> bool:
        """Whether a button for an operation would work for whoever looks."""
        operation = TABLE[name]
        try:
            authorise(operation, arguments, self.caller)
        except StratagemError:
            return False
        if operation.right_for(arguments) == "read":
            return True
        if self.moment is not None:
            return False
        toolset = {"registry": "gateway"}.get(operation.toolset, operation.toolset)
        return operation.person is None or self.caller.speaks_for_person(toolset)

    @property
    def may_fork(self) -> bool:
        """Whether a branch can be forked: from a past moment too, which is not changed by it."""
        caller = self.caller
        return caller.may("memory", "write") and not caller.read_only

    @property
    def is_operator(self) -> bool:
        """Whether whoever looks may change what belongs to the server: tokens and settings."""
        return self.caller.speaks_for_person("admin", of_host=True)

    def state(self) -> Mapping[str, Any]:
        """Return where the visit is, for programs."""
        return {"workspace": self.workspace, "branch": self.branch, "at": self.moment}
