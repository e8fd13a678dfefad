"""The properties hold in PostgreSQL too: fewer histories in the normal run, as many in the soak."""

from __future__ import annotations

import random

import pytest

import stratagem
from tests.postgres import a_workspace
from tests.properties import (
    test_histories,
    test_knowledge_histories,
    test_merge_graphs,
    test_rebuilds,
    test_search_views,
)
from tests.properties.seeding import seeded
from tests.properties.walks import served, walk


def test_random_walks_agree_with_the_naive_model(postgres_address: str) -> None:
    with seeded() as number:
        walk(range(2), 40, number=number, machine=served(postgres_address))


def test_a_rebuild_changes_nothing_after_random_histories(postgres_address: str) -> None:
    test_rebuilds.run(lives=1, steps=50, address=postgres_address)


def test_random_merges_agree_with_the_reference(postgres_address: str) -> None:
    merges, _ = test_merge_graphs.run(graphs=3, steps=40, address=postgres_address)

    assert merges > 20


def test_searches_in_random_views_find_what_a_plain_filter_finds(postgres_address: str) -> None:
    test_search_views.run(libraries=1, writes=50, address=postgres_address)
    test_search_views.run(libraries=1, writes=30, embedder="static", address=postgres_address)


def test_every_branch_shows_what_was_done_to_its_concepts(postgres_address: str) -> None:
    draw = random.Random(3)
    models = {"default": test_knowledge_histories.Model()}
    with stratagem.open(postgres_address, workspace=a_workspace(), embedder="none") as db:
        for _ in range(50):
            test_knowledge_histories.step(db, draw, models)

        for branch, model in models.items():
            test_knowledge_histories.check(db, branch, model)
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_properties_hold(postgres_address: str) -> None:
    test_histories.run(100, 80, served(postgres_address))
    test_rebuilds.run(lives=15, steps=200, address=postgres_address)
    test_merge_graphs.run(graphs=100, steps=60, address=postgres_address)
    test_search_views.run(libraries=20, writes=100, address=postgres_address)
