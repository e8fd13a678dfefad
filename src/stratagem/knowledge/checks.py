"""What knowledge takes from its callers, checked before anything is read or written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from stratagem import limits
from stratagem.engine import values
from stratagem.errors import ValidationFailed
from stratagem.knowledge import valid_time
from stratagem.knowledge.spaces import TYPES

__all__ = [
    "concept_id",
    "concept_ids",
    "creation_time",
    "description",
    "direction",
    "evidence",
    "fields",
    "known_concept",
    "label",
    "label_to_declare",
    "learner",
    "level",
    "notes",
    "optional_number",
    "part",
    "query",
    "relationship",
    "relationship_type",
    "source",
    "strength",
    "unknown_label",
]

_DIRECTIONS = ("incoming", "outgoing", "both")
_LEVELS = ("area", "topic", "subtopic")
# At most 50 characters. Neo4j has such names for types, in upper case.
_LABEL = re.compile(r"[a-z][a-z_]{0,49}")
_PERIOD = ("valid_from", "valid_to")
_RELATIONSHIP_FIELDS = (
    "source_id",
    "target_id",
    "relationship_type",
    "strength",
    "notes",
    *_PERIOD,
)
# The end of the year 9999, in microseconds: what a time can be written as.
_LAST_TIME = 253_402_300_799_999_999
# The beginning of the year 1.
_FIRST_TIME = -62_135_596_800_000_000


def concept_id(given: object, *, field: str = "concept_id") -> str:
    """Return what can be the id of a concept."""
    return values.check_text(given, field=field, chars_max=limits.KEY_CHARS_MAX)


def fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a concept that were given, checked; None where one is cleared."""
    checked: dict[str, Any] = {}
    for field, value in given.items():
        if field == "name":
            checked[field] = values.check_text(
                value, field=field, chars_max=limits.CONCEPT_NAME_CHARS_MAX
            )
        elif field == "explanation":
            checked[field] = _prose(value, field, limits.EXPLANATION_CHARS_MAX)
        elif field == "source":
            checked[field] = source(value)
        elif field in _PERIOD:
            checked[field] = _moment(value, field)
        elif field == "certainty_score":
            checked[field] = _whole(optional_number(value, field, 0, 100))
        else:
            checked[field] = level(value, field)
    valid_time.refuse_reversed(checked)
    return checked


def creation_time(at: object) -> None:
    """Refuse what cannot be the time at which a concept was created, in microseconds."""
    if not _is_time(at, 0):
        raise ValidationFailed(
            "`created_at` must be a time in microseconds.",
            field="created_at",
            invalid_value=_abbreviate(at),
            hint="Leave `created_at` as it is.",
        )


def _is_time(at: object, least: int) -> bool:
    return isinstance(at, int) and not isinstance(at, bool) and least <= at <= _LAST_TIME


def _moment(at: object, field: str) -> int | None:
    """Return an end of the time for which something holds, in microseconds, or None."""
    if at is not None and not _is_time(at, _FIRST_TIME):
        raise ValidationFailed(
            f"`{field}` is not a time.",
            field=field,
            invalid_value=_abbreviate(at),
            hint="Give microseconds since 1970, or a moment in ISO 8601 to a tool.",
        )
    return at  # type: ignore[return-value]


def relationship(content: Mapping[str, Any]) -> None:
    """Refuse a relationship that has anything but what a relationship has."""
    for field in content:
        if field not in _RELATIONSHIP_FIELDS:
            raise ValidationFailed(f"A relationship has no field `{field}`.", field=field)
    concept_id(content.get("source_id"), field="source_id")
    concept_id(content.get("target_id"), field="target_id")
    label(content.get("relationship_type"))
    if content.get("strength") is None:
        raise ValidationFailed("`strength` must be a number from 0 to 1.", field="strength")
    strength(content["strength"])
    notes(content.get("notes"))
    for field in _PERIOD:
        _moment(content.get(field), field)
    valid_time.refuse_reversed(content)


def learner(name: object) -> str:
    """Return what can be the name of a learner."""
    return values.check_text(name, field="learner", chars_max=limits.LEARNER_CHARS_MAX)


def known_concept(content: Mapping[str, Any]) -> None:
    """Refuse a record of what a learner knows that has anything else in it."""
    whole = content.keys() - {"since"} == {"learner", "concept_id"}
    if not whole or not _is_time(content.get("since", 0), 0):
        raise ValidationFailed(
            "What a learner knows has three fields: `learner`, `concept_id` and `since`, "
            "when it was marked, in microseconds.",
            field="decisions",
            hint="Leave it as it is, or mark the concept with mark_known.",
        )
    learner(content["learner"])
    concept_id(content["concept_id"])


def concept_ids(given: object, *, field: str, most: int) -> list[str]:
    """Return a list of what can be ids or names of concepts."""
    if not isinstance(given, list | tuple):
        raise ValidationFailed(f"`{field}` must be a list of ids or names.", field=field)
    if len(given) > most:
        raise ValidationFailed(
            f"`{field}` has {len(given):,} concepts; the limit is {most:,}.",
            field=field,
            limit=most,
            hint="Make several calls.",
        )
    return [concept_id(each, field=f"{field}[{at}]") for at, each in enumerate(given)]


