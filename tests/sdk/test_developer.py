"""The groups of developer mode, in this process and of a server, to be called and to be awaited."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.sdk.embedded_async import AsyncStratagem
from stratagem.sdk.remote import AsyncClient, Client


def _use_each_group(db: Stratagem | Client) -> list[object]:
    """Call something of each group; return what came back, without times."""
    db.kv.put_many([{"key": "a", "value": 1}, {"key": "n", "value": None}])
    found, none = db.kv.get("a"), db.kv.get("n")
    assert found is not None
    assert none is not None
    db.json.set("d", [1], "$.list")
    cell = db.state.init("c", 0)
    db.state.cas("c", 1, cell.counter)
    db.events.append("e", {"x": 1})
    db.branches.fork("trial")
    db.spaces.create("work")
    return [
        found.value,
        none.value,
        db.kv.get("no"),
        [each.key for each in db.kv.list()],
        db.json.append("d", 2, "$.list").value,
        db.json.delete("d", "$.list[0]").deleted,
        [each.value for each in db.state.history("c")],
        db.events.len().count,
        db.branches.exists("trial").exists,
        [each.name for each in db.spaces.list()],
    ]


@pytest.mark.parametrize("which", ["embedded", "remote"])
def test_every_group_returns_the_same_models(which: str, request: pytest.FixtureRequest) -> None:
    db = request.getfixturevalue(which)

    came_back = _use_each_group(db)

    assert came_back == [
        1, None, None, ["a", "d", "n"], [1, 2], True, [1, 0], 1, True, ["default", "work"],
    ]  # fmt: skip


@pytest.mark.parametrize("which", ["embedded", "remote"])
def test_a_space_that_is_used_stays_in_use(which: str, request: pytest.FixtureRequest) -> None:
    db = request.getfixturevalue(which)

    db.spaces.use("work")
    db.kv.put("k", 1)

    assert (db.namespace, db.spaces.current().namespace) == ("work", "work")
    assert db.memory.recall("k").namespace == "work"


def test_a_transaction_on_a_server_holds_all_systems(remote: Client, url: str) -> None:
    with stratagem.connect(url, patience=0) as other:
        with remote.transaction() as block:
            remote.memory.store("m", 1)
            remote.state.set("c", 2)
            remote.knowledge.create_concept("Fork", "A branch that starts from another.")
            seen = (other.kv.get("m"), remote.memory.recall("m"))
            with pytest.raises(stratagem.NotInTransaction), remote.transaction():
                pass

        after = other.kv.get("m")

    assert (seen[0], seen[1] is not None, after is not None) == (None, True, True)
    assert block.result is not None
    assert block.result.records >= 3


def test_an_error_or_a_conflict_leaves_nothing_on_the_server(remote: Client, url: str) -> None:
    with pytest.raises(KeyError):
        _put_and_fail(remote)
    with (
        stratagem.connect(url, patience=0) as other,
        pytest.raises(stratagem.TransactionConflict),
    ):
        _put_against(remote, other)
    with remote.transaction() as block:
        remote.kv.put("z", 1)
        block.rollback()
        with pytest.raises(stratagem.TransactionEnded):
            remote.kv.get("z")

    assert remote.memory["k"] == 2
    assert remote.kv.get("z") is None


def _put_and_fail(db: Client) -> None:
    with db.transaction():
        db.kv.put("k", 1)
        raise KeyError


def _put_against(db: Client, other: Client) -> None:
    with db.transaction():
        db.kv.put("k", 1)
        other.kv.put("k", 2)


def test_all_of_it_can_be_awaited(tmp_path: Path, url: str) -> None:
    async def use(db: AsyncStratagem | AsyncClient) -> list[object]:
        async with db.transaction() as block:
            await db.kv.put("a", 1)
            await db.state.set("c", 2)
        cell = await db.state.get("c")
        assert cell is not None
        listed = await db.kv.list()
        return [block.result and block.result.records, cell.value, len(listed)]

    async def main() -> list[list[object]]:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as here:
            local = await use(here)
        async with stratagem.connect_async(url, patience=0) as there:
            return [local, await use(there)]

    assert asyncio.run(main()) == [[2, 2, 1], [2, 2, 1]]
