"""Retention erases by a person's word alone: others are shown what would go, and how it goes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import stratagem
from stratagem.errors import VersionErased
from tests import forkserver
from tests.security.house import House, Outcome, Surface, make_token, serving
from tests.surfaces.cli.console import Cli

# One of each kind; in transactions a cell, an event and an entry; and what was committed of it.
_BY_KIND = {"cell": 2, "entry": 3, "event": 1, "vector": 1}
_ERASABLE = sum(_BY_KIND.values())
SURFACES: tuple[Surface, ...] = ("mcp", "rest")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database with versions that are superseded, or of transactions that are over."""
    place = tmp_path / "memory.db"
    with stratagem.open(place, embedder="static") as db:
        db.vectors.create_collection("docs", 2)
        for word in ("fugitive", "lasting"):
            db.kv.put("k", f"{word} entry {'x' * 50_000}", index=True)
            db.state.set("c", f"{word} cell")
            db.vectors.upsert("docs", "v", [1, 2], {"about": f"{word} vector"})
        with db.transaction() as block:
            db.state.set("c", "fugitive: rolled back")
            db.events.append("e", "fugitive: rolled back")
            block.rollback()
        with db.transaction():
            db.kv.put("t", "fugitive: committed, and then replaced")
        db.kv.put("t", "lasting")
        db.memory.search("fugitive")
        db.vectors.search("docs", [1, 2])
    return place


def _apply(house: House, surface: Surface, token: str) -> Any:
    outcome: Outcome = house.call(surface, token, "strata_retention_apply", {"keep": 1})
    assert outcome.error is None, outcome.text
    return outcome.answer


@pytest.mark.parametrize("surface", SURFACES)
def test_only_the_token_of_an_administrator_erases(path: Path, surface: Surface) -> None:
    tokens = {
        "member": make_token(path, "member", "*:write", roles={"default": "member"}),
        "admin": make_token(path, "admin", "*:admin"),
    }
    with serving(path, toolsets=("developer",)) as house:
        house.tokens |= tokens

        shown = _apply(house, surface, "member")
        still = _apply(house, surface, "member")
        erased = _apply(house, surface, "admin")
        left = _apply(house, surface, "admin")

    assert (shown["preview"], shown["versions"]) == (True, _ERASABLE)
    assert "the token of an administrator" in shown["note"]
    assert str(path) not in shown["note"], "who is far away has another file of that name"
    assert still["versions"] == _ERASABLE
    assert (erased["preview"], erased["by_kind"]) == (False, _BY_KIND)
    assert erased["bytes"] > 50_000
    assert left["versions"] == 0
    _assert_gone(path)


@pytest.mark.anyio
async def test_a_server_on_stdio_says_the_command_that_erases(path: Path) -> None:
    arguments = ["-m", "stratagem", "mcp", "--developer", "--db", str(path), "--embedder", "none"]
    server = StdioServerParameters(command=forkserver.program(), args=arguments)

    async with Client(server) as client:
        shown = (await client.call_tool("strata_retention_apply", {"keep": 1})).structured_content
    assert shown is not None
    command = shlex.split(str(shown["note"]).rpartition(" or ")[2])
    Cli(path)(*command[1:], "--yes")

    assert (shown["preview"], shown["versions"]) == (True, _ERASABLE)
    assert command[:3] == ["stratagem", "--db", str(path)]
    _assert_gone(path)


def _assert_gone(path: Path) -> None:
    """Hold that what was erased is in no file, no index and no export, and that all else is."""
    with stratagem.open(path, embedder="static", bundles=str(path.parent)) as db:
        versions = db.kv.history("k").results
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []
        with pytest.raises(VersionErased):
            db.kv.get("k", as_of=f"@{versions[1].version}")
        assert [each.key for each in db.memory.search("lasting")] == ["k"]
        assert db.vectors.search("docs", [1, 2]).results[0].metadata == {"about": "lasting vector"}
        db.bundle.export("copy")
        compacted = db.database.compact().bytes_after
        assert compacted is not None
        assert compacted < 400_000
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert b"fugitive" not in content, file.name
    assert b"lasting cell" in path.read_bytes()
