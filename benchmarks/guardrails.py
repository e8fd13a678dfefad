"""What a guardrail, and a span, cost a call of a tool.

`python -m benchmarks.guardrails` prints the median of calls of one tool, each kind in turns with
plain calls in the same run, and the ratio of the two.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import stratagem

CALLS = 600
WARM_UP = 60
ARGUMENTS = {"text": "The quick brown fox jumps over the lazy dog, and ada@example.com saw it."}


def echo(text: str) -> dict[str, str]:
    """Repeat a text."""
    return {"said": text}


def allow(call: dict[str, Any]) -> None:
    """Let everything pass."""
    del call


def in_turns(plain: Callable[[], Any], other: Callable[[], Any]) -> tuple[float, float]:
    """Return the medians of both, in microseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(CALLS + WARM_UP):
        for taken, call in zip(times, (plain, other), strict=True):
            begun = time.perf_counter()
            call()
            if turn >= WARM_UP:
                taken.append((time.perf_counter() - begun) * 1e6)
    return median(times[0]), median(times[1])


def line(words: str, plain: float, other: float) -> None:
    print(f"{words:<46}{plain:9.0f} us {other:9.0f} us {other / plain:7.2f}x")


def call_of(db: Any) -> Callable[[], Any]:
    return lambda: db.gateway.execute("echo", ARGUMENTS)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        # A database of its own for the plain calls: guardrails hold for all of one.
        stratagem.open(str(Path(folder, "plain.db")), embedder="none") as plain,
        stratagem.open(str(Path(folder, "other.db")), embedder="none") as other,
    ):
        for db in (plain, other):
            db.gateway.add(echo)
            db.gateway.add(allow)
        print(f"{'a call of a Python function':<46}{'plain':>12}{'with':>13}{'ratio':>9}")
        line("nothing more (noise)", *in_turns(call_of(plain), call_of(other)))
        for words, when, check in (
            ("masking the result", "after", {"type": "mask"}),
            ("masking it strictly", "after", {"type": "mask", "level": "strict"}),
            ("a function that decides", "before", {"type": "python", "name": "allow"}),
            ("a tool that decides", "before", {"type": "tool", "tool": "allow"}),
        ):
            other.gateway.define_guardrail("one", when, check, match={"tools": ["echo"]})
            line(words, *in_turns(call_of(plain), call_of(other)))
        other.gateway.remove_guardrail("one")
        for number in range(20):
            match = {"tools": [f"other_{number}_*"]}
            other.gateway.define_guardrail(f"g{number}", "before", {"type": "block"}, match=match)
        line("20 guardrails of other tools", *in_turns(call_of(plain), call_of(other)))
        spans(call_of(plain))


def spans(call: Callable[[], Any]) -> None:
    """Compare calls without and with a provider of spans, whose exporter throws them away."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            del spans
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    off = trace._TRACER_PROVIDER  # noqa: SLF001 -- switched to and fro

    def traced() -> None:
        trace._TRACER_PROVIDER = provider  # noqa: SLF001 -- as above
        try:
            call()
        finally:
            trace._TRACER_PROVIDER = off  # noqa: SLF001 -- as above

    line("a span that is sent", *in_turns(call, traced))
    provider.shutdown()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
