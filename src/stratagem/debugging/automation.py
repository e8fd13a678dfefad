"""Automatic debug memory: what a hook shows when a command fails, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem.debugging import checks, kinds
from stratagem.debugging.models import RankedSolution
from stratagem.debugging.ranking import has_only_failed
from stratagem.debugging.records import IncidentRecords
from stratagem.debugging.retrieval import SimilarIncident, find_exact, parse_problem
from stratagem.debugging.service import rank_solutions
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.engine.relevance import ProblemComparison
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["BestFix", "BestFixes", "is_recorded", "list_best_fixes", "lookup_draft"]

# A fix that fails more often than this is not shown unasked.
_RELIABILITY_MIN: Final = 0.4
# The newest incidents are looked at: ranking each takes about a millisecond.
_INCIDENTS_MAX: Final = 500
# What a hook left may be taken in after the agent recorded the same: ten minutes, in microseconds.
_BEFORE_MAX: Final = 600_000_000


class BestFix(NamedTuple):
    """An incident, and the fix with the best evidence for an environment."""

    incident: Mapping[str, Any]
    solution: RankedSolution


class BestFixes(NamedTuple):
    """Fixes that can be shown unasked, and the environment they were ranked for."""

    env_bucket: str
    fixes: Sequence[BestFix]


def list_best_fixes(foundation: Foundation, caller: Caller) -> BestFixes:
    """Return, for each incident with an error, its best fix for the environment of this process."""
    here = checks.environment("auto", local=True, redaction=foundation.redaction)
    fixes = []
    with foundation.store.snapshot() as reader:
        view = foundation.views.view(reader, caller.branch)
        records = IncidentRecords(reader, view, snapshot=True)
        facet = kinds.facet_listed(kinds.INCIDENT)
        newest = reader.catalogue.with_facet(view, facet, limit=_INCIDENTS_MAX)
        events = reader.log.contents(newest)
        for sequence in newest:
            content = orjson.loads(events[sequence].payload)
            if "retired" in content or "merged_into" in content or not content.get("headlines"):
                continue
            incident_id = content["incident_id"]
            match = SimilarIncident(incident_id, content, ProblemComparison(1.0), exact=True)
            solutions = {incident_id: records.solutions(incident_id)}
            ranked = rank_solutions(records, [match], solutions, here, view.time)
            if ranked and _is_worth_showing(ranked[0]):
                fixes.append(BestFix(content, ranked[0]))
    return BestFixes(here.bucket, fixes)


def _is_worth_showing(best: RankedSolution) -> bool:
    return best.reliability_score >= _RELIABILITY_MIN and not has_only_failed(best)


def lookup_draft(transaction: Transaction, shown: Mapping[str, Any]) -> Draft:
    """Return the event of a lookup that a hook made by itself, under the id that it showed."""
    content = {
        "lookup_id": shown["lookup_id"],
        "at": transaction.wall,
        "query": shown["query"],
        "fingerprint": shown["fingerprint"],
        "env_bucket": shown["env_bucket"],
        "incidents": [shown["incident_id"]],
        "solutions": [shown["solution_id"]],
        "relevances": [1.0],
        "answer": "TRY_SOLUTION_AND_RECORD_OUTCOME",
        "promised": shown["promised"],
        "asked_by": "hook",
    }
    return Draft(kinds.SOLUTIONS_RANKED, content, kinds.LOOKUPS)


def is_recorded(reader: Reader, view: View, error: str, *, since: int) -> bool:
    """Whether a fix for an error was reported to work after a moment, or shortly before."""
    records = IncidentRecords(reader, view, snapshot=True)
    for match in find_exact(reader, view, parse_problem(error)):
        outcomes = records.outcomes(records.solutions(match.incident_id))
        if any(each.worked and each.at >= since - _BEFORE_MAX for each in outcomes):
            return True
    return False
