"""Random runs that can be repeated: STRATAGEM_SEED=… runs the same ones again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

SEED_VARIABLE = "STRATAGEM_SEED"
# Read when the tests are collected: they run without the settings of whoever runs them.
_GIVEN = os.environ.get(SEED_VARIABLE)


@contextmanager
def seeded() -> Iterator[int]:
    """Give a seed, and print it if what it was used for fails."""
    seed = int(_GIVEN) if _GIVEN else random.SystemRandom().getrandbits(32)
    try:
        yield seed
    except BaseException:
        print(f"\nRun this again with {SEED_VARIABLE}={seed}")  # noqa: T201
        raise
