"""JSON values at the edge.

A value is stored exactly as it was given, or refused. The JSON writer alone does not promise
that: it writes NaN as null, an enum as its value and a UUID as text. So a check goes before it.

The check has two passes. The first only decides whether the value is valid, testing the types of a
whole container at once; every write pays for it, so it must be cheap. The second runs only if the
first found a fault, and reports what is wrong and where. Neither recurses, so no depth can break
them, and both count the nodes they visit, so that an object which contains itself twice cannot keep
them busy.

Two values are the same when they hold the same JSON: the order of keys does not matter, but the
kind of a number does (1, 1.0 and true are three values), because JSON text keeps them apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import isfinite, isnan
from types import NoneType
from typing import Any, Final, TypeAlias, cast

import orjson

from stratagem import limits
from stratagem.deferred_patterns import deferred_pattern
from stratagem.engine.paths import Steps, render
from stratagem.errors import ValidationFailed

__all__ = [
    "Json",
    "check",
    "check_text",
    "decode",
    "encode",
    "read",
    "read_record",
    "same",
    "text_of",
    "title_of",
]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

TITLE_CHARS_MAX: Final = 200

_ARRAYS: Final = frozenset({list, tuple})
_CONTAINERS: Final = _ARRAYS | {dict}
# The writer takes these exactly, or refuses them itself (large integers, lone surrogates).
_SURE: Final = frozenset({str, int, bool, NoneType})
_KNOWN: Final = _SURE | _CONTAINERS | {float}

_SURROGATE: Final = deferred_pattern("[\ud800-\udfff]")
_UNPRINTABLE: Final = deferred_pattern("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# No integer with fewer digits is beyond 64 bits. Texts and fractions may have as many.
_LONG_INTEGER: Final = deferred_pattern(rb"[0-9]{19}")
_FIRST_LINE: Final = deferred_pattern(rf"\S[^\r\n]{{0,{TITLE_CHARS_MAX - 1}}}")
_TITLE_FIELDS: Final = ("title", "name", "subject")
_PLACE_CHARS_MAX: Final = 200
# What an ASCII character takes at most: a control character is written as \u001f.
_ASCII_BYTES_MAX: Final = 6


def encode(
    value: object, *, field: str = "value", bytes_max: int = limits.VALUE_BYTES_MAX
) -> bytes:
    """Write a value as JSON, keys in their order, such that `decode` gives the same value.

    Raises:
        ValidationFailed: The value is not plain JSON, or is too deep or too large; the message
            says what is wrong and where.
    """
    if type(value) is not str and not _is_plain(value, bytes_max):
        raise _fault(value, field, bytes_max)
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise _fault(value, field, bytes_max) from None
    if len(data) > bytes_max:
        raise _too_large(f"takes {len(data):,} bytes", field, bytes_max)
    return data


def check(value: object, *, field: str = "value", bytes_max: int = limits.VALUE_BYTES_MAX) -> None:
    """Refuse a value that `encode` would refuse, which has to write most others than short texts.

    Raises:
        ValidationFailed: See `encode`.
    """
    if (
        type(value) is not str
        or not value.isascii()
        or len(value) * _ASCII_BYTES_MAX + len('""') > bytes_max
    ):
        encode(value, field=field, bytes_max=bytes_max)


def decode(data: bytes) -> Json:
    """Read a value that `encode` wrote."""
    return cast("Json", orjson.loads(data))


def read(data: bytes) -> Json:
    """Read JSON that a caller wrote; an integer beyond 64 bits stays one, so that it is refused.

    Raises:
        orjson.JSONDecodeError: It is no JSON.
    """
    value = cast("Json", orjson.loads(data))
    if not _LONG_INTEGER.search(data):
        return value
    # That parser makes a rounded float of it, which would be stored as if it had been given. It has
    # refused whatever this one could not read: more digits than a float can stand for.
    return cast("Json", json.loads(data))


def read_record(data: bytes) -> Json:
    """Read the JSON of a record from outside, all of which may be kept.

    Raises:
        orjson.JSONDecodeError: It is no JSON.
        ValidationFailed: An integer in it is beyond 64 bits; the message says where.
    """
    record = read(data)
    if _LONG_INTEGER.search(data):
        for steps, node in _walk(record):
            if type(node) is int and (problem := _integer_problem(node)):
                in_field = type(record) is dict
                field = str(steps[0]) if in_field else "record"
                raise _refusal(field, steps[1:] if in_field else steps, *problem)
    return record


def same(one: object, other: object) -> bool:
    """Tell whether two values hold the same JSON."""
    if type(one) is str:
        # Most values are texts.
        return type(other) is str and one == other
    pending: list[tuple[Any, Any]] = [(one, other)]
    while pending:
        left, right = pending.pop()
        if type(left) in _ARRAYS and type(right) in _ARRAYS:
            if len(left) != len(right):
                return False
            pending.extend(zip(left, right, strict=True))
        elif type(left) is not type(right):
            return False
        elif type(left) is dict:
            if left.keys() != right.keys():
                return False
            pending.extend((child, right[key]) for key, child in left.items())
        elif left != right:
            return False
    return True


def text_of(value: Json) -> str:
    """Return the searchable text of a value, of at most `limits.SEARCHED_CHARS_MAX` characters.

    Text is itself. Every other leaf is a line of its own, led by the names of the fields it
    lies under; nulls and empty texts have no line.
    """
    if isinstance(value, str):
        return value[: limits.SEARCHED_CHARS_MAX]
    lines: list[str] = []
    room = limits.SEARCHED_CHARS_MAX
    for line in _lines(value):
        lines.append(line[:room])
        room -= len(line) + 1
        if room <= 0:
            break
    return "\n".join(lines)


def title_of(value: Json) -> str:
    """Return the first line of a text, or of an object's title, name or subject, else ""."""
    if isinstance(value, str):
        return _first_line(value)
    if isinstance(value, dict):
        titles = (_first_line(value.get(name)) for name in _TITLE_FIELDS)
        return next(filter(None, titles), "")
    return ""


