"""Figures about corrections, each counted from what was recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from stratagem.gateway.correction import Strategy
from stratagem.gateway.correction.model import tip
from stratagem.gateway.correction.patterns import PATTERNS
from stratagem.gateway.learning.answers import (
    AgentFigures,
    CorrectionFigures,
    FailureFigures,
    OutcomeTrend,
    PatternUsage,
    StrategyFigures,
    ToolFigures,
)
from stratagem.gateway.learning.evidence import OutcomeRecord, Outcomes, RefusalRecord
from stratagem.gateway.learning.lessons import LEARNED_PATTERNS

__all__ = [
    "agents",
    "day_of",
    "describe_pattern",
    "failures",
    "overall",
    "patterns",
    "rate",
    "strategies",
    "tools",
    "trends",
]

_TOP: Final = 3


def rate(part: int, whole: int) -> float | None:
    """Return a share; of nothing there is none."""
    return round(part / whole, 4) if whole else None


def mean(numbers: Iterable[float]) -> float | None:
    """Return the mean of some numbers; of none there is none."""
    listed = list(numbers)
    return round(sum(listed) / len(listed), 3) if listed else None


def overall(outcomes: Outcomes) -> CorrectionFigures:
    """Return how all corrections went."""
    held, fell = len(outcomes.held), len(outcomes.fell)
    return {
        "totalCorrections": held + fell,
        "successfulCorrections": held,
        "failedCorrections": fell,
        "refusedCalls": len(outcomes.refused),
        "successRate": rate(held, held + fell),
        "averageLatency": mean(row["took"] for row in outcomes.applied),
        "totalTimeSaved": None,
        "errorsPrevented": held,
    }


def strategies(outcomes: Outcomes) -> dict[str, StrategyFigures]:
    """Return how each strategy went; a correction counts for every strategy that took part."""
    held = Counter(name for row in outcomes.held for name in row["strategies"])
    fell = Counter(name for row in outcomes.fell for name in row["strategies"])
    return {
        name.value: {
            "attempts": held[name.value] + fell[name.value],
            "successes": held[name.value],
            "successRate": rate(held[name.value], held[name.value] + fell[name.value]),
        }
        for name in Strategy
    }


def patterns(outcomes: Outcomes, *, usage_min: int) -> list[PatternUsage]:
    """Return the patterns that were used, the most used first."""
    used: defaultdict[str, list[tuple[OutcomeRecord, bool]]] = defaultdict(list)
    for rows, worked in ((outcomes.held, True), (outcomes.fell, False)):
        for row in rows:
            for pattern in row["patterns"]:
                used[pattern].append((row, worked))
    found = [_pattern(pattern, rows) for pattern, rows in used.items() if len(rows) >= usage_min]
    return sorted(found, key=lambda each: (-each["usageCount"], each["id"]))


def describe_pattern(pattern: str) -> tuple[str, str]:
    """Return the name of a pattern in words, and what it does."""
    base, _, _form = pattern.partition(":")
    name = base.replace("_", " ").title()
    known = PATTERNS.get(base)
    text = known.reasoning if known else "The value that calls of this tool usually have."
    return name, text


def _pattern(pattern: str, rows: Sequence[tuple[OutcomeRecord, bool]]) -> PatternUsage:
    name, text = describe_pattern(pattern)
    return {
        "id": pattern,
        "name": name,
        "usageCount": len(rows),
        "successRate": rate(sum(worked for _row, worked in rows), len(rows)),
        "averageConfidence": mean(row["confidence"] for row, _worked in rows),
        "toolsApplied": sorted({row["tool"] for row, _worked in rows}),
        "description": text,
        "learned": pattern.partition(":")[0] in LEARNED_PATTERNS,
    }


def agents(outcomes: Outcomes) -> list[AgentFigures]:
    """Return how the calls for each agent went; those that name none are not in it."""
    return [
        {
            "agentId": agent,
            "correctionsUsed": len(own.applied),
            "refusedCalls": len(own.refused),
            "successRate": rate(len(own.held), len(own.applied)),
            "topErrorTypes": _top_errors(own),
            "improvementSuggestions": [tip(each) for each in _top_errors(own)],
        }
        for agent, own in _group(outcomes, lambda row: row.get("agentId"))
    ]


def tools(outcomes: Outcomes) -> list[ToolFigures]:
    """Return how the calls of each tool went."""
    return [
        {
            "toolName": tool,
            "correctionsApplied": len(own.applied),
            "refusedCalls": len(own.refused),
            "successRate": rate(len(own.held), len(own.applied)),
            "commonErrors": _top_errors(own),
            "mostEffectiveStrategies": [
                name
                for name, _count in Counter(
                    name for row in own.held for name in row["strategies"]
                ).most_common(_TOP)
            ],
        }
        for tool, own in _group(outcomes, lambda row: row["tool"])
    ]


def failures(outcomes: Outcomes) -> list[FailureFigures]:
    """Return what was not corrected, or not well, by the type of the error."""
    rows = [*outcomes.fell, *outcomes.refused]
    counted = Counter(kind for row in rows for kind in row["errorTypes"])
    return [
        {
            "errorType": kind,
            "count": count,
            "failedCorrections": sum(kind in row["errorTypes"] for row in outcomes.fell),
            "refusedCalls": sum(kind in row["errorTypes"] for row in outcomes.refused),
            "affectedTools": sorted({row["tool"] for row in rows if kind in row["errorTypes"]}),
            "recommendations": [tip(kind)],
        }
        for kind, count in counted.most_common()
    ]


def trends(outcomes: Outcomes, zone: tzinfo) -> OutcomeTrend:
    """Return corrections by day, and how their success changed between the two halves."""
    days = Counter(day_of(row["at"], zone) for row in outcomes.applied)
    middle = (outcomes.start + outcomes.end) // 2
    first = outcomes.between(outcomes.start, middle)
    second = outcomes.between(middle + 1, outcomes.end)
    before = rate(len(first.held), len(first.applied))
    after = rate(len(second.held), len(second.applied))
    change = None if before is None or after is None else round(after - before, 4)
    return {
        "dailyCorrections": [{"date": day, "count": days[day]} for day in sorted(days)],
        "successRateImprovement": change,
    }


def day_of(at: int, zone: tzinfo) -> str:
    """Return the day of a time."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone(zone).date().isoformat()


def _group(
    outcomes: Outcomes, key: Callable[[OutcomeRecord | RefusalRecord], str | None]
) -> list[tuple[str, Outcomes]]:
    """Return the outcomes by a key, those with most corrections first."""
    groups: dict[str, Outcomes] = {}

    def group(row: OutcomeRecord | RefusalRecord) -> Outcomes | None:
        value = key(row)
        if value is None:
            return None
        empty = Outcomes(outcomes.start, outcomes.end, [], [], [])
        return groups.setdefault(value, empty)

    for row in outcomes.held:
        if (own := group(row)) is not None:
            own.held.append(row)
    for row in outcomes.fell:
        if (own := group(row)) is not None:
            own.fell.append(row)
    for refusal in outcomes.refused:
        if (own := group(refusal)) is not None:
            own.refused.append(refusal)
    return sorted(groups.items(), key=lambda item: (-len(item[1].applied), item[0]))


def _top_errors(outcomes: Outcomes) -> list[str]:
    rows = [*outcomes.applied, *outcomes.refused]
    counts = Counter(kind for row in rows for kind in row["errorTypes"])
    return [kind for kind, _count in counts.most_common(_TOP)]
