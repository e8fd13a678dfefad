"""The only place that chooses concrete parts from settings."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from datetime import tzinfo
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from stratagem import operations
from stratagem.debugging.kinds import KINDS as DEBUGGING_KINDS
from stratagem.engine.records import Kinds
from stratagem.errors import StorageUnavailable, ValidationFailed
from stratagem.knowledge.kinds import KINDS as KNOWLEDGE_KINDS
from stratagem.memory.kinds import KINDS as MEMORY_KINDS
from stratagem.operation import Caller
from stratagem.places import database_path, local_zone
from stratagem.search import embedding
from stratagem.search.foundation import Foundation
from stratagem.search.index import Index
from stratagem.storage.sqlite.appending import Adapters
from stratagem.storage.sqlite.store import MEMORY, SqliteStore
from stratagem.storage.views import Views

__all__ = ["Runtime", "Settings", "database_path", "start"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to open a database. `embedder` None follows the database, then the default."""

    path: str
    durability: Literal["full", "fast"] = "full"
    embedder: str | None = None
    read_only: bool = False
    redaction: Literal["none", "basic", "strict"] = "basic"
    adapters: Adapters = field(default_factory=lambda: Adapters(_microseconds, os.urandom))
    zone: tzinfo | None = None


class Runtime:
    """An open database and everything that stands on it."""

    def __init__(self, foundation: Foundation) -> None:
        self.foundation = foundation

    def call(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation by name on plain JSON."""
        operation = operations.find(name)
        given = operations.read_input(operation, arguments)
        return operation.run(self.foundation, given, caller)

    def close(self) -> None:
        """Let go of the database."""
        self.foundation.index.close()
        self.foundation.store.close()


def start(settings: Settings) -> Runtime:
    """Open a database, creating it where there is none."""
    _check(settings)
    path = settings.path
    if path != MEMORY:
        path = os.path.abspath(Path(path).expanduser())  # noqa: PTH100 -- links stay as they are
        _make_folder(Path(path).parent, read_only=settings.read_only)
    index = _index(settings, path)
    store = SqliteStore(
        path,
        kinds=Kinds((*MEMORY_KINDS, *DEBUGGING_KINDS, *KNOWLEDGE_KINDS)),
        indexer=index,
        adapters=settings.adapters,
        durability=settings.durability,
        read_only=settings.read_only,
    )
    try:
        index.attach(store, follow=settings.embedder is None)
    except BaseException:
        store.close()
        raise
    views = Views(store, settings.zone or local_zone())
    return Runtime(
        Foundation(store, views, index, settings.durability, _version(), settings.redaction)
    )


def _check(settings: Settings) -> None:
    """Refuse a setting that would quietly mean something else."""
    for field_name, allowed in (
        ("durability", ("full", "fast")),
        ("redaction", ("none", "basic", "strict")),
    ):
        value = getattr(settings, field_name)
        if value not in allowed:
            raise ValidationFailed(
                f"There is no {field_name} {value!r}.",
                field=field_name,
                allowed=list(allowed),
                hint=f"Choose one of: {', '.join(allowed)}.",
            )


def _index(settings: Settings, path: str) -> Index:
    embedder = embedding.choose(settings.embedder or "static")
    private = path == MEMORY or settings.read_only
    return Index(embedder, None if private else Path(f"{path}-vectors"))


def _make_folder(folder: Path, *, read_only: bool) -> None:
    if read_only or folder.is_dir():
        return
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise StorageUnavailable(
            f"The folder of the database cannot be made: {error}.", path=str(folder)
        ) from error


def _microseconds() -> int:
    return time.time_ns() // 1000  # noqa: TID251 -- the one clock


def _version() -> str:
    try:
        return version("stratagem")
    except PackageNotFoundError:
        return "0.0.0"
