"""How well the recommendations did, and what needs somebody's attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem.debugging.kinds import INCIDENTS, LOOKUPS, REPEATS, SOLUTIONS, outcomes
from stratagem.debugging.models import RecommendationStatistics
from stratagem.engine import moments
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.storage.contract import Reader, RecordReader, Version

__all__ = ["statistics"]

_LISTED_MAX: Final = 50
# One failure may be the caller's; so many in a row after a success are the fix's.
_FAILURES_IN_A_ROW: Final = 2

Contents = list[tuple[Version, Mapping[str, Any]]]


def statistics(reader: Reader, view: View) -> RecommendationStatistics:
    """Return how often the first recommendation worked, and what needs attention."""
    lookups = list(_stream(reader.records, view, LOOKUPS))
    reports = _deduplicate_reports(
        each
        for space in (outcomes(worked=True), outcomes(worked=False), REPEATS)
        for each in _stream(reader.records, view, space)
    )
    incidents, solutions = (
        _records(reader.records, view, INCIDENTS),
        _records(reader.records, view, SOLUTIONS),
    )
    answered = _recommendation_results(lookups, reports, solutions)
    worked = sum(answered.values())
    return RecommendationStatistics(
        incidents=len(incidents),
        solutions=len(solutions),
        outcomes=len(reports),
        lookups=len(lookups),
        answered=len(answered),
        first_recommendation_worked=worked,
        hit_rate=round(worked / len(answered), 4) if answered else None,
        by_month=_by_month(lookups, answered),
        without_solutions=_without_solutions(incidents, solutions),
        stopped_working=_stopped_working(reports, solutions),
    )


def _stream(records: RecordReader, view: View, space: Space) -> Iterator[tuple[Version, Any]]:
    after = 0
    while page := records.stream(view.lineage, space, after=after):
        for version in page:
            yield version, orjson.loads(version.payload or b"{}")
        after = page[-1].sequence


def _deduplicate_reports(reports: Iterable[tuple[Version, Any]]) -> Contents:
    """Return the reports that count, as they do in ranking, in the order of what happened."""
    listed = sorted(reports, key=lambda each: each[0].sequence)
    last = {
        (report.get("lookup_id") or report["outcome_id"], report["solution_id"]): (version, report)
        for version, report in listed
    }
    return sorted(last.values(), key=lambda each: (_when(*each), each[0].sequence))


def _when(version: Version, content: Mapping[str, Any]) -> int:
    """Return when something happened; what was merged or taken in was written later."""
    at: int = content.get("at", version.at)
    return at


def _records(records: RecordReader, view: View, space: Space) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    after: str | None = ""
    while after is not None:
        page, after = records.page(view.lineage, space, after=after)
        found |= {key: orjson.loads(version.payload or b"{}") for key, version in page}
    return found


def _recommendation_results(
    lookups: Contents, reports: Contents, solutions: Mapping[str, Mapping[str, Any]]
) -> dict[str, bool]:
    """Return, for each lookup whose first recommendation was reported on, whether it worked.

    The same steps made for another environment are the same recommendation.
    """

    def fix(solution_id: str) -> Any:
        known = solutions.get(solution_id)
        return (known["incident_id"], known["steps_key"]) if known else solution_id

    first = {
        lookup["lookup_id"]: fix(lookup["solutions"][0])
        for _, lookup in lookups
        if lookup["solutions"]
    }
    answered: dict[str, bool] = {}
    for _, report in reports:
        lookup_id = report.get("lookup_id", "")
        if lookup_id in first and fix(report["solution_id"]) == first[lookup_id]:
            answered[lookup_id] = report["worked"]
    return answered


def _by_month(lookups: Contents, answered: Mapping[str, bool]) -> list[dict[str, Any]]:
    months: dict[str, list[bool]] = defaultdict(list)
    for version, lookup in lookups:
        if lookup["lookup_id"] in answered:
            months[moments.iso(_when(version, lookup))[:7]].append(answered[lookup["lookup_id"]])
    return [
        {"month": month, "answered": len(each), "hit_rate": round(sum(each) / len(each), 4)}
        for month, each in sorted(months.items())
    ]


def _without_solutions(
    incidents: Mapping[str, Mapping[str, Any]], solutions: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, str]]:
    solved = {solution["incident_id"] for solution in solutions.values()}
    return [
        {"incident_id": incident_id, "title": content["title"]}
        for incident_id, content in incidents.items()
        if incident_id not in solved
    ][:_LISTED_MAX]


def _stopped_working(
    reports: Contents, solutions: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the fixes that worked once and have only failed since."""
    by_solution: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for version, report in reports:
        by_solution[report["solution_id"]].append((_when(version, report), report["worked"]))
    return [
        {
            "solution_id": solution_id,
            "incident_id": solutions[solution_id]["incident_id"],
            "failures_since": _failures_since(each),
            "last_success": moments.iso(max(at for at, worked in each if worked)),
        }
        for solution_id, each in by_solution.items()
        if solution_id in solutions
        and any(worked for _, worked in each)
        and _failures_since(each) >= _FAILURES_IN_A_ROW
    ][:_LISTED_MAX]


def _failures_since(reports: list[tuple[int, bool]]) -> int:
    count = 0
    for _, worked in reversed(reports):
        if worked:
            break
        count += 1
    return count
