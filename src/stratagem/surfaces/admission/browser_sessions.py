"""Sessions of browsers: signed cookies, so that any process of a server knows them.

A cookie says who signed in, by the hash of a token, never by the token itself; each request looks
that hash up, so that a revoked token ends its sessions. An operator who has no token signs in once
by an address that the server printed where only the operator sees it. Cookies are signed with a key
that a server draws when it starts: a restart ends every session.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.surfaces.serving.settings import ConsoleKeys

__all__ = ["BrowserSession", "BrowserSessions"]

SessionKind = Literal["visitor", "token", "jwt", "operator"]
_SECOND: Final = 1_000_000
_KINDS: Final = frozenset({"visitor", "token", "jwt", "operator"})


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """Who a browser signed in as.

    `subject` is the hash of a token, or the token of an authorization server, which proves itself
    and does not live long. A visitor has signed in as nobody; its session only tells its own forms
    from those of other pages. `ends_at` is in microseconds.
    """

    kind: SessionKind
    subject: str
    ends_at: int


class BrowserSessions:
    """Makes and reads the cookies of one server."""

    def __init__(self, keys: ConsoleKeys, now: Callable[[], int]) -> None:
        self._keys = keys
        self._now = now
        self._code_used = False

    def issue(self, kind: SessionKind, subject: str = "") -> str:
        """Return the cookie of a new session."""
        ends_at = self._now() + limits.CONSOLE_SESSION_SECONDS * _SECOND
        return self.seal([kind, subject, ends_at, secrets.token_hex(8)])

    def read(self, cookie: str | None) -> BrowserSession | None:
        """Return the session of a cookie; None where it is none of ours, or has ended."""
        content = self.unseal(cookie)
        match content:
            case [str(kind), str(subject), int(ends_at), str(_)] if kind in _KINDS:
                session = BrowserSession(kind, subject, ends_at)  # type: ignore[arg-type]
                return session if ends_at > self._now() else None
            case _:
                return None

    def form_token(self, cookie: str) -> str:
        """Return what the forms of a session carry, so that no other page can send them."""
        return self._sign(b"form:" + cookie.encode())

    def is_form_token(self, cookie: str | None, given: str) -> bool:
        """Whether a form was made for the session that sends it."""
        if self.read(cookie) is None:
            return False
        return hmac.compare_digest(self.form_token(cookie or "").encode(), given.encode())

    def redeem(self, code: str) -> bool:
        """Whether a code is the one that was printed; it opens a session once, and not for long."""
        right = hmac.compare_digest(code.encode(), self._keys.code.encode())
        if not right or self._now() > self._keys.code_ends_at:
            return False
        return self._use_code()

    def seal(self, content: Any) -> str:
        """Return a value in a form that only this server can have made."""
        body = base64.urlsafe_b64encode(orjson.dumps(content)).decode()
        return f"{body}.{self._sign(body.encode())}"

    def unseal(self, sealed: str | None) -> Any:
        """Return what was sealed; None where it was not, or not by this server."""
        body, _, signature = (sealed or "").partition(".")
        if not hmac.compare_digest(self._sign(body.encode()).encode(), signature.encode()):
            return None
        with suppress(ValueError):
            return orjson.loads(base64.urlsafe_b64decode(body))
        return None

    def _use_code(self) -> bool:
        if self._code_used:
            return False
        self._code_used = True
        if self._keys.marker is None:
            return True
        try:
            # Another process may be asked at the same moment: one of them makes the file.
            Path(self._keys.marker).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _sign(self, content: bytes) -> str:
        digest = hmac.new(self._keys.secret, content, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
