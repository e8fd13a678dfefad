from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stratagem import Stratagem, connect
from stratagem.operation import Caller
from stratagem.sdk.remote import Client
from stratagem.surfaces.serving.settings import ServerSettings
from tests.behaviour.surfaces import Wanted
from tests.contracts.samples import Clock
from tests.sdk.hosting import Prepared, host


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Stratagem]:
    wanted = Wanted(tmp_path / "embedded.db", Clock())
    with closing(Stratagem(wanted.start(), Caller(authority="operator"))) as db:
        yield db


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Serve a database of its own; give its address."""
    wanted = Wanted(tmp_path / "served.db", Clock())
    settings = ServerSettings(str(wanted.path))
    with closing(Prepared(settings, wanted.start())) as database:
        address = host().add(settings, database)
        yield address
        host().remove(address)


@pytest.fixture
def remote(url: str) -> Iterator[Client]:
    with connect(url, patience=0) as db:
        yield db
