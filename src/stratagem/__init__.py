"""Stratagem: a memory for AI agents that knows how it came to know things."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stratagem.errors import StratagemError

if TYPE_CHECKING:
    from stratagem.gateway.handlers.functions import tool
    from stratagem.sdk.embedded import Stratagem
    from stratagem.sdk.embedded import open_database as open  # noqa: A004 -- reads like `open`
    from stratagem.sdk.remote import connect, connect_async

__all__ = ["Stratagem", "StratagemError", "connect", "connect_async", "open", "tool"]

# Imported on first use: a server answers the handshake before it needs a database.
_LATER = {
    "Stratagem": ("stratagem.sdk.embedded", "Stratagem"),
    "connect": ("stratagem.sdk.remote", "connect"),
    "connect_async": ("stratagem.sdk.remote", "connect_async"),
    "open": ("stratagem.sdk.embedded", "open_database"),
    "tool": ("stratagem.gateway.handlers.functions", "tool"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    value = globals()[name] = getattr(import_module(module), attribute)
    return value
