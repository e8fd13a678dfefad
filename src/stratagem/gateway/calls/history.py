"""Reading what was recorded of executions: history with filters, and a tool's statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from stratagem import limits
from stratagem.engine import moments
from stratagem.engine.evidence import Observation, believe
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import ExecutionNotFound
from stratagem.gateway import names
from stratagem.gateway.calls.answers import (
    ExecutionRecord,
    RecordedExecution,
    ToolPerformance,
    ToolStatistics,
)
from stratagem.gateway.calls.error_readings import error_title
from stratagem.gateway.kinds import is_evidence
from stratagem.storage.contract import Reader

__all__ = ["find", "history", "percentile", "performances", "statistics"]

_PAGE: Final = 500
# The newest calls of each tool in a list of tools, of which there may be hundreds.
_GLANCE: Final = 50


def history(
    reader: Reader,
    view: View,
    *,
    tool: str | None,
    agent: str | None,
    status: str | None,
    since: int | None,
    until: int | None,
    before: int,
    limit: int,
) -> tuple[list[RecordedExecution], int | None]:
    """Return a page of executions, newest first, and where the next page begins."""
    found: list[RecordedExecution] = []
    for sequence, record in _newest(reader, view, tool=tool, agent=agent, before=before):
        if since is not None and record["startedAt"] < since:
            # Records lie in the order in which calls ended: one that took long may come later.
            if record["startedAt"] < since - int(limits.EXECUTION_SECONDS_MAX * 1e6):
                break
            continue
        if _matches(record, tool=tool, agent=agent, status=status, until=until):
            if len(found) == limit:
                return found, found[-1]["sequence"]
            found.append({**record, "sequence": sequence})
    return found, None


def find(reader: Reader, view: View, execution_id: str) -> ExecutionRecord:
    """Return one execution, with its whole result.

    Raises:
        ExecutionNotFound: The view shows none.
    """
    sequences = reader.catalogue.with_facet(view, names.facet_execution(execution_id), limit=1)
    for hit in reader.log.contents(sequences).values():
        record: ExecutionRecord = orjson.loads(hit.payload)
        if record.get("resultRef"):
            kept = reader.records.current(view.lineage, names.RESULTS, execution_id)
            if kept is not None and kept.payload is not None:
                record["result"] = orjson.loads(kept.payload)["result"]
        return record
    raise ExecutionNotFound(f"There is no execution {execution_id!r}.", field="executionId")


def statistics(reader: Reader, view: View, tool: str) -> ToolStatistics:
    """Return how a tool's calls went: exact counts, and speed from the newest ones."""
    worked = reader.catalogue.group_counts(view.lineage, names.EXECUTION_OK).get(tool, 0)
    failed = reader.catalogue.group_counts(view.lineage, names.EXECUTION_FAILED).get(tool, 0)
    newest = [
        record
        for _sequence, record in _newest(
            reader, view, tool=tool, agent=None, before=OPEN_END, most=limits.EXECUTIONS_MEASURED
        )
    ]
    durations = sorted(each["duration"] for each in newest if _was_run(each))
    belief = believe(
        [Observation(worked=True, weight=worked), Observation(worked=False, weight=failed)]
    )
    errors = Counter(
        error_title(each["error"]["code"], each["error"].get("message") or "")
        for each in newest
        if each.get("error")
    )
    return {
        "totalCalls": worked + failed,
        "successfulCalls": worked,
        "failedCalls": failed,
        "successRate": round(worked / (worked + failed), 4) if worked + failed else None,
        "reliability": round(belief.mean, 4),
        "avgLatency": round(sum(durations) / len(durations), 3) if durations else None,
        "p50Latency": percentile(durations, 0.5),
        "p99Latency": percentile(durations, 0.99),
        "lastUsed": moments.iso(newest[0]["startedAt"]) if newest else None,
        "commonErrors": [title for title, _count in errors.most_common(3)],
    }


def performances(reader: Reader, view: View, tools: Sequence[str]) -> dict[str, ToolPerformance]:
    """Return the performance of tools for a list, from their newest calls."""
    worked = reader.catalogue.group_counts(view.lineage, names.EXECUTION_OK)
    failed = reader.catalogue.group_counts(view.lineage, names.EXECUTION_FAILED)
    found: dict[str, ToolPerformance] = {}
    for tool in tools:
        total = worked.get(tool, 0) + failed.get(tool, 0)
        durations = _durations(reader, view, tool) if total else []
        found[tool] = {
            "avgLatency": round(sum(durations) / len(durations), 3) if durations else None,
            "successRate": round(worked.get(tool, 0) / total, 4) if total else None,
        }
    return found


def _durations(reader: Reader, view: View, tool: str) -> list[float]:
    newest = _newest(reader, view, tool=tool, agent=None, before=OPEN_END, most=_GLANCE)
    return [record["duration"] for _sequence, record in newest if _was_run(record)]


def _was_run(record: ExecutionRecord) -> bool:
    """Whether a call reached the tool: the duration of a refusal is no evidence about the tool."""
    return is_evidence(record.get("error") or {}) and not record.get("cached")


def percentile(ordered: list[float], part: float) -> float | None:
    """Return the value below which a part of ordered values lies."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def _newest(
    reader: Reader,
    view: View,
    *,
    tool: str | None,
    agent: str | None,
    before: int,
    most: int | None = None,
) -> Iterator[tuple[int, ExecutionRecord]]:
    """Go through executions from the newest on, by the narrower of two facets."""
    facet = (
        names.facet_tool(tool)
        if tool is not None
        else names.facet_agent(agent)
        if agent is not None
        else names.FACET_EXECUTION
    )
    count = 0
    while True:
        sequences = reader.catalogue.with_facet(
            view, facet, limit=min(_PAGE, most or _PAGE), before=before
        )
        hits = reader.log.contents(sequences)
        for sequence in reversed(sequences):
            hit = hits.get(sequence)
            if hit is not None and hit.payload:
                yield sequence, orjson.loads(hit.payload)
            count += 1
            if count == most:
                return
        if len(sequences) < min(_PAGE, most or _PAGE):
            return
        before = sequences[0]


def _matches(
    record: ExecutionRecord,
    *,
    tool: str | None,
    agent: str | None,
    status: str | None,
    until: int | None,
) -> bool:
    return (
        (tool is None or record["tool"] == tool)
        and (agent is None or (record.get("context") or {}).get("agentId") == agent)
        and (status is None or record["status"] == status)
        and (until is None or record["startedAt"] <= until)
    )
