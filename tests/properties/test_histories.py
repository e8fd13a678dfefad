"""Whatever is done to a memory, in any order, it answers like the naive model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

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


def test_random_walks_agree_with_the_naive_model() -> None:
    with seeded() as number:
        taken = walk(range(30), 60, number=number)

    assert min(taken[name] for name in ("merge", "diff", "search", "purge", "restore")) > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_long_random_histories_agree_with_the_naive_model() -> None:
    run(examples=600, steps=120)
