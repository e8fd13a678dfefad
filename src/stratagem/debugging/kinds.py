"""The kinds of record that debugging keeps, and what their events mean.

Incidents and solutions are records of their own. An outcome is a fact that stands for
itself, so outcomes of two branches never conflict. Successes and failures are two kinds,
because the store counts each kind in every view, which gives the base rate. A repeated report of
the same lookup and fix is a third kind: it corrects the first report, and is not counted itself.

Every change of an incident or a solution is a new version with its whole content, so branches merge
it field by field. Two fields say that a record is no longer active: `retired` (why and when) and
`merged_into` (its replacement). Outcomes cannot change; retiring one, or moving it to another fix,
writes a record about it, under its id (`OUTCOME_AMENDMENT`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stratagem.debugging import signatures
from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, Projector, RecordKind, Text

if TYPE_CHECKING:
    from stratagem.debugging.signatures.headlines import Headline

__all__ = [
    "AMENDMENT",
    "AMENDMENTS",
    "FAILURE",
    "FIX_FAILED",
    "FIX_WORKED",
    "INCIDENT",
    "INCIDENTS",
    "INCIDENT_ADDED",
    "INCIDENT_EDITED",
    "INCIDENT_MERGED",
    "INCIDENT_RESTORED",
    "INCIDENT_RETIRED",
    "KINDS",
    "LOOKUP",
    "LOOKUPS",
    "MERGED",
    "OUTCOME",
    "OUTCOME_AMENDED",
    "OUTCOME_REPEATED",
    "REPEATS",
    "SOLUTION",
    "SOLUTIONS",
    "SOLUTIONS_RANKED",
    "SOLUTION_ADDED",
    "SOLUTION_EDITED",
    "SOLUTION_MERGED",
    "SOLUTION_MOVED",
    "SOLUTION_RESTORED",
    "SOLUTION_RETIRED",
    "SUCCESS",
    "facet_amended",
    "facet_headline",
    "facet_incident",
    "facet_listed",
    "facet_lookup",
    "facet_merged_into",
    "facet_moved_to",
    "facet_outcome",
    "facet_retired_signature",
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
AMENDMENT: Final = "outcome_amendment"
# What lists call successes, failures and repeats alike.
OUTCOME: Final = "outcome"
# Outcomes are counted in two groups: an author's claim is no part of the base rate.
CLAIM: Final = "claim"
REPORT: Final = "report"
_NAMESPACE: Final = "debugging"

INCIDENTS: Final = Space(INCIDENT, _NAMESPACE)
SOLUTIONS: Final = Space(SOLUTION, _NAMESPACE)
LOOKUPS: Final = Space(LOOKUP, _NAMESPACE)
REPEATS: Final = Space(REPEAT, _NAMESPACE)
AMENDMENTS: Final = Space(AMENDMENT, _NAMESPACE)

# The group that records with a replacement are counted in.
MERGED: Final = "merged"

INCIDENT_ADDED: Final = "IncidentAdded"
INCIDENT_EDITED: Final = "IncidentEdited"
INCIDENT_RETIRED: Final = "IncidentRetired"
INCIDENT_RESTORED: Final = "IncidentRestored"
INCIDENT_MERGED: Final = "IncidentMerged"
SOLUTION_ADDED: Final = "SolutionAdded"
SOLUTION_EDITED: Final = "SolutionEdited"
SOLUTION_RETIRED: Final = "SolutionRetired"
SOLUTION_RESTORED: Final = "SolutionRestored"
SOLUTION_MERGED: Final = "SolutionMerged"
SOLUTION_MOVED: Final = "SolutionMoved"
OUTCOME_AMENDED: Final = "OutcomeAmended"
FIX_WORKED: Final = "FixWorked"
FIX_FAILED: Final = "FixFailed"
OUTCOME_REPEATED: Final = "OutcomeRepeated"
SOLUTIONS_RANKED: Final = "SolutionsRanked"


def outcomes(*, worked: bool) -> Space:
    """Return the space of the outcomes that worked, or of those that did not."""
    return Space(SUCCESS if worked else FAILURE, _NAMESPACE)


def facet_incident(incident_id: str) -> str:
    """Return the facet of the solutions of an incident."""
    return f"incident={incident_id}"


def facet_solution(solution_id: str) -> str:
    """Return the facet of the outcomes of a solution."""
    return f"solution={solution_id}"


def facet_signature(fingerprint: str) -> str:
    """Return the facet of the incidents with a signature."""
    return f"signature={fingerprint}"


def facet_retired_signature(fingerprint: str) -> str:
    """Return the facet of the retired incidents with a signature."""
    return f"retired_signature={fingerprint}"


def facet_headline(digest: str) -> str:
    """Return the facet of the incidents whose error, or whose root cause, says one thing."""
    return f"headline={digest}"


def facet_lookup(lookup_id: str) -> str:
    """Return the facet of a lookup."""
    return f"lookup={lookup_id}"


def facet_outcome(outcome_id: str) -> str:
    """Return the facet of an outcome."""
    return f"outcome={outcome_id}"


def facet_listed(kind: str) -> str:
    """Return the facet of all incidents, solutions or outcomes, in the order of writing."""
    return f"listed={kind}"


def facet_merged_into(record_id: str) -> str:
    """Return the facet of the records that were merged into another."""
    return f"merged_into={record_id}"


def facet_amended(solution_id: str) -> str:
    """Return the facet of the amendments of a solution's outcomes."""
    return f"amended={solution_id}"


