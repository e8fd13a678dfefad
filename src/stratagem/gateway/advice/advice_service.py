"""What the services of the meta tools share: their parts, the caller, and one view."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from stratagem.engine.lineage import View
from stratagem.gateway.advice.answers import ArgumentExample, ToolReliability, ToolSource
from stratagem.gateway.advice.execution_records import ExecutionRecords
from stratagem.gateway.advice.recommender import Recommender
from stratagem.gateway.advice.record_services import RecordServices
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.handlers.runners import Runners
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["AdviceContext", "AdviceService", "milliseconds_since", "source_of"]


class AdviceContext(NamedTuple):
    """The snapshot that one request reads. `records` is None where they cannot be read."""

    reader: Reader
    view: View
    services: RecordServices
    records: ExecutionRecords | None

    @classmethod
    def of(cls, reader: Reader, view: View, services: RecordServices) -> AdviceContext:
        """Return the context of a request that reads a view."""
        records = services.ask_validation(lambda part: part.records(reader, view), None)
        return cls(reader, view, services, records)

    def examples(self, tool: Tool, caller: str) -> list[ArgumentExample] | None:
        """Return arguments of a tool that a caller may be shown."""
        return self.services.ask_patterns(
            lambda part: part.examples(self.reader, self.view, tool, caller), None
        )

    def insights(self, tool: str, counts: tuple[int, int]) -> ToolReliability | None:
        """Return how a tool's calls went, where that is known."""
        records = self.records
        if records is None:
            return None
        return self.services.ask_validation(lambda part: part.insights(records, tool, counts), None)


@dataclass(frozen=True, slots=True)
class AdviceParts:
    """What the meta tools work on."""

    foundation: Foundation
    registry: Registry
    recorder: Recorder
    recommender: Recommender
    breakers: Breakers
    runners: Runners


class AdviceService:
    """The base of the meta tools, for one caller."""

    def __init__(self, parts: AdviceParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller
        self._recommender = parts.recommender

    def _branch(self, branch: str | None) -> str:
        return branch or self._caller.branch

    @contextmanager
    def _snapshot(
        self, branch: str | None, *, settled: bool = True
    ) -> Iterator[tuple[Reader, View]]:
        """Open a snapshot of a branch; `settled`: after all calls that have ended are recorded."""
        foundation = self._parts.foundation
        if settled:
            self._parts.recorder.settle()
        with foundation.store.snapshot() as reader:
            yield reader, foundation.views.view(reader, self._branch(branch))


def source_of(tool: Tool) -> ToolSource:
    """Return whether a tool comes with the gateway, or was registered."""
    return "internal" if tool.provider == "stratagem" else "external"


def milliseconds_since(started: float) -> float:
    """Return how long something has taken."""
    return round((time.perf_counter() - started) * 1000, 3)
