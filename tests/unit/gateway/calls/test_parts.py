"""The parts of the path by themselves: lanes, breakers, cache and rates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stratagem.errors import ExecutionFailed, RateLimited
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.concurrency import ConcurrencyLimits, Priority, RateLimits
from stratagem.gateway.calls.result_cache import Cache, key_of
from stratagem.gateway.definitions.questions import deadline, wait_for_person

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Road:
    """Calls that run until they are told to end, and the order in which they began."""

    def __init__(self, lanes: ConcurrencyLimits) -> None:
        self.lanes = lanes
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def call(
        self, name: str, tool: str = "t", width: int = 9, at: Priority = "normal"
    ) -> None:
        async def run() -> None:
            async with self.lanes.turn(tool, width, at):
                self.begun.append(name)
                await self.ends[name].wait()

        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(run())
        await settle()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await settle()


async def settle() -> None:
    for _time in range(10):
        await asyncio.sleep(0)


async def test_the_most_urgent_call_is_next_and_equals_keep_their_order() -> None:
    road = Road(ConcurrencyLimits(at_once=1))
    await road.call("running")
    await road.call("low", at="low")
    await road.call("first")
    await road.call("second")
    await road.call("high", at="high")

    for name in ("running", "high", "first", "second", "low"):
        await road.end(name)

    assert road.begun == ["running", "high", "first", "second", "low"]
    assert (road.lanes.running, road.lanes.waiting) == (0, 0)


async def test_a_slow_tool_fills_its_own_lane_only() -> None:
    road = Road(ConcurrencyLimits(at_once=10))
    await road.call("slow", "slow", width=1)
    await road.call("waits", "slow", width=1, at="high")

    await road.call("other", "quick", width=1, at="low")

    assert road.begun == ["slow", "other"]
    await road.end("slow")
    assert road.begun == ["slow", "other", "waits"]
    await road.end("waits")
    await road.end("other")


async def test_a_call_that_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    road = Road(ConcurrencyLimits(at_once=1))
    await road.call("running")
    await road.call("cancelled")
    await road.call("next")

    road.tasks["cancelled"].cancel()
    await road.end("running")

    assert road.begun == ["running", "next"]
    await road.end("next")
    assert (road.lanes.running, road.lanes.waiting) == (0, 0)


async def test_a_turn_that_comes_together_with_the_cancellation_goes_to_the_next() -> None:
    road = Road(ConcurrencyLimits(at_once=1))
    await road.call("running")
    await road.call("cancelled")
    await road.call("next")

    road.ends["running"].set()
    await asyncio.sleep(0)
    road.tasks["cancelled"].cancel()
    await settle()

    assert road.begun[-1] == "next"
    await road.end("next")
    assert (road.lanes.running, road.lanes.waiting) == (0, 0)


async def test_too_many_that_wait_are_refused() -> None:
    road = Road(ConcurrencyLimits(at_once=1, waiting_max=1))
    await road.call("running")
    await road.call("waits")

    with pytest.raises(RateLimited) as refused:
        async with road.lanes.turn("t", 9, "high"):
            pass

    assert refused.value.details["retry_after"] == 1
    await road.end("running")
    await road.end("waits")


@pytest.mark.parametrize(("width", "others"), [(2, ["next"]), (1, [])])
async def test_others_run_while_a_person_is_asked(width: int, others: list[str]) -> None:
    road = Road(ConcurrencyLimits(at_once=1))
    async with deadline(10) as own, road.lanes.turn("t", width, "normal") as own.place:
        await road.call("next", width=width)
        async with wait_for_person((own,)), wait_for_person((own,)):
            await settle()
            assert road.begun == others
        assert road.lanes.running == 1 + len(others)
        question = wait_for_person((own,))
        await question.__aenter__()
    # The call ended before its question did.
    await question.__aexit__(None, None, None)
    await settle()
    await road.end("next")

    assert (road.lanes.running, road.lanes.waiting, road.lanes.lent) == (0, 0, 0)


async def test_random_traffic_never_runs_more_than_allowed() -> None:
    lanes = ConcurrencyLimits(at_once=4)
    running: dict[str, int] = {"a": 0, "b": 0}
    most = {"all": 0, "a": 0, "b": 0}

    async def call(number: int) -> None:
        tool = "ab"[number % 2]
        order: tuple[Priority, ...] = ("low", "normal", "high")
        async with lanes.turn(tool, 3, order[number % 3]):
            running[tool] += 1
            most[tool] = max(most[tool], running[tool])
            most["all"] = max(most["all"], sum(running.values()))
            for _time in range(number % 5):
                await asyncio.sleep(0)
            running[tool] -= 1

    tasks = [asyncio.create_task(call(number)) for number in range(300)]
    for task in tasks[::7]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert most["all"] == 4
    assert most["a"] <= 3
    assert most["b"] <= 3
    assert (lanes.running, lanes.waiting) == (0, 0)


def test_a_breaker_opens_lets_one_trial_through_and_closes() -> None:
    clock, told = Clock(), []
    breakers = Breakers(
        clock, failures=3, seconds=30, listener=lambda tool, state, _why: told.append((tool, state))
    )
    for _time in range(3):
        breakers.enter("t")
        breakers.fail("t", "down")

    with pytest.raises(ExecutionFailed) as refused:
        breakers.enter("t")
    breakers.enter("other")
    clock.now += 31
    breakers.enter("t")
    with pytest.raises(ExecutionFailed):
        breakers.enter("t")
    breakers.succeed("t")
    breakers.enter("t")

    assert refused.value.details["retry_after"] == 30
    assert refused.value.details["last_error"] == "down"
    assert told == [("t", "open"), ("t", "half-open"), ("t", "closed")]
    assert breakers.list() == []


def test_a_trial_that_fails_opens_the_breaker_for_the_whole_time_again() -> None:
    clock = Clock()
    breakers = Breakers(clock, failures=1, seconds=30)
    breakers.fail("t", "down")
    clock.now += 31
    breakers.enter("t")
    breakers.fail("t", "still down")

    clock.now += 29
    with pytest.raises(ExecutionFailed):
        breakers.enter("t")
    clock.now += 2
    breakers.enter("t")

    assert breakers.list()[0]["status"] == "half-open"


def test_a_trial_that_says_nothing_makes_room_for_another() -> None:
    clock = Clock()
    breakers = Breakers(clock, failures=1, seconds=30)
    breakers.fail("t", "down")
    clock.now += 31
    breakers.enter("t")

    breakers.leave("t")

    breakers.enter("t")


def test_failures_count_in_a_row_only_and_a_breaker_is_reset_by_hand() -> None:
    breakers = Breakers(Clock(), failures=2, seconds=30)
    for _time in range(5):
        breakers.fail("t", "down")
        breakers.succeed("t")
    breakers.enter("t")
    breakers.fail("t", "down")
    breakers.fail("t", "down")

    assert breakers.reset("t") is True
    assert breakers.reset("t") is False
    breakers.enter("t")


def test_the_least_recently_used_results_go_first() -> None:
    cache = Cache(Clock())
    cache.configure(enabled=None, seconds=None, bytes_max=100)
    for number in range(4):
        cache.put(key_of([number]), "t", "x" * 22, 60)
    assert cache.get(key_of([0])) == (True, "x" * 22)

    cache.put(key_of([4]), "t", "x" * 22, 60)

    assert cache.get(key_of([0]))[0]
    assert not cache.get(key_of([1]))[0]
    assert cache.figures()["bytes"] <= 100


def test_a_result_too_large_for_the_room_is_not_kept() -> None:
    cache = Cache(Clock())
    cache.configure(enabled=None, seconds=None, bytes_max=100)

    cache.put(b"k", "t", "x" * 50, 60)

    assert cache.figures()["entries"] == 0


def test_results_end_with_their_time_and_with_the_shorter_of_two() -> None:
    clock = Clock()
    cache = Cache(clock)
    cache.put(b"own", "t", 1, 60)
    cache.configure(enabled=None, seconds=10, bytes_max=None)
    cache.put(b"short", "t", 2, 60)

    clock.now += 11

    assert cache.get(b"own") == (True, 1)
    assert cache.get(b"short") == (False, None)
    clock.now += 50
    assert cache.get(b"own") == (False, None)
    assert cache.figures()["bytes"] == 0


def test_what_is_kept_is_a_copy_and_is_cleared_by_tool() -> None:
    cache = Cache(Clock())
    result: dict[str, Any] = {"list": [1]}
    cache.put(b"a", "one", result, 60)
    cache.put(b"b", "two", 2, 60)
    result["list"].append(2)

    assert cache.get(b"a") == (True, {"list": [1]})
    assert cache.clear("one") == 1
    assert cache.clear() == 1
    cache.put(b"a", "one", result, 60)
    cache.configure(enabled=False, seconds=None, bytes_max=None)
    assert cache.get(b"a") == (False, None)


def test_a_key_depends_on_every_part_and_on_no_order_of_fields() -> None:
    assert key_of(["t", {"a": 1, "b": 2}]) == key_of(["t", {"b": 2, "a": 1}])
    assert key_of(["t", {"a": 1}]) != key_of(["t", {"a": "1"}])
    assert key_of(["t", "x"]) != key_of(["tx"])


def test_a_bucket_empties_and_fills_again() -> None:
    clock = Clock()
    rates = RateLimits(clock)
    for _time in range(60):
        rates.take("me", "t", 60)

    with pytest.raises(RateLimited) as refused:
        rates.take("me", "t", 60)
    rates.take("you", "t", 60)
    rates.take("me", "other", 60)
    clock.now += 1.01
    rates.take("me", "t", 60)

    assert refused.value.details["retry_after"] == 1
    with pytest.raises(RateLimited):
        rates.take("me", "t", 60)
