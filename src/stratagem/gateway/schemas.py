"""JSON Schemas of tools: checked when they are registered, applied to every call.

Patterns are matched in bounded time, so no pattern that somebody registers can hang a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
import orjson

from stratagem import limits
from stratagem.errors import ValidationFailed

__all__ = ["Schema", "Violation", "check"]

_SHOWN_CHARS: Final = 300
_BACKTRACKING_MAX: Final = 10_000
# The first is linear; the other knows look-ahead and gives up after so many steps.
_PATTERNS: Final = (
    jsonschema_rs.RegexOptions(),
    jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING_MAX),
)

# A violation as it is told: the place in the arguments, what is wrong there, and the rule.
Violation = dict[str, Any]


def _compiled(schema: Mapping[str, Any]) -> Any:
    try:
        return _validator(schema, _PATTERNS[0])
    except (jsonschema_rs.ValidationError, ValueError):
        return _validator(schema, _PATTERNS[1])


def _validator(schema: Mapping[str, Any], patterns: Any) -> Any:
    # Nothing is fetched: a reference to elsewhere is an error.
    return jsonschema_rs.Draft202012Validator(
        dict(schema), pattern_options=patterns, validate_formats=True, offline=True
    )


class Schema:
    """A schema that values are held against."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._validator = _compiled(document)

    def accepts(self, value: Any) -> bool:
        """Whether a value fits."""
        accepted: bool = self._validator.is_valid(value)
        return accepted

    def violations(self, value: Any) -> list[Violation]:
        """Return what is wrong with a value, the first few."""
        found: list[Violation] = []
        for error in self._validator.iter_errors(value):
            found.append(_violation(error))
            if len(found) == limits.VIOLATIONS_MAX:
                break
        return found


def _violation(error: Any) -> Violation:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    return {
        "path": f"${path}",
        "message": str(error.message)[:_SHOWN_CHARS],
        "rule": str(error.schema_path[-1]) if error.schema_path else "",
    }


def check(document: Any, *, field: str) -> None:
    """Check that something is a JSON Schema of 2020-12 for an object.

    Raises:
        ValidationFailed: It is not one, too large, or refers to something elsewhere.
    """
    if not isinstance(document, Mapping):
        raise ValidationFailed(f"`{field}` is a JSON Schema: an object.", field=field)
    size = len(orjson.dumps(document))
    if size > limits.SCHEMA_BYTES_MAX:
        raise ValidationFailed(
            f"`{field}` has {size:,} bytes; {limits.SCHEMA_BYTES_MAX:,} are allowed.",
            field=field,
            limit=limits.SCHEMA_BYTES_MAX,
        )
    try:
        jsonschema_rs.meta.validate(dict(document))
        _compiled(document)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = str(error).splitlines()[0][:_SHOWN_CHARS]
        raise ValidationFailed(
            f"`{field}` is no valid JSON Schema (2020-12): {reason}.", field=field
        ) from error