def level(value: object, field: str) -> str | None:
    """Return the name of an area, topic or subtopic, or None."""
    if field not in _LEVELS:
        raise ValidationFailed(f"A concept has no field `{field}`.", field=field)
    if value is None:
        return None
    return values.check_text(value, field=field, chars_max=limits.PLACE_CHARS_MAX)


def optional_number(value: object, field: str, low: float, high: float) -> float | None:
    """Return a number from `low` to `high`, or None."""
    if value is None:
        return None
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not isfinite(value) or not low <= value <= high:  # type: ignore[arg-type,operator]
        raise ValidationFailed(
            f"`{field}` is a number from {low:g} to {high:g}; it was {_abbreviate(value)}.",
            field=field,
            invalid_value=_abbreviate(value),
            limit=high,
        )
    return value  # type: ignore[return-value]


def strength(value: object) -> float:
    """Return the strength of a relationship."""
    if value is None:
        return 1.0
    checked = optional_number(value, "strength", 0.0, 1.0)
    assert checked is not None
    return checked


def label(value: object, *, optional: bool = False, field: str = "relationship_type") -> str | None:
    """Return what can be a type of relationship, in lower case; answers have it in upper case.

    Whether it was declared is for the view to say (`ConceptRecords.check_label`).
    """
    if value is None and optional:
        return None
    if not isinstance(value, str) or not _LABEL.fullmatch(value.lower()):
        raise unknown_label(value, TYPES, field)
    return value.lower()


def label_to_declare(value: str) -> str:
    """Return the name of a type of relationship that somebody declares, in lower case."""
    name = value.lower()
    if not _LABEL.fullmatch(name):
        raise ValidationFailed(
            f"{_abbreviate(value)} cannot be a relationship type.",
            field="name",
            invalid_value=value,
            hint="Use up to 50 letters from a to z and underscores, as in works_at.",
        )
    return name


def unknown_label(value: object, known: Sequence[str], field: str) -> ValidationFailed:
    """Return the refusal of a type of relationship that nobody has declared."""
    return ValidationFailed(
        f"There is no relationship type {_abbreviate(value)}.",
        field=field,
        invalid_value=value if isinstance(value, str) else _abbreviate(value),
        allowed=list(known),
        hint=f"Use one of {', '.join(known)}, or declare it first: declare_relationship_type.",
    )


def relationship_type(content: Mapping[str, Any]) -> None:
    """Refuse a declared type of relationship that has anything but a description."""
    if content.keys() - {"description"}:
        raise ValidationFailed(
            "A relationship type has only one field, `description`.", field="decisions"
        )
    description(content.get("description"))


def description(text: object) -> str | None:
    """Return what a type of relationship means, or None."""
    return None if text is None else _prose(text, "description", limits.NOTES_CHARS_MAX)


def evidence(content: Mapping[str, Any]) -> None:
    """Refuse evidence about a concept that nobody could have given."""
    known = content.keys() <= {"concept_id", "verdict", "source", "note", "said_at"}
    judged = content.get("verdict") in {"confirmed", "refuted"}
    if not known or not judged or not _is_time(content.get("said_at", 0), 0):
        raise ValidationFailed(
            "Evidence about a concept has the fields `concept_id`, `verdict` (confirmed "
            "or refuted), `source`, `note` and `said_at`, when it was given, in microseconds.",
            field="decisions",
        )
    concept_id(content.get("concept_id"))
    _prose(content.get("source"), "source", limits.SOURCE_CHARS_MAX)
    notes(content.get("note"))


def source(text: object, *, field: str = "source") -> str | None:
    """Return where something was learnt, or None."""
    return None if text is None else _prose(text, field, limits.SOURCE_CHARS_MAX)


def direction(value: object) -> str:
    """Return a direction."""
    if value not in _DIRECTIONS:
        raise ValidationFailed(
            f"`direction` is incoming, outgoing or both; it was {_abbreviate(value)}.",
            field="direction",
            invalid_value=_abbreviate(value),
            allowed=list(_DIRECTIONS),
        )
    return str(value)


def query(text: object) -> str:
    """Return what can be searched for."""
    return _prose(text, "query", limits.QUERY_CHARS_MAX)


def part(name: object) -> str | None:
    """Return a part of a name, or None."""
    if name is None:
        return None
    return values.check_text(name, field="name", chars_max=limits.CONCEPT_NAME_CHARS_MAX)


def notes(text: object) -> str | None:
    """Return what is said about a relationship, or None."""
    return None if text is None else _prose(text, "notes", limits.NOTES_CHARS_MAX)


def _prose(text: object, field: str, chars_max: int) -> str:
    """Return a text of several lines that has something in it."""
    if not isinstance(text, str):
        raise ValidationFailed(
            f"`{field}` must be text.", field=field, invalid_value=_abbreviate(text)
        )
    if not text.strip():
        raise ValidationFailed(
            f"`{field}` is {'blank' if text else 'empty'}.",
            field=field,
            hint=f"Give `{field}` at least one visible character.",
        )
    if len(text) > chars_max:
        raise ValidationFailed(
            f"`{field}` is {len(text):,} characters long; the limit is {chars_max:,}.",
            field=field,
            limit=chars_max,
            hint=f"Shorten `{field}`.",
        )
    values.encode(text, field=field)
    return text


def _whole(number: float | None) -> float | None:
    """Return a number that is whole as a whole number: 90 comes back as 90."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _abbreviate(value: object) -> str:
    """Return a value as a message can show it."""
    return repr(value)[:100]
