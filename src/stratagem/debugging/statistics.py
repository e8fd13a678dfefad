"""How well the recommendations did, and what needs somebody's attention.

A lookup stores a prediction: the probability that its first recommended fix will help, which is
*relevance times reliability*. So predictions can be compared with reported outcomes. Lookups that
the gateway makes automatically, whenever a call fails, are counted separately.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, Final

import orjson

from stratagem.debugging.kinds import INCIDENTS, LOOKUPS, REPEATS, SOLUTIONS, outcomes
from stratagem.debugging.models import RecommendationStatistics
from stratagem.debugging.ranking import Outcome, Solution
from stratagem.debugging.records import IncidentRecords, solution_of
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.storage.contract import Reader, RecordReader, Version

__all__ = ["statistics"]

_LISTED_MAX: Final = 50
# One failure may be the caller's fault; so many in a row after a success are the fix's.
_FAILURES_IN_A_ROW: Final = 2
# What was promised is compared in this many parts of the range.
_BINS: Final = 5
_NO_MATCH: Final = "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
# The actors of automatic lookups in older releases, which did not mark them.
_GATEWAY: Final = "gateway"

Content = Mapping[str, Any]
Contents = list[tuple[Version, Content]]


class _Answered(NamedTuple):
    """A lookup whose first recommendation was reported on: what was promised, what happened."""

    at: int
    promised: float | None
    worked: bool


def statistics(reader: Reader, view: View) -> RecommendationStatistics:
    """Return what was promised and what happened, by period, and what needs attention."""
    records = IncidentRecords(reader, view, snapshot=True)
    everyone = list(_stream(reader.records, view, LOOKUPS))
    lookups = [each for each in everyone if not _is_automatic(*each)]
    reports = _deduplicate_reports(
        each
        for space in (outcomes(worked=True), outcomes(worked=False), REPEATS)
        for each in _stream(reader.records, view, space)
    )
    incidents = _records(reader.records, view, INCIDENTS)
    solutions = {
        key: solution_of(content, 0)
        for key, content in _records(reader.records, view, SOLUTIONS).items()
    }
    standing = {
        key: content
        for key, content in incidents.items()
        if "retired" not in content and records.resolve_incident(key) == key
    }
    answered = _recommendation_results(records, lookups, reports, solutions)
    promises = [each for each in answered.values() if each.promised is not None]
    worked = sum(each.worked for each in answered.values())
    bins = _calibration(promises)
    return RecommendationStatistics(
        incidents=len(incidents),
        solutions=len(solutions),
        outcomes=len(reports),
        lookups=len(lookups),
        automatic=len(everyone) - len(lookups),
        answered=len(answered),
        first_recommendation_worked=worked,
        hit_rate=_rate(each.worked for each in answered.values()),
        promised=_rate(each.promised or 0.0 for each in promises),
        calibration_error=_calibration_error(bins),
        no_match=sum(_found_nothing(content) for _, content in lookups),
        by_month=_by_month(lookups, answered),
        calibration=bins,
        no_match_then_added=_added_after_no_match(lookups, incidents),
        without_solutions=_without_solutions(records, standing, solutions),
        stopped_working=_stopped_working(records, standing, reports, solutions),
    )


def _stream(records: RecordReader, view: View, space: Space) -> Iterator[tuple[Version, Content]]:
    after = 0
    while page := records.stream(view.lineage, space, after=after):
        for version in page:
            yield version, orjson.loads(version.payload or b"{}")
        after = page[-1].sequence


def _is_automatic(version: Version, content: Content) -> bool:
    """Whether a lookup was automatic: it is marked so, or an older one has such an actor."""
    return "asked_by" in content or ("answer" not in content and version.actor == _GATEWAY)


def _found_nothing(lookup: Content) -> bool:
    """Whether a lookup was answered with NO_MATCH."""
    return bool(lookup.get("answer", "" if lookup["incidents"] else _NO_MATCH) == _NO_MATCH)


def _deduplicate_reports(reports: Iterable[tuple[Version, Content]]) -> Contents:
    """Return the reports that count, as they do in ranking, in the order of what happened."""
    listed = sorted(reports, key=lambda each: each[0].sequence)
    last = {
        (report.get("lookup_id") or report["outcome_id"], report["solution_id"]): (version, report)
        for version, report in listed
    }
    return sorted(last.values(), key=lambda each: (_when(*each), each[0].sequence))


def _when(version: Version, content: Content) -> int:
    """Return when something happened; what was merged or taken in was written later."""
    at: int = content.get("at", version.at)
    return at


def _records(records: RecordReader, view: View, space: Space) -> dict[str, Content]:
    found: dict[str, Content] = {}
    after: str | None = ""
    while after is not None:
        page, after = records.page(view.lineage, space, after=after)
        found |= {key: orjson.loads(version.payload or b"{}") for key, version in page}
    return found


def _recommendation_results(
    records: IncidentRecords,
    lookups: Contents,
    reports: Contents,
    solutions: Mapping[str, Solution],
) -> dict[str, _Answered]:
    """Return, for each lookup whose first recommendation was reported on, how that went.

    The same steps made for another environment are the same recommendation, and so are fixes that
    were merged since.
    """

    def fix(solution_id: str) -> Any:
        known = solutions.get(records.resolve_solution(solution_id))
        if known is None:
            return solution_id
        return records.resolve_incident(known.incident_id), known.steps_key

    first = {
        lookup["lookup_id"]: (fix(lookup["solutions"][0]), _when(version, lookup), lookup)
        for version, lookup in lookups
        if lookup["solutions"]
    }
    answered: dict[str, _Answered] = {}
    for _, report in reports:
        lookup_id = report.get("lookup_id", "")
        recommended, at, lookup = first.get(lookup_id, (None, 0, {}))
        if recommended is not None and fix(report["solution_id"]) == recommended:
            answered[lookup_id] = _Answered(at, lookup.get("promised"), report["worked"])
    return answered


def _by_month(lookups: Contents, answered: Mapping[str, _Answered]) -> list[dict[str, Any]]:
    asked: dict[str, list[str]] = defaultdict(list)
    for version, lookup in lookups:
        asked[moments.iso(_when(version, lookup))[:7]].append(lookup["lookup_id"])
    months = []
    for month, ids in sorted(asked.items()):
        known = [answered[each] for each in ids if each in answered]
        promises = [each for each in known if each.promised is not None]
        months.append(
            {
                "month": month,
                "lookups": len(ids),
                "answered": len(known),
                "promised": _rate(each.promised or 0.0 for each in promises),
                "hit_rate": _rate(each.worked for each in known),
            }
        )
    return months


def _calibration(promises: Sequence[_Answered]) -> list[dict[str, Any]]:
    """Return what was promised and what happened, by how much was promised."""
    bins: dict[int, list[_Answered]] = defaultdict(list)
    for each in promises:
        bins[min(_BINS - 1, int((each.promised or 0.0) * _BINS))].append(each)
    return [
        {
            "from": round(number / _BINS, 2),
            "to": round((number + 1) / _BINS, 2),
            "answered": len(known),
            "promised": _rate(each.promised or 0.0 for each in known),
            "happened": _rate(each.worked for each in known),
        }
        for number, known in sorted(bins.items())
    ]


def _calibration_error(bins: Sequence[Mapping[str, Any]]) -> float | None:
    """Return by how much what happened differs from what was promised, on average."""
    total = fsum(each["answered"] for each in bins)
    if not total:
        return None
    apart = fsum(each["answered"] * abs(each["promised"] - each["happened"]) for each in bins)
    return round(apart / total, 4)


def _rate(numbers: Iterable[float]) -> float | None:
    listed = [float(each) for each in numbers]
    return round(sum(listed) / len(listed), 4) if listed else None


def _added_after_no_match(
    lookups: Contents, incidents: Mapping[str, Content]
) -> list[dict[str, str]]:
    """Return the incidents that were added because a lookup found nothing, newest first."""
    missed = {
        lookup["lookup_id"]: (_when(version, lookup), lookup)
        for version, lookup in lookups
        if _found_nothing(lookup)
    }
    added = [
        (*missed[content["lookup_id"]], incident_id, content)
        for incident_id, content in incidents.items()
        if content.get("lookup_id") in missed
    ]
    return [
        {
            "asked": moments.iso(at),
            "query": " ".join(lookup["query"].split())[:200],
            "incident_id": incident_id,
            "title": content["title"],
        }
        for at, lookup, incident_id, content in sorted(added, key=lambda each: -each[0])
    ][:_LISTED_MAX]


def _without_solutions(
    records: IncidentRecords, standing: Mapping[str, Content], solutions: Mapping[str, Solution]
) -> list[dict[str, str]]:
    solved = {
        records.resolve_incident(each.incident_id)
        for each in solutions.values()
        if not each.retired
    }
    return [
        {"incident_id": incident_id, "title": content["title"]}
        for incident_id, content in standing.items()
        if incident_id not in solved
    ][:_LISTED_MAX]


def _stopped_working(
    records: IncidentRecords,
    standing: Mapping[str, Content],
    reports: Contents,
    solutions: Mapping[str, Solution],
) -> list[dict[str, Any]]:
    """Return the fixes that worked once and have only failed since, of those that still stand."""
    tried: dict[str, Counter[bool]] = defaultdict(Counter)
    for _, report in reports:
        tried[records.resolve_solution(report["solution_id"])][report["worked"]] += 1
    found = []
    for solution_id, counts in tried.items():
        known = solutions.get(solution_id)
        if known is None or known.retired or not counts[True]:
            continue
        incident_id = records.resolve_incident(known.incident_id)
        # Read one by one only where it may matter: what counts is a longer question.
        if counts[False] >= _FAILURES_IN_A_ROW and incident_id in standing:
            found += _decline(records, known, incident_id, standing[incident_id]["title"])
    return sorted(found, key=lambda each: each["last_success"], reverse=True)[:_LISTED_MAX]


def _decline(
    records: IncidentRecords, solution: Solution, incident_id: str, title: str
) -> list[dict[str, Any]]:
    """Return how long a fix has only failed, where it has for long enough."""
    reports = sorted(records.outcomes([solution]), key=lambda each: (each.at, each.sequence))
    since = _failures_since(reports)
    if not _FAILURES_IN_A_ROW <= since < len(reports):
        return []
    return [
        {
            "solution_id": solution.solution_id,
            "incident_id": incident_id,
            "title": title,
            "steps": " / ".join(solution.steps)[:200],
            "failures_since": since,
            "last_success": moments.iso(max(each.at for each in reports if each.worked)),
        }
    ]


def _failures_since(reports: Sequence[Outcome]) -> int:
    count = 0
    for report in reversed(reports):
        if report.worked:
            break
        count += 1
    return count
