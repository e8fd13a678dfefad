"""Spans of OpenTelemetry around calls, where the process that runs us uses it.

Nothing is imported for it: whoever wants spans has set OpenTelemetry up before (by
`opentelemetry-instrument`, or in code), and then its API is loaded already. Elsewhere a call costs
one look into a dictionary more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from stratagem.gateway.calls.answers import ExecutionRecord

__all__ = ["describe", "span_of"]

_API: Final = "opentelemetry.trace"


@contextmanager
def span_of(tool: str) -> Iterator[Any]:
    """Give the span of a call, which is the current one as long as the call takes, or None."""
    trace = sys.modules.get(_API)
    if trace is None:
        yield None
        return
    tracer = trace.get_tracer("stratagem.gateway")
    with tracer.start_as_current_span(
        f"execute_tool {tool}", kind=trace.SpanKind.INTERNAL, record_exception=False
    ) as span:
        yield span


def describe(span: Any, record: ExecutionRecord) -> None:
    """Say in a span how a call ended: never with what it was called, or what it gave."""
    if span is None or not span.is_recording():
        return
    trace = sys.modules[_API]
    error = record.get("error")
    span.set_attributes(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": record["tool"],
            "stratagem.execution.id": record["executionId"],
            "stratagem.caller": record["caller"],
            "stratagem.status": record["status"],
            "stratagem.attempts": record["attempts"],
            "stratagem.cached": record["cached"],
        }
    )
    if error is not None:
        span.set_attribute("error.type", error["code"])
        span.set_status(trace.StatusCode.ERROR, error["code"])
