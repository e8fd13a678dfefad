"""The rows of vectors in collections."""

from __future__ import annotations

from functools import partial
from typing import Any

from stratagem.answers import fit_list
from stratagem.developer.rows import TRANSACTION, Answer, budget, fit_results, render_optional, row
from stratagem.developer.vectors import VectorCollections
from stratagem.operation import PersonNeeded

__all__ = ["VECTOR_OPERATIONS"]

_LIST = (TRANSACTION, "max_chars")
_vector = partial(row, service=VectorCollections, group="vectors")


def _fit_versions(answer: Answer, given: Any) -> Answer:
    versions = [each["version"] for each in answer["results"]]
    return fit_list(answer, budget(given), lambda kept: str(versions[kept - 1]))


def _purge_command(given: Any) -> list[str]:
    return ["vector-purge", "--collection", given["collection"], "--key", given["key"]]


VECTOR_OPERATIONS = (
    _vector(
        "strata_vector_create_collection",
        VectorCollections.create_collection,
        "Create a collection",
        "Create a collection of vectors of one length, compared by one metric.",
        positional=("name", "dimension", "metric"),
        example={"name": "docs", "dimension": 3},
    ),
    _vector(
        "strata_vector_delete_collection",
        VectorCollections.delete_collection,
        "Delete a collection",
        "Delete a collection with its vectors. Past moments still show them.",
        positional=("name",),
        destructive=True,
        idempotent=True,
    ),
    _vector(
        "strata_vector_list_collections",
        VectorCollections.list_collections,
        "List collections",
        "List the collections of a space, with how many vectors each holds.",
        fit=fit_results,
        answer_options=_LIST,
        read_only=True,
        example={},
    ),
    _vector(
        "strata_vector_stats",
        VectorCollections.stats,
        "About a collection",
        "The length and metric of a collection, and how many vectors it holds.",
        positional=("name",),
        read_only=True,
        example={"name": "docs"},
    ),
    _vector(
        "strata_vector_upsert",
        VectorCollections.upsert,
        "Store a vector",
        "Store a vector under a key, with metadata for filters.",
        positional=("collection", "key", "vector", "metadata"),
        idempotent=True,
        example={"collection": "docs", "key": "a", "vector": [1, 0, 0], "metadata": {"year": 2024}},
    ),
    _vector(
        "strata_vector_get",
        VectorCollections.get,
        "Get a vector",
        "Return a vector with its metadata, now or `as_of` a past moment.",
        positional=("collection", "key"),
        render=render_optional,
        read_only=True,
        example={"collection": "docs", "key": "a"},
    ),
    _vector(
        "strata_vector_delete",
        VectorCollections.delete,
        "Delete a vector",
        "Delete a vector. Past moments still show it.",
        positional=("collection", "key"),
        destructive=True,
        idempotent=True,
    ),
    _vector(
        "strata_vector_search",
        VectorCollections.search,
        "Search vectors",
        "Find the vectors nearest to one, nearest first, by filter, now or `as_of` a past moment.",
        positional=("collection", "query", "k"),
        fit=fit_results,
        answer_options=_LIST,
        read_only=True,
        example={"collection": "docs", "query": [1, 0.1, 0], "filter": {"year": {"gte": 2020}}},
    ),
    _vector(
        "strata_vector_batch_upsert",
        VectorCollections.batch_upsert,
        "Store several vectors",
        "Store several vectors in one transaction: all of them, or none.",
        positional=("collection", "items"),
        idempotent=True,
        example={"collection": "docs", "items": [{"key": "b", "vector": [0, 1, 0]}]},
    ),
    _vector(
        "strata_vector_history",
        VectorCollections.history,
        "History of a vector",
        "The versions of a vector, newest first.",
        positional=("collection", "key"),
        fit=_fit_versions,
        answer_options=_LIST,
        read_only=True,
    ),
    _vector(
        "strata_vector_purge",
        VectorCollections.purge,
        "Purge a vector",
        "Erase a vector for good: every version, on every branch. Cannot be undone.",
        positional=("collection", "key"),
        answer_options=(),
        toolset="admin",
        right="admin",
        destructive=True,
        idempotent=True,
        person=PersonNeeded("erases for good", _purge_command),
        irreversible=True,
    ),
)
