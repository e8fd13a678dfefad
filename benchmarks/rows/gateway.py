"""Calls through the gateway, beside the least that the same job needs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import gateway
from benchmarks.bench import Bench, Row
from benchmarks.results import Figure

__all__ = ["ROW"]


def run(bench: Bench) -> Iterator[Figure]:
    """Measure over HTTP, with processes of their own on each side."""
    yield from gateway.measure(rounds=bench.rounds(300))


ROW = Row("gateway", "calls through the gateway", run)
