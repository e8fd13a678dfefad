"""Concepts and relationships in Neo4j: nodes, and edges with a type.

A deleted concept keeps its node as a tombstone, so that its relationships are there when it is
restored and no late message can bring its old content back. A deleted relationship leaves a
tombstone for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from stratagem.projections.bolt import Bolt, Statement
from stratagem.projections.contract import Companion, Properties, RecordState, StoredItem
from stratagem.search.external_services import Neighbour, PathNode

__all__ = ["Neo4jModel"]

# Raised when what is kept, or how, changes.
_FORM: Final = 3
# What relationships of a type that users declared are kept under: types are a closed set here.
_DECLARED: Final = "DECLARED"
_PAGE: Final = 1_000
_NAMED: Final = re.compile(
    r"^// name: (\w+)\n(?:// [^\n]*\n)+(.*?)(?=^// name: |\Z)", re.MULTILINE | re.DOTALL
)
_TYPE: Final = re.compile(r"[A-Z][A-Z_]*")


class Neo4jModel:
    """See `ReadModel`. `types` are all the types that a relationship can have."""

    name: Final = "neo4j"
    fingerprint: Final = str(_FORM)

    def __init__(
        self,
        bolt: Bolt,
        *,
        identity: str,
        kinds: tuple[str, str],
        companion: str,
        types: Sequence[str],
    ) -> None:
        self._node, self._edge = kinds
        self.kinds = (self._node, companion, self._edge)
        self.companion = Companion(self._node, companion)
        self._bolt = bolt
        self._log = identity
        self._types = [*(each.upper() for each in types), _DECLARED]

    def probe(self) -> None:
        """See `ReadModel`."""
        self._bolt.read("RETURN 1")

    def clear(self) -> None:
        """See `ReadModel`."""
        for name in ("clear_concepts", "clear_gone"):
            while self._bolt.alone(_cypher(name), log=self._log, limit=_PAGE)[0]["count"]:
                pass
        for name in ("concept_constraint", "concept_index", "gone_constraint"):
            self._bolt.alone(_cypher(name))
        for each in self._types:
            self._bolt.alone(_cypher("type_index", each))

    def apply(self, items: Sequence[RecordState]) -> None:
        """See `ReadModel`."""
        nodes = [item for item in items if item.kind == self._node]
        nodes += [item.node for item in items if item.node is not None]
        edges = [item for item in items if item.kind == self._edge]
        self._bolt.write([*self._nodes(nodes), *self._edges(edges)])

    def expected_properties(self, items: Sequence[RecordState]) -> dict[str, Properties]:
        """See `ReadModel`."""
        found: dict[str, Properties] = {}
        for item in items:
            if item.content is not None:
                properties = self._properties(item)
                if item.link is not None:
                    ends = {"source": item.link.source, "target": item.link.target}
                    properties |= {**ends, "type": self._type_of(item.link.label)}
                found[_id(item.key, item.subject)] = properties
        return found

    def fetch(self, ids: Sequence[str]) -> dict[str, Properties]:
        """See `ReadModel`."""
        subjects = [int(each.rsplit("#", 1)[1]) for each in ids]
        read = self._bolt.read
        found: dict[str, Properties] = {}
        for row in read(_cypher("fetch_concepts"), log=self._log, subjects=subjects):
            node = row["properties"]
            found[_id(node["concept_id"], node["subject"])] = node
        for each in self._types:
            cypher = _cypher("fetch_relationships", each)
            for row in read(cypher, log=self._log, subjects=subjects):
                edge = row["properties"]
                ends = {"source": row["source"], "target": row["target"], "type": each}
                found[_id(edge["relationship_id"], edge["subject"])] = {**edge, **ends}
        return found

    def stored_items(self) -> Iterator[StoredItem]:
        """See `ReadModel`."""
        yield from self._read_pages(_cypher("page_concepts"))
        for each in self._types:
            yield from self._read_pages(_cypher("page_relationships", each))

    def close(self) -> None:
        """See `ReadModel`."""
        self._bolt.close()

    def neighbours(
        self, key: str, *, outgoing: bool | None, label: str | None, limit: int
    ) -> list[Neighbour]:
        """Return the concepts next to one, those with the strongest relationships first."""
        found: list[tuple[float, int, Neighbour]] = []
        for way in (True, False) if outgoing is None else (outgoing,):
            rows = self._bolt.read(
                _cypher("outgoing" if way else "incoming"),
                log=self._log,
                key=key,
                type=label.upper() if label else None,
                limit=limit,
            )
            found += [
                (
                    -row["weight"],
                    row["sequence"],
                    Neighbour(row["key"], row["type"].lower(), way, row["weight"]),
                )
                for row in rows
            ]
        found.sort(key=lambda each: each[:2])
        return [neighbour for _, _, neighbour in found[:limit]]

    def sources(self, keys: Sequence[str], label: str, *, limit: int) -> list[str]:
        """Return the concepts that relationships of a type lead from to some others."""
        rows = self._bolt.read(
            _cypher("sources"), log=self._log, keys=list(keys), type=label.upper(), limit=limit
        )
        return [row["key"] for row in rows]

    def path(self, start: str, end: str) -> list[PathNode] | None:
        """Return a shortest path between two concepts."""
        if start == end:
            return [PathNode(start)]
        rows = self._bolt.read(_cypher("path"), log=self._log, start=start, end=end)
        if not rows:
            return None
        keys, types, starts = rows[0]["keys"], rows[0]["types"], rows[0]["starts"]
        steps = [
            PathNode(key, label.lower(), begins == key)
            for key, label, begins in zip(keys[:-1], types, starts, strict=True)
        ]
        return [*steps, PathNode(keys[-1])]

    def _nodes(self, items: Sequence[RecordState]) -> Iterator[Statement]:
        purged = [item for item in items if item.is_purged]
        if purged:
            yield self._statement("erase_concepts", map(_mark, purged))
        named = [item for item in items if not item.is_purged]
        if named:
            rows = [
                {
                    "concept_id": item.key,
                    "sequence": item.sequence,
                    "certainty_sequence": (item.content or {}).get("certainty_sequence", -1),
                    "properties": self._properties(item),
                }
                for item in named
            ]
            yield self._statement("put_concepts", rows)

    def _edges(self, items: Sequence[RecordState]) -> Iterator[Statement]:
        gone = [_mark(item) for item in items if item.link is None]
        if gone:
            yield self._statement("mark_gone", gone)
            for each in self._types:
                yield self._statement("drop_relationships", gone, each)
        by_type: dict[str, list[dict[str, Any]]] = {}
        for item in items:
            if item.link is not None:
                row = {
                    "relationship_id": item.key,
                    "subject": item.subject,
                    "sequence": item.sequence,
                    "source": item.link.source,
                    "target": item.link.target,
                    "properties": self._properties(item),
                }
                by_type.setdefault(self._type_of(item.link.label), []).append(row)
        for each, rows in by_type.items():
            yield self._statement("put_relationships", rows, each)

    def _type_of(self, label: str) -> str:
        """Return the type that relationships have here; `relationship_type` has what they say."""
        return label.upper() if label.upper() in self._types else _DECLARED

    def _properties(self, item: RecordState) -> Properties:
        node = item.kind == self._node
        plain = {
            name: value
            for name, value in (item.content or {}).items()
            if isinstance(value, str | int | float)
        }
        return {
            **plain,
            "log": self._log,
            "concept_id" if node else "relationship_id": item.key,
            "subject": item.subject,
            "sequence": item.sequence,
            **({"deleted": item.content is None} if node else {}),
        }

    def _statement(self, name: str, rows: Any, kind: str | None = None) -> Statement:
        parameters: Mapping[str, Any] = {"log": self._log, "rows": list(rows)}
        return _cypher(name, kind), parameters

    def _read_pages(self, cypher: str) -> Iterator[StoredItem]:
        after = -1
        while True:
            rows = self._bolt.read(cypher, log=self._log, after=after, limit=_PAGE)
            for row in rows:
                yield StoredItem(_id(row["key"], row["subject"]), row["subject"])
            if len(rows) < _PAGE:
                return
            after = rows[-1]["subject"]


@cache
def _queries() -> dict[str, str]:
    text = (resources.files(__package__) / "cypher" / "queries.cypher").read_text("utf-8")
    return dict(_NAMED.findall(text))


@cache
def _cypher(name: str, kind: str | None = None) -> str:
    """Return a statement, for relationships of one type where it is about these."""
    text = _queries()[name]
    if kind is None:
        return text
    assert _TYPE.fullmatch(kind), kind
    return text.replace("{TYPE}", kind)


def _id(key: str, subject: int) -> str:
    return f"{key}#{subject}"


def _mark(item: RecordState) -> dict[str, int]:
    return {"subject": item.subject, "sequence": item.sequence}
