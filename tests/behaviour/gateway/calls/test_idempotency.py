"""A call under a request id is run once, however often and from wherever it is sent."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem, limits
from stratagem.errors import ExecutionFailed, PermissionDenied, RequestReused, ToolNotFound
from stratagem.operation import Caller
from tests import forkserver
from tests.manifest import proves


class Till:
    """Takes money, and remembers how often; waits for a sign where it is told to."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.asked = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def pay(self, amount: int) -> dict[str, Any]:
        """Pay."""
        self.asked.set()
        self.open.wait(60)
        self.taken.append(amount)
        if amount < 0:
            raise ValueError("a till gives nothing back")
        return {"paid": amount, "number": len(self.taken)}


@pytest.fixture
def till(db: Stratagem) -> Till:
    made = Till()
    db.gateway.add(made.pay, name="pay")
    return made


def pay(db: Stratagem, request_id: str | None, amount: int = 5, **more: Any) -> dict[str, Any]:
    given = {"toolName": "pay", "arguments": {"amount": amount}, "requestId": request_id, **more}
    return db.call("tool_execute", given)


@proves("call:idempotency")
def test_a_repeat_is_given_the_first_outcome(db: Stratagem, till: Till) -> None:
    first = pay(db, "one")
    again = pay(db, "one")

    assert till.taken == [5]
    assert (again["executionId"], again["result"]) == (first["executionId"], first["result"])
    assert again["metadata"]["repeated"] is True
    assert "repeated" not in first["metadata"]
    # Only what was run is counted.
    assert len(db.call("tool_executions", {"toolId": "pay"})["executions"]) == 1


@proves("call:idempotency")
def test_another_id_and_no_id_are_other_calls(db: Stratagem, till: Till) -> None:
    for request_id in ("one", "two", None, None):
        pay(db, request_id)

    assert till.taken == [5, 5, 5, 5]


@proves("call:idempotency")
def test_other_arguments_under_the_same_id_are_refused(db: Stratagem, till: Till) -> None:
    pay(db, "one")

    with pytest.raises(RequestReused):
        pay(db, "one", amount=6)

    assert till.taken == [5]


@proves("call:idempotency")
def test_an_id_is_its_callers_own(db: Stratagem, till: Till) -> None:
    given = {"toolName": "pay", "arguments": {"amount": 5}, "requestId": "one"}

    for actor in ("token:a", "token:b", "token:a"):
        db.runtime.call("tool_execute", given, Caller(actor))

    assert till.taken == [5, 5]


@proves("call:idempotency")
def test_a_failure_is_an_outcome_too(db: Stratagem, till: Till) -> None:
    failures = []
    for _ in range(2):
        with pytest.raises(ExecutionFailed) as caught:
            pay(db, "one", amount=-1)
        failures.append(caught.value)

    assert till.taken == [-1]
    assert failures[0].message == failures[1].message
    assert failures[0].details["executionId"] == failures[1].details["executionId"]


@proves("call:idempotency")
def test_what_was_not_run_can_be_sent_again(db: Stratagem, till: Till) -> None:
    given = {"toolName": "later", "arguments": {"amount": 1}, "requestId": "one"}
    with pytest.raises(ToolNotFound):
        db.call("tool_execute", given)
    db.gateway.add(till.pay, name="later")
    db.gateway.update("later", status="disabled")
    with pytest.raises(PermissionDenied):
        db.call("tool_execute", given)
    db.gateway.update("later", status="active")

    db.call("tool_execute", given)

    assert till.taken == [1]


@proves("call:idempotency")
def test_repeats_at_the_same_time_wait_for_the_first(db: Stratagem, till: Till) -> None:
    till.open.clear()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(pay, db, "one") for _ in range(4)]
        till.open.set()
        numbers = [each.result()["result"]["number"] for each in calls]

    assert till.taken == [5]
    assert numbers == [1, 1, 1, 1]


@proves("call:idempotency")
def test_a_waiter_that_gives_up_stops_nothing(db: Stratagem, till: Till) -> None:
    till.open.clear()

    async def main() -> Any:
        given = {"toolName": "pay", "arguments": {"amount": 5}, "requestId": "one"}
        first = asyncio.ensure_future(db.runtime.call_async("tool_execute", given, Caller("sdk")))
        await asyncio.to_thread(till.asked.wait, 10)
        with pytest.raises(TimeoutError):
            # It waits for the first, which waits for the till: however long it is given.
            async with asyncio.timeout(0.05):
                await db.runtime.call_async("tool_execute", given, Caller("sdk"))
        till.open.set()
        return await first

    assert asyncio.run(main())["result"]["paid"] == 5
    assert till.taken == [5]


@proves("call:idempotency")
def test_an_outcome_is_known_after_a_restart(tmp_path: Path) -> None:
    path, till = str(tmp_path / "restart.db"), Till()
    answers = []
    for _ in range(2):
        with stratagem.open(path, embedder="none") as db:
            db.gateway.add(till.pay, name="pay")
            answers.append(pay(db, "one"))

    assert till.taken == [5]
    assert answers[0]["result"] == answers[1]["result"]


_KILLED = """
import os, sys, stratagem
db = stratagem.open(sys.argv[1], embedder="none")
def pay(amount: int) -> int:
    os._exit(9)
db.gateway.add(pay, name="pay")
db.call("tool_execute", {"toolName": "pay", "arguments": {"amount": 5}, "requestId": "one"})
"""


@proves("call:idempotency")
def test_a_call_that_was_cut_off_is_not_run_again_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPEAT_SECONDS_MAX", 0.2)
    path, till = str(tmp_path / "cut.db"), Till()
    died = forkserver.run([sys.executable, "-c", _KILLED, path], check=False, timeout=60)
    assert died.returncode == 9

    with stratagem.open(path, embedder="none") as db:
        db.gateway.add(till.pay, name="pay")
        with pytest.raises(RequestReused, match="not known how it ended"):
            pay(db, "one")
        assert till.taken == []
        pay(db, "another")

    assert till.taken == [5]


@proves("call:idempotency")
def test_who_loses_a_race_leaves_no_trace(tmp_path: Path) -> None:
    path, till = str(tmp_path / "race.db"), Till()
    with ExitStack() as stack:
        databases = [
            stack.enter_context(stratagem.open(path, embedder="none")) for _server in range(3)
        ]
        for db in databases:
            db.gateway.add(till.pay, name="pay")
        with ThreadPoolExecutor(3) as pool:
            for number in range(10):
                together = threading.Barrier(3)

                def race(db: Stratagem, number: int = number, to: Any = together) -> int:
                    to.wait(60)
                    answer: int = pay(db, f"race {number}")["result"]["number"]
                    return answer

                assert len(set(pool.map(race, databases))) == 1
        assert len(till.taken) == 10
        records = databases[0].call("tool_executions", {"toolId": "pay"})["executions"]
        assert [each["status"] for each in records] == ["success"] * 10


@proves("call:idempotency")
def test_a_resource_is_removed_once(db: Stratagem) -> None:
    made = {"type": "prompt", "name": "hello", "content": "Hello"}
    db.call("resource_create", made)
    first = db.call("resource_remove", {"resourceId": "hello", "requestId": "one"})
    db.call("resource_create", made)

    again = db.call("resource_remove", {"resourceId": "hello", "requestId": "one"})

    assert first == again
    assert db.call("resource_get", {"resourceId": "hello"})["resource"]["name"] == "hello"
