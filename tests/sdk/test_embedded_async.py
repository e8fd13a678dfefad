"""`async with stratagem.open_async(…)`: the same methods, awaited, off the event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

import stratagem
from stratagem import AsyncStratagem
from stratagem.sdk.remote import AsyncClient
from stratagem.storage.contract import WriteRequest


async def value_of(db: AsyncStratagem, key: str) -> object:
    entry = await db.memory.recall(key)
    return entry and entry.value


def public(kind: type) -> set[str]:
    return {name for name, _each in inspect.getmembers(kind) if not name.startswith("_")}


def test_it_has_what_a_client_of_a_server_has(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db") as db:
            assert public(AsyncClient) <= public(AsyncStratagem)
            for system in ("memory", "debugging", "knowledge", "gateway"):
                assert hasattr(db, system)

    asyncio.run(run())


def test_all_systems_answer_when_awaited(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            await db.memory.store("city", "Oslo")
            await db.knowledge.create_concept("Fjords", "Long arms of the sea between mountains")
            found = await db.debugging.ranked_solutions("boom", {"os": "linux"})

            assert await value_of(db, "city") == "Oslo"
            assert found.ranked_solutions == []
            assert len((await db.knowledge.search_concepts_exact(name="Fjords")).results) == 1
            assert (await db.call("strata_status"))["keys"] == 1

    asyncio.run(run())


def test_functions_become_tools_and_are_called(tmp_path: Path) -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    async def run() -> object:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            await db.gateway.add(double)
            return (await db.gateway.execute("double", {"number": 21}))["result"]

    assert asyncio.run(run()) == 42


def test_the_loop_goes_on_while_a_write_waits(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            held, free = hold_writers(db)
            writing = asyncio.ensure_future(db.memory.store("a", 1))
            await asyncio.to_thread(held.wait)

            turns = [await asyncio.sleep(0, turn) for turn in range(3)]
            assert not writing.done()
            free.set()

            assert turns == [0, 1, 2]
            assert (await writing).status == "created"

    asyncio.run(run())


def hold_writers(db: AsyncStratagem) -> tuple[threading.Event, threading.Event]:
    """Hold up every write; return an event that says that it does, and one that ends it."""
    held, free = threading.Event(), threading.Event()

    def work(_transaction: object) -> None:
        held.set()
        free.wait(60)

    store = db.runtime.foundation.store
    threading.Thread(target=lambda: store.write(work, WriteRequest("holder"))).start()
    return held, free


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "queued"])
def test_a_cancelled_write_is_there_whole_or_not_at_all(tmp_path: Path, begun: bool) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            held, free = hold_writers(db)
            await asyncio.to_thread(held.wait)
            items = [{"key": f"k{number}", "value": number} for number in range(3)]
            before = [
                asyncio.ensure_future(db.memory.store(f"x{number}", 1))
                for number in range(0 if begun else 8)
            ]
            writing = asyncio.ensure_future(db.memory.store(items=items))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            free.set()
            await asyncio.gather(*before)

            # In one read: the write may end between two of them.
            found = await db.memory.recall_many([f"k{number}" for number in range(3)])
            assert [entry.value for entry in found] in ([0, 1, 2], [])
            await db.memory.store("after", "usable")
            assert await value_of(db, "after") == "usable"

    asyncio.run(run())


def test_closing_completes_what_has_begun_and_refuses_the_rest(tmp_path: Path) -> None:
    async def run() -> None:
        db = await stratagem.open_async(tmp_path / "a.db", embedder="none")
        held, free = hold_writers(db)
        await asyncio.to_thread(held.wait)
        writing = asyncio.ensure_future(db.memory.store("a", 1))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(db.close())
        await asyncio.sleep(0)
        with pytest.raises(stratagem.StorageUnavailable):
            await db.memory.recall("a")
        free.set()
        await closing
        await db.close()

        assert (await writing).status == "created"
        assert "closed" in repr(db)

    asyncio.run(run())
    with stratagem.open(tmp_path / "a.db", embedder="none") as again:
        entry = again.memory.recall("a")
        assert entry is not None
        assert entry.value == 1


def test_an_error_of_opening_is_raised_where_it_is_awaited(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", branch="none"):
            pass

    with pytest.raises(stratagem.BranchNotFound):
        asyncio.run(run())


def test_a_transaction_takes_in_the_tasks_of_its_block_and_no_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            go = asyncio.Event()

            async def outside() -> object:
                await go.wait()
                return await value_of(db, "k1")

            other = asyncio.ensure_future(outside())
            async with db.transaction() as transaction:
                await asyncio.gather(*(db.memory.store(f"k{each}", each) for each in range(3)))
                go.set()
                assert await other is None
                assert await value_of(db, "k1") == 1

            assert await value_of(db, "k1") == 1
            assert transaction.result is not None
            assert transaction.result.records == 3

    asyncio.run(run())


def test_a_task_that_outlives_its_transaction_writes_nowhere(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            go = asyncio.Event()

            async def late() -> None:
                await go.wait()
                await db.memory.store("late", 1)

            async with db.transaction():
                task = asyncio.ensure_future(late())
            go.set()

            with pytest.raises(stratagem.TransactionEnded):
                await task
            assert await value_of(db, "late") is None

    asyncio.run(run())


def test_a_cancelled_transaction_is_rolled_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with stratagem.open_async(tmp_path / "a.db", embedder="none") as db:
            within = asyncio.Event()

            async def work() -> None:
                async with db.transaction():
                    await db.memory.store("a", 1)
                    within.set()
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(work())
            await within.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert await value_of(db, "a") is None
            assert db.runtime.foundation.store.reader().branches.transactions() == []
            async with db.transaction() as again:
                await db.memory.store("a", 2)
                await again.rollback()
            assert await value_of(db, "a") is None

    asyncio.run(run())
