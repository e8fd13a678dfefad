"""The kinds of record that debugging keeps, and what their events mean.

Incidents and solutions are records of their own. An outcome is a fact that stands for
itself, so outcomes of two branches never conflict. Successes and failures are two kinds,
because the store keeps count of each kind in every view: that is the base rate. What a lookup
reports of a fix once more is a third kind: it corrects the first report, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.debugging import signatures
from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, RecordKind, Text

__all__ = [
    "FIX_FAILED",
    "FIX_WORKED",
    "INCIDENT",
    "INCIDENTS",
    "INCIDENT_ADDED",
    "KINDS",
    "LOOKUP",
    "LOOKUPS",
    "OUTCOME_REPEATED",
    "REPEATS",
    "SOLUTION",
    "SOLUTIONS",
    "SOLUTIONS_RANKED",
    "SOLUTION_ADDED",
    "facet_incident",
    "facet_lookup",
    "facet_signature",
    "facet_solution",
    "outcomes",
]

INCIDENT: Final = "incident"
SOLUTION: Final = "solution"
SUCCESS: Final = "success"
FAILURE: Final = "failure"
REPEAT: Final = "repeat"
LOOKUP: Final = "lookup"
_NAMESPACE: Final = "debugging"

INCIDENTS: Final = Space(INCIDENT, _NAMESPACE)
SOLUTIONS: Final = Space(SOLUTION, _NAMESPACE)
LOOKUPS: Final = Space(LOOKUP, _NAMESPACE)
REPEATS: Final = Space(REPEAT, _NAMESPACE)

INCIDENT_ADDED: Final = "IncidentAdded"
SOLUTION_ADDED: Final = "SolutionAdded"
FIX_WORKED: Final = "FixWorked"
FIX_FAILED: Final = "FixFailed"
OUTCOME_REPEATED: Final = "OutcomeRepeated"
SOLUTIONS_RANKED: Final = "SolutionsRanked"


def outcomes(*, worked: bool) -> Space:
    """Return the space of the outcomes that worked, or of those that did not."""
    return Space(SUCCESS if worked else FAILURE, _NAMESPACE)


def facet_incident(incident_id: str) -> str:
    """Return what the solutions of an incident are found by."""
    return f"incident={incident_id}"


def facet_solution(solution_id: str) -> str:
    """Return what the outcomes of a solution are found by."""
    return f"solution={solution_id}"


def facet_signature(fingerprint: str) -> str:
    """Return what the incidents with a signature are found by."""
    return f"signature={fingerprint}"


def facet_lookup(lookup_id: str) -> str:
    """Return what a lookup is found by."""
    return f"lookup={lookup_id}"


def _incident(content: Mapping[str, Any], _key: str | None) -> Projection:
    fingerprint = content.get("fingerprint")
    if content.get("signature_version", signatures.VERSION) != signatures.VERSION:
        # Written under older rules: what the index finds it by follows the rules of today.
        fingerprint = signatures.fingerprint(content.get("error_signature") or "")
    text = Text(
        content["title"],
        content.get("summary") or "",
        content.get("error_signature") or "",
        titled=True,
    )
    return Projection(
        tags=tuple(content.get("tags", ())),
        facets=(facet_signature(fingerprint),) if fingerprint else (),
        text=text,
    )


def _solution(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        facets=(facet_incident(content["incident_id"]),),
        text=Text("", "\n".join(content["steps"])),
    )


def _outcome(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(facet_solution(content["solution_id"]),))


def _lookup(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(facet_lookup(content["lookup_id"]),))


KINDS: Final = (
    RecordKind(
        INCIDENT,
        (EventKind(INCIDENT_ADDED, _incident),),
        writes=INCIDENT_ADDED,
        set_fields=frozenset({"tags"}),
    ),
    RecordKind(SOLUTION, (EventKind(SOLUTION_ADDED, _solution),), writes=SOLUTION_ADDED),
    RecordKind(SUCCESS, (EventKind(FIX_WORKED, _outcome),)),
    RecordKind(FAILURE, (EventKind(FIX_FAILED, _outcome),)),
    RecordKind(REPEAT, (EventKind(OUTCOME_REPEATED, _outcome),)),
    RecordKind(LOOKUP, (EventKind(SOLUTIONS_RANKED, _lookup),), quoting=("query",)),
)
