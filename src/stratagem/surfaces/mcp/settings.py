"""How a server is started."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from stratagem.errors import ValidationFailed
from stratagem.operation import DEFAULT_TOOLSETS

__all__ = ["PORT_DEFAULT", "ServerSettings"]

PORT_DEFAULT: Final = 7437


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server serves, and to whom.

    `namespace` and `branch` are each client's defaults. `port_given`: the port was asked for,
    so no other will do. `server_names` are names by which browsers and proxies may reach the
    server besides the loopback ones; `allow_hosts` are private hosts that tools may call.
    `expose`: patterns of registered tools that clients see as tools in their own right.
    """

    database: str
    namespace: str = "default"
    branch: str = "default"
    toolsets: tuple[str, ...] = DEFAULT_TOOLSETS
    read_only: bool = False
    durability: str = "full"
    embedder: str | None = None
    redaction: str = "basic"
    host: str = "127.0.0.1"
    port: int = PORT_DEFAULT
    port_given: bool = False
    server_names: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()

    def check_toolsets(self) -> None:
        """Refuse toolsets that do not exist.

        Raises:
            ValidationFailed: There is no toolset of that name.
        """
        # The table takes longer to import than a client should wait for the handshake.
        if self.toolsets == DEFAULT_TOOLSETS:
            return
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
