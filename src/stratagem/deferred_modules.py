"""Modules that are imported when they are first used.

NumPy, asyncio and OpenSSL take longer to import than a recall takes to answer, and most commands
compare no vectors, wait for nothing and hash nothing. What guesses a misspelt name (`difflib`) is
needed only by a call that failed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__all__ = ["asyncio", "defer", "difflib", "hashlib", "np"]


class _DeferredModule:
    """Stands for a module, and keeps each attribute that it was asked for."""

    def __init__(self, name: str) -> None:
        self._name: Final = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


def defer(name: str) -> Any:
    """Return what stands for a module until it is used. For `else` branches of `TYPE_CHECKING`."""
    return _DeferredModule(name)


if TYPE_CHECKING:
    import asyncio
    import difflib
    import hashlib

    import numpy as np
else:
    asyncio = _DeferredModule("asyncio")
    difflib = _DeferredModule("difflib")
    hashlib = _DeferredModule("hashlib")
    np = _DeferredModule("numpy")
