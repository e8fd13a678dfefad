"""Find the incidents that are like a problem.

The same normalised signature is the same problem: relevance 1. All others are found by words and
meaning, with title, summary and signature as separate fields. Search scores only compare the
results of one search, so the best result must also reach an absolute likeness: the share of words
and the similarity of meaning that two texts about one problem usually have. Without that, a
problem that was never seen would get an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.debugging.kinds import INCIDENTS, facet_signature
from stratagem.debugging.signatures import find_error, fingerprint, headline
from stratagem.engine.lineage import View
from stratagem.search import analysis
from stratagem.search.foundation import Foundation
from stratagem.search.index import Ranked
from stratagem.storage.contract import Reader

__all__ = ["Problem", "SimilarIncident", "find_exact", "find_incidents", "parse_problem"]

# Title, summary, signature.
_WEIGHTS: Final = (3.0, 1.0, 1.0)
# What a trace or a log begins with; a report begins with its title.
_OPENS_A_TRACE: Final = re.compile(r"Traceback|Stack trace|[\[\d]|at |File ")
# A search never finds the same problem, only a similar one.
_RELEVANCE_MAX: Final = 0.95
# What two texts about one problem have in common at least, and as a rule.
_LIKENESS_MIN: Final = 0.35
_LIKENESS_USUAL: Final = 0.6
# A fifth of the telling words is as much likeness as meaning of 0.35.
_COVERAGE_COUNTS: Final = 1.75


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked about: the error, its exact signature if it has one, and a line for it."""

    text: str
    title: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """An incident that may be the problem at hand."""

    incident_id: str
    content: Mapping[str, Any]
    relevance: float
    exact: bool
    likeness: float


def parse_problem(text: str) -> Problem:
    """Find the error in a text of any length."""
    error = text if len(text) <= limits.QUERY_CHARS_MAX else find_error(text)
    error = error[: limits.QUERY_CHARS_MAX]
    return Problem(error, _title(error), fingerprint(error))


def _title(error: str) -> str:
    """Return the line that says what a problem is: the first, unless it only opens a trace."""
    first = next((line for line in error.splitlines() if line.strip()), "").strip()
    if _OPENS_A_TRACE.match(first):
        return headline(error)
    return first[: limits.TITLE_CHARS_MAX]


def find_incidents(
    foundation: Foundation, reader: Reader, view: View, problem: Problem, *, limit: int
) -> tuple[list[SimilarIncident], str]:
    """Return the incidents like a problem, most relevant first, and how it was searched."""
    same = find_exact(reader, view, problem)
    known = {match.incident_id for match in same}
    spaces = [number for number, space in reader.records.spaces().items() if space == INCIDENTS]
    if not spaces:
        return same, "lexical"
    ranking = foundation.index.search(
        reader,
        view,
        problem.text,
        spaces=spaces,
        tags=(),
        limit=limit + len(known),
        title=problem.title,
        weights=_WEIGHTS,
    )
    similar = _find_similar(foundation, reader, ranking.found, ranking.asked)
    found = same + [match for match in similar if match.incident_id not in known]
    return found[:limit], ranking.mode


def find_exact(reader: Reader, view: View, problem: Problem) -> list[SimilarIncident]:
    """Return the incidents with the same signature, oldest first."""
    if not problem.fingerprint:
        return []
    sequences = reader.catalogue.with_facet(view, facet_signature(problem.fingerprint))
    hits = reader.log.contents(sequences)
    contents = [orjson.loads(hits[sequence].payload) for sequence in sequences]
    return [
        SimilarIncident(each["incident_id"], each, 1.0, exact=True, likeness=1.0)
        for each in contents
    ]


def _find_similar(
    foundation: Foundation, reader: Reader, found: Sequence[Ranked], terms: Sequence[str]
) -> list[SimilarIncident]:
    hits = reader.log.contents([ranked.sequence for ranked in found])
    rarity = foundation.index.rarity(reader, terms)
    compared = []
    for ranked in found:
        content = orjson.loads(hits[ranked.sequence].payload)
        near = 0.0 if math.isnan(ranked.cosine) else ranked.cosine
        likeness = max(near, min(1.0, _COVERAGE_COUNTS * _coverage(content, rarity)))
        if likeness >= _LIKENESS_MIN:
            compared.append((ranked, content, likeness))
    # One factor for all: how alike the best is, never the order, which the fused score knows best.
    best = max((likeness for _, _, likeness in compared), default=0.0)
    factor = _RELEVANCE_MAX * min(1.0, best / _LIKENESS_USUAL)
    return [
        SimilarIncident(
            content["incident_id"],
            content,
            factor * ranked.score,
            exact=False,
            likeness=likeness,
        )
        for ranked, content, likeness in compared
    ]


def _coverage(content: Mapping[str, Any], rarity: Mapping[str, float]) -> float:
    """Return the share of what is asked for that an incident speaks of, rare words first."""
    text = "\n".join(content.get(name) or "" for name in ("title", "error_signature", "summary"))
    there = set(analysis.terms(text))
    total = sum(rarity.values())
    return sum(weight for term, weight in rarity.items() if term in there) / total if total else 0.0
