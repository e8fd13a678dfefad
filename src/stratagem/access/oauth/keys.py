"""The public keys of an issuer: fetched when first needed, kept, and fetched again as they rotate.

A key that is not known makes the keys be fetched again, but not more often than every few
seconds: otherwise tokens with made-up key names would make a flood of requests to the issuer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from stratagem import limits
from stratagem.access.oauth.settings import OAuthSettings
from stratagem.errors import ServiceUnavailable, StratagemError

__all__ = ["Fetch", "KeySet"]

# Reads an address through the guarded client; anything but an answer of 200 is an error.
Fetch = Callable[[str], Awaitable[bytes]]
Key = Mapping[str, Any]


class KeySet:
    """The keys of one issuer. Runs on one event loop."""

    def __init__(
        self, settings: OAuthSettings, fetch: Fetch, monotonic: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._fetch = fetch
        self._monotonic = monotonic
        self._fetching = asyncio.Lock()
        self._keys: list[Key] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._address = settings.keys

    async def find(self, key_id: str | None) -> Key | None:
        """Return the key of that name, or the only one where a token names none.

        Raises:
            ServiceUnavailable: The issuer's keys cannot be had.
        """
        if self._age(self._fetched) > limits.OAUTH_KEYS_SECONDS:
            await self._renew()
        found = self._find_known(key_id)
        if found is None and self._age(self._tried) > limits.OAUTH_KEYS_RETRY_SECONDS:
            await self._renew()
            found = self._find_known(key_id)
        return found

    def _find_known(self, key_id: str | None) -> Key | None:
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.get("kid") == key_id), None)

    def _age(self, moment: float) -> float:
        return self._monotonic() - moment

    async def _renew(self) -> None:
        before = self._tried
        async with self._fetching:
            if self._tried != before:
                # Somebody else has just asked.
                return
            if not self._keys and self._age(self._tried) < limits.OAUTH_KEYS_RETRY_SECONDS:
                raise _unavailable(self._settings.issuer)
            self._tried = self._monotonic()
            try:
                self._keys = _signing_keys(await self._json(await self._where()))
            except (StratagemError, ValueError) as error:
                # Old keys are better than none, for as long as they would have been kept.
                if not self._keys or self._age(self._fetched) > 2 * limits.OAUTH_KEYS_SECONDS:
                    self._keys = []
                    raise _unavailable(self._settings.issuer) from error
                return
            self._fetched = self._monotonic()

    async def _where(self) -> str:
        """Return where the keys are, as the issuer's metadata says."""
        if self._address is not None:
            return self._address
        issuer = self._settings.issuer
        failure: Exception = ValueError("no metadata")
        for address in _metadata_addresses(issuer):
            try:
                metadata = await self._json(address)
            except (StratagemError, ValueError) as error:
                failure = error
                continue
            keys = metadata.get("jwks_uri")
            # Whoever answers for an issuer must say that it is this one.
            if metadata.get("issuer") == issuer and isinstance(keys, str):
                OAuthSettings(issuer, ("any",), keys).check()
                self._address = keys
                return keys
        raise ValueError(str(failure))

    async def _json(self, address: str) -> dict[str, Any]:
        found = orjson.loads(await self._fetch(address))
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004 -- about what was sent, not a type
        return found


def _metadata_addresses(issuer: str) -> list[str]:
    """Return where an issuer's metadata is, by RFC 8414 and by OpenID Connect."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    inserted = f"/.well-known/oauth-authorization-server{path}"
    return [
        urlunsplit((parts.scheme, parts.netloc, inserted, "", "")),
        urlunsplit(
            (parts.scheme, parts.netloc, f"{path}/.well-known/openid-configuration", "", "")
        ),
    ]


def _signing_keys(document: Mapping[str, Any]) -> list[Key]:
    """Return the public keys for signatures; a shared secret among them is no public key."""
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise ValueError("no keys")  # noqa: TRY004 -- about what was sent, not a type
    return [
        key
        for key in keys[: limits.OAUTH_KEYS_MAX]
        if isinstance(key, dict)
        and key.get("kty") in {"RSA", "EC", "OKP"}
        and key.get("use", "sig") == "sig"
    ]


def _unavailable(issuer: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "The keys of the issuer cannot be fetched, so its tokens cannot be checked.",
        issuer=issuer,
        retry_after=limits.OAUTH_KEYS_RETRY_SECONDS,
        hint="Try again; other tokens still work.",
    )