def facet_moved_to(solution_id: str) -> str:
    """Return the facet of the outcomes that were moved to a solution."""
    return f"moved_to={solution_id}"


def _incident(content: Mapping[str, Any], _key: str | None) -> Projection:
    fingerprint = content.get("fingerprint")
    if content.get("signature_version", signatures.VERSION) != signatures.VERSION:
        # Written under older rules: what the index finds it by follows the rules of today.
        fingerprint = signatures.fingerprint(content.get("error_signature") or "")
    if "retired" in content:
        # No search finds it, by whatever words.
        errors = [facet_retired_signature(fingerprint)] if fingerprint else []
        text = None
    else:
        errors = list(_error_facets(fingerprint, signatures.kept_headlines(content)))
        text = Text(
            content["title"],
            content.get("summary") or "",
            content.get("error_signature") or "",
            titled=True,
            # Queries are whole reports: with passages the right incident is found less often.
            parted=False,
        )
    return Projection(
        tags=tuple(content.get("tags", ())),
        facets=(*_facets(INCIDENT, content), *errors),
        text=text,
        group=_group(content),
    )


def _error_facets(fingerprint: str | None, headlines: Iterable[Headline]) -> Iterator[str]:
    if fingerprint:
        yield facet_signature(fingerprint)
    yield from dict.fromkeys(facet_headline(each.digest) for each in headlines if each.digest)


def _solution(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        facets=(facet_incident(content["incident_id"]), *_facets(SOLUTION, content)),
        text=Text("", "\n".join(content["steps"])),
        group=_group(content),
    )


def _facets(kind: str, content: Mapping[str, Any]) -> tuple[str, ...]:
    replacement = content.get("merged_into")
    return (facet_listed(kind), *((facet_merged_into(replacement),) if replacement else ()))


def _group(content: Mapping[str, Any]) -> str | None:
    return MERGED if "merged_into" in content else None


def _outcome(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        facets=(
            facet_solution(content["solution_id"]),
            facet_outcome(content["outcome_id"]),
            facet_listed(OUTCOME),
        ),
        group=CLAIM if content.get("claim") else REPORT,
    )


def _amendment(content: Mapping[str, Any], _key: str | None) -> Projection:
    target = content.get("moved_to")
    return Projection(
        facets=(
            facet_amended(content["solution_id"]),
            *((facet_moved_to(target),) if target else ()),
        )
    )


def _lookup(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(facet_lookup(content["lookup_id"]),))


def _events(names: tuple[str, ...], project: Projector) -> tuple[EventKind, ...]:
    return tuple(EventKind(name, project) for name in names)


# Two people who retired the same record agree, whatever reasons they gave.
_YIELDING: Final = frozenset({"retired", "evidence_revisions"})

KINDS: Final = (
    RecordKind(
        INCIDENT,
        _events(
            (
                INCIDENT_ADDED,
                INCIDENT_EDITED,
                INCIDENT_RETIRED,
                INCIDENT_RESTORED,
                INCIDENT_MERGED,
            ),
            _incident,
        ),
        writes=INCIDENT_ADDED,
        set_fields=frozenset({"tags"}),
        yielding=_YIELDING,
        grouped=True,
        erasable=("title", "summary", "error_signature"),
    ),
    RecordKind(
        SOLUTION,
        _events(
            (
                SOLUTION_ADDED,
                SOLUTION_EDITED,
                SOLUTION_RETIRED,
                SOLUTION_RESTORED,
                SOLUTION_MERGED,
                SOLUTION_MOVED,
            ),
            _solution,
        ),
        writes=SOLUTION_ADDED,
        yielding=_YIELDING,
        grouped=True,
        erasable=("steps",),
    ),
    RecordKind(SUCCESS, _events((FIX_WORKED,), _outcome), grouped=True, erasable=("notes",)),
    RecordKind(FAILURE, _events((FIX_FAILED,), _outcome), grouped=True, erasable=("notes",)),
    RecordKind(REPEAT, _events((OUTCOME_REPEATED,), _outcome), erasable=("notes",)),
    RecordKind(
        AMENDMENT,
        _events((OUTCOME_AMENDED,), _amendment),
        writes=OUTCOME_AMENDED,
        yielding=_YIELDING,
    ),
    RecordKind(LOOKUP, _events((SOLUTIONS_RANKED,), _lookup), quoting=("query",)),
)
