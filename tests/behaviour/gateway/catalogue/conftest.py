"""A database whose standard tools may reach one service on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.errors import StratagemError
from tests.surfaces.serving import Service

Answer = dict[str, Any]


class Desk:
    """Calls tools, and sets what they need as an administrator does."""

    def __init__(self, database: stratagem.Stratagem) -> None:
        self.database = database

    def call(self, tool: str, **arguments: Any) -> Any:
        given = {"toolName": tool, "arguments": arguments}
        return self.database.call("tool_execute", given)["result"]

    def refusal(self, tool: str, **arguments: Any) -> StratagemError:
        try:
            answer = self.call(tool, **arguments)
        except StratagemError as error:
            return error
        raise AssertionError(f"it worked: {answer}")

    def connect(self, name: str, kind: str, **settings: Any) -> None:
        given = {"name": name, "kind": kind, "settings": settings}
        self.database.call("connection_set", given)

    def grant(self, tool: str, name: str, origin: str) -> None:
        self.database.call("secret_grant", {"tool": tool, "name": name, "origin": origin})

    def shown(self, tool: str) -> Answer:
        found: Answer = self.database.call("tool_get", {"toolId": tool})["tool"]
        return found


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, service: Service) -> Iterator[Desk]:
    with stratagem.open(
        str(tmp_path / "desk.db"),
        durability="fast",
        embedder="none",
        allow_hosts=(service.host, "127.0.0.1:*"),
    ) as db:
        yield Desk(db)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made
