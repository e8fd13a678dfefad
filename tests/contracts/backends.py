"""The stores that the contract holds for. A new one is one more row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratagem.storage.contract import Store
from stratagem.storage.postgres.store import PostgresStore
from stratagem.storage.relational.store import Adapters
from stratagem.storage.sqlite.store import MEMORY, SqliteStore
from tests.contracts.samples import KINDS, Clock, Words, salts


@dataclass(frozen=True)
class Backend:
    """How to open a store in an empty place, and what it can do beyond the least.

    `reopens`: what was written is there when the same place is opened again.
    `reads_beside_writes`: a snapshot can be held open while others commit.
    `served`: it needs a server, whose `address` is one of the settings.
    """

    name: str
    open: Callable[..., Store]
    reopens: bool = True
    reads_beside_writes: bool = True
    served: bool = False


def open_sqlite_file(place: Path, clock: Clock, **settings: Any) -> SqliteStore:
    return _sqlite(str(place / "log.db"), clock, **settings)


def open_sqlite_memory(_place: Path, clock: Clock, **settings: Any) -> SqliteStore:
    return _sqlite(MEMORY, clock, **settings)


def _sqlite(path: str, clock: Clock, **settings: Any) -> SqliteStore:
    wanted = {"kinds": KINDS, "indexer": Words(), "durability": "fast", **settings}
    return SqliteStore(path, adapters=Adapters(clock, salts()), **wanted)


def open_postgres(place: Path, clock: Clock, **settings: Any) -> PostgresStore:
    wanted = {
        "kinds": KINDS,
        "indexer": Words(),
        "durability": "fast",
        "workspace": workspace_at(place),
        **settings,
    }
    return PostgresStore(adapters=Adapters(clock, salts()), **wanted)


def workspace_at(place: Path) -> str:
    """Return the workspace that stands for a folder: the same one whenever it is opened."""
    return hashlib.sha256(str(place).encode()).hexdigest()[:32]


BACKENDS = (
    Backend("sqlite-file", open_sqlite_file),
    Backend("sqlite-memory", open_sqlite_memory, reopens=False, reads_beside_writes=False),
    Backend("postgres", open_postgres, served=True),
)
