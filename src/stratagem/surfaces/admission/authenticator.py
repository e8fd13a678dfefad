"""Authentication: from the token of a request to the principal who sent it.

Until the first token is created, and unless the server is set otherwise, every client that reaches
a server on loopback may do everything. From the first token on every client needs one,
until `stratagem token off` goes back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cachetools import LRUCache

from stratagem import limits
from stratagem.access.identity import Identity, identity_of
from stratagem.access.oauth import Fetch, KeySet, Verifier
from stratagem.access.refusals import Refusals
from stratagem.access.token_cache import TokenCache
from stratagem.access.tokens import PREFIX, digest
from stratagem.access.workspaces import home_of
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import PermissionDenied, StratagemError, Unauthenticated
from stratagem.operation import Caller
from stratagem.surfaces.admission.browser_sessions import BrowserSession, BrowserSessions
from stratagem.surfaces.admission.quotas import Quotas
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["Authenticator", "Principal"]

logger = logging.getLogger(__name__)

# A principal with it in the server's own workspace is an administrator of the machine.
HOST_SCOPE: Final = "gateway:admin"
# Who opened the console by the address that the server printed.
OPERATOR: Final = "operator"
_EVERYTHING: Final = frozenset({"*:admin", HOST_SCOPE})


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated client: its identity, its workspace, and the hash of its token."""

    identity: Identity
    workspace: str
    token_hash: str


