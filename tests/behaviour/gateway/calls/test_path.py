"""The one path, taken by calls of the SDK to functions of this process."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem, limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    PermissionDenied,
    RateLimited,
    StratagemError,
    ToolNotFound,
    ValidationFailed,
)
from stratagem.operation import Caller
from tests.behaviour.gateway.workshop import Gateway
from tests.manifest import proves


class Counted:
    """A function that does as it is told, one order after another."""

    def __init__(self, *orders: Any) -> None:
        self.orders = list(orders)
        self.calls = 0

    def tool(self) -> Any:
        def counted() -> dict[str, int]:
            """Count."""
            self.calls += 1
            order = self.orders.pop(0) if self.orders else None
            if isinstance(order, Exception):
                raise order
            return {"calls": self.calls}

        return counted


@proves("call:errors")
def test_each_error_code_is_reached_by_the_sdk(db: Stratagem) -> None:
    def fails() -> None:
        """Fail."""
        raise ValueError("no")

    def sleeps() -> None:
        """Sleep."""
        time.sleep(30)

    def quick() -> int:
        """Answer."""
        return 1

    db.gateway.add(fails)
    db.gateway.add(sleeps)
    db.gateway.add(quick, configuration={"rateLimit": 1})
    db.gateway.execute("quick")

    cases: tuple[tuple[type[StratagemError], str, dict[str, Any]], ...] = (
        (ToolNotFound, "nothing", {}),
        (ValidationFailed, "calculator", {}),
        (ExecutionFailed, "fails", {}),
        (RateLimited, "quick", {}),
        (ExecutionTimeout, "sleeps", {"options": {"timeout": 100}}),
    )
    for error, name, options in cases:
        with pytest.raises(error) as raised:
            db.gateway.execute(name, **options)
        assert raised.value.details["executionId"].startswith("exec_")
    db.gateway.update("quick", status="disabled")
    with pytest.raises(PermissionDenied):
        db.gateway.execute("quick")


@proves("call:timeout")
def test_a_function_that_runs_too_long_is_stopped(db: Stratagem) -> None:
    stopped = threading.Event()

    def stubborn() -> None:
        """Run until stopped."""
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.set()

    async def patient() -> None:
        """Wait until stopped."""
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    for function in (stubborn, patient):
        stopped.clear()
        db.gateway.add(function)
        with pytest.raises(ExecutionTimeout):
            db.gateway.execute(function.__name__, options={"timeout": 100})
        assert stopped.wait(60)


@proves("call:retry")
def test_a_retry_happens_only_where_nothing_was_done_or_twice_is_once(db: Stratagem) -> None:
    refused = ExecutionFailed("not sent", safe=True)
    half_done = ExecutionFailed("half done")
    safe, risky, same = Counted(refused, refused), Counted(half_done), Counted(half_done, half_done)
    for name, counted, more in (
        ("safe", safe, {}),
        ("risky", risky, {}),
        ("same", same, {"idempotent": True}),
    ):
        db.gateway.add(counted.tool(), name=name, configuration={"retries": 3, **more})

    assert db.gateway.execute("safe")["metadata"]["attempts"] == 3
    with pytest.raises(ExecutionFailed):
        db.gateway.execute("risky")
    assert db.gateway.execute("same")["result"] == {"calls": 3}
    assert (safe.calls, risky.calls, same.calls) == (3, 1, 3)


@proves("call:timeout", "call:retry")
def test_an_attempt_does_not_outlive_the_time_of_the_call(db: Stratagem) -> None:
    always = Counted(*[ExecutionFailed("not sent", safe=True, retry_after=200)] * 9)
    db.gateway.add(always.tool(), configuration={"retries": 5})

    begun = time.monotonic()
    with pytest.raises(ExecutionFailed) as failed:
        db.gateway.execute("counted", options={"timeout": 100_000})

    # It does not wait for what the call has no time for.
    assert time.monotonic() - begun < 50
    assert failed.value.details["retry_after"] == 200
    assert always.calls == 1


@proves("call:breaker", "call:output")
def test_a_breaker_that_tries_a_tool_whose_output_is_wrong_can_close_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody waits half a minute here.
    monkeypatch.setattr(limits, "BREAKER_SECONDS", 0.0)
    answers: list[Any] = ["wrong"] * 6

    def promised() -> Any:
        """Answer as told."""
        return answers.pop(0) if answers else 7

    with stratagem.open(str(tmp_path / "brief.db"), embedder="none") as db:
        gateway = Gateway(db)
        db.gateway.add(promised, outputSchema={"type": "integer"})
        for _time in range(limits.BREAKER_FAILURES):
            assert "outputSchema" in gateway.fails("promised").message
        assert gateway.breaker("promised") == "open"

        tried = gateway.fails("promised")
        answer = gateway.run("promised")

        assert "outputSchema" in tried.message
        assert answer["result"] == 7
        assert gateway.breaker("promised") == "closed"


@proves("call:blame")
def test_what_the_caller_does_wrong_does_not_open_the_breaker(db: Stratagem) -> None:
    for _time in range(8):
        with pytest.raises(ValidationFailed):
            db.gateway.execute("calculator", {"expression": "1 +"})

    assert db.gateway.execute("calculator", {"expression": "1"})["result"]["result"] == 1


@proves("call:cancel")
def test_a_cancelled_call_stops_its_work_and_hurts_nothing_else(gateway: Gateway) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        """Run until cancelled."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    gateway.database.gateway.add(endless)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(gateway.fails, "endless")
        assert begun.wait(60)

        execution = gateway.cancel()
        error = call.result(60)

    assert ended.is_set()
    assert error.details["reason"] == "cancelled"
    assert error.details["executionId"] == execution
    (record,) = gateway.ask("tool_executions", status="failed")["executions"]
    assert record["executionId"] == execution
    assert gateway.breaker("endless") == "closed"


