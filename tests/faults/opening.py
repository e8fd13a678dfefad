"""Databases opened in the ways that faults need and people do not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

from stratagem import limits
from stratagem.bootstrap import Runtime, Settings
from stratagem.engine.records import Kinds
from stratagem.knowledge.spaces import CERTAINTY, CONCEPT, RELATIONSHIP, TYPES
from stratagem.memory.kinds import KINDS
from stratagem.operation import Caller
from stratagem.projections.assembly import Subscribed, assemble
from stratagem.projections.settings import ExternalSettings
from stratagem.sdk.embedded import Stratagem
from stratagem.search import embedding
from stratagem.search.foundation import Foundation
from stratagem.search.index import Index
from stratagem.storage.relational.store import Adapters
from stratagem.storage.sqlite.store import SqliteStore
from stratagem.storage.views import Views


def read_clock() -> int:
    return time.time_ns() // 1000  # noqa: TID251 -- the clock of a database under test


def open_with(
    path: Path,
    *,
    clock: Callable[[], int] = read_clock,
    lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
    embedder: str = "none",
) -> Stratagem:
    """Open a database with a clock or a patience of one's own."""
    index = Index(embedding.choose(embedder), path.with_name(f"{path.name}-vectors"))
    store = SqliteStore(
        str(path),
        kinds=Kinds(KINDS),
        indexer=index,
        adapters=Adapters(clock, os.urandom),
        lock_wait_seconds=lock_wait_seconds,
    )
    index.attach(store, follow=False)
    foundation = Foundation(store, Views(store, lambda: UTC), index, "full", "0")
    wanted = Subscribed(CONCEPT, RELATIONSHIP, CERTAINTY, TYPES)
    projections, _ = assemble(ExternalSettings(), store, index, wanted, beside=f"{path}-chroma")
    return Stratagem(Runtime(foundation, Settings(str(path)), projections), Caller())


def examine(db: Stratagem) -> list[str]:
    """Return what is wrong with a database, in words."""
    findings = db.runtime.foundation.store.examine(lambda _done, _total, _what: None, None)
    return [f"{finding.what} ({finding.where})" for finding in findings]
