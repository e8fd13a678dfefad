"""Whatever is done to a memory, in any order, it answers like the naive model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from stratagem.storage.branch_merge import Strategy
from tests.properties.machine import Histories
from tests.properties.seeding import seeded
from tests.properties.walks import walk


def run(examples: int, steps: int, machine: type[Histories] = Histories) -> None:
    with seeded() as number:
        run_state_machine_as_test(
            seed(number)(machine),
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )


# The rarest are taken twice in a dozen walks.
_TAKEN = {"merge", "diff", "search", "purge", "restore", "restore_namespace", "list_everything"}


def test_random_walks_agree_with_the_naive_model() -> None:
    with seeded() as number:
        taken = walk(range(12), 60, number=number)
        for place in range(12, 100):
            if taken.keys() >= _TAKEN:
                break
            taken += walk(range(place, place + 1), 60, number=number)

    assert taken.keys() >= _TAKEN


def test_a_branch_that_only_learnt_of_a_deletion_is_a_base_like_any_other() -> None:
    history = Histories()
    try:
        for _ in range(3):
            history.fork(pick=0, when=0)
        history.fork(pick=6436, when=9034)
        history.delete(pick=94)
        history.store(pick=8072, key=("n1", "k2"), value={}, tags=["t3", "t2"], ttl=0)
        history.restore(pick=2302)
        history.merge(one=5913, other=8255, strategy=None, decided=False, side=2908)
        history.forget(pick=5950, key=("n1", "k2"))
        history.merge(one=1351, other=1285, strategy="target_wins", decided=True, side=9015)
        history.store(pick=3123, key=("n2", "k2"), value={"f1": {}}, tags=["t3"], ttl=0)
        history.forget(pick=48, key=("n1", "k2"))
        history.store(pick=6392, key=("n1", "k2"), value=1, tags=[], ttl=0)
        history.merge(one=8481, other=958, strategy=None, decided=True, side=1359)
        history.merge(one=3422, other=3020, strategy=None, decided=False, side=3003)
        history.merge(one=9983, other=742, strategy="target_wins", decided=True, side=3769)
        history.merge(one=2968, other=6426, strategy=None, decided=True, side=1704)
        history.sync_everything()
    finally:
        history.teardown()


def test_a_branch_that_learnt_of_two_deletions_is_where_the_later_one_left_it() -> None:
    key = ("n1", "k1")
    history = Histories()
    default, b1, b2 = range(3)

    def merge(target: int, source: int) -> None:
        history.merge_lines(history.line(target), history.line(source), None)

    try:
        for _ in range(2):
            history.fork(pick=0, when=0)
        history.store(b1, key, "a", [], 0)
        history.forget(b1, key)
        merge(b2, b1)
        history.store(b1, key, "b", [], 0)
        history.store(b1, key, "b", [], 5)
        merge(default, b1)
        history.forget(b1, key)
        merge(b2, b1)
        history.store(default, key, "c", [], 0)

        plan = history.preview(history.line(default), history.line(b2), None)
        assert plan.conflicts == {key: [()]}
        history.sync_everything()
    finally:
        history.teardown()


def test_two_branches_that_decided_one_conflict_differently_conflict_on_a_third() -> None:
    key, value = ("n1", "k3"), {"f2": "cedar"}
    history = Histories()
    names = ("default", "b1", "b2", "b3", "b4")

    def merge(target: str, source: str, strategy: Strategy | None = None) -> None:
        one, other = (history.line(names.index(name)) for name in (target, source))
        history.merge_lines(one, other, strategy)

    try:
        for _ in range(4):
            history.fork(pick=0, when=0)
        history.store(names.index("b3"), key, "a", [], 0)
        merge("b4", "b3")
        merge("b1", "b3")
        history.store(names.index("b2"), key, value, ["t1"], 0)
        merge("b2", "b4", "target_wins")
        merge("default", "b1")
        history.store(names.index("default"), key, "b", [], 0)
        merge("b3", "default")
        merge("b1", "b2")
        merge("b3", "b1", "source_wins")
        history.store(names.index("default"), key, "b", [], 0)
        history.forget(names.index("b3"), key)
        history.store_at_path(names.index("b2"), key, 3, ["f2"])
        merge("b4", "b2")
        merge("b2", "b3", "source_wins")
        merge("b3", "b4", "source_wins")
        merge("b3", "default")
        merge("default", "b2")

        default, other = history.line(names.index("default")), history.line(names.index("b3"))
        assert history.preview(default, other, None).conflicts == {key: [()]}
        history.sync_everything()
    finally:
        history.teardown()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_long_random_histories_agree_with_the_naive_model() -> None:
    run(examples=600, steps=120)
