"""What the gateway may reach, and where it takes secrets from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["GatewaySettings"]

_SANDBOX_NETWORK: Final = "STRATAGEM_SANDBOX_NETWORK"
_YES: Final = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """`allow_hosts`: private hosts that tools may call all the same.

    `allow_callables`: the Python functions that stored tools may name; None is any.
    """

    allow_hosts: tuple[str, ...] = ()
    allow_callables: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def sandbox_network(self) -> bool:
        """Whether code may have the whole network, private addresses too."""
        return self.environment.get(_SANDBOX_NETWORK, "").casefold() in _YES
