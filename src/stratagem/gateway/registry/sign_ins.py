"""Users' sign-ins to upstream servers: begun here, continued in a browser, finished here.

The state between the two halves is stored encrypted in the log, so that the browser may return to
any process of a server. A sign-in is for one user of one server, has a time limit, and is used
once; its remains are erased with old executions. Of the state that the browser brings back only a
hash is stored.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import orjson
from cachetools import TTLCache

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import AuthorizationRequired, ResourceNotFound
from stratagem.gateway import names
from stratagem.gateway.registry.answers import SignedIn, SignInAnswer
from stratagem.gateway.registry.credentials import UserCredentials
from stratagem.gateway.registry.encryption import EncryptedDocument
from stratagem.gateway.registry.secret_values import encryption_keys
from stratagem.gateway.registry.secrets import SecretGrants
from stratagem.gateway.secret_grants import origin_of
from stratagem.gateway.settings import SignInPlace
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

if TYPE_CHECKING:
    from stratagem.gateway.handlers.upstream.oauth import (
        BegunSignIn,
        OAuthClient,
        PendingSignIn,
        UserTokens,
    )

__all__ = ["SignIns", "WaitingSignIn", "authorization_required", "place_of_client"]

_SECOND: Final = 1_000_000
# A token is renewed when so little is left of it that a call could outlast it.
_AHEAD: Final = 30 * _SECOND
_STATE_BYTES: Final = 32
_GATEWAY: Final = Caller(actor="gateway")


class WaitingSignIn(NamedTuple):
    """A sign-in that waits for its user: where it goes on."""

    server: str
    user: str
    address: str


class _KeptSignIn(TypedDict):
    server: str
    user: str
    expiresAt: int
    encrypted: EncryptedDocument


class _Secret(TypedDict):
    """What of a sign-in is encrypted."""

    address: str
    pending: dict[str, Any]


class SignIns:
    """Begins and finishes sign-ins, and keeps the tokens that come of them fresh."""

    def __init__(
        self,
        foundation: Foundation,
        secrets: SecretGrants,
        *,
        oauth: Callable[[], OAuthClient],
        random: Callable[[int], bytes],
        place: Callable[[], SignInPlace | None],
    ) -> None:
        self._foundation = foundation
        self._secrets = secrets
        self._cipher = secrets.values.cipher
        self.credentials = secrets.credentials
        self._oauth = oauth
        self._random = random
        self.place = place
        self._refreshing: dict[tuple[str, str], asyncio.Lock] = {}
        # Repeated calls before the user has signed in get the same sign-in.
        self._waiting: TTLCache[tuple[str, str], SignInAnswer] = TTLCache(
            limits.UPSTREAM_USER_CONNECTIONS_MAX, limits.SIGN_IN_SECONDS / 2
        )

    async def token(
        self, definition: Mapping[str, Any], user: str, rejected: str | None = None
    ) -> str:
        """Return a user's access token for a server; one that has expired is refreshed.

        `rejected` is one that the server did not take.

        Raises:
            AuthorizationRequired: The user has to sign in.
        """
        tokens = await self._read(definition, user)
        if not self._is_stale(tokens, rejected):
            return tokens["accessToken"]
        lock = self._refreshing.setdefault((definition["name"], user), asyncio.Lock())
        async with lock:
            # Somebody else may have refreshed it meanwhile, here or in another process.
            tokens = await self._read(definition, user)
            if self._is_stale(tokens, rejected):
                tokens = await self._refresh(definition, user, tokens)
        return tokens["accessToken"]

    async def begin(
        self, definition: Mapping[str, Any], user: str, redirect_uri: str | None = None
    ) -> SignInAnswer:
        """Begin a sign-in; return the address at which the user goes on with it.

        With a `redirect_uri` of its own the caller takes the answer of the authorization server.

        Raises:
            AuthorizationRequired: There is nowhere for a browser to come back to.
            ExecutionFailed: The server does not say how its users sign in.
        """
        place = self.place()
        server = definition["name"]
        if redirect_uri is None and place is None:
            raise authorization_required(server, user, None)
        if redirect_uri is None and (known := self._waiting.get((server, user))) is not None:
            return known
        state = base64.urlsafe_b64encode(self._random(_STATE_BYTES)).decode().rstrip("=")
        if place is not None and place.workspace:
            state = f"{state}.{place.workspace}"
        metadata_url = place.metadata_url if place is not None and redirect_uri is None else None
        coming_back = redirect_uri or cast("SignInPlace", place).callback
        begun = await self._oauth().begin(
            definition["url"],
            redirect_uri=coming_back,
            metadata_url=metadata_url,
            state=state,
            settings=await self._settings_of(definition),
            known_client=lambda issuer: self._known_client(issuer, coming_back),
        )
        expires = self._foundation.store.now() + limits.SIGN_IN_SECONDS * _SECOND
        await asyncio.to_thread(self._keep, state, server, user, expires=expires, begun=begun)
        if redirect_uri is None:
            await asyncio.to_thread(self._keep_client, coming_back, begun.pending)
        address = begun.address
        if redirect_uri is None:
            address = cast("SignInPlace", place).page_of(state)
        answer: SignInAnswer = {
            "server": server,
            "user": user,
            "address": address,
            "state": state,
            "expiresAt": moments.iso(expires),
        }
        if redirect_uri is None:
            self._waiting[server, user] = answer
        return answer

    async def _settings_of(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return how users sign in to a server, with the secret of its client where it has one."""
        settings = dict(definition.get("auth") or {})
        if "clientSecret" in settings:
            granted = await self._secrets.for_server(definition, None)
            origin = origin_of(definition["url"]) or ""
            settings["clientSecret"] = granted.resolve(settings["clientSecret"], origin=origin)
        return settings

    def find(self, state: str) -> WaitingSignIn:
        """Return a sign-in that waits, by its state.

        Raises:
            ResourceNotFound: There is none, or its time is over.
        """
        kept = self._current(self._foundation.store.reader(), state)
        secret: _Secret = self._cipher.decrypt(kept["encrypted"], _place(state))
        return WaitingSignIn(kept["server"], kept["user"], secret["address"])

    async def finish(self, state: str, code: str, issuer: str | None) -> SignedIn:
        """Finish a sign-in: exchange its code, and keep the user's tokens.

        Raises:
            ResourceNotFound: No such sign-in waits any more.
            ExecutionFailed: The authorization server does not take the code.
        """
        kept = await asyncio.to_thread(self._use_up, state)
        secret: _Secret = self._cipher.decrypt(kept["encrypted"], _place(state))
        pending = cast("PendingSignIn", secret["pending"])
        tokens = await self._oauth().finish(pending, code, issuer)
        await asyncio.to_thread(self._write, kept["server"], kept["user"], pending["url"], tokens)
        return {"server": kept["server"], "user": kept["user"], "signedIn": True}

    async def end(self, state: str) -> None:
        """End a sign-in that the authorization server, or the user, has refused."""
        await asyncio.to_thread(self._use_up, state)

    async def _read(self, definition: Mapping[str, Any], user: str) -> UserTokens:
        server, origin = definition["name"], origin_of(definition["url"]) or ""
        found = await self._foundation.read_async(
            lambda: self.credentials.read(server, user, origin)
        )
        if found is None or "oauth" not in found:
            raise authorization_required(server, user, None)
        return cast("UserTokens", found["oauth"])

    def _is_stale(self, tokens: UserTokens, rejected: str | None) -> bool:
        expires = tokens["expiresAt"]
        over = expires is not None and expires - _AHEAD < self._foundation.store.now()
        return over or tokens["accessToken"] == rejected

    async def _refresh(
        self, definition: Mapping[str, Any], user: str, tokens: UserTokens
    ) -> UserTokens:
        server, url = definition["name"], definition["url"]
        fresh = await self._oauth().refresh(url, tokens)
        if fresh is None:
            # Another process may have used the same refresh token a moment ago.
            now = await self._read(definition, user)
            if now["accessToken"] != tokens["accessToken"]:
                return now
            raise authorization_required(server, user, None)
        await asyncio.to_thread(self._write, server, user, url, fresh)
        return fresh

    def _write(self, server: str, user: str, url: str, tokens: UserTokens) -> None:
        origin = origin_of(url) or ""
        known = self.credentials.read(server, user, origin)
        credentials: UserCredentials = {**known} if known is not None else {"origin": origin}
        credentials["oauth"] = cast("dict[str, Any]", tokens)
        self.credentials.write(server, user, credentials, Caller(actor=user))

    def _keep(
        self, state: str, server: str, user: str, *, expires: int, begun: BegunSignIn
    ) -> None:
        secret: _Secret = {"address": begun.address, "pending": dict(begun.pending)}

        def work(transaction: Transaction) -> None:
            known = encryption_keys(transaction, self._foundation)
            kept: _KeptSignIn = {
                "server": server,
                "user": user,
                "expiresAt": expires,
                "encrypted": self._cipher.encrypt(secret, _place(state), known),
            }
            self._append(transaction, names.SIGN_IN_BEGUN, names.SIGN_INS, _key(state), kept)

        self._foundation.write(_GATEWAY, work)

    def _use_up(self, state: str) -> _KeptSignIn:
        def work(transaction: Transaction) -> _KeptSignIn:
            kept = self._current(transaction, state)
            ended = {"server": kept["server"], "user": kept["user"]}
            self._append(transaction, names.SIGN_IN_ENDED, names.SIGN_INS, _key(state), ended)
            return kept

        self._waiting.clear()
        return self._foundation.write(_GATEWAY, work)

    def _current(self, reader: Reader, state: str) -> _KeptSignIn:
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        version = reader.records.current(view.lineage, names.SIGN_INS, _key(state))
        if version is not None and version.payload is not None:
            kept: _KeptSignIn = orjson.loads(version.payload)
            if kept["expiresAt"] > self._foundation.store.now():
                return kept
        raise ResourceNotFound(
            "This sign-in does not exist, was used already, or has expired.",
            field="state",
            hint="Begin again: call the tool again, or stratagem tools sign-in SERVER.",
        )

    def _known_client(self, issuer: str, redirect_uri: str) -> dict[str, Any] | None:
        """Return as what we were registered with an authorization server before."""
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        key = f"{issuer}{names.PART}{redirect_uri}"
        version = reader.records.current(view.lineage, names.OAUTH_CLIENTS, key)
        if version is None or version.payload is None:
            return None
        kept = orjson.loads(version.payload)
        return cast("dict[str, Any]", self._cipher.decrypt(kept["encrypted"], place_of_client(key)))

    def _keep_client(self, redirect_uri: str, pending: PendingSignIn) -> None:
        issuer = pending["metadata"]["issuer"]
        if self._known_client(issuer, redirect_uri) == pending["client"]:
            return
        key = f"{issuer}{names.PART}{redirect_uri}"

        def work(transaction: Transaction) -> None:
            known = encryption_keys(transaction, self._foundation)
            encrypted = self._cipher.encrypt(pending["client"], place_of_client(key), known)
            kept = {"issuer": issuer, "encrypted": encrypted}
            self._append(transaction, names.OAUTH_CLIENT_KEPT, names.OAUTH_CLIENTS, key, kept)

        self._foundation.write(_GATEWAY, work)

    def _append(
        self, transaction: Transaction, kind: str, space: Any, key: str, content: Any
    ) -> int:
        view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
        return transaction.append(view.branch, [Draft(kind, content, space, key)])[0].sequence


def authorization_required(
    server: str, user: str, address: str | None, reason: str = "sign_in"
) -> AuthorizationRequired:
    """Return the error of a call that a user has to sign in for."""
    command = f"stratagem tools sign-in {server} --user {user}"
    where = f"Open {address}" if address else f"Have a person run: {command}"
    return AuthorizationRequired(
        f"{server} requires its users to sign in, and {user} has not.",
        reason=reason,
        server=server,
        user=user,
        **({"address": address} if address else {}),
        command=command,
        hint=f"{where}. Then call again.",
    )


def _key(state: str) -> str:
    return sha256(state.encode()).hexdigest()


def place_of_client(key: str) -> str:
    """Return what the ciphertext of a client is bound to, by the key of its record."""
    return f"client\0{key}"


def _place(state: str) -> str:
    return f"sign-in\0{_key(state)}"