def check_text(text: object, *, field: str, chars_max: int, empty_ok: bool = False) -> str:
    """Return a name (a key, a namespace, a label) exactly as it was given, if it can be one.

    Raises:
        ValidationFailed: It is not text, has nothing visible in it, is too long, or has control
            characters or lone surrogates in it.
    """
    if not isinstance(text, str):
        raise ValidationFailed(f"`{field}` must be text, not {_type_name(text)}.", field=field)
    # Most names need no closer look: printable text has neither control characters nor surrogates.
    if text.isprintable() and text and not text.isspace() and len(text) <= chars_max:
        return text
    if len(text) > chars_max:
        raise ValidationFailed(
            f"`{field}` is {len(text):,} characters long; the limit is {chars_max:,}.",
            field=field,
            limit=chars_max,
            hint=f"Shorten `{field}`.",
        )
    if not empty_ok and (not text or text.isspace()):
        raise ValidationFailed(
            f"`{field}` is {'blank' if text else 'empty'}.",
            field=field,
            hint=f"Give `{field}` at least one visible character.",
        )
    if found := _UNPRINTABLE.search(text):
        raise ValidationFailed(
            f"`{field}` has the character U+{ord(found[0]):04X} at position {found.start()}, "
            f"which is {_name_of_unprintable(found[0])}.",
            field=field,
            hint=f"Remove it from `{field}`.",
        )
    return text


def _is_plain(value: object, bytes_max: int) -> bool:
    """Tell whether the writer would take the value exactly, or refuse it by itself."""
    kind = type(value)
    if kind not in _CONTAINERS:
        return kind in _SURE or (kind is float and isfinite(cast("float", value)))
    # An element takes two bytes at least, with its comma or bracket.
    containers_left = bytes_max // 2
    levels: list[list[Any]] = [[value]]
    while levels:
        if not levels[-1]:
            levels.pop()
            continue
        node = levels[-1].pop()
        children = node.values() if type(node) is dict else node
        kinds = set(map(type, children))
        if kinds <= _SURE:
            continue
        if not (kinds <= _KNOWN and _all_finite(children, kinds)):
            return False
        inner = [child for child in children if type(child) in _CONTAINERS]
        containers_left -= len(inner)
        levels.append(inner)
        if containers_left < 0 or (inner and len(levels) > limits.VALUE_DEPTH_MAX):
            return False
    return True


def _all_finite(children: Iterable[object], kinds: set[type]) -> bool:
    return float not in kinds or all(isfinite(child) for child in children if type(child) is float)


