"""What every fault stands on: a seed that is printed, and a voice for figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

Say = Callable[[str], None]


@pytest.fixture
def seed() -> int:
    """Return the seed of a test; shown with a failure, and set with FAULTS_SEED to repeat one."""
    chosen = int(os.environ.get("FAULTS_SEED", "1"))
    sys.stdout.write(f"FAULTS_SEED={chosen}\n")
    return chosen


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Return a way to show figures of a test that passes."""

    def speak(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n  {text}")

    return speak
