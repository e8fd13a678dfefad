"""What Prometheus reads: calls, errors, how long they took, the cache, the breakers, the queue.

Calls are counted as they end, on the home loop. Everything else is read when the page is. The
text is the exposition format 0.0.4, written here because a library for it would count in memory
what is in memory already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stratagem import limits
from stratagem.gateway.calls.answers import ExecutionRecord, ResultCacheFigures
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.concurrency import ConcurrencyLimits
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.result_cache import Cache

__all__ = ["CONTENT_TYPE", "Metrics", "page"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Seconds: from an answer of the cache to a tool that takes minutes.
_BOUNDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
_STATES: Final = {"closed": 0, "half-open": 1, "open": 2}
# Stands for the tools beyond so many: each label costs whoever reads the page.
_OTHER: Final = "(other)"

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.sum += seconds

    def samples(self, labels: Labels) -> Iterator[Sample]:
        total = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            total += count
            yield "_bucket", {**labels, "le": bound}, total
        yield "_sum", labels, self.sum
        yield "_count", labels, total


class Metrics:
    """Counts calls."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str, bool]] = Counter()
        self._errors: Counter[tuple[str, str]] = Counter()
        self._attempts: Counter[str] = Counter()
        self._durations: dict[str, _Histogram] = {}

    def count(self, record: ExecutionRecord) -> None:
        """Count a call that has ended."""
        tool = self._label(record["tool"])
        self._calls[tool, record["status"], record["cached"]] += 1
        self._attempts[tool] += record["attempts"]
        self._durations[tool].add(record["duration"] / 1000)
        if error := record.get("error"):
            self._errors[tool, error["code"]] += 1

    def families(self) -> Iterator[tuple[str, str, str, list[Sample]]]:
        """Return what was counted: name, type, meaning and samples of each family."""
        calls: list[Sample] = [
            ("", {"tool": tool, "status": status, "cached": str(cached).lower()}, count)
            for (tool, status, cached), count in sorted(self._calls.items())
        ]
        yield "stratagem_tool_calls_total", "counter", "Calls of tools that ended.", calls
        errors: list[Sample] = [
            ("", {"tool": tool, "code": code}, count)
            for (tool, code), count in sorted(self._errors.items())
        ]
        yield "stratagem_tool_errors_total", "counter", "Calls of tools that failed.", errors
        attempts: list[Sample] = [
            ("", {"tool": tool}, count) for tool, count in sorted(self._attempts.items())
        ]
        yield "stratagem_tool_attempts_total", "counter", "Attempts, retries included.", attempts
        durations = [
            sample
            for tool, histogram in sorted(self._durations.items())
            for sample in histogram.samples({"tool": tool})
        ]
        about = "How long calls took, waiting included."
        yield "stratagem_tool_duration_seconds", "histogram", about, durations

    def _label(self, tool: str) -> str:
        if tool not in self._durations:
            if len(self._durations) >= limits.METRIC_TOOLS_MAX:
                tool = _OTHER
            self._durations.setdefault(tool, _Histogram())
        return tool


def page(
    metrics: Metrics, cache: Cache, breakers: Breakers, lanes: ConcurrencyLimits, recorder: Recorder
) -> str:
    """Return everything, as text. To be called on the home loop."""
    lines: list[str] = []
    for name, kind, about, samples in (
        *metrics.families(),
        *_cache(cache.figures()),
        *_queue(breakers, lanes, recorder),
    ):
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        lines += [_line(name + part, labels, value) for part, labels, value in samples]
    return "\n".join(lines) + "\n"


def _cache(figures: ResultCacheFigures) -> Iterator[tuple[str, str, str, list[Sample]]]:
    for name, kind, about, value in (
        ("hits_total", "counter", "Results that were found in the cache.", figures["hits"]),
        ("misses_total", "counter", "Results that were looked for in vain.", figures["misses"]),
        ("entries", "gauge", "Results in the cache.", figures["entries"]),
        ("bytes", "gauge", "Bytes of the results in the cache.", figures["bytes"]),
    ):
        yield f"stratagem_cache_{name}", kind, about, [("", {}, value)]


def _queue(
    breakers: Breakers, lanes: ConcurrencyLimits, recorder: Recorder
) -> Iterable[tuple[str, str, str, list[Sample]]]:
    states: list[Sample] = [
        ("", {"tool": each["toolName"]}, _STATES[each["status"]]) for each in breakers.list()
    ]
    return (
        (
            "stratagem_breaker_state",
            "gauge",
            "Breakers of tools that failed lately: 0 closed, 1 half-open, 2 open.",
            states,
        ),
        ("stratagem_calls_running", "gauge", "Calls that run.", [("", {}, lanes.running)]),
        ("stratagem_calls_waiting", "gauge", "Calls in the queue.", [("", {}, lanes.waiting)]),
        (
            "stratagem_executions_lost_total",
            "counter",
            "Executions that could not be recorded.",
            [("", {}, recorder.lost)],
        ),
    )


def _line(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
    number = str(int(value)) if value == int(value) else repr(float(value))
    return f"{name}{{{said}}} {number}" if said else f"{name} {number}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
