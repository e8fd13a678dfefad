"""Findings about a concept: a source confirmed or refuted it.

Each source counts once for a concept, however often it reports; its latest finding counts. So
repeated confirmations by one caller make nothing certain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.events import Draft
from stratagem.engine.evidence import Observation
from stratagem.knowledge.records import ConceptRecords, content_of
from stratagem.knowledge.spaces import ABOUT_FACET, EVIDENCE, EVIDENCE_GIVEN

__all__ = ["GivenEvidence", "Verdict", "evidence_about", "evidence_draft", "observations_about"]

Verdict = Literal["confirmed", "refuted"]
# A test by somebody is what the one model of evidence calls an outcome.
_WEIGHT: Final = 1.0


@dataclass(frozen=True, slots=True)
class GivenEvidence:
    """What a source says about a concept, and when it said so."""

    verdict: Verdict
    source: str
    note: str | None
    at: int

    @property
    def confirms(self) -> bool:
        """Whether it speaks for the concept."""
        return self.verdict == "confirmed"

    def says_the_same(self, other: GivenEvidence) -> bool:
        """Whether another of the same source says nothing else."""
        return (self.verdict, self.note) == (other.verdict, other.note)


def evidence_draft(
    concept_id: str,
    verdict: Verdict,
    source: str,
    note: str | None = None,
    *,
    said_at: int | None = None,
) -> Draft:
    """Return the event that keeps what a source says; `said_at`, where that was earlier."""
    content: dict[str, Any] = {"concept_id": concept_id, "verdict": verdict, "source": source}
    content |= {} if note is None else {"note": note}
    content |= {} if said_at is None else {"said_at": said_at}
    key = hashlib.sha256(f"{concept_id}\0{source}".encode()).hexdigest()[:32]
    return Draft(EVIDENCE_GIVEN, content, EVIDENCE, f"evidence-{key}")


def evidence_about(records: ConceptRecords, concept_id: str) -> list[GivenEvidence]:
    """Return what was found out about a concept, oldest first: the newest that count."""
    versions = records.reader.catalogue.with_facet(
        records.view, ABOUT_FACET + concept_id, limit=limits.EVIDENCE_READ_MAX
    )
    events = records.reader.log.contents(versions)
    return [_read_evidence(content_of(events[each].payload), events[each].at) for each in versions]


def _read_evidence(content: Mapping[str, Any], at: int) -> GivenEvidence:
    return GivenEvidence(
        content["verdict"], content["source"], content.get("note"), content.get("said_at", at)
    )


def observations_about(records: ConceptRecords, concept_id: str) -> list[Observation]:
    """Return what was found out about a concept, as the model of evidence counts it."""
    return [Observation(each.confirms, _WEIGHT) for each in evidence_about(records, concept_id)]
