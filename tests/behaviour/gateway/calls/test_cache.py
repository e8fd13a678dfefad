"""Results that are kept: every server of a workspace goes by what was decided on any of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import stratagem
from tests.manifest import proves
from tests.postgres import a_workspace

SETTINGS = {"cache": True, "cacheTtl": 600}


class Server:
    """One of the servers, with a function that never gives the same twice."""

    def __init__(self, place: str) -> None:
        self.db = stratagem.open(place, embedder="none")
        self.numbers = count()
        self.db.gateway.add(self.draw, name="draw", configuration=SETTINGS)

    def draw(self) -> int:
        """Draw a number."""
        return next(self.numbers)

    def ask(self) -> tuple[bool, Any]:
        """Call the tool; return whether the result had been kept, and the result."""
        answer = self.db.call("tool_execute", {"toolName": "draw", "arguments": {}})
        return answer["metadata"]["cached"], answer["result"]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    if request.param == "SQLite":
        place = str(tmp_path / "kept.db")
    else:
        place = f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"
    both = Server(place), Server(place)
    yield both
    for each in both:
        each.db.close()


@proves("call:cache")
def test_what_is_forgotten_on_one_server_is_found_on_none(servers: tuple[Server, Server]) -> None:
    here, there = servers
    for each in servers:
        assert [each.ask(), each.ask()] == [(False, 0), (True, 0)]

    assert here.db.call("cache_clear", {})["cleared"] == 1

    assert here.ask() == (False, 1)
    assert [there.ask(), there.ask()] == [(False, 1), (True, 1)]

    there.db.call("cache_clear", {"toolId": "draw"})
    assert here.ask() == (False, 2)


@proves("call:cache")
def test_the_rules_hold_on_every_server(servers: tuple[Server, Server]) -> None:
    here, there = servers
    there.ask()

    answer = here.db.call("cache_configure", {"enabled": False, "maxSize": "1MB"})

    assert (answer["enabled"], answer["maxSize"]) == (False, 2**20)
    assert [there.ask()[0], there.ask()[0]] == [False, False]
    here.db.call("cache_configure", {"enabled": True})
    assert [there.ask()[0], there.ask()[0]] == [False, True]
    # The size was not named again, and stays.
    assert there.db.call("cache_configure", {"ttl": 60})["maxSize"] == 2**20


@proves("call:cache")
def test_the_rules_outlive_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "kept.db")
    before = Server(place)
    before.db.call("cache_configure", {"enabled": False})
    before.db.close()

    after = Server(place)
    try:
        assert [after.ask()[0], after.ask()[0]] == [False, False]
    finally:
        after.db.close()


@proves("call:cache")
def test_a_result_under_way_while_it_is_forgotten_is_not_kept(
    servers: tuple[Server, Server],
) -> None:
    here, there = servers

    class Clearing:
        def __next__(self) -> int:
            there.db.call("cache_clear", {})
            return 7

    here.numbers = Clearing()  # type: ignore[assignment]
    assert here.ask() == (False, 7)
    here.numbers = count(8)
    assert here.ask() == (False, 8)
