"""Searches among many vectors: estimates choose, and what is answered is exact all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import stratagem
from stratagem.memory.models import SearchResults
from stratagem.search import ranking, vector_columns
from stratagem.search.vector_columns import VectorColumns, quantize

QUERIES = ("the harbour in winter", "who repairs the bicycle", "red lantern", "nothing of the kind")


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", durability="fast", embedder="static") as opened:
        things = ("harbour", "bicycle", "lantern", "winter", "letter", "engine", "garden")
        doings = ("repairs", "paints", "remembers", "sells", "finds")
        opened.memory.store(
            items=[
                {
                    "key": f"note/{number}",
                    "value": f"Somebody {doings[number % 5]} the {things[number % 7]} "
                    f"{things[number % 3]} number {number} in the street {number % 11}.",
                }
                for number in range(400)
            ]
        )
        opened.memory.fork("other")
        opened.memory.store("note/3", "The harbour freezes in winter.", branch="other")
        opened.memory.forget("note/21")
        yield opened


def ask_everything(db: stratagem.Stratagem) -> list[SearchResults]:
    moments = [None, "@200"]
    return [
        db.memory.search(query, branch=branch, as_of=as_of)
        for query in QUERIES
        for branch in ("default", "other")
        for as_of in (moments if branch == "default" else [None])
    ]


def test_what_is_found_by_estimates_is_what_comparing_all_vectors_finds(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = ask_everything(db)
    assert any(each.results for each in exact)

    monkeypatch.setattr(ranking, "EXACT_VECTORS_MAX", 0)
    # Often enough that the quantized vectors are kept in memory.
    for _ in range(3):
        assert ask_everything(db) == exact


def test_copies_of_the_vectors_of_one_namespace_find_what_comparing_all_vectors_finds(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.memory.store(
        items=[
            {"key": f"trip/{number}", "value": f"A letter from harbour {number} in winter."}
            for number in range(100)
        ],
        namespace="trips",
    )
    spaces = ("trips", "default")
    exact = {
        space: [db.memory.search(each, namespace=space) for each in QUERIES] for space in spaces
    }
    assert any(each.results for each in exact["trips"])

    monkeypatch.setattr(ranking, "EXACT_VECTORS_MAX", 0)
    # Room for those of the first namespace, and not for those of the second.
    monkeypatch.setattr(vector_columns, "_QUANTIZED_BYTES_KEPT", 100 * 256)
    for _ in range(4):
        for space in spaces:
            assert [db.memory.search(each, namespace=space) for each in QUERIES] == exact[space]

    def refuse(*_rows: object) -> None:
        pytest.fail("The copies in memory were not used.")

    monkeypatch.setattr(VectorColumns, "quantized_of", refuse)
    for query, found in zip(QUERIES, exact["trips"], strict=True):
        # Where there is no hit, other namespaces are searched for a hint.
        if found.results:
            assert db.memory.search(query, namespace="trips") == found


def test_a_write_is_found_after_quantized_vectors_were_kept(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "EXACT_VECTORS_MAX", 0)
    for _ in range(3):
        ask_everything(db)

    db.memory.store("note/new", "A lighthouse keeper feeds the seagulls.")

    assert db.memory.search("lighthouse seagulls").results[0].key == "note/new"


@pytest.mark.parametrize("dimensions", [2, 256, 1536])
def test_quantized_vectors_estimate_products_within_a_hundredth(dimensions: int) -> None:
    draw = np.random.default_rng(5)
    rows = draw.standard_normal((200, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    quantized, step = quantize(rows)

    estimates = (quantized.astype(np.float32) @ rows.T) * step[:, np.newaxis]
    assert np.abs(estimates - rows @ rows.T).max() < 0.01


def test_a_vector_of_zeros_stays_one() -> None:
    quantized, step = quantize(np.zeros((1, 8), np.float32))

    assert not quantized.any()
    assert step[0] > 0
