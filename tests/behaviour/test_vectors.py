"""Vectors of one's own: records like all others, found by nearness and by what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


def _fill(call: Call, metric: str = "cosine") -> None:
    call.vector_create_collection(name="docs", dimension=3, metric=metric)
    call.vector_batch_upsert(
        collection="docs",
        items=[
            {"key": "a", "vector": [1, 0, 0], "metadata": {"year": 2020, "tags": ["x", "y"]}},
            {"key": "b", "vector": [0, 2, 0], "metadata": {"year": 2022, "lang": "english"}},
            {"key": "c", "vector": [3, 3, 0], "metadata": {"year": 2024.5, "lang": "en"}},
            {"key": "d", "vector": [0, 0, 1]},
        ],
    )


def _keys(call: Call, query: list[float], **options: Any) -> list[str]:
    found = call.vector_search(collection="docs", query=query, **options)["results"]
    return [each["key"] for each in found]


@proves("vectors:nearest")
@pytest.mark.parametrize(
    ("metric", "keys", "score"),
    [
        ("cosine", ["a", "c", "b"], 0.995037),
        ("dot", ["c", "a", "b"], 3.3),
        ("euclidean", ["a", "d", "b"], -0.1),
    ],
)
def test_the_nearest_come_first_by_any_metric(
    call: Call, metric: str, keys: list[str], score: float
) -> None:
    _fill(call, metric)

    found = call.vector_search(collection="docs", query=[1, 0.1, 0], k=3)

    assert [each["key"] for each in found["results"]] == keys
    assert found["results"][0]["score"] == pytest.approx(score, abs=1e-5)
    assert found["metric"] == metric


@proves("vectors:nearest")
def test_small_distances_between_long_vectors_are_exact(call: Call) -> None:
    call.vector_create_collection(name="far", dimension=2, metric="euclidean")
    items = [{"key": f"{at:02}", "vector": [5_000, 5_000 + at / 64]} for at in range(20)]
    call.vector_batch_upsert(collection="far", items=items)

    found = call.vector_search(collection="far", query=[5_000, 5_000], k=20)["results"]

    assert [each["key"] for each in found] == [each["key"] for each in items]
    assert [each["distance"] for each in found] == [at / 64 for at in range(20)]


@proves("vectors:filters")
@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ({"year": 2020}, "a"),
        ({"year": {"eq": 2024.5}}, "c"),
        ({"year": {"ne": 2020}}, "cbd"),
        ({"year": {"gt": 2020}}, "cb"),
        ({"year": {"gte": 2020, "lt": 2024}}, "ab"),
        ({"year": {"lte": 2022}, "lang": {"in": ["english", "de"]}}, "b"),
        ({"lang": {"contains": "en"}}, "cb"),
        ({"lang": {"gt": "en"}}, "b"),
        ({"tags": {"contains": "y"}}, "a"),
        ({"tags": "x"}, ""),
        ({"year": {"in": []}}, ""),
        ({"none": 1}, ""),
    ],
)
def test_a_filter_chooses_by_metadata(call: Call, condition: dict[str, Any], keys: str) -> None:
    _fill(call)

    assert _keys(call, [1, 0.2, 0.1], filter=condition) == list(keys)


@proves("vectors:views")
def test_vectors_have_branches_moments_history_and_merge(call: Call) -> None:
    _fill(call)
    before = call.vector_get(collection="docs", key="a")["version"]
    call.branch_fork(name="trial")
    call.vector_upsert(collection="docs", key="a", vector=[0, 0, -1], branch="trial")
    call.vector_delete(collection="docs", key="c", branch="trial")

    on_trial = _keys(call, [1, 1, 0], branch="trial")
    here = _keys(call, [1, 1, 0], k=2)
    call.branch_merge(source="trial")
    merged = _keys(call, [1, 1, 0])
    history = call.vector_history(collection="docs", key="a")["results"]

    assert on_trial[0] == "b"
    assert "c" not in on_trial
    assert here[0] == "c"
    assert merged[0] == "b"
    assert _keys(call, [1, 0, 0], k=1, as_of=f"@{before}") == ["a"]
    assert [each["vector"] for each in history] == [[0, 0, -1], [1, 0, 0]]


@proves("vectors:views")
def test_a_transaction_sees_its_own_vectors(call: Call) -> None:
    _fill(call)
    name = call.txn_begin()["transaction"]
    call.vector_upsert(collection="docs", key="mine", vector=[9, 0, 1], transaction=name)

    inside = _keys(call, [9, 0, 1], k=1, transaction=name)
    outside = _keys(call, [9, 0, 1], k=1)
    call.txn_commit(transaction=name)

    assert (inside, outside, _keys(call, [9, 0, 1], k=1)) == (["mine"], ["a"], ["mine"])


@proves("vectors:collections")
def test_a_collection_is_listed_counted_and_deleted_with_its_vectors(call: Call) -> None:
    _fill(call)
    again = call.refusal("strata_vector_create_collection", name="docs", dimension=4)
    listed = call.vector_list_collections()["results"]
    last = call.vector_get(collection="docs", key="d")["version"]
    deleted = call.vector_delete_collection(name="docs")
    call.vector_create_collection(name="docs", dimension=2)
    call.vector_upsert(collection="docs", key="n", vector=[1, 1])

    assert again["error"] == "collection_exists"
    assert [(each["name"], each["dimension"], each["count"]) for each in listed] == [("docs", 3, 4)]
    assert deleted == {"name": "docs", "deleted": True, "vectors": 4}
    assert _keys(call, [1, 1]) == ["n"]
    assert call.vector_stats(name="docs")["count"] == 1
    assert call.vector_stats(name="docs", as_of=f"@{last}")["dimension"] == 3
    assert _keys(call, [1, 0, 0], k=1, as_of=f"@{last}") == ["a"]


@proves("vectors:purge")
def test_a_purged_vector_is_gone_from_every_moment(call: Call) -> None:
    _fill(call)
    version = call.vector_get(collection="docs", key="d")["version"]
    _keys(call, [1, 0, 0])

    erased = call.vector_purge(collection="docs", key="a")["erased"]

    assert erased == 1
    assert "a" not in _keys(call, [1, 0, 0])
    assert "a" not in _keys(call, [1, 0, 0], as_of=f"@{version}")
    assert call.vector_history(collection="docs", key="a")["results"] == []


@proves("vectors:bad-input")
@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("upsert", {"collection": "docs", "key": "k", "vector": [1, 2]}, "vector"),
        ("upsert", {"collection": "docs", "key": "k", "vector": [0, 0, 0]}, "vector"),
        ("upsert", {"collection": "docs", "key": "k", "vector": [1, 2, 1e300]}, "vector"),
        ("upsert", {"collection": "no", "key": "k", "vector": [1, 2, 3]}, "collection"),
        ("upsert", {"collection": "docs", "key": "k", "vector": [1, True, 3]}, "vector"),
        ("get", {"collection": "no", "key": "k"}, "collection"),
        ("delete", {"collection": "no", "key": "k"}, "collection"),
        ("history", {"collection": "no", "key": "k"}, "collection"),
        ("history", {"collection": "docs", "key": "k", "cursor": "garbage"}, "cursor"),
        ("stats", {"name": "no"}, "collection"),
        ("search", {"collection": "docs", "query": [1]}, "query"),
        ("search", {"collection": "docs", "query": [1, 2, 3], "k": 1_000_000}, "k"),
        ("search", {"collection": "docs", "query": [1, 2, 3], "k": -1}, "k"),
        ("search", {"collection": "docs", "query": [1, 2, 3], "filter": {"a": {}}}, "filter"),
        (
            "search",
            {"collection": "docs", "query": [1, 2, 3], "filter": {"a": {"like": 1}}},
            "filter",
        ),
        (
            "search",
            {"collection": "docs", "query": [1, 2, 3], "filter": {"a": {"in": 1}}},
            "filter",
        ),
        ("create_collection", {"name": "a/b", "dimension": 3}, "collection"),
        ("create_collection", {"name": "a", "dimension": 0}, "dimension"),
        ("batch_upsert", {"collection": "docs", "items": []}, "items"),
    ],
)
def test_a_vector_that_cannot_be_is_refused(
    call: Call, name: str, arguments: dict[str, Any], field: str
) -> None:
    call.vector_create_collection(name="docs", dimension=3)

    refused = call.refusal(f"strata_vector_{name}", **arguments)

    assert refused["details"]["field"] == field


@proves("vectors:views")
def test_a_moment_before_a_collection_was_made_is_named_as_such(call: Call) -> None:
    before = call.kv_put(key="k", value=1)["version"]
    call.vector_create_collection(name="docs", dimension=3)

    refused = call.refusal(
        "strata_vector_search", collection="docs", query=[1, 2, 3], as_of=f"@{before}"
    )

    assert (refused["error"], refused["details"]["field"]) == ("collection_not_found", "as_of")
    assert refused["details"]["created"] in refused["hint"]


@proves("vectors:bad-input")
def test_a_vector_that_is_not_there_is_no_error(call: Call) -> None:
    call.vector_create_collection(name="docs", dimension=3)

    assert call.vector_get(collection="docs", key="k") == {"found": False}
    assert not call.vector_delete(collection="docs", key="k")["deleted"]
    assert call.vector_history(collection="docs", key="k")["results"] == []
