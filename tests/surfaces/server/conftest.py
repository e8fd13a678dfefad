from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil  # type: ignore[import-untyped]
import pytest

from tests.postgres import a_workspace
from tests.surfaces.serving import Served, eventually, serving


@dataclass
class Team:
    """A server of two processes. `place` is its database."""

    served: Served
    place: str
    # Where its processes meet.
    meeting: Path = field(default_factory=Path)

    @property
    def url(self) -> str:
        return self.served.url

    def workers(self) -> list[psutil.Process]:
        """Return the processes that answer requests."""
        children = psutil.Process(self.served.process.pid).children()
        # Python watches over what processes share with one of its own.
        return [each for each in children if _is_worker(each)]

    def settled(self) -> list[psutil.Process]:
        """Wait until both processes answer; return them."""
        eventually(lambda: len(self.workers()) == 2 and self.all_answer(), 60)
        return self.workers()

    def answered(self, path: str) -> list[int]:
        """Return the processes that answered requests for a path, in their order."""
        # The last line may not be whole yet.
        text = self.served.log.read_text("utf-8").rpartition("\n")[0]
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [line["process"] for line in lines if line.get("path", "").startswith(path)]

    def all_answer(self) -> bool:
        """Whether each process has answered a request."""
        # On connections of their own, and several at once: who is idle takes one.
        with ThreadPoolExecutor(4) as threads:
            list(
                threads.map(
                    lambda _: httpx2.get(
                        f"{self.url}/health", trust_env=False, verify=False, timeout=60
                    ),
                    range(4),
                )
            )
        return {each.pid for each in self.workers()} <= set(self.answered("/health"))


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


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        # It has ended, or is about to be waited for.
        return False
