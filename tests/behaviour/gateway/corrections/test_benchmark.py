"""The benchmark of learning, in short."""

from __future__ import annotations

from benchmarks.learning import measured
from tests.manifest import proves


@proves("correction:never-wrong", "lesson:certain")
def test_learning_helps_and_nothing_is_silently_wrong() -> None:
    before, after = measured(500)

    assert sum(tally.wrong for each in (before, after) for tally in each.values()) == 0
    assert before["name"].exact == 0
    assert after["name"].exact > 0.2 * after["name"].calls
    assert after["disputed"].exact == 0
