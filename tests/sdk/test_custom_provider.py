"""A provider of one's own: its tools are registered and called like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.errors import StratagemError, ToolExists

TOOL = {
    "name": "shout",
    "description": "Say it louder.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


class Loud:
    def __init__(self) -> None:
        self.config: Mapping[str, Any] | None = None

    async def initialise(self, config: Mapping[str, Any]) -> None:
        self.config = config

    async def list(self) -> Sequence[Mapping[str, Any]]:
        return [TOOL]

    async def execute(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        assert self.config is not None
        return {"tool": tool, "text": arguments["text"].upper() + self.config["end"]}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[stratagem.Stratagem]:
    with stratagem.open(str(tmp_path / "provider.db")) as opened:
        yield opened


def test_its_tools_are_registered_validated_and_called(db: stratagem.Stratagem) -> None:
    (added,) = db.gateway.add_provider("loud", Loud(), {"end": "!"})

    assert added["name"] == "shout"
    assert db.gateway.get("shout")["provider"] == "loud"
    answer = db.gateway.execute("shout", {"text": "hi"})
    assert answer["result"] == {"tool": "shout", "text": "HI!"}
    with pytest.raises(StratagemError, match="do not fit"):
        db.gateway.execute("shout", {})


def test_it_comes_back_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "again.db")
    with stratagem.open(path) as db:
        db.gateway.add_provider("loud", Loud(), {"end": "!"})
    with stratagem.open(path) as db:
        with pytest.raises(StratagemError, match="not connected"):
            db.gateway.execute("shout", {"text": "hi"})
        db.gateway.add_provider("loud", Loud(), {"end": "?"})

        assert db.gateway.execute("shout", {"text": "hi"})["result"]["text"] == "HI?"


def test_another_provider_does_not_take_its_tools(db: stratagem.Stratagem) -> None:
    db.gateway.add_provider("loud", Loud(), {"end": "!"})

    with pytest.raises(ToolExists):
        db.gateway.add_provider("louder", Loud(), {"end": "!!"})
