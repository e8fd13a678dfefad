"""Modules that are imported when they are first used.

NumPy and asyncio take longer to import than a recall takes to answer, and most commands compare no
vectors and wait for nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__all__ = ["asyncio", "np"]


class _DeferredModule:
    """Stands for a module, and keeps each attribute that it was asked for."""

    def __init__(self, name: str) -> None:
        self._name: Final = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import asyncio

    import numpy as np
else:
    asyncio = _DeferredModule("asyncio")
    np = _DeferredModule("numpy")
