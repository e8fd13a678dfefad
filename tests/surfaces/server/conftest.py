from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.postgres import a_workspace
from tests.surfaces.serving import Served, eventually, serving


@dataclass
class Team:
    """A server of two processes. `place` is its database."""

    served: Served
    place: str

    @property
    def url(self) -> str:
        return self.served.url

    def workers(self) -> list[psutil.Process]:
        """Return the processes that answer requests."""
        children = psutil.Process(self.served.process.pid).children()
        # Python watches over what processes share with one of its own.
        return [each for each in children if "spawn_main" in " ".join(each.cmdline())]

    def settled(self) -> list[psutil.Process]:
        return eventually(lambda: len(found := self.workers()) == 2 and found, 30)  # type: ignore[no-any-return]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a database is: in a file, or on a PostgreSQL server."""
    if request.param == "postgres":
        return f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"
    return str(tmp_path_factory.mktemp("team") / "team.db")


@pytest.fixture(scope="module")
def team(place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    log = Path(tmp_path_factory.mktemp("log") / "team.db")
    options = ("--db", place, "--workers", "2", "--log-format", "json")
    with serving(log, *options) as served:
        running = Team(served, place)
        running.settled()
        yield running