def _fault(value: object, field: str, bytes_max: int) -> ValidationFailed:
    """Return the error for the first thing in the value that cannot be stored."""
    for steps, node in islice(_walk(value), bytes_max // 2 + 1):
        if problem := _problem(steps, node):
            return _refusal(field, steps, *problem)
    return _too_large("has more elements than fit", field, bytes_max)


def _refusal(field: str, steps: Steps, problem: str, hint: str) -> ValidationFailed:
    place = render(steps)
    if len(place) > _PLACE_CHARS_MAX:
        place = f"{place[:_PLACE_CHARS_MAX]}…"
    limit = {"limit": limits.VALUE_DEPTH_MAX} if problem is _TOO_DEEP[0] else {}
    return ValidationFailed(
        f"`{field}` cannot be stored: {place} {problem}.",
        field=field,
        place=place,
        hint=f"{hint}; nothing was written.",
        **limit,
    )


def _too_large(what: str, field: str, bytes_max: int) -> ValidationFailed:
    return ValidationFailed(
        f"`{field}` {what} as JSON; the limit is {bytes_max:,} bytes.",
        field=field,
        limit=bytes_max,
        hint="Split it over several keys, or keep it in a file and store the path; "
        "nothing was written.",
    )


def _walk(root: object) -> Iterator[tuple[Steps, object]]:
    """Yield each node with its place, in the order of the document, a parent before its children.

    Children are only looked at when the next node is asked for.
    """
    pending: list[Iterator[tuple[Steps, object]]] = [iter([((), root)])]
    while pending:
        for steps, node in pending[-1]:
            yield steps, node
            if type(node) in _CONTAINERS:
                pending.append(_children(steps, node))
                break
        else:
            pending.pop()


def _children(steps: Steps, node: Any) -> Iterator[tuple[Steps, object]]:
    pairs = node.items() if type(node) is dict else enumerate(node)
    return (((*steps, step), child) for step, child in pairs)


_TOO_DEEP: Final = (
    f"lies deeper than the limit of {limits.VALUE_DEPTH_MAX} levels",
    "Flatten it, or store its inner parts under keys of their own",
)
_HALF_PAIR: Final = (
    "has half of a surrogate pair in its text",
    "Decode the text as UTF-8 or UTF-16 first, or remove the character",
)


def _problem(steps: Steps, node: object) -> tuple[str, str] | None:
    """Return what is wrong with a node, its children aside, and what to do about it."""
    kind = type(node)
    if kind in _CONTAINERS and len(steps) >= limits.VALUE_DEPTH_MAX:
        return _TOO_DEEP
    if kind not in _KNOWN:
        return (
            f"is a {_type_name(node)}, which is not a JSON type",
            "Convert it to an object, an array, text, a number, a boolean or null first",
        )
    return _PROBLEMS[kind](node) if kind in _PROBLEMS else None


def _key_problem(node: dict[object, object]) -> tuple[str, str] | None:
    for key in node:
        if type(key) is not str:
            return (
                f"has a key that is a {_type_name(key)}; keys of an object are text",
                "Convert the keys to text first",
            )
        if _SURROGATE.search(key):
            return "has half of a surrogate pair in one of its keys", _HALF_PAIR[1]
    return None


def _text_problem(text: str) -> tuple[str, str] | None:
    return _HALF_PAIR if _SURROGATE.search(text) else None


def _float_problem(number: float) -> tuple[str, str] | None:
    if isfinite(number):
        return None
    name = "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return f"is {name}, which JSON cannot write as a number", "Send null or text in its place"


def _integer_problem(number: int) -> tuple[str, str] | None:
    if limits.INTEGER_MIN <= number <= limits.INTEGER_MAX:
        return None
    return (
        f"is an integer beyond 64 bits ({limits.INTEGER_MIN} to {limits.INTEGER_MAX})",
        "Send it as text",
    )


_PROBLEMS: Final[dict[type, Callable[[Any], tuple[str, str] | None]]] = {
    dict: _key_problem,
    str: _text_problem,
    float: _float_problem,
    int: _integer_problem,
}


def _type_name(value: object) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def _name_of_unprintable(char: str) -> str:
    return "half of a surrogate pair" if _SURROGATE.match(char) else "a control character"


def _lines(value: Json) -> Iterator[str]:
    named: Iterable[tuple[str, object]]
    if type(value) is dict and _CONTAINERS.isdisjoint(map(type, value.values())):
        # As most messages are: fields side by side. The walk finds the same, in thrice the time.
        named = value.items()
    else:
        named = ((_words_of(steps), node) for steps, node in _walk(value))
    for words, node in named:
        if text := _leaf_text(node):
            yield f"{words}: {text}" if words else text


def _words_of(steps: Steps) -> str:
    return " ".join(step for step in steps if isinstance(step, str))


def _leaf_text(node: object) -> str:
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, str | int | float):
        return str(node)
    return ""


def _first_line(text: object) -> str:
    found = _FIRST_LINE.search(text) if isinstance(text, str) else None
    return found[0].rstrip() if found else ""
