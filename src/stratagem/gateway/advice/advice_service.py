"""What the services of the meta tools share: their parts, the caller, and one view."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import View
from stratagem.errors import StratagemError
from stratagem.gateway.advice.answers import ArgumentExample, ToolReliability, ToolSource
from stratagem.gateway.advice.execution_records import ExecutionRecords
from stratagem.gateway.advice.recommender import Recommender, ToolChoice
from stratagem.gateway.advice.record_services import RecordServices
from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.advice.retrieval.catalogue import ViewTools
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.definitions.contract import Runners
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

_WHY_NOT = {
    "disabled": "It was switched off.",
    "quarantined": "Its definition changed and waits for approval.",
}

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

    def _choose(
        self, context: AdviceContext, request: str, *, own: bool = False
    ) -> tuple[ViewTools, list[ToolChoice]]:
        """Return the tools for a request that can be called now, best first; none if none fits."""
        view_tools, choices = self._recommender.choose(
            context.reader, context.view, request, context.services, own=own
        )
        resting = self._resting_tools()
        callable_now = [
            each
            for each in choices
            if each.match.score >= weights.SCORE_MIN
            and self._parts.registry.shows(each.tool)
            and self._why_unavailable(each.tool, resting) is None
        ]
        best = max((each.match.score for each in callable_now), default=0.0)
        chosen_from = len(view_tools.index) - (0 if own else len(view_tools.own))
        return view_tools, callable_now if best >= weights.answer_score_min(chosen_from) else []

    def _resting_tools(self) -> frozenset[str]:
        """Return the tools that failed too often and are given a rest."""
        listed = self._parts.breakers.list()
        return frozenset(each["toolName"] for each in listed if each["status"] == "open")

    def _why_unavailable(self, tool: Tool, resting: Collection[str]) -> str | None:
        """Return why a tool cannot be called now."""
        if tool.name in resting:
            return "It failed too often and is paused for now."
        if (lacking := tool.unavailable) is not None:
            return f"{lacking['reason']} {lacking['nextStep']}"
        return _WHY_NOT.get(tool.status) or tool.fault or self._missing_function(tool)

    def _missing_function(self, tool: Tool) -> str | None:
        """Return why a function of another process cannot be called in this one."""
        if tool.handler.get("type") != "python" or "callable" in tool.handler:
            return None
        try:
            return next(iter(self._parts.runners.check(tool.handler)), None)
        except StratagemError as error:
            return error.message

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
