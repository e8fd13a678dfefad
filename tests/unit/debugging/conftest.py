from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stratagem import Stratagem
from stratagem.operation import Caller
from tests.behaviour.surfaces import Wanted
from tests.contracts.samples import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path, clock: Clock) -> Iterator[Stratagem]:
    with Stratagem(Wanted(tmp_path / "own.db", clock).start(), Caller()) as opened:
        yield opened


@pytest.fixture
def other(db: Stratagem, tmp_path: Path, clock: Clock) -> Iterator[Stratagem]:
    """Another database, whose log begins at another time: it has an identity of its own."""
    clock.advance(1)
    with Stratagem(Wanted(tmp_path / "other.db", clock).start(), Caller()) as opened:
        yield opened
