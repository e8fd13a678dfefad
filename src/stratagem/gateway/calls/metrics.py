"""Metrics for Prometheus: calls, errors, durations, the cache, the breakers, the queue.

Calls are counted as they end, on the home loop; everything else is read when the page is. The page
itself is written by Prometheus's own library, which is imported when it is first asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.calls.answers import ExecutionRecord
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.concurrency import ConcurrencyLimits
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.result_cache import Cache

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["Metrics", "MetricsPage", "metrics_page"]

# Seconds: from an answer of the cache to a tool that takes minutes.
_BOUNDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
_STATES: Final = {"closed": 0, "half-open": 1, "open": 2}
# The label of all tools beyond the limit: each label has a cost for Prometheus.
_OTHER: Final = "(other)"


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The page, and the type that it is sent with."""

    content: bytes
    content_type: str


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        bounds = (*map(str, _BOUNDS), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


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

    def collect(self) -> Iterator[Metric]:
        """Return what was counted, as Prometheus's library has it."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        calls = CounterMetricFamily(
            "stratagem_tool_calls",
            "Calls of tools that ended.",
            labels=("tool", "status", "cached"),
        )
        for (tool, status, cached), count in sorted(self._calls.items()):
            calls.add_metric((tool, status, str(cached).lower()), count)
        errors = CounterMetricFamily(
            "stratagem_tool_errors", "Calls of tools that failed.", labels=("tool", "code")
        )
        for labels, count in sorted(self._errors.items()):
            errors.add_metric(labels, count)
        attempts = CounterMetricFamily(
            "stratagem_tool_attempts", "Attempts, retries included.", labels=("tool",)
        )
        for tool, count in sorted(self._attempts.items()):
            attempts.add_metric((tool,), count)
        durations = HistogramMetricFamily(
            "stratagem_tool_duration_seconds",
            "How long calls took, waiting included.",
            labels=("tool",),
        )
        for tool, histogram in sorted(self._durations.items()):
            durations.add_metric((tool,), histogram.buckets(), histogram.sum)
        yield from (calls, errors, attempts, durations)

    def _label(self, tool: str) -> str:
        if tool not in self._durations:
            if len(self._durations) >= limits.METRIC_TOOLS_MAX:
                tool = _OTHER
            self._durations.setdefault(tool, _Histogram())
        return tool


@dataclass(frozen=True, slots=True)
class _Collector:
    """Everything on the page. To be asked on the home loop."""

    metrics: Metrics
    cache: Cache
    breakers: Breakers
    lanes: ConcurrencyLimits
    recorder: Recorder

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield from self.metrics.collect()
        figures = self.cache.figures()
        for name, about, value in (
            ("cache_hits", "Results that were found in the cache.", figures["hits"]),
            ("cache_misses", "Results that were not found in the cache.", figures["misses"]),
            ("executions_lost", "Executions that could not be recorded.", self.recorder.lost),
        ):
            yield CounterMetricFamily(f"stratagem_{name}", about, value=value)
        for name, about, value in (
            ("cache_entries", "Results in the cache.", figures["entries"]),
            ("cache_bytes", "Bytes of the results in the cache.", figures["bytes"]),
            ("calls_running", "Calls that are running.", self.lanes.running),
            ("calls_waiting", "Calls in the queue.", self.lanes.waiting),
        ):
            yield GaugeMetricFamily(f"stratagem_{name}", about, value=value)
        states = GaugeMetricFamily(
            "stratagem_breaker_state",
            "Breakers of tools that failed lately: 0 closed, 1 half-open, 2 open.",
            labels=("tool",),
        )
        for each in self.breakers.list():
            states.add_metric((each["toolName"],), _STATES[each["status"]])
        yield states


def metrics_page(
    metrics: Metrics, cache: Cache, breakers: Breakers, lanes: ConcurrencyLimits, recorder: Recorder
) -> MetricsPage:
    """Return everything. To be called on the home loop."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(metrics, cache, breakers, lanes, recorder))
    return MetricsPage(generate_latest(registry), CONTENT_TYPE_LATEST)
