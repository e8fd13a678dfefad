"""The names that knowledge is kept under: spaces, events, facets and the types of relationship."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from unicodedata import normalize

from stratagem.deferred_modules import hashlib
from stratagem.engine.events import Space

__all__ = [
    "ABOUT_FACET",
    "CERTAINTIES",
    "CERTAINTY",
    "CERTAINTY_COMPUTED",
    "CONCEPT",
    "CONCEPTS",
    "CONCEPT_CREATED",
    "CONCEPT_DELETED",
    "CONCEPT_EVIDENCE",
    "CONCEPT_LEARNT",
    "CONCEPT_RESTORED",
    "CONCEPT_UNLEARNT",
    "CONCEPT_UPDATED",
    "EVIDENCE",
    "EVIDENCE_GIVEN",
    "GENERAL",
    "KNOWN_CONCEPT",
    "KNOWN_CONCEPTS",
    "LEARNER_FACET",
    "NAME_FACET",
    "PREREQUISITE",
    "RELATIONSHIP",
    "RELATIONSHIPS",
    "RELATIONSHIP_CREATED",
    "RELATIONSHIP_DELETED",
    "RELATIONSHIP_TYPE",
    "RELATIONSHIP_TYPES",
    "RELATIONSHIP_TYPE_DECLARED",
    "TIMED_FACET",
    "TYPES",
    "UNCATEGORIZED",
    "facet",
    "fold_name",
    "known_key",
    "place_of",
    "relationship_key",
]

CONCEPT: Final = "concept"
RELATIONSHIP: Final = "relationship"
CERTAINTY: Final = "certainty"
_NAMESPACE: Final = "knowledge"

CONCEPTS: Final = Space(CONCEPT, _NAMESPACE)
RELATIONSHIPS: Final = Space(RELATIONSHIP, _NAMESPACE)
CERTAINTIES: Final = Space(CERTAINTY, _NAMESPACE)
RELATIONSHIP_TYPE: Final = "relationship_type"
RELATIONSHIP_TYPES: Final = Space(RELATIONSHIP_TYPE, _NAMESPACE)
CONCEPT_EVIDENCE: Final = "concept_evidence"
EVIDENCE: Final = Space(CONCEPT_EVIDENCE, _NAMESPACE)
KNOWN_CONCEPT: Final = "known_concept"
KNOWN_CONCEPTS: Final = Space(KNOWN_CONCEPT, _NAMESPACE)

CONCEPT_CREATED: Final = "ConceptCreated"
CONCEPT_UPDATED: Final = "ConceptUpdated"
CONCEPT_DELETED: Final = "ConceptDeleted"
CONCEPT_RESTORED: Final = "ConceptRestored"
RELATIONSHIP_CREATED: Final = "RelationshipCreated"
RELATIONSHIP_DELETED: Final = "RelationshipDeleted"
RELATIONSHIP_TYPE_DECLARED: Final = "RelationshipTypeDeclared"
CERTAINTY_COMPUTED: Final = "CertaintyComputed"
EVIDENCE_GIVEN: Final = "ConceptEvidenceGiven"
CONCEPT_LEARNT: Final = "ConceptLearnt"
CONCEPT_UNLEARNT: Final = "ConceptUnlearnt"

PREREQUISITE: Final = "prerequisite"
# From A to B: B requires A, A is related to B, A includes B, A replaces B, A speaks against B,
# A speaks for B.
TYPES: Final = (PREREQUISITE, "relates_to", "includes", "supersedes", "contradicts", "confirms")

# Where a concept without area, topic or subtopic is listed, and can be searched for.
UNCATEGORIZED: Final = "Uncategorized"
GENERAL: Final = "General"

NAME_FACET: Final = "name="
ABOUT_FACET: Final = "about="
LEARNER_FACET: Final = "learner="
# Of a computed certainty that changes with time.
TIMED_FACET: Final = "timed"


def place_of(content: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the area, topic and subtopic that a concept is listed under."""
    return (
        content.get("area") or UNCATEGORIZED,
        content.get("topic") or GENERAL,
        content.get("subtopic") or GENERAL,
    )


def facet(level: str, name: str) -> str:
    """Return the facet of the concepts of an area, topic or subtopic."""
    return f"{level}={name}"


def fold_name(name: str) -> str:
    """Return a name as names are compared: without case, and in one Unicode form.

    An accent may be a character of its own or part of a letter; both look the same.
    """
    return normalize("NFC", normalize("NFC", name).casefold())


def relationship_key(source_id: str, target_id: str, label: str) -> str:
    """Return the id of a relationship.

    It follows from what is related, so that two branches that relate the same concepts in the
    same way have the same relationship.
    """
    told = f"{source_id}\0{target_id}\0{label}"
    return f"rel-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def known_key(learner: str, concept_id: str) -> str:
    """Return the id of the record that a learner knows a concept: the same on every branch."""
    told = f"{learner}\0{concept_id}"
    return f"known-{hashlib.sha256(told.encode()).hexdigest()[:32]}"
