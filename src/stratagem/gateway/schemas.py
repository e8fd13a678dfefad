"""JSON Schemas of tools: checked when they are registered, applied to every call.

Patterns are matched in bounded time, so no pattern that somebody registers can hang a call. Most
are matched in linear time. Those with look-around or back references may be tried anew at each
character, so values that meet them are bounded in length too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
import orjson

from stratagem import limits
from stratagem.errors import ValidationFailed

__all__ = ["PATTERNS", "Schema", "Violation", "check", "pointer", "validator"]

_SHOWN_CHARS: Final = 300
# Steps at each character of a text: a pattern that needs more is not worth waiting for.
_BACKTRACKING_MAX: Final = 1_000
# The first is linear; the other knows look-ahead and gives up after so many steps.
PATTERNS: Final = (
    jsonschema_rs.RegexOptions(),
    jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING_MAX),
)

# A violation as it is told: the place in the arguments, what is wrong there, and the rule.
Violation = dict[str, Any]


def _compiled(schema: Mapping[str, Any]) -> tuple[Any, int | None]:
    """Return a validator, and how many bytes it may be given where its patterns are slow."""
    try:
        return validator(schema, PATTERNS[0]), None
    except (jsonschema_rs.ValidationError, ValueError):
        slow = validator(schema, PATTERNS[1])
    return slow, limits.LOOK_AROUND_BYTES_MAX // max(1, _slow_patterns(schema))


def _slow_patterns(schema: Any) -> int:
    """Return how many patterns of a schema cannot be matched in linear time."""
    if isinstance(schema, list):
        return sum(_slow_patterns(each) for each in schema)
    if not isinstance(schema, Mapping):
        return 0
    keyed = schema.get("patternProperties")
    patterns = [schema.get("pattern"), *(keyed if isinstance(keyed, Mapping) else ())]
    slow = sum(isinstance(each, str) and not _is_linear(each) for each in patterns)
    return slow + sum(_slow_patterns(each) for each in schema.values())


def _is_linear(pattern: str) -> bool:
    try:
        validator({"pattern": pattern}, PATTERNS[0])
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def validator(schema: Any, patterns: Any) -> Any:
    """Return what values are held against; `patterns` are how its regular expressions are run."""
    # Nothing is fetched: a reference to elsewhere is an error.
    return jsonschema_rs.Draft202012Validator(
        dict(schema) if isinstance(schema, Mapping) else schema,
        pattern_options=patterns,
        validate_formats=True,
        offline=True,
    )


class Schema:
    """A schema that values are held against."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._validator, self._bytes_max = _compiled(document)

    def accepts(self, value: Any) -> bool:
        """Whether a value fits."""
        if self._is_too_long(value):
            return False
        accepted: bool = self._validator.is_valid(value)
        return accepted

    def violations(self, value: Any) -> list[Violation]:
        """Return what is wrong with a value, the first few."""
        if self._is_too_long(value):
            said = f"longer than the {self._bytes_max:,} bytes that the schema's patterns allow"
            return [{"path": "$", "message": said, "rule": "pattern"}]
        found: list[Violation] = []
        for error in self._validator.iter_errors(value):
            found.append(_violation(error))
            if len(found) == limits.VIOLATIONS_MAX:
                break
        return found

    def is_quick(self, value: Any) -> bool:
        """Whether a value can be held against the schema many times over, as corrections do."""
        return self._bytes_max is None or len(_encoded(value)) <= self._bytes_max // 8

    def _is_too_long(self, value: Any) -> bool:
        return self._bytes_max is not None and len(_encoded(value)) > self._bytes_max


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        # What is no JSON is refused by the schema, or by whoever writes it out.
        return b""


def _violation(error: Any) -> Violation:
    error = _meant(error)
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    told = {
        "path": f"${path}",
        "message": str(error.message)[:_SHOWN_CHARS],
        "rule": str(error.schema_path[-1]) if error.schema_path else "",
    }
    return told | _about(error.kind)


def _meant(error: Any) -> Any:
    """Return what is wrong with a value that may also be null: nobody meant the null."""
    forms = getattr(error.kind, "context", None) or ()
    others = [form for form in forms if form and not _is_null_wanted(form[0])]
    return _meant(others[0][0]) if len(others) == 1 < len(forms) else error


def _is_null_wanted(error: Any) -> bool:
    return list(getattr(error.kind, "types", ())) == ["null"]


def _about(kind: Any) -> dict[str, Any]:
    """Return what a program can act on without reading the message."""
    if isinstance(missing := getattr(kind, "property", None), str):
        return {"missing": missing}
    if unexpected := getattr(kind, "unexpected", None):
        return {"unexpected": list(unexpected)}
    if isinstance(limit := getattr(kind, "limit", None), int | float):
        return {"limit": limit}
    allowed = getattr(kind, "options", None)
    is_short = isinstance(allowed, list) and len(allowed) <= limits.VIOLATIONS_MAX
    return {"allowed": allowed} if is_short else {}


def pointer(violation: Violation) -> dict[str, Any]:
    """Return the parameter that a violation is about, and the limit that it is over."""
    path, named = violation["path"], [violation.get("missing"), *violation.get("unexpected", ())]
    field = next((f"{path}.{each}" for each in named if each is not None), path)
    return {"field": field} | ({"limit": violation["limit"]} if "limit" in violation else {})


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
