"""The JSONL file of the official MCP memory server: entities, and relations between them.

An entity becomes an entry under its name: its type (also as a tag, so that a search can be
narrowed to it), its observations, and the relations that start from it. A relation from a
name that is no entity makes an entry of its own, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.memory.sources import (
    Format,
    InvalidRecord,
    Position,
    entry_draft,
    read_lines,
    refuse_with_location,
)

__all__ = ["MemoryServerFile"]

Entities = dict[str, dict[str, Any]]


class MemoryServerFile:
    """The knowledge graph of the official MCP memory server."""

    format: Format = "mcp-memory"

    def __init__(self, path: Path, namespace: str) -> None:
        self._path = path
        self._namespace = namespace

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        entities: Entities = {}
        numbers: dict[str, int] = {}
        for line in read_lines(self._path, position):
            with refuse_with_location(self._path, line.number):
                numbers.setdefault(_gather(entities, line.record), line.number)
        for name, value in entities.items():
            with refuse_with_location(self._path, numbers[name]):
                kind = value["type"]
                tags = [kind] if kind and len(kind) <= limits.TAG_CHARS_MAX else []
                draft = entry_draft(name, value, self._namespace, tags=tags)
            yield draft


def _gather(entities: Entities, record: Mapping[str, Any]) -> str:
    """Add an entity or a relation to what is known; return the name it belongs to."""
    kind = record.get("type")
    if kind not in {"entity", "relation"}:
        raise InvalidRecord(f"its type is {kind!r}, not entity or relation")
    name = _text(record, "name" if kind == "entity" else "from")
    value = entities.setdefault(name, {"type": None, "observations": [], "relations": []})
    if kind == "relation":
        _add(value["relations"], {"to": _text(record, "to"), "type": _text(record, "relationType")})
        return name
    entity_type = _text(record, "entityType")
    value["type"] = value["type"] or entity_type
    for observation in _observations(record):
        _add(value["observations"], observation)
    return name


def _observations(record: Mapping[str, Any]) -> list[Any]:
    observations = record.get("observations", [])
    if not isinstance(observations, list):
        raise InvalidRecord("its observations are not a list")
    return observations


def _add(known: list[Any], new: Any) -> None:
    if new not in known:
        known.append(new)


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record.get(name)
    if not isinstance(text, str):
        raise InvalidRecord(f"its {name} is not text")
    return text
