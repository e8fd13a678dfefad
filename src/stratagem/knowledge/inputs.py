"""What the operations of knowledge take: names, types, ranges and the words that describe them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from stratagem import limits
from stratagem.knowledge.spaces import TYPES

__all__ = [
    "ByCertaintyInput",
    "ChainInput",
    "ConceptInput",
    "CreateConceptInput",
    "CreateRelationshipInput",
    "DeleteConceptInput",
    "DeleteRelationshipInput",
    "ExactInput",
    "HierarchyInput",
    "NoInput",
    "PrerequisitesInput",
    "RecentInput",
    "RelatedInput",
    "SemanticInput",
    "UpdateConceptInput",
]

Branch = str | None
AsOf = Annotated[str | int | None, Field(description="Past moment: ISO 8601, 1h ago, @version")]
RequestId = Annotated[str | None, Field(description="Same id, written once")]
Cursor = Annotated[str | None, Field(description="`next` of the last answer")]
MaxChars = Annotated[
    int,
    Field(
        description="Answer budget",
        ge=limits.ANSWER_CHARS_MIN,
        le=limits.ANSWER_CHARS_MAX,
        strict=True,
        json_schema_extra=lambda schema: schema.pop("maximum"),
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=limits.CONCEPT_NAME_CHARS_MAX)]
Explanation = Annotated[str, Field(min_length=1, max_length=limits.EXPLANATION_CHARS_MAX)]
Place = Annotated[str, Field(max_length=limits.PLACE_CHARS_MAX)]
Certainty = Annotated[float, Field(ge=0, le=100, strict=True)]
Type = Annotated[str, Field(json_schema_extra={"enum": list(TYPES)})]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Written(_Input):
    branch: Branch = None
    request_id: RequestId = None


class _Read(_Input):
    branch: Branch = None
    as_of: AsOf = None


class _Fitted(_Read):
    cursor: Cursor = None
    max_chars: MaxChars = limits.ANSWER_CHARS_DEFAULT


class NoInput(_Input):
    """An operation without parameters."""


class CreateConceptInput(_Written):
    """Parameters of create_concept."""

    name: Name
    explanation: Explanation
    area: Place | None = Field(None, description='Such as "Programming"')
    topic: Place | None = Field(None, description='Such as "Python"')
    subtopic: Place | None = Field(None, description='Such as "For Loops"')
    certainty_score: Certainty | None = Field(None, description="Computed when left out")


class ConceptInput(_Fitted):
    """Parameters of get_concept."""

    concept_id: str
    include_history: bool = Field(
        default=False, description="With earlier explanations", strict=True
    )


class UpdateConceptInput(_Written):
    """Parameters of update_concept."""

    concept_id: str
    explanation: Explanation | None = None
    name: Name | None = None
    area: Place | None = Field(None, description="Null clears")
    topic: Place | None = Field(None, description="Null clears")
    subtopic: Place | None = Field(None, description="Null clears")
    certainty_score: Certainty | None = None
    expected_version: int | None = Field(
        None, description="`version` of get_concept; refused if it changed since", ge=1, strict=True
    )


class DeleteConceptInput(_Written):
    """Parameters of delete_concept and restore_concept."""

    concept_id: str


class SemanticInput(_Fitted):
    """Parameters of search_concepts_semantic."""

    query: str = Field(min_length=1, max_length=limits.QUERY_CHARS_MAX)
    limit: int = Field(limits.SEARCH_K_DEFAULT, ge=1, le=limits.SEARCH_K_MAX, strict=True)
    min_certainty: Certainty | None = None
    area: Place | None = None
    topic: Place | None = None


class ExactInput(_Fitted):
    """Parameters of search_concepts_exact."""

    name: Name | None = Field(None, description="Part of the name, any case")
    area: Place | None = None
    topic: Place | None = None
    subtopic: Place | None = None
    min_certainty: Certainty | None = None
    limit: int = Field(limits.CONCEPTS_DEFAULT, ge=1, le=limits.CONCEPTS_MAX, strict=True)


class RecentInput(_Fitted):
    """Parameters of get_recent_concepts."""

    limit: int = Field(limits.CONCEPTS_DEFAULT, ge=1, le=limits.RELATED_MAX, strict=True)


class CreateRelationshipInput(_Written):
    """Parameters of create_relationship."""

    source_id: str
    target_id: str
    relationship_type: Type = Field(description="prerequisite: the target requires the source")
    strength: float = Field(1.0, ge=0, le=1, strict=True)
    notes: str | None = None


class DeleteRelationshipInput(_Written):
    """Parameters of delete_relationship."""

    source_id: str
    target_id: str
    relationship_type: Type


class RelatedInput(_Fitted):
    """Parameters of get_related_concepts."""

    concept_id: str
    direction: str = Field("both", json_schema_extra={"enum": ["incoming", "outgoing", "both"]})
    relationship_type: Type | None = None
    limit: int = Field(limits.CONCEPTS_DEFAULT, ge=1, le=limits.RELATED_MAX, strict=True)


class PrerequisitesInput(_Fitted):
    """Parameters of get_prerequisites."""

    concept_id: str
    depth: int = Field(
        limits.PREREQUISITE_DEPTH_DEFAULT, ge=1, le=limits.PREREQUISITE_DEPTH_MAX, strict=True
    )


class ChainInput(_Read):
    """Parameters of get_concept_chain."""

    start_concept_id: str
    end_concept_id: str
    max_depth: int = Field(limits.PATH_DEPTH_DEFAULT, ge=1, le=limits.PATH_DEPTH_MAX, strict=True)


class HierarchyInput(_Fitted):
    """Parameters of list_hierarchy."""


class ByCertaintyInput(_Fitted):
    """Parameters of get_concepts_by_certainty."""

    min_certainty: Certainty = 0
    max_certainty: Certainty = 100
    limit: int = Field(limits.CONCEPTS_DEFAULT, ge=1, le=limits.RELATED_MAX, strict=True)
