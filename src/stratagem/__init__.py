"""Stratagem: a memory for AI agents that knows how it came to know things."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stratagem.errors import StratagemError

if TYPE_CHECKING:
    from stratagem.sdk import Stratagem
    from stratagem.sdk import open_database as open  # noqa: A004 -- reads like `open`

__all__ = ["Stratagem", "StratagemError", "open"]

# Imported on first use: a server answers the handshake before it needs a database.
_SDK = {"Stratagem": "Stratagem", "open": "open_database"}


def __getattr__(name: str) -> Any:
    if name not in _SDK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("stratagem.sdk"), _SDK[name])
    return value
