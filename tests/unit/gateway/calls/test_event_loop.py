"""The loop that all calls share waits for nothing but calls."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stratagem.storage.postgres.connection import PooledSession, PostgresSession
from tests import forkserver
from tests.behaviour.gateway.workshop import workshop
from tests.postgres import a_workspace
from tests.unit.gateway.handlers.upstream.servers import SERVER


def test_the_home_loop_waits_for_no_database_on_a_network(
    postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking: list[tuple[str, str]] = []

    def watch(kind: Any) -> None:
        execute = kind.execute

        def watched(self: Any, statement: Any, *given: Any, **more: Any) -> Any:
            asking.append((threading.current_thread().name, str(statement)[:60]))
            return execute(self, statement, *given, **more)

        monkeypatch.setattr(kind, "execute", watched)

    watch(PooledSession)
    watch(PostgresSession)
    with workshop(f"{postgres_address}#{a_workspace()}") as shop:
        shop.run("search", {"query": "x"})
        asking.clear()
        shop.run("send", {"recipient": "bob", "amount": "12"})
        shop.teach("needle", 2)
        for number in range(2):
            shop.fails("search", {"query": f"unlucky {number}", "limit": "3"})
            shop.settle()
        shop.fails("search", {"query": "x", "limit": "3"}, "bob")
        shop.fails("switch", {"lamp": "hall"})
        server = {"name": "up", "command": forkserver.program(), "args": [SERVER]}
        shop.database.call("server_add", server)
        shop.run("add", {"a": 1, "b": 2})
        learned = shop.told("pattern:learned") + shop.told("pattern:evolved")

    assert len(asking) > 20
    assert [each for each in asking if each[0] == "stratagem-gateway"] == []
    assert len(learned) == 2
