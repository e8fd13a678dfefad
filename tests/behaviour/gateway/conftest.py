"""A gateway for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stratagem
from tests.behaviour.gateway.workshop import Gateway, Workshop, workshop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path / "shop.db") as opened:
        yield opened


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """One without tools but the built-in ones."""
    with stratagem.open(str(tmp_path / "gateway.db"), durability="fast", embedder="none") as db:
        yield Gateway(db)


@pytest.fixture
def db(gateway: Gateway) -> stratagem.Stratagem:
    return gateway.database
