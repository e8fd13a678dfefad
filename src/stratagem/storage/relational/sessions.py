"""A connection to a database, as far as the code that all stores share knows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

__all__ = ["Session"]


class Session(Protocol):
    """Runs statements. Rows come from whatever `execute` returns, as from any driver's cursor."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run one statement."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run one statement for each of some rows."""
        ...
