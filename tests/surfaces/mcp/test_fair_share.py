"""One caller's calls leave room for another's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from stratagem import limits
from stratagem.surfaces.serving.calls import _computes
from stratagem.surfaces.serving.fair_share import FairShare
from tests.unit.gateway.handlers.upstream.servers import eventually


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class ActiveCalls:
    """Calls that run until they are told to end."""

    def __init__(self, shares: FairShare) -> None:
        self._shares = shares
        self.compute = False
        self.running: list[str] = []
        self.may_end = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, caller: str, count: int = 1) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self._call(caller)) for _ in range(count)]
        self._tasks += tasks
        return tasks

    async def _call(self, caller: str) -> None:
        async with self._shares.turn(caller, computes=self.compute):
            self.running.append(caller)
            try:
                await self.may_end.wait()
            finally:
                self.running.remove(caller)

    async def end(self) -> None:
        self.may_end.set()
        await asyncio.wait_for(asyncio.gather(*self._tasks, return_exceptions=True), 60)


def trial(test: Callable[[ActiveCalls, Clock], object]) -> None:
    async def run() -> None:
        clock = Clock()
        calls = ActiveCalls(FairShare(clock))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(calls.end)
            await test(calls, clock)  # type: ignore[misc]
        assert calls.running == []

    asyncio.run(run())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALL_TURN_SECONDS", 60.0)


def test_whoever_is_alone_has_no_limit() -> None:
    async def test(calls: ActiveCalls, _clock: Clock) -> None:
        calls.begin("greedy", 16)
        await settle()

        assert calls.running == ["greedy"] * 16

    trial(test)


def test_beside_another_a_caller_has_two_calls_running_and_the_rest_wait() -> None:
    async def test(calls: ActiveCalls, _clock: Clock) -> None:
        calls.begin("modest")
        calls.begin("greedy", 16)
        await settle()
        calls.begin("modest")
        await settle()

        assert calls.running == ["modest", "greedy", "greedy", "modest"]

    trial(test)


def test_a_call_that_takes_long_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALL_TURN_SECONDS", 0.01)

    async def test(calls: ActiveCalls, _clock: Clock) -> None:
        calls.begin("modest")
        calls.begin("greedy", 6)

        await eventually(lambda: calls.running.count("greedy") == 6)

    trial(test)


def test_a_call_that_computes_keeps_its_turn_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports, imports and embedding take seconds, and wait for nothing."""
    monkeypatch.setattr(limits, "CALL_TURN_SECONDS", 0.01)

    async def test(calls: ActiveCalls, _clock: Clock) -> None:
        calls.compute = True
        calls.begin("modest")
        calls.begin("greedy", 6)
        await asyncio.sleep(0.2)

        assert calls.running.count("greedy") == 2

    trial(test)


def test_whoever_began_its_calls_long_ago_is_not_alone_for_that() -> None:
    """Calls that wait for their turn begin none: whoever else is about still counts."""

    async def test(calls: ActiveCalls, clock: Clock) -> None:
        calls.begin("modest")
        begun = calls.begin("greedy", 8)
        await settle()
        clock.now += limits.CALLER_ABOUT_SECONDS * 2
        calls.begin("modest")
        await settle()
        # One that waits gives up, and the queue is looked at anew.
        begun[-1].cancel()
        await settle()

        assert calls.running.count("greedy") == 2

    trial(test)


@pytest.mark.parametrize(
    ("name", "arguments", "computes"),
    [
        ("strata_embed_batch", {"texts": ["x"]}, True),
        ("strata_recall", {}, True),
        ("tool_execute", {"toolName": "strata_bundle_export"}, True),
        ("tools_batch", {"executions": [{"toolName": "strata_search"}]}, True),
        ("tools_pipeline", {"steps": [{"id": "a", "tool": "strata_search"}]}, True),
        ("tool_execute", {"toolName": "web_fetch"}, False),
        ("tools_batch", {"executions": ["strata_search", None]}, False),
        ("tools_pipeline", ["steps"], False),
        ("no such tool", {}, False),
    ],
)
def test_what_computes_is_known_by_what_it_runs(
    name: str, arguments: object, computes: bool
) -> None:
    assert _computes(name, arguments) is computes


def test_a_caller_who_left_counts_no_longer() -> None:
    async def test(calls: ActiveCalls, clock: Clock) -> None:
        calls.begin("modest")
        await settle()
        clock.now += limits.CALLER_ABOUT_SECONDS * 2
        calls.begin("greedy", 16)
        await settle()

        assert calls.running.count("greedy") == 16

    trial(test)


def test_a_call_that_is_given_up_takes_nobodys_turn() -> None:
    async def test(calls: ActiveCalls, _clock: Clock) -> None:
        calls.begin("modest")
        waiting = calls.begin("greedy", 5)
        await settle()
        waiting[2].cancel()
        waiting[4].cancel()
        await settle()
        calls.may_end.set()
        await settle()
        await asyncio.gather(waiting[0], waiting[1], waiting[3])

    trial(test)


def test_a_caller_whose_calls_queue_up_rests_after_each() -> None:
    async def test(calls: ActiveCalls, clock: Clock) -> None:
        calls.begin("modest")
        greedy = calls.begin("greedy", 3)
        await settle()
        clock.now += 0.05
        greedy[0].cancel()
        greedy[1].cancel()
        await settle()

        assert calls.running == ["modest"]
        await eventually(lambda: calls.running == ["modest", "greedy"])

    trial(test)
