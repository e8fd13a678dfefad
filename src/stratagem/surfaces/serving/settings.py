"""How a server is started."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_patterns import deferred_pattern
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import ValidationFailed
from stratagem.operation import DEFAULT_TOOLSETS

if TYPE_CHECKING:
    from stratagem.access.oauth.settings import OAuthSettings

__all__ = ["PORT_DEFAULT", "ConsoleKeys", "ServerSettings"]

PORT_DEFAULT: Final = 7437
_PUBLIC_URL: Final = deferred_pattern(
    r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?(?:/[\w./~-]*)?"
)


def _random_text(size: int) -> str:
    """Return random bytes as text, as `secrets` does, which takes long to import."""
    return base64.urlsafe_b64encode(os.urandom(size)).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True, repr=False)
class ConsoleKeys:
    """What the sessions of a console are signed with, and the code that opens one without a token.

    `code` is printed where only the operator sees it, and ends at `code_ends_at` (microseconds; 0:
    it was never printed). `marker` is a file that says that it was used, where several processes
    serve; all processes of a server have the same keys.
    """

    secret: bytes = field(default_factory=lambda: os.urandom(32))
    code: str = field(default_factory=lambda: _random_text(24))
    code_ends_at: int = 0
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server serves, and to whom.

    `namespace` and `branch` are each client's defaults. `port_given`: the port was asked for,
    so no other will do. `server_names` are names by which browsers and proxies may reach the
    server besides the loopback ones; `allow_hosts` are private hosts that tools may call, and
    `allow_callables` the Python functions that stored tools may name. `personal` is the database of
    the person who starts it, read beside a project's; `git_folder` where the agent works, if its
    memory follows git.
    `expose`: patterns of registered tools that clients see as tools in their own right.
    `auth`: "token" needs one of every client; "auto" does from the first one on that is created.
    `oauth`: whose tokens are taken besides our own. `public_url` is how clients reach the server
    where a proxy stands before it. `max_connections` is for each process; `trusted_proxies` are
    addresses and networks whose word about a client's address is taken, and which many share.
    `of_files` are variables that hold where the environment has none. `console_keys` sign the
    sessions of browsers; `described` are all settings in words, each with where it comes from.
    `bundles` is the folder for bundles. `of_files` are variables that hold where the environment
    has none.
    """

    database: str
    namespace: str = "default"
    branch: str = "default"
    toolsets: tuple[str, ...] = DEFAULT_TOOLSETS
    read_only: bool = False
    durability: Literal["full", "fast"] = "full"
    embedder: str | None = None
    redaction: Literal["none", "basic", "strict"] = "basic"
    relevance_min: float = TRY_MIN
    host: str = "127.0.0.1"
    port: int = PORT_DEFAULT
    port_given: bool = False
    server_names: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_callables: tuple[str, ...] = ()
    personal: str | None = None
    git_folder: str | None = None
    expose: tuple[str, ...] = ()
    log_format: str = "text"
    workers: int = 1
    redis: str | None = None
    auth: str = "auto"
    oauth: OAuthSettings | None = None
    public_url: str | None = None
    max_connections: int = limits.CONNECTIONS_MAX
    trusted_proxies: tuple[str, ...] = ()
    of_files: Mapping[str, str] = field(default_factory=dict)
    console_keys: ConsoleKeys = field(default_factory=ConsoleKeys, compare=False)
    described: tuple[Mapping[str, str], ...] = field(default=(), compare=False)
    bundles: str | None = None

    @property
    def several_processes(self) -> bool:
        """Whether a client's next request may meet another process, which has no state of it."""
        return self.workers > 1 or self.redis is not None

    @property
    def needs_auth(self) -> bool:
        """Whether every client needs a token even before the first one is created."""
        return self.auth == "token" or self.oauth is not None

    @property
    def reached_by_others(self) -> bool:
        """Whether other machines reach the server, by its address or through a proxy."""
        from ipaddress import ip_address

        on_loopback = self.host == "localhost" or ip_address(self.host).is_loopback
        return not on_loopback or bool(self.known_names)

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names by which clients reach the server besides those of its own machine."""
        if self.public_url is None:
            return self.server_names
        from urllib.parse import urlsplit

        return *self.server_names, urlsplit(self.public_url).netloc

    def check_public_url(self) -> None:
        """Refuse an address that no client could use.

        Raises:
            ValidationFailed: It is no address of a server.
        """
        if self.public_url is None or _PUBLIC_URL.fullmatch(self.public_url):
            return
        raise ValidationFailed(
            "This is not an address by which clients can reach the server.",
            field="public_url",
            hint="Such as https://memory.example.",
        )

    def check_toolsets(self) -> None:
        """Refuse toolsets that do not exist.

        Raises:
            ValidationFailed: There is no toolset of that name.
        """
        # The table takes longer to import than a client should wait for the handshake.
        if self.toolsets == DEFAULT_TOOLSETS:
            return
        from difflib import get_close_matches

        from stratagem.operations import TOOLSETS

        for name in self.toolsets:
            if name not in TOOLSETS:
                near = get_close_matches(name, TOOLSETS, n=1)
                raise ValidationFailed(
                    f"There is no toolset named {name!r}.",
                    field="toolsets",
                    allowed=list(TOOLSETS),
                    hint=f"Did you mean {near[0]}?"
                    if near
                    else f"Choose among: {', '.join(TOOLSETS)}.",
                )
