"""Modules that are imported when they are first used.

NumPy, asyncio and OpenSSL take longer to import than a recall takes to answer, and most commands
compare no vectors, wait for nothing and hash nothing. What guesses a misspelt name (`difflib`) is
needed only by a call that failed.
"""

from __future__ import annotations

import os
from importlib import import_module
from threading import get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

__all__ = ["asyncio", "defer", "difflib", "hashlib", "np"]


# The threads that import something.
_importing: set[int] = set()
# How long a fork waits for them.
_IMPORT_SECONDS_MAX: Final = 1.0


class _DeferredModule:
    """Stands for a module, and keeps each attribute that it was asked for."""

    def __init__(self, name: str) -> None:
        self._name: Final = name

    def __getattr__(self, name: str) -> Any:
        thread = get_ident()
        is_outermost = thread not in _importing
        _importing.add(thread)
        try:
            value = getattr(import_module(self._name), name)
        finally:
            if is_outermost:
                _importing.discard(thread)
        setattr(self, name, value)
        return value


def defer(name: str) -> Any:
    """Return what stands for a module until it is used. For `else` branches of `TYPE_CHECKING`."""
    return _DeferredModule(name)


def _await_imports() -> None:
    """Let other threads end what they import: a child that is forked meanwhile never could."""
    deadline = monotonic() + _IMPORT_SECONDS_MAX
    while _importing - {get_ident()} and monotonic() < deadline:
        sleep(0.002)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_await_imports, after_in_child=_importing.clear)

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