class Authenticator:
    """Authenticates requests. Runs on the server's event loop."""

    def __init__(
        self, settings: ServerSettings, database: Database, fetch: Fetch | None = None
    ) -> None:
        self._settings = settings
        self._database = database
        self._home = home_of(settings.database)
        self._book: TokenCache | None = None
        self._refusals = Refusals()
        self._writing: asyncio.Task[None] | None = None
        self._verifier: Verifier | None = None
        if settings.oauth is not None:
            assert fetch is not None
            keys = KeySet(settings.oauth, fetch, time.monotonic)
            self._verifier = Verifier(
                settings.oauth, keys, home=self._home, monotonic=time.monotonic
            )
        self.quotas = Quotas(time.monotonic)
        self.sessions = BrowserSessions(settings.console_keys, self._now)
        # Where there is no session to remember it, a switched branch belongs to the token.
        self._callers: LRUCache[tuple[str, ...], Caller] = LRUCache(limits.SWITCHED_KEPT_MAX)

    @property
    def home(self) -> str:
        """The workspace that the server's own database is."""
        return self._home

    async def authenticate(
        self,
        authorization: Sequence[str],
        *,
        workspace: str | None = None,
        address: str = "",
        route: str = "",
        any_workspace: bool = False,
    ) -> Principal | None:
        """Return who sent a request; None where no authentication is needed.

        `any_workspace`: of several workspaces that a token opens, one is chosen.

        Raises:
            Unauthenticated: There is no token, or it is not valid.
            PermissionDenied: The token does not open the workspace that was asked for.
            RateLimited: The address has presented too many wrong tokens.
            StratagemError: The database, or the issuer, does not answer.
        """
        if not await self.is_required():
            self._check_home_workspace(workspace)
            return None
        try:
            secret = _bearer_token(authorization)
            identity = await self._identify(secret)
        except Unauthenticated as error:
            self._record_refusal(error, address, route)
            if error.details.get("reason") != "missing":
                self.quotas.count_wrong_token(address)
            raise
        choose = identity.choose_for_page if any_workspace else identity.choose
        return Principal(identity, choose(workspace, self._home), digest(secret))

    async def authenticate_browser(
        self,
        cookie: str | None,
        *,
        workspace: str | None = None,
        address: str = "",
        route: str = "",
    ) -> Principal | None:
        """Return who signed in with a browser; None where no authentication is needed.

        Raises:
            Unauthenticated: Nobody did, or the token is no longer valid.
            PermissionDenied: The workspace is not theirs.
            StratagemError: The database, or the issuer, does not answer.
        """
        session = await self._session(cookie)
        if session is not None and session.kind == OPERATOR:
            identity = await self._operator(session, workspace)
            return Principal(identity, identity.choose(workspace, self._home), OPERATOR)
        if session is None or session.kind == "visitor" or not await self.is_required():
            return await self.authenticate((), workspace=workspace, address=address, route=route)
        try:
            identity = await self._identify_session(session)
        except Unauthenticated as error:
            # A session that ended is asked to begin again, as one that never was.
            raise _refusal("missing", error.message) from error
        token_hash = digest(session.subject) if session.kind == "jwt" else session.subject
        return Principal(identity, identity.choose_for_page(workspace, self._home), token_hash)

    async def _identify_session(self, session: BrowserSession) -> Identity:
        if session.kind == "jwt":
            return await self._identify(session.subject)
        return await self._token_identity(session.subject)

    async def _session(self, cookie: str | None) -> BrowserSession | None:
        # The clock is the database's.
        await self._token_book()
        return self.sessions.read(cookie)

    async def _operator(self, session: BrowserSession, workspace: str | None) -> Identity:
        """Return whoever opened the console where the server runs: all that is there is theirs."""
        rights = {self._home: _EVERYTHING}
        if workspace not in {None, self._home}:
            there = await asyncio.to_thread(self._database.workspaces)
            rights |= {name: _EVERYTHING for name in there if name == workspace}
        return Identity(OPERATOR, "console", rights, session.ends_at)

    def session_for(self, principal: Principal, secret: str) -> str:
        """Return the cookie of a browser that signed in with a token."""
        if principal.identity.key.startswith("token:"):
            return self.sessions.issue("token", principal.token_hash)
        return self.sessions.issue("jwt", secret)

    def _check_home_workspace(self, workspace: str | None) -> None:
        """Refuse another workspace than the server's own to a client without a token."""
        if workspace not in {None, self._home}:
            raise PermissionDenied(
                "Without tokens there is only the server's own workspace.",
                workspace=workspace,
                hint="Make a token that opens it: stratagem token create NAME --workspace ...",
            )

    async def reauthenticate(self, principal: Principal | None) -> None:
        """Check that a principal that was authenticated earlier still would be.

        Raises:
            Unauthenticated: The token was revoked, has expired, or is needed by now.
        """
        if not await self.is_required():
            return
        if principal is None:
            raise _refusal("missing", "This server needs a token.")
        if principal.identity.key.startswith("token:"):
            await self._token_identity(principal.token_hash)
        elif self._is_expired(principal.identity):
            raise _refusal("expired", "Your token has expired.")

    async def is_required(self) -> bool:
        """Whether every client needs a token."""
        book = await self._token_book()
        # Tokens may be turned off while a server runs that other machines reach: it stays closed.
        closed = book.was_in_use and self._settings.reached_by_others
        return self._settings.needs_auth or book.in_use or closed

    def caller(self, principal: Principal | None, surface: str) -> Caller:
        """Return the caller of a request that belongs to no session.

        The same one each time, so that a branch it switches to holds for its token.
        """
        if principal is None:
            return self.new_caller(None, surface)
        key = self.holder_key(principal)
        found = self._callers.get(key)
        if found is None:
            found = self._callers[key] = replace(
                self.new_caller(principal, surface),
                can_switch=not self._settings.several_processes,
                toolsets=None,
            )
        toolsets = self._toolsets_for(surface)
        return found if toolsets is None else replace(found, toolsets=toolsets, origin=found)

    def holder_key(self, principal: Principal) -> tuple[str, ...]:
        """Return what tells holders apart: who they are, and what they may do where they are.

        An authorization server may give the same user another token with other rights.
        """
        identity, workspace = principal.identity, principal.workspace
        whose = "host" if self._is_of_host(identity) else "guest"
        return (identity.key, workspace, whose, *sorted(identity.rights[workspace]))

    def _is_of_host(self, identity: Identity) -> bool:
        return HOST_SCOPE in identity.rights.get(self._home, ())

    def _toolsets_for(self, surface: str) -> frozenset[str] | None:
        """Return what tools may run for clients: over MCP what is on, elsewhere all there is."""
        return frozenset(self._settings.toolsets) if surface == "mcp" else None

    def new_caller(
        self, principal: Principal | None, surface: str, *, can_switch: bool = False
    ) -> Caller:
        """Return a caller that remembers nothing of earlier requests."""
        settings = self._settings
        caller = Caller(
            surface,
            settings.namespace,
            settings.branch,
            can_switch=can_switch,
            # Over HTTP the server's environment says nothing about the client's.
            local=False,
            read_only=settings.read_only,
            authority="network",
            toolsets=self._toolsets_for(surface),
        )
        if principal is None:
            return caller
        return replace(
            caller,
            actor=principal.identity.actor,
            scopes=principal.identity.rights[principal.workspace],
            workspace=None if principal.workspace == self._home else principal.workspace,
            authority="operator" if principal.identity.key == OPERATOR else "token",
            of_host=self._is_of_host(principal.identity),
            tool_sets=principal.identity.tool_sets,
            budget=principal.identity.budget,
        )

    async def close(self) -> None:
        """Write what is still to be written."""
        if self._writing is not None:
            self._writing.cancel()
        await asyncio.to_thread(self._write_refusals)

    async def _identify(self, secret: str) -> Identity:
        if self._verifier is not None and not secret.startswith(PREFIX):
            identity = await self._verifier.verify(secret)
            if self._is_expired(identity):
                raise _refusal("expired", "Your token has expired.")
            return identity
        return await self._token_identity(digest(secret))

    async def _token_identity(self, token_hash: str) -> Identity:
        book = await self._token_book()
        token = book.find(token_hash)
        if token is None:
            raise _refusal("unknown", "Your token is not known.")
        state = token.state(self._now())
        if state != "active":
            words = "has expired" if state == "expired" else "was revoked"
            raise _refusal(state, f"Your token {words}.")
        return identity_of(token)

    def _is_expired(self, identity: Identity) -> bool:
        return identity.expires_at is not None and identity.expires_at <= self._now()

    def _now(self) -> int:
        return self._database.runtime().foundation.store.now()

    async def _token_book(self) -> TokenCache:
        book = self._book
        if book is None:
            runtime = await asyncio.to_thread(self._database.runtime)
            book = self._book = self._book or TokenCache(runtime.foundation, time.monotonic)
        if book.is_due:
            await asyncio.to_thread(book.check)
        return book

    def _record_refusal(self, error: Unauthenticated, address: str, route: str) -> None:
        """Count a refusal, and have it written a moment later."""
        self._refusals.note(str(error.details.get("reason", "other")), address, route)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_refusals_soon())

    async def _write_refusals_soon(self) -> None:
        while self._refusals.any:
            await asyncio.sleep(limits.REFUSALS_WRITTEN_SECONDS)
            await asyncio.to_thread(self._write_refusals)

    def _write_refusals(self) -> None:
        try:
            if self._refusals.any:
                self._refusals.write(self._database.runtime().foundation)
        except StratagemError as error:
            # The request is refused in any case; that it cannot be recorded is said in the log.
            logger.warning("refused authentications could not be recorded: %s", error.message)


def _bearer_token(authorization: Sequence[str]) -> str:
    """Return the one token that a request presents."""
    if not authorization:
        raise _refusal("missing", "This server needs a token.")
    scheme, _, secret = authorization[0].strip().partition(" ")
    if len(authorization) > 1 or scheme.lower() != "bearer" or not secret.strip():
        raise _refusal("malformed", "Send one header: Authorization: Bearer TOKEN.")
    return secret.strip()


def _refusal(reason: str, words: str) -> Unauthenticated:
    return Unauthenticated(words, reason=reason)
