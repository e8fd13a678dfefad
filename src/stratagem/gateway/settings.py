"""What the gateway may reach, and where it takes secrets from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple

__all__ = ["GatewaySettings", "SignInPlace"]

_SANDBOX_NETWORK: Final = "STRATAGEM_SANDBOX_NETWORK"
_YES: Final = frozenset({"1", "true", "yes", "on"})


class SignInPlace(NamedTuple):
    """Where the browser of a user comes back to: the address of a server, and the workspace."""

    address: str
    workspace: str = ""

    @property
    def callback(self) -> str:
        """Where authorization servers send users back to."""
        return f"{self.address}/oauth/callback"

    @property
    def metadata_url(self) -> str | None:
        """Where our metadata document is; authorization servers read it over https only."""
        secure = self.address.startswith("https://")
        return f"{self.address}/oauth/client.json" if secure else None

    def page_of(self, state: str) -> str:
        """Return the page that a sign-in begins at."""
        return f"{self.address}/oauth/sign-in/{state}"


def _no_place() -> SignInPlace | None:
    return None


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """`allow_hosts`: private hosts that tools may call all the same.

    `allow_callables`: the Python functions that stored tools may name; None is any.
    `sign_in_place`: where users who sign in to upstream servers come back to; None: to no server.
    """

    allow_hosts: tuple[str, ...] = ()
    allow_callables: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    sign_in_place: Callable[[], SignInPlace | None] = _no_place

    @property
    def sandbox_network(self) -> bool:
        """Whether code may have the whole network, private addresses too."""
        return self.environment.get(_SANDBOX_NETWORK, "").casefold() in _YES
