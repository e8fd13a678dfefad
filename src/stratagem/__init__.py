"""Stratagem: a memory for AI agents that knows how it came to know things."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stratagem.errors import StratagemError

if TYPE_CHECKING:
    from stratagem.gateway.runners.functions import tool
    from stratagem.sdk import Stratagem
    from stratagem.sdk import open_database as open  # noqa: A004 -- reads like `open`

__all__ = ["Stratagem", "StratagemError", "open", "tool"]

# Imported on first use: a server answers the handshake before it needs a database.
_LATER = {
    "Stratagem": ("stratagem.sdk", "Stratagem"),
    "open": ("stratagem.sdk", "open_database"),
    "tool": ("stratagem.gateway.runners.functions", "tool"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    value = globals()[name] = getattr(import_module(module), attribute)
    return value
