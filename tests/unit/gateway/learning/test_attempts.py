from __future__ import annotations

from stratagem.gateway.learning.attempts import AttemptCounter, AttemptKey
from tests.manifest import proves


@proves("correction:attempts")
def test_attempts_are_forgotten_five_minutes_after_the_first() -> None:
    now = [0.0]
    attempts = AttemptCounter(lambda: now[0])
    problem = AttemptKey("ada", None, "default", "search")

    attempts.record_failure(problem)
    now[0] = 299.0
    attempts.record_failure(problem)
    assert attempts.number(problem) == 3
    now[0] = 301.0

    assert attempts.number(problem) == 1
