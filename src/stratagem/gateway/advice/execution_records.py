"""The newest executions: how calls of tools and callers went, and which follow each other.

The caller, tool, time and outcome of each call are kept in memory, never its arguments. Those are
read from the log when a caller is shown its own.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from cachetools import LRUCache

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.evidence import Belief, Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.retrieval.request_history import stream
from stratagem.gateway.calls.error_readings import error_title
from stratagem.storage.contract import LogReader, Reader

__all__ = ["Chain", "Execution", "ExecutionRecords", "ExecutionRecordsCache"]

_PAGE: Final = 1_000
_VIEWS_MAX: Final = 4
# Calls of one caller further apart than this are not one piece of work.
_GAP_US: Final = 60 * 1_000_000
_CHAIN_MAX: Final = 3
_TRIED_MIN: Final = 2
# Asking which tool to use is no step of the work itself.
_ABOUT_TOOLS: Final = frozenset(
    {
        "tool_help",
        "tools_recommend",
        "tools_recommend_on_error",
        "tools_validate",
        "tools_discover",
        "tools_compare",
        "workflow_plan",
    }
)


class Execution(NamedTuple):
    """One execution, without its arguments."""

    sequence: int
    tool: str
    caller: str
    labels: Mapping[str, Any]
    worked: bool
    started_at: int
    duration: float
    code: str | None
    message: str | None

    @property
    def ended_at(self) -> int:
        """When it ended, in microseconds."""
        return self.started_at + int(self.duration * 1000)


class Chain(NamedTuple):
    """Tools that were called one after another, and how often the last of them then worked."""

    sequence: tuple[str, ...]
    worked: int
    tried: int

    @property
    def belief(self) -> Belief:
        """How likely it is to work again."""
        return believe(
            [
                Observation(worked=True, weight=self.worked),
                Observation(worked=False, weight=self.tried - self.worked),
            ]
        )


class ExecutionRecords:
    """The newest executions of one view, oldest first. Grows with the log."""

    def __init__(self) -> None:
        # Replaced, never changed: others may be going through it.
        self._seen: tuple[Execution, ...] = ()
        self._last: int | None = None
        self._chains: list[Chain] | None = None

    def refresh(self, reader: Reader, view: View) -> None:
        """Read what is new in the log."""
        if self._last is None:
            newest = reader.catalogue.with_facet(
                view, names.FACET_EXECUTION, limit=limits.EXECUTIONS_STUDIED_MAX
            )
            self._last = newest[0] - 1 if newest else 0
        found = [
            (version.sequence, version.payload)
            for space in (names.EXECUTIONS_OK, names.EXECUTIONS_FAILED)
            for version in stream(reader.records, view, space, self._last)
        ]
        if not found:
            return
        found.sort(key=lambda each: each[0])
        new = [_execution(sequence, orjson.loads(data)) for sequence, data in found if data]
        self._seen = (*self._seen, *new)[-limits.EXECUTIONS_STUDIED_MAX :]
        self._last = found[-1][0]
        self._chains = None

    def of(
        self, *, tool: str | None = None, caller: str | None = None, agent: str | None = None
    ) -> list[Execution]:
        """Return some of the executions, oldest first."""
        return [
            each
            for each in self._seen
            if (tool is None or each.tool == tool)
            and (caller is None or each.caller == caller)
            and (agent is None or each.labels.get("agentId") == agent)
        ]

    def recovery_ms(self, tool: str) -> float | None:
        """Return how long it took callers, on average, from a failure to the next success."""
        failed: dict[str, int] = {}
        times: list[float] = []
        for each in self.of(tool=tool):
            if not each.worked:
                failed.setdefault(each.caller, each.ended_at)
            elif each.caller in failed:
                times.append((each.ended_at - failed.pop(each.caller)) / 1000)
        return round(sum(times) / len(times), 1) if times else None

    def common_errors(self, tool: str, count: int = 3) -> list[str]:
        """Return the kinds of errors that a tool's calls ended with most, in words."""
        titles = Counter(
            error_title(each.code, each.message or "") for each in self.of(tool=tool) if each.code
        )
        return [title for title, _ in titles.most_common(count)]

    def chains(self) -> list[Chain]:
        """Return the tools that callers called one after another, the most reliable first."""
        known = self._chains
        if known is not None:
            return known
        worked: Counter[tuple[str, ...]] = Counter()
        tried: Counter[tuple[str, ...]] = Counter()
        for run in self._runs():
            for tools, good in _windows(run):
                tried[tools] += 1
                worked[tools] += good
        found = [
            Chain(each, worked[each], count) for each, count in tried.items() if count >= _TRIED_MIN
        ]
        found.sort(key=lambda chain: (-chain.belief.mean, -chain.tried, chain.sequence))
        self._chains = found
        return found

    def _runs(self) -> Iterator[list[Execution]]:
        """Yield executions that belong together: of one request or run, or soon after another."""
        together: dict[tuple[Any, ...], list[Execution]] = defaultdict(list)
        for each in self._seen:
            if each.tool in _ABOUT_TOOLS:
                continue
            label = each.labels.get("pipelineRunId") or each.labels.get("requestId")
            run = together[each.caller, label]
            if run and label is None and each.started_at - run[-1].ended_at > _GAP_US:
                yield list(run)
                run.clear()
            run.append(each)
        yield from together.values()


class ExecutionRecordsCache:
    """The records of each view that was asked about. Safe to share between threads."""

    def __init__(self) -> None:
        self._views: LRUCache[tuple[int, ...], ExecutionRecords] = LRUCache(_VIEWS_MAX)
        self._lock = threading.Lock()

    def of(self, reader: Reader, view: View) -> ExecutionRecords:
        """Return the records of a view, up to now."""
        with self._lock:
            records = self._views.setdefault(view.lineage.numbers, ExecutionRecords())
            records.refresh(reader, view)
            return records


def read_arguments(log: LogReader, executions: Sequence[Execution]) -> Iterable[Any]:
    """Yield the arguments of some executions, masked as they were recorded, newest first."""
    hits = log.contents([each.sequence for each in executions])
    for each in reversed(executions):
        hit = hits.get(each.sequence)
        if hit is not None and hit.payload:
            yield orjson.loads(hit.payload).get("arguments")


def _execution(sequence: int, content: Mapping[str, Any]) -> Execution:
    error = content.get("error") or {}
    return Execution(
        sequence,
        content["tool"],
        content.get("caller") or "",
        content.get("context") or {},
        content.get("status") == "success",
        content.get("startedAt") or 0,
        content.get("duration") or 0.0,
        error.get("code"),
        error.get("message"),
    )


def _windows(run: Sequence[Execution]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the tools of every two or three calls in sequence; all but the last have worked."""
    for start in range(len(run)):
        tools: list[str] = []
        for each in run[start : start + _CHAIN_MAX]:
            if each.tool in tools:
                break
            tools.append(each.tool)
            if len(tools) > 1:
                yield tuple(tools), each.worked
            if not each.worked:
                break
