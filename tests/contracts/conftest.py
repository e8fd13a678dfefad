from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from stratagem.storage.contract import Store
from tests.contracts.backends import BACKENDS, Backend
from tests.contracts.samples import Clock

Opener = Callable[..., Store]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    chosen: Backend = request.param
    return chosen


@pytest.fixture
def opened(
    backend: Backend, tmp_path: Path, clock: Clock, request: pytest.FixtureRequest
) -> Iterator[Opener]:
    """Open the backend's store, as often and with whatever settings a test asks for."""
    place = {"address": request.getfixturevalue("postgres_address")} if backend.served else {}
    with ExitStack() as stack:

        def open_store(**settings: Any) -> Store:
            return stack.enter_context(closing(backend.open(tmp_path, clock, **place, **settings)))

        yield open_store


@pytest.fixture
def store(opened: Opener) -> Store:
    return opened()
