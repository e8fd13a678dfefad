"""Spans of OpenTelemetry, where the process that runs us uses it.

Nothing is imported for it: whoever wants spans has set OpenTelemetry up before (by its variables,
by `opentelemetry-instrument`, or in code), and then its API is loaded already. Elsewhere an
operation costs one look into a dictionary more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["captures_content", "fail_span", "is_tracing", "start_span"]

_API: Final = "opentelemetry.trace"
_CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES: Final = frozenset({"1", "true", "span_only", "span_and_event"})


def is_tracing() -> bool:
    """Whether spans may be made in this process."""
    return _API in sys.modules


def captures_content() -> bool:
    """Whether somebody has asked for contents in spans, by the variable that all libraries read."""
    return os.environ.get(_CAPTURE, "").casefold() in _YES


@contextmanager
def start_span(
    scope: str, name: str, attributes: Mapping[str, Any], *, kind: str = "INTERNAL"
) -> Iterator[Any]:
    """Give a span, which is the current one within the context, or None where nobody traces."""
    trace = sys.modules.get(_API)
    # Without a provider a span would be made, handed around, and dropped.
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield None
        return
    tracer = trace.get_tracer(scope)
    with tracer.start_as_current_span(
        name,
        kind=trace.SpanKind[kind],
        attributes=dict(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def fail_span(span: Any, code: str) -> None:
    """Say in a span, if there is one, that what it is about has failed."""
    if span is not None:
        span.set_attribute("error.type", code)
        span.set_status(sys.modules[_API].StatusCode.ERROR, code)
