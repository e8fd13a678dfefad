"""Checking a JWT: its signature first, then everything it claims.

The algorithm is never taken on the token's word: it must be one of a list that has asymmetric
ones only, and the key must be of its kind. So `none`, and a public key used as a shared secret,
are refused before anything is computed. Addresses and keys in a token's header are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cachetools import TTLCache

from stratagem import limits
from stratagem.access.identity import Identity
from stratagem.access.oauth.claims import identity_from
from stratagem.access.oauth.keys import KeySet
from stratagem.access.oauth.settings import OAuthSettings
from stratagem.access.tokens import digest
from stratagem.errors import ServiceUnavailable, Unauthenticated

if TYPE_CHECKING:
    import jwt

__all__ = ["ALGORITHMS", "Verifier", "check_installed"]

# Each algorithm, and the kind of key that it takes.
ALGORITHMS: Final[Mapping[str, str]] = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
}
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt", "application/jwt"})
_RSA_BITS_MIN: Final = 2048


class Verifier:
    """Tells who holds a JWT. Runs on one event loop."""

    def __init__(
        self,
        settings: OAuthSettings,
        keys: KeySet,
        *,
        home: str,
        monotonic: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._home = home
        self._verified: TTLCache[str, Identity] = TTLCache(
            limits.OAUTH_KEPT_MAX, limits.OAUTH_KEPT_SECONDS, timer=monotonic
        )

    async def verify(self, token: str) -> Identity:
        """Return who holds a token.

        Raises:
            Unauthenticated: It is not one of the issuer's, not for us, or not valid now.
            ServiceUnavailable: The issuer's keys cannot be had.
        """
        if len(token) > limits.OAUTH_TOKEN_CHARS_MAX:
            raise _refusal("too_long", "is too long")
        hashed = digest(token)
        identity = self._verified.get(hashed)
        if identity is None:
            identity = identity_from(await self._verify_claims(token), self._settings, self._home)
            self._verified[hashed] = identity
        return identity

    async def _verify_claims(self, token: str) -> Mapping[str, Any]:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError as error:
            raise _refusal("malformed", "is not a JWT") from error
        algorithm = _algorithm(header)
        key_id = header.get("kid")
        found = await self._keys.find(key_id if isinstance(key_id, str) else None)
        if found is None:
            raise _refusal("unknown_key", "is signed with a key that its issuer has not published")
        try:
            return self._decode(jwt, token, found, algorithm)
        except jwt.ExpiredSignatureError as error:
            raise _refusal("expired", "has expired") from error
        except jwt.ImmatureSignatureError as error:
            raise _refusal("not_yet_valid", "is not valid yet") from error
        except jwt.InvalidAudienceError as error:
            raise _refusal("audience", "is for another audience") from error
        except jwt.InvalidIssuerError as error:
            raise _refusal("issuer", "is of another issuer") from error
        except (jwt.InvalidTokenError, jwt.PyJWKError) as error:
            raise _refusal("signature", "has a signature that does not match") from error

    def _decode(
        self, library: Any, token: str, found: Mapping[str, Any], algorithm: str
    ) -> Mapping[str, Any]:
        if found.get("kty") != ALGORITHMS[algorithm] or found.get("alg", algorithm) != algorithm:
            raise _refusal("key_confusion", "names an algorithm that does not fit its key")
        key: jwt.PyJWK = library.PyJWK(dict(found), algorithm)
        if getattr(key.key, "key_size", _RSA_BITS_MIN) < _RSA_BITS_MIN and key.key_type == "RSA":
            raise _refusal("weak_key", "is signed with a key that is too short")
        claims: Mapping[str, Any] = library.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=list(self._settings.audiences),
            issuer=self._settings.issuer,
            leeway=limits.OAUTH_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims


def _algorithm(header: Mapping[str, Any]) -> str:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise _refusal("algorithm", "names an algorithm that is not accepted")
    kind = header.get("typ")
    if kind is not None and str(kind).lower() not in _TYPES:
        # A token about somebody (an id token has no type of its own) is caught by its audience.
        raise _refusal("type", "is not an access token")
    if "crit" in header:
        raise _refusal("critical", "has a critical header (`crit`) that is not supported")
    return algorithm


def _refusal(reason: str, words: str) -> Unauthenticated:
    return Unauthenticated(f"Your token {words}.", reason=reason)


def check_installed() -> None:
    """Refuse to start where keys could not be read.

    Raises:
        ServiceUnavailable: The parts for it are not installed.
    """
    try:
        import cryptography.hazmat.primitives  # noqa: F401
        import jwt  # noqa: F401
    except ImportError as error:
        raise ServiceUnavailable(
            f"A package that OAuth needs is missing: {error}.",
            hint="Install it with: pip install 'stratagem[oauth]'.",
        ) from error
