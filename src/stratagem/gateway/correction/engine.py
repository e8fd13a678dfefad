"""Correcting one call: the arguments to run with, or why there are none.

Arguments that the schema accepts are returned unchanged, unless a name in them is a slip that an
open schema only happens to allow (`open_names`). Others are interpreted (`attempt`), every reading
is validated against the whole schema, and the best one is applied if it is certain and the policy
allows it. Other readings are offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.engine.paths import Steps, render
from stratagem.gateway.correction import shapes, text_forms
from stratagem.gateway.correction.attempt import Attempt, Exhausted, IsLate, Late
from stratagem.gateway.correction.model import (
    Candidate,
    Correction,
    Fault,
    FaultType,
    Learned,
    Nothing,
)
from stratagem.gateway.correction.open_names import name_slips
from stratagem.gateway.correction.policy import Policy
from stratagem.gateway.correction.readings import Reading, confidence
from stratagem.gateway.correction.schemas import Node, Ready, ready
from stratagem.gateway.correction.words import normal

__all__ = ["correct"]

_DEFAULT: Final = Policy()
_NOTHING: Final = Nothing()
# A date of Python is no text yet.
_PLAIN: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_SHOWN_CHARS: Final = 300
_TYPES: Final = {
    "type": FaultType.TYPE_MISMATCH,
    "required": FaultType.MISSING_REQUIRED,
    "dependentRequired": FaultType.MISSING_REQUIRED,
    "additionalProperties": FaultType.UNKNOWN_PROPERTIES,
    "unevaluatedProperties": FaultType.UNKNOWN_PROPERTIES,
    "propertyNames": FaultType.UNKNOWN_PROPERTIES,
    "enum": FaultType.ENUM_VIOLATION,
    "const": FaultType.ENUM_VIOLATION,
    "format": FaultType.FORMAT_VIOLATION,
    "anyOf": FaultType.NO_MATCHING_FORM,
    "oneOf": FaultType.NO_MATCHING_FORM,
}


def correct(
    schema: Mapping[str, Any] | bool | Ready,  # noqa: FBT001 -- true and false are schemas
    arguments: Any,
    *,
    policy: Policy = _DEFAULT,
    learned: Learned = _NOTHING,
    tool: str | None = None,
    categories: Iterable[str] = (),
    is_late: IsLate | None = None,
) -> Correction:
    """Return what a call of a tool meant.

    `arguments` are an object, or the text that a model wrote. Arguments that are valid come back
    as they are. The given objects are never changed. Once `is_late` says so the call is no
    longer looked into.

    Raises:
        ValidationFailed: The schema is not one.
    """
    prepared = schema if isinstance(schema, Ready) else ready(schema)
    size = _size(arguments)
    if isinstance(size, Fault):
        return Correction(None, errors=(size,))
    try:
        if isinstance(arguments, dict) and prepared.bounds.accepts(arguments):
            errors = name_slips(prepared, arguments) if policy.enabled else ()
            if not errors:
                return Correction(arguments)
        else:
            errors = _faults(prepared, arguments, size)
    except ValueError as error:
        # An object of Python that can be written as JSON, and yet is none: an identifier, an enum.
        return Correction(None, errors=(_no_json(str(error)),))
    if not policy.enabled:
        return Correction(None, errors=errors, withheld="Corrections are switched off.")
    attempt = Attempt(policy, learned, tool, *([is_late] if is_late is not None else []))
    return _as_given(prepared, arguments, _search(attempt, prepared, arguments, errors, categories))


def _search(
    attempt: Attempt,
    schema: Ready,
    arguments: Any,
    errors: tuple[Fault, ...],
    categories: Iterable[str],
) -> Correction:
    try:
        candidates = tuple(_candidates(attempt, schema, arguments))
    except Late:
        withheld = "No correction was found within the time limit."
        fault = _too_much("The arguments could not be corrected in time.")
        return Correction(None, errors=(*errors, fault), withheld=withheld, late=True)
    except Exhausted:
        too_large = _too_much("The arguments are too large to be corrected.")
        return Correction(None, errors=(*errors, too_large))
    return _decide(candidates, errors, attempt, categories)


def _decide(
    candidates: tuple[Candidate, ...],
    errors: tuple[Fault, ...],
    attempt: Attempt,
    categories: Iterable[str],
) -> Correction:
    best = candidates[0] if candidates else None
    choices = tuple(attempt.choices.values())
    withheld = None
    if best is not None:
        withheld = attempt.policy.withholds(best, tool=attempt.tool, categories=categories)
        if withheld is None:
            return Correction(best.arguments, candidates, errors)
    return Correction(None, candidates, errors, choices, withheld)


def _as_given(schema: Ready, arguments: Any, found: Correction) -> Correction:
    """Return valid arguments unchanged if their unknown names do not lead to a correction."""
    valid = isinstance(arguments, dict) and schema.bounds.accepts(arguments)
    return Correction(arguments) if valid and not found.candidates else found


def _size(arguments: Any) -> int | Fault:
    """Return how large arguments are, or why they are not looked at."""
    if isinstance(arguments, str):
        size = len(arguments)
    else:
        try:
            size = len(orjson.dumps(arguments, option=_PLAIN))
        except (orjson.JSONEncodeError, RecursionError) as error:
            return _no_json(str(error))
    most = limits.CORRECTION_BYTES_MAX
    if size > most:
        return _too_much(f"The arguments take {size:,} bytes; the limit is {most:,}.")
    return size


def _faults(schema: Ready, arguments: Any, size: int) -> tuple[Fault, ...]:
    if isinstance(arguments, str):
        try:
            parsed = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return (_malformed_text_fault(arguments),)
        if not isinstance(parsed, dict):
            return (_malformed_text_fault(arguments),)
        return (*_schema_faults(schema, parsed, size=size), _malformed_text_fault(arguments))
    found = _schema_faults(schema, arguments, size=size)
    return found or (_malformed_text_fault(repr(arguments)),)


def _candidates(attempt: Attempt, schema: Ready, arguments: Any) -> Iterator[Candidate]:
    """Yield what the call may have meant, certain first, each one validated as a whole."""
    if not schema.bounds.is_quick(arguments):
        raise Exhausted
    found = [
        reading
        for reading in _whole(attempt, schema.root, arguments)
        if isinstance(reading.value, dict)
        and reading.changes
        and schema.validator.is_valid(reading.value)
    ]
    for reading in attempt.rank_readings(found, ()):
        yield Candidate(reading.value, reading.changes, confidence(reading.changes))


def _whole(attempt: Attempt, root: Node, arguments: Any) -> Iterator[Reading]:
    if isinstance(arguments, dict):
        yield from attempt.read(root, arguments, ())
    elif isinstance(arguments, str):
        attempt.written = attempt.written or arguments
        for pattern, form in text_forms.root_forms(attempt, root, arguments):
            yield from _read_other_form(attempt, root, pattern, (arguments, form))
    elif arguments is None or arguments == []:
        yield from _read_other_form(attempt, root, "no_arguments", (arguments, {}))
    elif isinstance(arguments, list):
        joined = shapes.pairs_of(arguments) or _fragments(arguments)
        if joined is not None and all(normal(name) in root.styles for name in joined):
            yield from _read_other_form(attempt, root, "named_pairs_joined", (arguments, joined))
        elif len(arguments) == 1 and isinstance(arguments[0], dict):
            yield from _read_other_form(
                attempt, root, "single_element_unwrapped", (arguments, arguments[0])
            )
        elif len(root.required) == 1 and "array" in root.properties[root.required[0]].types:
            yield from _read_other_form(
                attempt, root, "sole_argument", (arguments, {root.required[0]: arguments})
            )
        elif len(arguments) == len(root.required):
            named = dict(zip(root.required, arguments, strict=True))
            yield from _read_other_form(attempt, root, "positional_arguments", (arguments, named))


def _fragments(arguments: list[Any]) -> dict[str, Any] | None:
    """Return the arguments that a list gives one by one, each in an object of its own."""
    single = all(isinstance(item, dict) and len(item) == 1 for item in arguments)
    if not single or len(arguments) <= 1:
        return None
    joined = {name: value for item in arguments for name, value in item.items()}
    return joined if len(joined) == len(arguments) else None


def _read_other_form(
    attempt: Attempt, root: Node, pattern: str, forms: tuple[Any, Any]
) -> Iterator[Reading]:
    """Yield the readings of a whole call in another form; text may hold text."""
    before, after = forms
    change = attempt.change(pattern, (), before, after)
    if change is None:
        return
    attempt.spend()
    inner: Iterable[Reading]
    if isinstance(after, str) and after != before:
        inner = _whole(attempt, root, after)
    else:
        inner = attempt.read(root, after, (), 1)
    for reading in inner:
        yield Reading(reading.value, (change, *reading.changes))


def _schema_faults(schema: Ready, arguments: Any, *, size: int = 0) -> tuple[Fault, ...]:
    """Return what is wrong with arguments, the first few; of large ones only the first."""
    # To find every fault of large arguments takes long, even where it takes little memory.
    most = limits.CORRECTION_FAULTS_MAX if size <= limits.CORRECTION_REPAIRED_CHARS_MAX else 1
    found = tuple(map(_fault, schema.bounds.errors(arguments, most)))
    if found or schema.bounds.accepts(arguments):
        return found
    return (_too_much("The arguments do not fit, and are too large to say where."),)


def _malformed_text_fault(text: str) -> Fault:
    """Return the fault of text that is not JSON."""
    shown = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    return Fault(FaultType.MALFORMED_JSON, "$", f"The arguments are not a JSON object: {shown!r}.")


def _no_json(reason: str) -> Fault:
    """Return the fault of arguments that hold something else than JSON."""
    return Fault(FaultType.MALFORMED_JSON, "$", f"The arguments are not JSON: {reason}.")


def _too_much(reason: str) -> Fault:
    """Return the fault of a call that is not looked into."""
    return Fault(FaultType.LIMIT_EXCEEDED, "$", reason)


def _fault(error: Any) -> Fault:
    keyword = _keyword(error)
    path = render(_steps(error.instance_path))
    message = str(error.message)
    if len(message) > _SHOWN_CHARS:
        message = f"{message[:_SHOWN_CHARS]}…"
    return Fault(
        _TYPES.get(keyword, FaultType.CONSTRAINT_VIOLATION), path, message, _names(error.kind)
    )


def _keyword(error: Any) -> str:
    """Return the last keyword on the way to the rule; an index may follow it."""
    names = [step for step in error.schema_path if isinstance(step, str)]
    return names[-1] if names else ""


def _steps(path: list[str | int]) -> Steps:
    return tuple(path)


def _names(kind: Any) -> tuple[Any, ...]:
    if hasattr(kind, "property"):
        return (kind.property,)
    if hasattr(kind, "unexpected"):
        return tuple(kind.unexpected)
    if hasattr(kind, "options") and isinstance(kind.options, list):
        return tuple(kind.options)
    return ()