@proves("call:cancel", "pipeline:failure")
def test_a_step_that_is_cancelled_fails_its_step_only(gateway: Gateway) -> None:
    async def endless() -> None:
        """Run until cancelled."""
        await asyncio.sleep(60)

    gateway.database.gateway.add(endless)
    steps: list[dict[str, Any]] = [
        {"id": "a", "tool": "endless", "onError": "continue"},
        {"id": "b", "tool": "calculator", "arguments": {"expression": "2"}},
    ]
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(gateway.ask, "tools_pipeline", name="p", steps=steps)

        gateway.cancel()
        answer = run.result(60)

    assert [step["status"] for step in answer["steps"]] == ["failed", "finished"]


@proves("call:rights")
def test_a_caller_without_the_right_is_refused_before_anything_happens(db: Stratagem) -> None:
    reader = Caller(actor="reader", scopes=frozenset({"gateway:read"}))
    called = Counted()
    db.gateway.add(called.tool())

    with pytest.raises(PermissionDenied, match="gateway:execute"):
        db.runtime.call("tool_execute", {"toolName": "counted"}, reader)

    assert called.calls == 0


@proves("tool:rights")
def test_only_an_administrator_registers_what_runs_code(db: Stratagem) -> None:
    writer = Caller(actor="writer", scopes=frozenset({"gateway:write"}))
    definition: dict[str, Any] = {
        "name": "code",
        "description": "x",
        "inputSchema": {"type": "object"},
        "handler": {"type": "code", "language": "python", "code": "result = 1"},
    }

    with pytest.raises(PermissionDenied, match="administrator"):
        db.runtime.call("tool_register", definition, writer)
    db.call("tool_register", {**definition, "status": "disabled"})
    for change in (
        {"status": "active"},
        {"permissions": {"network": True}},
        {"handler": {**definition["handler"], "code": "result = 2"}},
    ):
        with pytest.raises(PermissionDenied):
            db.runtime.call("tool_update", {"toolId": "code", **change}, writer)

    assert db.gateway.get("code")["status"] == "disabled"


@proves("call:sandbox")
def test_a_caller_narrows_permissions_and_never_widens_them(db: Stratagem) -> None:
    probe = {
        "language": "python",
        "code": "import urllib.request\ntry:\n    urllib.request.urlopen('http://127.0.0.1:9')\n"
        "except OSError as error:\n    result = str(error)",
    }

    answer = db.gateway.execute(
        "code_executor", probe, sandbox={"enabled": True, "permissions": {"network": True}}
    )

    assert "unreachable" in str(answer["result"]).lower() or "permit" in str(answer["result"])


@proves("call:metrics")
def test_the_page_for_prometheus_tells_what_happened(gateway: Gateway) -> None:
    broken = Counted(*[ExecutionFailed("down")] * 9)
    gateway.database.gateway.add(broken.tool())
    gateway.run("calculator", {"expression": "1"})
    for _time in range(5):
        assert isinstance(gateway.fails("counted"), ExecutionFailed)

    lines = gateway.metrics()

    assert 'stratagem_tool_errors_total{code="execution_error",tool="counted"} 5.0' in lines
    assert 'stratagem_breaker_state{tool="counted"} 2.0' in lines
    assert 'stratagem_tool_duration_seconds_bucket{le="+Inf",tool="calculator"} 1.0' in lines
    assert "stratagem_calls_waiting 0.0" in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    _is_exposition(lines)


def _is_exposition(lines: list[str]) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
    assert {family.name for family in families} >= {"stratagem_tool_calls", "stratagem_cache_hits"}


@proves("call:spans")
def test_a_span_tells_how_a_call_ended_and_nothing_it_was_called_with(db: Stratagem) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        db.gateway.execute("calculator", {"expression": "40 + 2"})
        with pytest.raises(ValidationFailed):
            db.gateway.execute("calculator", {"expression": "1 +"})

    worked, failed = exporter.get_finished_spans()
    assert worked.name == "execute_tool calculator"
    assert worked.attributes is not None
    assert worked.attributes["stratagem.status"] == "success"
    assert worked.attributes["stratagem.attempts"] == 1
    assert worked.attributes["stratagem.cached"] is False
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "validation_error"
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert "40 + 2" not in worked.to_json()
