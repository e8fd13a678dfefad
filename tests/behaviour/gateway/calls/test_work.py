"""Work in progress: found and stopped, by whoever it belongs to, from any process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import limits
from stratagem.errors import ExecutionNotFound, StratagemError
from stratagem.operation import Caller
from tests.behaviour.gateway.workshop import Gateway
from tests.manifest import proves
from tests.surfaces.serving import eventually

ASYNC: dict[str, Any] = {"async": True}
OPERATOR = Caller("root", authority="operator")
ENDLESS: dict[str, Any] = {"toolName": "endless", "arguments": {}}
Ask = Callable[..., dict[str, Any]]


class Yard:
    """A gateway with a tool that runs until it is cancelled."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.begun, self.ended = threading.Event(), threading.Event()

        async def endless() -> None:
            """Run until cancelled."""
            self.begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.ended.set()

        gateway.database.gateway.add(endless)

    def ask(self, operation: str, caller: Caller | None = None, **given: Any) -> dict[str, Any]:
        runtime = self.gateway.database.runtime
        return runtime.call(operation, given, caller or Caller("ann"))

    def running(self, caller: Caller | None = None) -> list[dict[str, Any]]:
        work: list[dict[str, Any]] = self.ask("work_list", caller)["work"]
        return work


@pytest.fixture
def yard(gateway: Gateway) -> Yard:
    return Yard(gateway)


@proves("work:list", "work:cancel")
def test_work_is_seen_and_stopped_by_its_caller_and_by_administrators_only(yard: Yard) -> None:
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(yard.gateway.fails, "endless", context={"requestId": "mine"})
        assert yard.begun.wait(60)

        (own,) = yard.running()
        others = yard.running(Caller("bob"))
        (administrators,) = yard.running(OPERATOR)
        id_ = own["executionId"]
        by_other = yard.ask("work_cancel", Caller("bob"), executionId=id_)
        by_others_name = yard.ask("work_cancel", OPERATOR, executionId="mine")
        by_own_name = yard.ask("work_cancel", executionId="mine")
        error = call.result(60)

    assert (own["kind"], own["name"], own["caller"]) == ("call", "endless", "ann")
    assert (own["state"], own["requestId"]) == ("running", "mine")
    assert others == []
    assert administrators["executionId"] == id_
    assert by_other == {"executionId": id_, "cancelled": False}
    assert not by_others_name["cancelled"]
    assert by_own_name == {"executionId": id_, "cancelled": True}
    assert error.details["reason"] == "cancelled"
    assert yard.ended.is_set()
    with pytest.raises(ExecutionNotFound):
        yard.ask("work_list", Caller("bob"), executionId=id_)
    assert yard.ask("work_list", executionId="mine")["outcome"]["state"] == "failed"


@proves("work:cancel")
@pytest.mark.parametrize("kind", ["batch", "pipeline"])
def test_a_batch_and_a_pipeline_are_stopped_with_all_their_calls(yard: Yard, kind: str) -> None:
    given: dict[str, Any] = (
        {"executions": [ENDLESS, ENDLESS]}
        if kind == "batch"
        else {"name": "p", "steps": [{"id": "a", "tool": "endless"}]}
    )
    operation = "tools_batch" if kind == "batch" else "tools_pipeline"

    def run() -> StratagemError:
        with pytest.raises(StratagemError) as caught:
            yard.ask(operation, **given)
        return caught.value

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run)
        assert yard.begun.wait(60)
        whole = next(each for each in yard.running() if each["kind"] == kind)
        parts = [each for each in yard.running() if each["parent"] == whole["executionId"]]

        answer = yard.ask("work_cancel", executionId=whole["executionId"])
        error = call.result(60)

    assert len(parts) == (2 if kind == "batch" else 1)
    assert answer["cancelled"]
    assert error.details["reason"] == "cancelled"
    assert yard.running() == []
    if kind == "pipeline":
        with pytest.raises(StratagemError, match="has ended"):
            yard.ask("tools_pipeline", resume=whole["executionId"])


@proves("work:async")
def test_detached_work_goes_on_and_its_outcome_can_be_asked_for(yard: Yard) -> None:
    sum_: dict[str, Any] = {"toolName": "calculator", "arguments": {"expression": "6 * 7"}}
    step = {"id": "a", "tool": "calculator", "arguments": {"expression": "6 * 7"}}

    call = yard.ask("tool_execute", **sum_, **ASYNC)
    batch = yard.ask("tools_batch", executions=[sum_], **ASYNC)
    run = yard.ask("tools_pipeline", name="p", steps=[step], **ASYNC)
    endless = yard.ask("tool_execute", **ENDLESS, **ASYNC)

    def outcome(id_: str) -> Any:
        return yard.ask("work_list", executionId=id_).get("outcome")

    assert call["running"]
    assert call["result"] is None
    assert eventually(lambda: outcome(call["executionId"]))["answer"]["result"]["result"] == 42
    assert eventually(lambda: outcome(batch["executionId"]))["answer"]["succeeded"] == 1
    assert eventually(lambda: outcome(run["runId"]))["answer"]["output"]["result"] == 42
    (left,) = yard.running()
    assert (left["executionId"], left["detached"]) == (endless["executionId"], True)
    assert yard.ask("work_cancel", executionId=endless["executionId"])["cancelled"]
    assert eventually(lambda: outcome(endless["executionId"]))["state"] == "failed"
    with pytest.raises(StratagemError, match="There is no tool"):
        yard.ask("tool_execute", toolName="nowhere", **ASYNC)


@proves("work:async", "call:idempotency")
def test_a_detached_call_under_a_request_id_is_started_once(yard: Yard) -> None:
    given: dict[str, Any] = {**ENDLESS, "requestId": "r1", "async": True}

    first = yard.ask("tool_execute", **given)
    assert yard.begun.wait(60)
    again = eventually(
        lambda: (
            (found := yard.ask("tool_execute", **given))["executionId"] == first["executionId"]
            and found
        )
    )

    assert again["running"]
    assert len(yard.running()) == 1
    yard.ask("work_cancel", executionId="r1")


@proves("work:cancel", "work:list")
def test_another_process_lists_and_stops_work_and_finds_what_was_cut_off(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WORK_LOOK_SECONDS", 0.02)
    path = Path(yard.gateway.database.runtime.foundation.store.location)
    with stratagem.open(str(path), embedder="none") as other, ThreadPoolExecutor(2) as pool:
        elsewhere = other.runtime
        call = pool.submit(yard.gateway.fails, "endless")

        def listed() -> list[dict[str, Any]]:
            work: list[dict[str, Any]] = elsewhere.call("work_list", {}, OPERATOR)["work"]
            return work

        (seen,) = eventually(listed)
        hidden = elsewhere.call("work_list", {}, Caller("bob"))["work"]
        stopped = elsewhere.call("work_cancel", {"executionId": seen["executionId"]}, OPERATOR)
        error = call.result(60)

        assert seen["name"] == "endless"
        assert hidden == []
        assert stopped["cancelled"]
        assert error.details["reason"] == "cancelled"
        assert eventually(lambda: not listed())
