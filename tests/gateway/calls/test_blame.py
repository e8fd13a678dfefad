"""Whose fault a failure is: one answer for breakers, reliability, pipelines and corrections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import errors, limits
from stratagem.errors import (
    TABLE,
    ExecutionFailed,
    ExecutionTimeout,
    StratagemError,
    blame_of,
)
from stratagem.gateway.calls.breakers import Breakers
from stratagem.operation import Caller
from stratagem.sdk import Stratagem

CLASSES = {
    found.code: found
    for name in errors.__all__
    if isinstance(found := getattr(errors, name), type)
    and issubclass(found, StratagemError)
    and found is not StratagemError
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stratagem]:
    path: Path = tmp_path_factory.mktemp("blame") / "blame.db"
    with stratagem.open(str(path), embedder="none") as opened:
        yield opened


def test_every_code_says_whose_fault_it_is() -> None:
    assert set(CLASSES) == set(TABLE)
    assert {row.blame for row in TABLE.values()} == {"arguments", "caller", "tool", "nobody"}


@pytest.mark.parametrize("code", TABLE)
def test_a_failure_counts_against_the_tool_if_the_tool_is_to_blame(
    db: Stratagem, code: str
) -> None:
    calls = 0

    def failing() -> None:
        """Fail."""
        nonlocal calls
        calls += 1
        raise CLASSES[code]("It failed.")

    name = f"failing_{code}"
    db.gateway.add(failing, name=name)
    steps = [{"id": "only", "tool": name, "retry": {"attempts": 2}}]
    is_tools = blame_of(code) == "tool"

    for _ in range(limits.BREAKER_FAILURES):
        with pytest.raises(CLASSES[code]):
            db.gateway.execute(name)
    opened = _breakers(db, name)
    statistics = db.gateway.get(name)["statistics"]
    db.runtime.gateway.breakers.reset(name)
    calls = 0
    db.call("tools_pipeline", {"steps": steps})

    assert opened == (["open"] if is_tools else [])
    assert statistics["totalCalls"] == (limits.BREAKER_FAILURES if is_tools else 0)
    assert calls == (1 if blame_of(code) in {"arguments", "caller"} else 2)


def test_a_cancelled_call_is_no_evidence_and_trips_no_breaker(db: Stratagem) -> None:
    started = threading.Semaphore(0)

    async def endless() -> None:
        """Run until cancelled."""
        started.release()
        await asyncio.sleep(60)

    db.gateway.add(endless)
    board = db.runtime.gateway
    for _ in range(limits.BREAKER_FAILURES):
        failures: list[StratagemError] = []
        call = threading.Thread(target=_execute, args=(db, failures))
        call.start()
        assert started.acquire(timeout=10)
        (execution,) = board.executor.active
        board.home.run(partial(_cancel, board, execution))
        call.join(10)
        assert failures[0].details["reason"] == "cancelled"

    assert db.gateway.get("endless")["statistics"]["totalCalls"] == 0
    assert _breakers(db, "endless") == []


def _breakers(db: Stratagem, name: str) -> list[str]:
    every = db.runtime.gateway.breakers.list()
    return [each["status"] for each in every if each["toolName"] == name]


def _execute(db: Stratagem, failures: list[StratagemError]) -> None:
    try:
        db.gateway.execute("endless")
    except StratagemError as error:
        failures.append(error)


async def _cancel(board: Any, execution: str) -> None:
    assert board.executor.cancel(execution, Caller())


def test_time_that_the_caller_chose_too_short_does_not_stop_others(db: Stratagem) -> None:
    async def slow(seconds: float) -> str:
        """Take a while."""
        await asyncio.sleep(seconds)
        return "done"

    db.gateway.add(slow)

    for _ in range(limits.BREAKER_FAILURES):
        with pytest.raises(ExecutionTimeout) as stopped:
            db.gateway.execute("slow", {"seconds": 30}, options={"timeout": 10})
        assert stopped.value.details["reason"] == "callers_time"

    assert db.gateway.execute("slow", {"seconds": 0})["result"] == "done"
    assert db.gateway.get("slow")["statistics"]["totalCalls"] == 1


def test_code_that_runs_out_of_time_stops_nobody_elses_code(db: Stratagem) -> None:
    endless = {"language": "python", "code": "while True: pass"}
    tool = db.runtime.gateway.registry.builtin["code_executor"]
    assert tool.target == "code"

    for _ in range(limits.BREAKER_FAILURES):
        with pytest.raises(StratagemError):
            db.gateway.execute("code_executor", endless, options={"timeout": 100})

    assert _breakers(db, "code_executor") == []


def test_each_host_that_callers_choose_has_a_breaker_of_its_own(db: Stratagem) -> None:
    tool = db.runtime.gateway.registry.builtin["api_caller"]

    for url, circuit in {
        "https://slow.example/a?b": "api_caller slow.example",
        "https://u:p@SLOW.example/": "api_caller slow.example",
        "http://slow.example:8080/": "api_caller slow.example:8080",
        "https://other.example/": "api_caller other.example",
        "http://[": "api_caller ",
    }.items():
        assert tool.circuit({"url": url}) == circuit
    assert tool.circuit({"url": "https://" + "x" * 5_000}).startswith("api_caller x")
    assert len(tool.circuit({"url": "https://" + "x" * 5_000})) == limits.CIRCUIT_CHARS_MAX


def test_breakers_of_chosen_names_are_bounded_and_keep_those_that_are_open() -> None:
    breakers = Breakers(lambda: 0.0)
    for _ in range(limits.BREAKER_FAILURES):
        breakers.fail("open", "timeout")

    for at in range(limits.BREAKERS_MAX + 10):
        breakers.fail(f"host {at}", "timeout")

    assert len(breakers.list()) == limits.BREAKERS_MAX
    with pytest.raises(ExecutionFailed):
        breakers.enter("open")
