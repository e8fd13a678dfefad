"""The kinds of record of developer mode: state cells, spaces, collections and their vectors."""

from __future__ import annotations

from array import array
from base64 import b64decode
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from stratagem import limits
from stratagem.developer.metadata import facets_of, numbers_of
from stratagem.engine import values
from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, RecordKind

__all__ = [
    "CELL",
    "CELL_DELETED",
    "CELL_SET",
    "COLLECTION",
    "COLLECTION_CREATED",
    "COLLECTION_DELETED",
    "KINDS",
    "SPACE",
    "SPACES",
    "SPACE_CREATED",
    "SPACE_DELETED",
    "VECTOR",
    "VECTOR_DELETED",
    "VECTOR_STORED",
    "cells",
    "collections",
    "place_of",
    "vectors",
]

CELL: Final = "cell"
CELL_SET: Final = "CellSet"
CELL_DELETED: Final = "CellDeleted"
SPACE: Final = "space"
SPACE_CREATED: Final = "SpaceCreated"
SPACE_DELETED: Final = "SpaceDeleted"
COLLECTION: Final = "collection"
COLLECTION_CREATED: Final = "CollectionCreated"
COLLECTION_DELETED: Final = "CollectionDeleted"
VECTOR: Final = "vector"
VECTOR_STORED: Final = "VectorStored"
VECTOR_DELETED: Final = "VectorDeleted"

# Spaces are named once for a whole database.
SPACES: Final = Space(SPACE, "spaces")


def cells(namespace: str) -> Space:
    """Return the space of a namespace's state cells."""
    return Space(CELL, namespace)


def collections(namespace: str) -> Space:
    """Return the space of a namespace's collections."""
    return Space(COLLECTION, namespace)


def vectors(namespace: str, collection: str) -> Space:
    """Return the space of the vectors of a collection, whose name has no slash."""
    return Space(VECTOR, f"{namespace}/{collection}")


def place_of(space: Space) -> tuple[str, str]:
    """Return the namespace and the collection that a space of vectors belongs to."""
    namespace, _, collection = space.namespace.rpartition("/")
    return namespace, collection


def _project_deletion(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(deleted=True)


def _project_record(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection()


def _project_vector(content: Mapping[str, Any], _key: str | None) -> Projection:
    metadata = content.get("metadata") or {}
    return Projection(
        facets=facets_of(metadata),
        numbers=numbers_of(metadata),
        vector=content["vector"],
    )


def _check_cell(content: Mapping[str, Any]) -> None:
    """Refuse a merged value that no cell would have taken."""
    values.encode(content["value"])


def _check_collection(content: Mapping[str, Any]) -> None:
    """Refuse what no collection could be."""
    dimension, metric = content["dimension"], content["metric"]
    if not isinstance(dimension, int) or not 1 <= dimension <= limits.VECTOR_DIMENSIONS_MAX:
        raise ValueError(f"it cannot have {dimension!r} dimensions")
    if metric not in {"cosine", "euclidean", "dot"}:
        raise ValueError(f"there is no metric {metric!r}")


def _check_vector(content: Mapping[str, Any]) -> None:
    """Refuse what is no vector of finite 32-bit numbers."""
    numbers = array("f", b64decode(content["vector"], validate=True))
    if not len(numbers) or not all(map(isfinite, numbers)):
        raise ValueError("its numbers are not finite")


def _record_kind(name: str, stored: EventKind, deleted: str, **details: Any) -> RecordKind:
    return RecordKind(
        name,
        (stored, EventKind(deleted, _project_deletion, deletes=True)),
        writes=stored.name,
        deletes=deleted,
        toolset="memory",
        portable=True,
        **details,
    )


KINDS: Final = (
    _record_kind(
        CELL,
        EventKind(CELL_SET, _project_record),
        CELL_DELETED,
        validate=_check_cell,
        erasable=("value",),
    ),
    _record_kind(SPACE, EventKind(SPACE_CREATED, _project_record), SPACE_DELETED),
    _record_kind(
        COLLECTION,
        EventKind(COLLECTION_CREATED, _project_record),
        COLLECTION_DELETED,
        validate=_check_collection,
    ),
    _record_kind(
        VECTOR,
        EventKind(VECTOR_STORED, _project_vector),
        VECTOR_DELETED,
        validate=_check_vector,
        erasable=("vector", "metadata"),
    ),
)
