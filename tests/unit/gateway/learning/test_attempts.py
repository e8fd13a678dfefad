from __future__ import annotations

from stratagem.gateway.learning.attempts import Attempts, Problem
from tests.manifest import proves


@proves("correction:attempts")
def test_attempts_are_forgotten_five_minutes_after_the_first() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    problem = Problem("ada", None, "default", "search")

    attempts.failed(problem)
    now[0] = 299.0
    attempts.failed(problem)
    assert attempts.number(problem) == 3
    now[0] = 301.0

    assert attempts.number(problem) == 1
