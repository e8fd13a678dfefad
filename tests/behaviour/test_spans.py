"""Spans in the words of OpenTelemetry: of memory operations, and of calls of tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stratagem
from stratagem import Stratagem
from stratagem.errors import StratagemError
from tests.manifest import proves
from tests.surfaces.serving import Service, as_json

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    made, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield made
    provider.shutdown()


@pytest.fixture
def db(tmp_path: Any) -> Iterator[Stratagem]:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as opened:
        yield opened


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@proves("memory:spans")
def test_memory_operations_have_spans_of_the_conventions(
    db: Stratagem, exporter: InMemorySpanExporter
) -> None:
    db.call("strata_store", {"key": "city", "value": "Oslo"})
    db.call("strata_store", {"items": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]})
    db.call("strata_log", {"event": "note", "data": "a remark"})
    db.call("strata_recall", {"key": "city"})
    db.call("strata_recall", {"key": "nowhere"})
    db.call("strata_search", {"query": "Oslo"})
    db.call("strata_forget", {"key": "city"})
    db.call("strata_branch", {"action": "fork", "name": "trial"})
    db.call("strata_branch", {"action": "delete", "name": "trial"})

    spans = [attributes(each) for each in exporter.get_finished_spans()]
    assert [each["gen_ai.operation.name"] for each in spans] == [
        "upsert_memory",
        "upsert_memory",
        "create_memory",
        "search_memory",
        "search_memory",
        "search_memory",
        "delete_memory",
        "create_memory_store",
        "delete_memory_store",
    ]
    counts = [each["gen_ai.memory.record.count"] for each in spans]
    assert counts == [1, 2, 1, 1, 0, 1, 1, 1, 1]
    assert spans[0]["gen_ai.memory.store.id"] == "default/default"
    assert spans[0]["gen_ai.memory.record.id"] == "city"
    assert spans[7]["gen_ai.memory.store.id"] == "trial"
    assert "Oslo" not in str(spans)


@proves("memory:spans")
def test_a_failed_operation_says_its_code(db: Stratagem, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(StratagemError):
        db.call("strata_recall", {"key": "city", "branch": "nowhere"})

    (span,) = exporter.get_finished_spans()
    assert attributes(span)["error.type"] == "branch_not_found"
    assert span.status.status_code is trace.StatusCode.ERROR


@proves("memory:spans")
def test_contents_are_in_spans_where_they_are_asked_for_and_masked(
    db: Stratagem, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "true")
    db.call("strata_store", {"key": "who", "value": "ada@example.com in Oslo"})
    db.call("strata_search", {"query": "Oslo"})
    db.gateway.execute("calculator", {"expression": "40 + 2"})

    stored, searched, called = map(attributes, exporter.get_finished_spans())
    assert "[email] in Oslo" in stored["gen_ai.memory.records"]
    assert searched["gen_ai.memory.query.text"] == "Oslo"
    assert "40 + 2" in called["gen_ai.tool.call.arguments"]
    assert "42" in called["gen_ai.tool.call.result"]


@proves("call:spans")
def test_a_call_of_a_tool_says_which_agent_it_is_for(
    db: Stratagem, exporter: InMemorySpanExporter
) -> None:
    call = {
        "toolName": "strata_recall",
        "arguments": {"key": "x"},
        "context": {"agentId": "planner", "channelId": "c1"},
    }

    done = db.call("tool_execute", call)

    inner, outer = exporter.get_finished_spans()
    said = attributes(outer)
    assert outer.name == "execute_tool strata_recall"
    assert said["gen_ai.operation.name"] == "execute_tool"
    assert said["gen_ai.tool.call.id"] == done["executionId"]
    assert said["gen_ai.tool.type"] == "datastore"
    assert said["gen_ai.agent.id"] == "planner"
    assert said["gen_ai.conversation.id"] == "c1"
    # What the tool does is part of its trace.
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


# In a process of its own: here, other tests have imported every part of OpenTelemetry.
PROGRAM = """
import sys

import stratagem
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider())
for each in [name for name in sys.modules if name.startswith("opentelemetry.propagat")]:
    del sys.modules[each]
place, url = sys.argv[1:]
with stratagem.open(place, embedder="none", allow_hosts=["127.0.0.1:*"]) as db:
    handler = {"type": "webhook", "url": url, "method": "GET"}
    db.call("tool_register", {"name": "asks", "description": "Asks.", "handler": handler,
        "inputSchema": {"type": "object"}})
    with trace.get_tracer("mine").start_as_current_span("mine") as span:
        db.gateway.execute("asks", {})
        print(f"{span.get_span_context().trace_id:032x}")
"""


@proves("call:trace_context")
def test_the_trace_of_a_program_goes_out_with_its_calls(tmp_path: Path) -> None:
    with Service() as service:
        service.answers["/"] = lambda _said: as_json({})
        program = [sys.executable, "-c", PROGRAM, str(tmp_path / "m.db"), service.url("/")]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
        received = service.received

    assert done.returncode == 0, done.stderr
    assert received[-1]["headers"]["traceparent"].split("-")[1] == done.stdout.strip()


WITHOUT_PROVIDER = """
import sys

import opentelemetry.trace
import stratagem

with stratagem.open(sys.argv[1], embedder="none") as db:
    try:
        db.call("strata_recall", {"key": "x", "branch": "nowhere"})
    except stratagem.StratagemError as error:
        print(error.code)
"""


@proves("call:spans")
def test_where_no_spans_are_wanted_errors_stay_what_they_are(tmp_path: Path) -> None:
    program = [sys.executable, "-c", WITHOUT_PROVIDER, str(tmp_path / "m.db")]

    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout.strip() == "branch_not_found", done.stderr
