from __future__ import annotations

from collections.abc import Iterator

import pytest

import stratagem
from tests.behaviour.gateway.advice.registered import register_weather_and_mail


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", durability="fast") as opened:
        register_weather_and_mail(opened)
        yield opened
