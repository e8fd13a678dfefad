"""The parameters that several methods of knowledge have, with their words and bounds."""

from __future__ import annotations

from typing import Annotated

from stratagem import limits
from stratagem.knowledge.spaces import TYPES
from stratagem.parameters import Param

__all__ = [
    "Area",
    "Certainty",
    "CertaintyBound",
    "ConceptId",
    "ConceptLimit",
    "ConceptName",
    "Depth",
    "Direction",
    "Explanation",
    "LabelFilter",
    "Learner",
    "MinCertainty",
    "PathDepth",
    "RelatedLimit",
    "RelationshipLabel",
    "Source",
    "SourceId",
    "Strength",
    "Subtopic",
    "TargetId",
    "Topic",
    "ValidAt",
    "ValidFrom",
    "ValidTo",
]

_NAME = {"minLength": 1, "maxLength": limits.CONCEPT_NAME_CHARS_MAX}
_TEXT = {"minLength": 1, "maxLength": limits.EXPLANATION_CHARS_MAX}
_LEVEL = {"maxLength": limits.PLACE_CHARS_MAX}

ConceptId = Annotated[str, Param("Id or name")]
SourceId = Annotated[str, Param("Where it starts: id or name")]
TargetId = Annotated[str, Param("Where it ends: id or name")]
ValidFrom = Annotated[
    str | None, Param("Since when it is true: 2019, 2019-05-01", quiet=True, time="moment")
]
ValidTo = Annotated[
    str | None, Param("The first moment at which it is no longer true", quiet=True, time="moment")
]
ValidAt = Annotated[str | None, Param("Only what was true then: 2019, 2019-05-01", time="moment")]
Source = Annotated[str | None, Param("Where it comes from: a document, a person", quiet=True)]
Learner = Annotated[str | None, Param("Who learns; the caller by default")]
ConceptName = Annotated[str, Param("What the concept is called", quiet=True, advertised=_NAME)]
Explanation = Annotated[str, Param("What the concept means", quiet=True, advertised=_TEXT)]
Area = Annotated[str | None, Param('Such as "Programming"', advertised=_LEVEL)]
Topic = Annotated[str | None, Param('Such as "Python"', advertised=_LEVEL)]
Subtopic = Annotated[str | None, Param('Such as "For Loops"', advertised=_LEVEL)]
Certainty = Annotated[float | None, Param("Computed when left out", ge=0, le=100, strict=True)]
CertaintyBound = Annotated[
    float, Param("A certainty from 0 to 100", ge=0, le=100, strict=True, quiet=True)
]
MinCertainty = Annotated[
    float | None, Param("Only at least this certain", ge=0, le=100, strict=True, quiet=True)
]
RelationshipLabel = Annotated[
    str,
    Param(f"{', '.join(TYPES)}, or a declared one. prerequisite: the target requires the source"),
]
LabelFilter = Annotated[str | None, Param("Only relationships of this type", quiet=True)]
Direction = Annotated[
    str,
    Param(
        "Direction of the relationships",
        quiet=True,
        advertised={"enum": ["incoming", "outgoing", "both"]},
    ),
]
Strength = Annotated[
    float, Param("How strong it is, from 0 to 1", ge=0, le=1, strict=True, quiet=True)
]
ConceptLimit = Annotated[
    int, Param("Most results", ge=1, le=limits.CONCEPTS_MAX, strict=True, quiet=True)
]
RelatedLimit = Annotated[
    int, Param("Most results", ge=1, le=limits.RELATED_MAX, strict=True, quiet=True)
]
Depth = Annotated[
    int,
    Param("Most steps", ge=1, le=limits.PREREQUISITE_DEPTH_MAX, strict=True, quiet=True),
]
PathDepth = Annotated[
    int, Param("Most steps", ge=1, le=limits.PATH_DEPTH_MAX, strict=True, quiet=True)
]
