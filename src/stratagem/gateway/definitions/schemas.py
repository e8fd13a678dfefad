"""JSON Schemas of tools: checked when they are registered, applied to every call.

The cost of a schema is computed when it is registered (`evaluation`), and a schema that is too
expensive is refused. A call that would cost too much is refused before it starts. The validator
collects every error before it returns the first one, each with a copy of its value: so if there
could be many, only the first is requested.

Patterns are matched in bounded time, so no pattern that somebody registers can hang a call. Most
are matched in linear time. Those with look-around or back references may be tried anew at each
character, so values that meet them are bounded in length too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NotRequired, TypedDict

import jsonschema_rs
import orjson

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.function_cache import cache_texts
from stratagem.gateway.definitions.evaluation import (
    Excess,
    SchemaCost,
    measure,
    values_most,
    work_of,
)

__all__ = ["PATTERNS", "Schema", "Violation", "check", "excess", "pointer", "validator"]

_SHOWN_CHARS: Final = 300
# What an error takes beside the value that it repeats.
_ERROR_BYTES: Final = 2_048
# A short schema without any of these needs no cost estimate.
_MULTIPLIES: Final = (b'"$ref"', b'Ref"', b'"pattern')
_PLAIN_BYTES: Final = 8_192
# Steps at each character of a text: a pattern that needs more is not worth waiting for.
_BACKTRACKING_MAX: Final = 1_000
# The first is linear; the other knows look-ahead and gives up after so many steps.
PATTERNS: Final = (
    jsonschema_rs.RegexOptions(),
    jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING_MAX),
)


class ViolationDetails(TypedDict, total=False):
    """What a program can act on without reading the message."""

    missing: str
    unexpected: list[str]
    limit: float
    allowed: list[Any]
    hint: str


class Violation(ViolationDetails):
    """What is wrong with a value: the place, what is wrong there, and the rule."""

    path: str
    message: str
    rule: str


class ViolationField(TypedDict):
    """The parameter that a violation is about, and the limit that it is over."""

    field: str
    limit: NotRequired[float]


def _compile(schema: Mapping[str, Any]) -> tuple[Any, SchemaCost, int | None]:
    """Return a validator, its work, and how many bytes it may be given if its patterns are slow.

    Raises:
        Excess: The schema would make too much work.
    """
    # Counted first: to make the validator of a large pattern is work already.
    work = work_of(schema, _is_linear)
    try:
        return validator(schema, PATTERNS[0]), work, None
    except (jsonschema_rs.ValidationError, ValueError):
        slow = validator(schema, PATTERNS[1])
    return slow, work, limits.LOOK_AROUND_BYTES_MAX // max(1, _slow_patterns(schema))


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


# A pure function of short texts; the same patterns are met in many schemas.
@cache_texts(1_024)
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
    """A schema that values are held against.

    Raises:
        ValidationFailed: It is none, or would make too much work.
    """

    def __init__(self, document: Mapping[str, Any], *, field: str = "schema") -> None:
        self.document = document
        try:
            self.validator, self.work, self._bytes_max = _compile(document)
        except Excess as error:
            raise _too_much(error, field) from error
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            reason = str(error).partition("\n")[0][:_SHOWN_CHARS]
            raise ValidationFailed(
                f"`{field}` is not a valid JSON Schema (2020-12): {reason}.", field=field
            ) from error

    def accepts(self, value: Any) -> bool:
        """Whether a value fits."""
        if self._refusal(value, _encode(value)) is not None:
            return False
        accepted: bool = self.validator.is_valid(value)
        return accepted

    def violations(self, value: Any) -> list[Violation]:
        """Return what is wrong with a value, the first few."""
        if (refusal := self._refusal(value, _encode(value))) is not None:
            return [refusal]
        if found := [_violation(error) for error in self.errors(value, limits.VIOLATIONS_MAX)]:
            return found
        if self.validator.is_valid(value):
            return []
        said = "does not fit the schema, and is too large to say where"
        return [{"path": "$", "message": said, "rule": "schema", "hint": "Send less at once."}]

    def errors(self, value: Any, most: int) -> Iterator[Any]:
        """Return the first errors of the validator: one where there could be very many.

        None at all where even the first may hold too much, or finding it is too much work.
        """
        if self._refusal(value, _encode(value)) is not None:
            return
        if self._errors_fit(value):
            yield from islice(self.validator.iter_errors(value), most)
        elif not self.work.nests_errors:
            try:
                self.validator.validate(value)
            except jsonschema_rs.ValidationError as error:
                yield error

    def is_quick(self, value: Any) -> bool:
        """Whether a value can be held against the schema many times over, as corrections do."""
        data = _encode(value)
        if self._bytes_max is not None and len(data) > self._bytes_max // 8:
            return False
        load, budget = self.work.load, limits.CORRECTION_EVALUATIONS_MAX
        if load is None:
            # Each level may be meant in several ways, each of which is tried.
            levels = data.count(b"{") + data.count(b"[")
            return levels <= limits.CORRECTION_LEVELS_MAX and self.work.fits(data, value, budget)
        # A text within it may be read as JSON: what could be in there counts too.
        return load.work(values_most(data), len(data)) <= budget

    def fits(self, value: Any) -> bool:
        """Whether a value can be held against the schema at all."""
        return self._refusal(value, _encode(value)) is None

    def _refusal(self, value: Any, data: bytes) -> Violation | None:
        """Return why a value is not even looked at."""
        if self._bytes_max is not None and len(data) > self._bytes_max:
            said = f"longer than the {self._bytes_max:,} bytes that the schema's patterns allow"
            return {"path": "$", "message": said, "rule": "pattern"}
        if self.work.fits(data, value, limits.EVALUATIONS_MAX):
            return None
        return {
            "path": "$",
            "message": "too large or too deep: checking it would take more than "
            f"{limits.EVALUATIONS_MAX:,} evaluations",
            "rule": "evaluations",
            "limit": limits.EVALUATIONS_MAX,
            "hint": "Send less at once, or have the tool's schema refer to itself less often.",
        }

    def _errors_fit(self, value: Any) -> bool:
        """Whether all errors together, and the values that they repeat, take little memory."""
        most, load = limits.VIOLATIONS_BYTES_MAX, self.work.load
        each = _ERROR_BYTES + self.work.listed_bytes
        evaluations = 1 if load is None else max(1, load.evaluations)
        size = measure(value, _encode(value), most // (each * evaluations))
        if size is None:
            return False
        # Each error also says where it is.
        each += size.depth * size.name_chars
        if load is None:
            return self.work.count(value, most // (each + size.bytes)) is not None
        # The values at one level are all of the value at most.
        repeated = size.bytes * (size.values if self.work.names_members else size.depth)
        return load.evaluations * (size.values * each + repeated) <= most


def _too_much(error: Excess, field: str) -> ValidationFailed:
    limited = "" if error.limit is None else f"; {error.limit:,} are allowed"
    return ValidationFailed(
        f"`{field}` cannot be evaluated: #{error.place} {error.message}{limited}.",
        field=field,
        pointer=f"#{error.place}",
        **({} if error.limit is None else {"limit": error.limit}),
        hint="Write a simpler schema, with fewer references to the same definition.",
    )


def excess(document: Any, *, field: str) -> str | None:
    """Return why a schema cannot be used, though it was registered once; None if it can."""
    data = _encode(document)
    if len(data) <= _PLAIN_BYTES and not any(each in data for each in _MULTIPLIES):
        return None
    try:
        work_of(document, _is_linear)
    except Excess as error:
        return _too_much(error, field).message
    return None


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        pass
    try:
        # Integers of any size: what is no JSON even so is refused by the validator.
        return json.dumps(value, default=repr, skipkeys=True).encode()
    except (TypeError, ValueError, RecursionError):
        return b""


def _violation(error: Any) -> Violation:
    error = _error_without_null(error)
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{_short(part)}" for part in error.instance_path
    )
    return {
        "path": _short(f"${path}"),
        "message": _short(str(error.message)),
        "rule": _short(str(error.schema_path[-1])) if error.schema_path else "",
        **_about(error.kind),
    }


def _short(text: str) -> str:
    return text[:_SHOWN_CHARS]


def _error_without_null(error: Any) -> Any:
    """Return what is wrong with a value that may also be null: nobody meant the null."""
    forms = getattr(error.kind, "context", None) or ()
    others = [form for form in forms if form and not _is_null_wanted(form[0])]
    return _error_without_null(others[0][0]) if len(others) == 1 < len(forms) else error


def _is_null_wanted(error: Any) -> bool:
    return list(getattr(error.kind, "types", ())) == ["null"]


def _about(kind: Any) -> ViolationDetails:
    """Return what a program can act on without reading the message."""
    if isinstance(missing := getattr(kind, "property", None), str):
        return {"missing": _short(missing)}
    if unexpected := getattr(kind, "unexpected", None):
        return {"unexpected": [_short(str(name)) for name in unexpected[: limits.VIOLATIONS_MAX]]}
    if isinstance(limit := getattr(kind, "limit", None), int | float):
        return {"limit": limit}
    allowed = getattr(kind, "options", None)
    if (
        isinstance(allowed, list)
        and len(allowed) <= limits.VIOLATIONS_MAX
        and len(_encode(allowed)) <= limits.VIOLATIONS_MAX * _SHOWN_CHARS
    ):
        return {"allowed": allowed}
    return {}


def pointer(violation: Violation) -> ViolationField:
    """Return the parameter that a violation is about, and the limit that it is over."""
    path, named = violation["path"], [violation.get("missing"), *violation.get("unexpected", ())]
    field = next((f"{path}.{each}" for each in named if each is not None), path)
    place: ViolationField = {"field": field}
    if "limit" in violation:
        place["limit"] = violation["limit"]
    return place


def check(document: Any, *, field: str) -> None:
    """Check that something is a JSON Schema of 2020-12 for an object.

    Raises:
        ValidationFailed: It is not one, too large, makes too much work, or refers to something
            elsewhere.
    """
    if not isinstance(document, Mapping):
        raise ValidationFailed(f"`{field}` must be a JSON Schema: an object.", field=field)
    size = len(orjson.dumps(document))
    if size > limits.SCHEMA_BYTES_MAX:
        raise ValidationFailed(
            f"`{field}` has {size:,} bytes; {limits.SCHEMA_BYTES_MAX:,} are allowed.",
            field=field,
            limit=limits.SCHEMA_BYTES_MAX,
        )
    try:
        jsonschema_rs.meta.validate(dict(document))
    except (jsonschema_rs.ValidationError, ValueError) as error:
        reason = str(error).partition("\n")[0][:_SHOWN_CHARS]
        raise ValidationFailed(
            f"`{field}` is not a valid JSON Schema (2020-12): {reason}.", field=field
        ) from error
    Schema(document, field=field)
