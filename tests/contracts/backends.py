"""The stores that the contract holds for. A new one is one more row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratagem.storage.contract import Store
from stratagem.storage.sqlite.appending import Adapters
from stratagem.storage.sqlite.store import MEMORY, SqliteStore
from tests.contracts.samples import KINDS, Clock, Words, salts


@dataclass(frozen=True)
class Backend:
    """How to open a store in an empty place, and what it can do beyond the least.

    `reopens`: what was written is there when the same place is opened again.
    `reads_beside_writes`: a snapshot can be held open while others commit.
    """

    name: str
    open: Callable[..., Store]
    reopens: bool = True
    reads_beside_writes: bool = True


def open_sqlite_file(place: Path, clock: Clock, **settings: Any) -> SqliteStore:
    return _sqlite(str(place / "log.db"), clock, **settings)


def open_sqlite_memory(_place: Path, clock: Clock, **settings: Any) -> SqliteStore:
    return _sqlite(MEMORY, clock, **settings)


def _sqlite(path: str, clock: Clock, **settings: Any) -> SqliteStore:
    wanted = {"kinds": KINDS, "indexer": Words(), "durability": "fast", **settings}
    return SqliteStore(path, adapters=Adapters(clock, salts()), **wanted)


BACKENDS = (
    Backend("sqlite-file", open_sqlite_file),
    Backend("sqlite-memory", open_sqlite_memory, reopens=False, reads_beside_writes=False),
)
