"""Whose fault a failure is: one answer for breakers, reliability, pipelines and corrections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

import stratagem
from stratagem import errors, limits
from stratagem.errors import TABLE, StratagemError, blame_of
from tests.behaviour.gateway.workshop import Gateway, timed
from tests.contracts.samples import Clock
from tests.manifest import proves
from tests.ports import free_port
from tests.surfaces.serving import Service, eventually

CLASSES = {
    found.code: found
    for name in errors.__all__
    if isinstance(found := getattr(errors, name), type)
    and issubclass(found, StratagemError)
    and found is not StratagemError
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("blame") / "blame.db"
    with stratagem.open(str(path), durability="fast", embedder="none") as opened:
        yield Gateway(opened)


@proves("call:blame")
def test_every_code_says_whose_fault_it_is() -> None:
    assert set(CLASSES) == set(TABLE)
    assert {row.blame for row in TABLE.values()} == {"arguments", "caller", "tool", "nobody"}


@proves("call:blame")
@pytest.mark.parametrize("code", TABLE)
def test_a_failure_counts_against_the_tool_if_the_tool_is_to_blame(
    shared: Gateway, code: str
) -> None:
    calls = 0

    def failing() -> None:
        """Fail."""
        nonlocal calls
        calls += 1
        raise CLASSES[code]("It failed.")

    alone, piped = f"failing_{code}", f"piped_{code}"
    for name in (alone, piped):
        shared.database.gateway.add(failing, name=name)
    steps = [{"id": "only", "tool": piped, "retry": {"attempts": 2}}]
    blame = blame_of(code)

    for _ in range(limits.BREAKER_FAILURES):
        assert shared.fails(alone).code == code
    statistics = shared.ask("tool_get", toolId=alone)["tool"]["statistics"]
    calls = 0
    shared.ask("tools_pipeline", steps=steps)

    assert shared.breaker(alone) == ("open" if blame == "tool" else "closed")
    assert statistics["totalCalls"] == (limits.BREAKER_FAILURES if blame == "tool" else 0)
    assert calls == (1 if blame in {"arguments", "caller"} else 2)


@proves("call:blame", "call:cancel")
def test_a_cancelled_call_is_no_evidence_and_trips_no_breaker(shared: Gateway) -> None:
    async def endless() -> None:
        """Run until cancelled."""
        await asyncio.sleep(60)

    shared.database.gateway.add(endless)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(limits.BREAKER_FAILURES):
            call = pool.submit(shared.fails, "endless")
            shared.cancel()
            assert call.result(60).details["reason"] == "cancelled"

    assert shared.ask("tool_get", toolId="endless")["tool"]["statistics"]["totalCalls"] == 0
    assert shared.breaker("endless") == "closed"


@proves("call:blame")
def test_time_that_the_caller_chose_too_short_does_not_stop_others(shared: Gateway) -> None:
    async def slow(seconds: float) -> str:
        """Take a while."""
        await asyncio.sleep(seconds)
        return "done"

    shared.database.gateway.add(slow)

    for _ in range(limits.BREAKER_FAILURES):
        stopped = shared.fails("slow", {"seconds": 30}, options={"timeout": 10})
        assert stopped.details["reason"] == "callers_time"

    assert shared.run("slow", {"seconds": 0})["result"] == "done"
    assert shared.ask("tool_get", toolId="slow")["tool"]["statistics"]["totalCalls"] == 1


@proves("call:blame")
def test_a_call_that_only_waited_for_others_says_nothing_of_the_tool(shared: Gateway) -> None:
    async def occupied() -> None:
        """Run until cancelled."""
        begun.set()
        await asyncio.sleep(60)

    begun = threading.Event()
    shared.database.gateway.add(occupied)
    narrow = {"concurrency": 1, "timeout": 10}
    shared.ask("tool_update", toolId="occupied", configuration=narrow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(shared.fails, "occupied", options={"timeout": 60_000})
        assert begun.wait(60)
        for _ in range(limits.BREAKER_FAILURES):
            waited = shared.fails("occupied")
            assert (waited.code, waited.details["reason"]) == ("timeout", "not_begun")
        shared.cancel()
        first.result(60)

    assert shared.breaker("occupied") == "closed"


@proves("call:blame")
def test_code_that_runs_out_of_time_stops_nobody_elses_code(shared: Gateway) -> None:
    endless = {"language": "python", "code": "while True: pass"}

    for _ in range(limits.BREAKER_FAILURES):
        shared.fails("code_executor", endless, options={"timeout": 100})

    assert shared.breaker("code_executor") == "closed"


@proves("call:breaker")
def test_each_host_that_callers_choose_has_a_breaker_of_its_own(
    tmp_path: Path, clock: Clock
) -> None:
    gone = f"127.0.0.1:{free_port()}"
    with Service() as sound, timed(tmp_path / "hosts.db", clock, gone, sound.host) as gateway:
        for _ in range(limits.BREAKER_FAILURES):
            gateway.fails("api_caller", {"url": f"http://{gone}/"})

        left_alone = gateway.fails("api_caller", {"url": f"http://{gone}/other"})
        answer = gateway.run("api_caller", {"url": sound.url("/")})

    assert left_alone.details["reason"] == "circuit_open"
    assert answer["result"]["status"] == 200


def register_orders(gateway: Gateway, service: Service) -> None:
    gateway.database.call(
        "tool_register",
        {
            "name": "get_order",
            "description": "Look an order up.",
            "inputSchema": {"type": "object", "properties": {"status": {"type": "integer"}}},
            "handler": {"type": "webhook", "url": service.url("/orders")},
        },
    )
    service.answers["/orders"] = lambda said: (
        orjson.loads(said["body"])["status"], "application/json", b"{}",
    )  # fmt: skip


@proves("call:breaker")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 429])
def test_what_a_service_refuses_to_one_caller_stops_no_other(
    tmp_path: Path, clock: Clock, status: int
) -> None:
    with Service() as service, timed(tmp_path / "orders.db", clock, service.host) as gateway:
        register_orders(gateway, service)

        for _ in range(limits.BREAKER_FAILURES + 1):
            refused = gateway.fails("get_order", {"status": status}, "bob")
            assert refused.details["status"] == status
        answer = gateway.run("get_order", {"status": 200}, "carol")

    assert answer["result"] == {}


@proves("call:breaker")
@pytest.mark.parametrize("size", [limits.OUTPUT_BYTES_DEFAULT, limits.OUTPUT_BYTES_MAX])
def test_results_that_are_too_large_for_one_caller_stop_no_other(
    tmp_path: Path, clock: Clock, size: int
) -> None:
    with Service() as service, timed(tmp_path / "orders.db", clock, service.host) as gateway:
        register_orders(gateway, service)
        service.answers["/orders"] = lambda said: (
            200, "application/json", b'"' + b"x" * orjson.loads(said["body"])["status"] + b'"',
        )  # fmt: skip

        for _ in range(limits.BREAKER_FAILURES + 1):
            refused = gateway.fails("get_order", {"status": size}, "bob")
            assert refused.details["reason"] == "too_large"
        answer = gateway.run("get_order", {"status": 3}, "carol")

    assert answer["result"] == "xxx"


@proves("call:breaker")
def test_an_open_breaker_is_listed_and_can_be_reset(tmp_path: Path, clock: Clock) -> None:
    with Service() as service, timed(tmp_path / "orders.db", clock, service.host) as gateway:
        register_orders(gateway, service)
        for _ in range(limits.BREAKER_FAILURES):
            gateway.fails("get_order", {"status": 500}, "bob")

        (listed,) = gateway.ask("breakers_list")["breakers"]
        refused = gateway.fails("get_order", {"status": 200}, "carol")
        reset = gateway.ask("breaker_reset", toolName="get_order", reason="restarted")
        answer = gateway.run("get_order", {"status": 200}, "carol")
        again = gateway.ask("breaker_reset", toolName="get_order")
        left = gateway.ask("breakers_list")["breakers"]

    assert (listed["toolName"], listed["status"], listed["failures"]) == ("get_order", "open", 5)
    assert listed["retryAfter"] > 0
    assert listed["lastFailure"]
    assert refused.details["reason"] == "circuit_open"
    assert "breaker_reset" in refused.hint
    assert reset == {"toolName": "get_order", "reset": True}
    assert answer["result"] == {}
    assert again["reset"] is False
    assert left == []


@proves("call:breaker")
def test_an_open_breaker_is_listed_and_reset_from_another_process(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "orders.db"
    with (
        Service() as service,
        timed(path, clock, service.host) as gateway,
        timed(path, clock, service.host) as other,
    ):
        register_orders(gateway, service)
        for _ in range(limits.BREAKER_FAILURES):
            gateway.fails("get_order", {"status": 500}, "bob")

        listed = eventually(lambda: other.ask("breakers_list")["breakers"])
        refused = gateway.fails("get_order", {"status": 200}, "carol")
        reset = other.ask("breaker_reset", toolName="get_order")
        answer = gateway.run("get_order", {"status": 200}, "carol")
        left = [each.ask("breakers_list")["breakers"] for each in (gateway, other)]
        again = other.ask("breaker_reset", toolName="get_order")

    assert [(each["toolName"], each["status"], each["failures"]) for each in listed] == [
        ("get_order", "open", 5)
    ]
    assert listed[0]["retryAfter"] > 0
    assert refused.details["reason"] == "circuit_open"
    assert (reset["reset"], again["reset"]) == (True, False)
    assert answer["result"] == {}
    assert left == [[], []]
