"""Memories of mem0, mcp-memory-service and Chroma: records with an id and a text.

An entry of mem0 is found under `mem0/<id>`, one of mcp-memory-service under
`mcp-memory-service/<hash>`, one of Chroma under `<collection>/<id>`. The value is the text alone,
so that searches find it by what it says; what else the tool knew of it is in `imported`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.engine import values
from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused
from stratagem.memory.importers.foreign_source import ForeignSource
from stratagem.memory.importers.foreign_sqlite import chroma_records, memory_service_records
from stratagem.memory.importers.front_matter import time_of
from stratagem.memory.sources import (
    Format,
    InvalidRecord,
    Position,
    bounded_tags,
    entry_draft,
    read_whole,
    refuse_with_location,
)

__all__ = ["ChromaFolder", "Mem0File", "MemoryServiceFile"]

# Fields of a record of mem0 that say whose it is.
_OWNERS: Final = ("user_id", "agent_id", "app_id", "run_id", "metadata", "hash")


class _Records(ForeignSource):
    """Records of a file, one entry for each; those without words are told as skipped."""

    format: Format = "mem0"

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        self.skipped = []
        for done, (key, text, tags, origin) in enumerate(self._records(), 1):
            if not text.strip():
                self._skip(key, "it has no text")
                continue
            with refuse_with_location(self._path, None):
                draft = entry_draft(
                    key[: limits.KEY_CHARS_MAX],
                    text,
                    self._namespace,
                    tags=bounded_tags([self.format, *tags]),
                    origin={"format": self.format, **origin},
                )
            yield draft
            position(done, done)

    def _records(self) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
        raise NotImplementedError


class Mem0File(_Records):
    """An export of mem0, or what its `get_all` answered: a list of memories in JSON."""

    format: Format = "mem0"

    def _records(self) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
        document = _json(read_whole(self._path), self._path)
        for number, record in enumerate(mem0_records(document), 1):
            with refuse_with_location(self._path, None):
                text = record.get("memory", record.get("data", record.get("text")))
                identity = record.get("id") or record.get("hash")
                if not isinstance(text, str) or not isinstance(identity, str | int):
                    raise InvalidRecord(f"its memory {number} has no text, or no id")
            categories = record.get("categories")
            tags = [str(each) for each in categories] if isinstance(categories, list) else []
            known = {name: record[name] for name in _OWNERS if record.get(name)}
            at = time_of(record.get("updated_at") or record.get("created_at"))
            yield (
                f"mem0/{identity}",
                text,
                tags,
                {"id": str(identity), **({"timestamp": at} if at else {}), **known},
            )


class MemoryServiceFile(_Records):
    """The SQLite database of mcp-memory-service, with or without its vectors."""

    format: Format = "mcp-memory-service"

    def _records(self) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
        for row in memory_service_records(self._path):
            tags = [*_split_tags(row["tags"]), *_split_tags(row["memory_type"])]
            at = time_of(row["updated_at"] or row["created_at"])
            origin: dict[str, Any] = {"id": row["content_hash"]}
            if at:
                origin["timestamp"] = at
            if metadata := _object(row["metadata"]):
                origin["metadata"] = metadata
            key = f"mcp-memory-service/{str(row['content_hash'])[:16]}"
            yield key, str(row["content"] or ""), tags, origin


class ChromaFolder(_Records):
    """The documents of every collection of a persistent Chroma database."""

    format: Format = "chroma"

    def _records(self) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
        file = self._path / "chroma.sqlite3" if self._path.is_dir() else self._path
        for record in chroma_records(file):
            origin: dict[str, Any] = {"id": record.id, "collection": record.collection}
            if record.metadata:
                origin["metadata"] = record.metadata
            yield f"{record.collection}/{record.id}", record.text, [record.collection], origin


def mem0_records(document: Any) -> list[Mapping[str, Any]]:
    """Return the memories of an export of mem0; none where it is something else."""
    for name in ("results", "memories", "data"):
        if isinstance(document, dict) and isinstance(document.get(name), list):
            document = document[name]
    if not isinstance(document, list):
        return []
    return [each for each in document if isinstance(each, dict)]


def _json(data: bytes, path: Path) -> Any:
    try:
        return values.read(data)
    except orjson.JSONDecodeError as error:
        raise ImportRefused(
            f"{path} is not complete JSON ({error.msg}).", file=str(path)
        ) from error


def _split_tags(value: Any) -> list[str]:
    """Return tags that stand in one field, by commas or as JSON."""
    if not isinstance(value, str):
        return []
    if value.startswith("["):
        found = _loads(value)
        return [str(each) for each in found] if isinstance(found, list) else []
    return [part.strip() for part in value.split(",") if part.strip()]


def _object(value: Any) -> dict[str, Any]:
    found = _loads(value) if isinstance(value, str) else None
    return found if isinstance(found, dict) else {}


def _loads(text: str) -> Any:
    try:
        return values.read(text.encode("utf-8", "surrogatepass"))
    except orjson.JSONDecodeError:
        return None
