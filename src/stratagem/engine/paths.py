"""JSONPath (RFC 9535): one place in a JSON document, or a query for several.

A *path* names exactly one place, so that reading it gives one value and writing it changes one
value. It is a singular query: `$`, then fields (`.name` or `['any name']`) and elements (`[0]`, or
`[-1]` from the end). Two freedoms are taken, because neither can be misread: the `$` may be left
out, and a hyphen may stand in a dotted name. Whatever could match several places (wildcards,
slices, filters, descendants, lists of names) is refused by its name.

A *query* begins with `$` and may have all of these except filters, for which JMESPath is used: it
can express more.

Documents are never changed in place: `put` copies the containers on the way to the place and
shares all others with the document it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_patterns import deferred_pattern
from stratagem.errors import ValidationFailed

if TYPE_CHECKING:
    from stratagem.engine.values import Json

__all__ = [
    "Query",
    "Steps",
    "enclosing_place",
    "get",
    "parse",
    "parse_query",
    "put",
    "remove",
    "render",
]

Steps: TypeAlias = tuple[str | int, ...]
# A name, an element, a slice, or None for all children.
_Selector: TypeAlias = str | int | slice | None

_MISSING: Final = object()

# RFC 9535 lets any character outside ASCII stand in a dotted name; control characters are not
# worth it.
# Letters are A-Z, a-z, _ and everything from U+00A0 on, written as what is none: a class with a
# range up to the last character takes 10 ms to compile.
_LETTER: Final = r"[^\x00-@\[-^`{-\x9f]"
_LETTER_OR_DIGIT: Final = r"[^\x00-/:-@\[-^`{-\x9f]"
_LETTER_DIGIT_OR_HYPHEN: Final = r"[^\x00-,./:-@\[-^`{-\x9f]"
_SHORTHAND: Final = deferred_pattern(f"{_LETTER}{_LETTER_OR_DIGIT}*")
_BLANK: Final = r"[ \t\r\n]*"
# Longer than any position of a document, and short enough to be read at once.
_INTEGER: Final = r"(?:0|-?[1-9][0-9]{0,99})"
_OPENING: Final = deferred_pattern(
    rf"(?:(?P<deep>\.)?\.(?:(?P<name>{_LETTER}{_LETTER_DIGIT_OR_HYPHEN}*)|\*)"
    rf"|(?P<below>\.\.)?(?P<bracket>\[){_BLANK})"
)
_SELECTOR: Final = deferred_pattern(
    r"""(?P<quoted>'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")"""
    rf"|(?P<slice>(?P<start>{_INTEGER})?{_BLANK}:{_BLANK}(?P<stop>{_INTEGER})?"
    rf"(?:{_BLANK}:{_BLANK}(?P<step>{_INTEGER})?)?)|(?P<index>{_INTEGER})|(?P<every>\*)"
)
_SELECTOR_END: Final = deferred_pattern(rf"{_BLANK}(?:(?P<more>,){_BLANK}|\])")
_ESCAPE: Final = deferred_pattern(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {
    char: char for char in "/\\'\""
}
_QUOTED: Final = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
    | {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"}
)
_FORBIDDEN: Final = deferred_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_EXAMPLE: Final = "Name one place, such as $.user.name, $['a b'] or $.items[0]."
_QUERY_EXAMPLE: Final = "Write $.items[0].name or $.items[*].name; filters are written in JMESPath."


class _UnreadableError(Exception):
    """No segment can be read from a position on."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True, slots=True)
class _Segment:
    selectors: tuple[_Selector, ...]
    deep: bool

    @property
    def step(self) -> str | int | None:
        """The one place that it names, if it names one."""
        selector = self.selectors[0]
        single = not self.deep and len(self.selectors) == 1
        return selector if single and isinstance(selector, str | int) else None


def parse(path: str, *, field: str = "path") -> Steps:
    """Read a path into its steps: text for a field, a number for an element.

    Raises:
        ValidationFailed: The path is malformed, too long, too deep, or may match several places.
    """
    text = _check_path(path, field)
    steps: list[str | int] = []
    try:
        for segment in _segments(text, field):
            if segment.step is None:
                raise _plural(_plural_name(segment), field)
            steps.append(segment.step)
    except _UnreadableError as error:
        _refuse(text, error.position, field)
    if len(steps) > limits.VALUE_DEPTH_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(steps)} steps; the limit is {limits.VALUE_DEPTH_MAX}.",
            field=field,
            limit=limits.VALUE_DEPTH_MAX,
            hint="No document is that deep: shorten the path.",
        )
    return tuple(steps)


def render(steps: Steps) -> str:
    """Write steps as a path: the one spelling of the place, which `parse` reads back."""
    return "$" + "".join(map(_render_step, steps))


def enclosing_place(places: Collection[str], place: str) -> str | None:
    """Return the one of some rendered places that a place equals or lies in."""
    return next(
        (each for each in places if place == each or place.startswith((f"{each}.", f"{each}["))),
        None,
    )


def get(document: Json, steps: Steps) -> tuple[bool, Json]:
    """Return whether the place exists, and what is there (None where it does not)."""
    here: Json = document
    for step in steps:
        if isinstance(here, dict) and step in here:
            here = here[str(step)]
        elif isinstance(here, list) and _position(here, step) < len(here):
            here = here[_position(here, step)]
        else:
            return False, None
    return True, here


def put(document: Json, steps: Steps, value: Json, *, field: str = "path") -> Json:
    """Return the document with the value at the place, and leave the one given as it is.

    Objects missing on the way are created, an array where an element is named; the index one
    past the end of an array appends to it.

    Raises:
        ValidationFailed: The path leads into a scalar, into the wrong kind of container, or
            past the end of an array.
    """
    trail: list[dict[str, Json] | list[Json]] = []
    here: object = document
    for depth, step in enumerate(steps):
        container = _copy_container(here, steps, depth, field)
        trail.append(container)
        here = _inside(container, step)
    result = value
    for container, step in zip(reversed(trail), reversed(steps), strict=True):
        _place(container, step, result)
        result = container
    return result


def remove(document: Json, steps: Steps) -> Json:
    """Return the document without what is at a place that exists, and leave the one given.

    What follows an element of an array moves up.
    """
    *way, last = steps
    _found, parent = get(document, tuple(way))
    assert isinstance(parent, dict | list), "the place exists"
    if isinstance(parent, dict):
        left: Json = {name: each for name, each in parent.items() if name != last}
    else:
        at = _position(parent, last)
        left = [*parent[:at], *parent[at + 1 :]]
    return put(document, tuple(way), left)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was read."""

    _segments: tuple[_Segment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names it begins with, as far as each is a single one."""
        names: list[str] = []
        for segment in self._segments:
            if not isinstance(segment.step, str):
                break
            names.append(segment.step)
        return tuple(names)

    def search(self, document: Any, charge: Callable[[int], None]) -> Any:
        """Return the value at the place if the query can name only one, or null.

        Else a list of values.

        A list is in the order of the document. `charge` is called with the number of nodes that
        were looked at.
        """
        nodes = [document]
        for segment in self._segments:
            searched = _descendants(nodes, charge) if segment.deep else iter(nodes)
            nodes = list(_select_all(searched, segment.selectors, charge))
        if all(segment.step is not None for segment in self._segments):
            return nodes[0] if nodes else None
        return nodes


def parse_query(text: str, *, field: str) -> Query:
    """Read a query that begins with `$`.

    Raises:
        ValidationFailed: It cannot be read, or has a filter in it.
    """
    try:
        return Query(tuple(_segments(text[1:], field)))
    except _UnreadableError as error:
        rest = text[1:][error.position :][:20]
        raise ValidationFailed(
            f"`{field}` cannot be read as JSONPath from {rest!r} on.",
            field=field,
            hint=_QUERY_EXAMPLE,
        ) from None


def _segments(text: str, field: str) -> Iterator[_Segment]:
    position = 0
    while position < len(text):
        opening = _OPENING.match(text, position)
        if opening is None:
            raise _UnreadableError(position)
        if opening["bracket"]:
            selectors, end = _selectors(text, opening.end(), field)
            if end is None:
                raise _UnreadableError(position)
            yield _Segment(selectors, bool(opening["below"]))
            position = end
        else:
            yield _Segment((opening["name"],), bool(opening["deep"]))
            position = opening.end()


def _selectors(text: str, position: int, field: str) -> tuple[tuple[_Selector, ...], int | None]:
    """Return the selectors in brackets and the position after them; none if they are malformed."""
    selectors: list[_Selector] = []
    while match := _SELECTOR.match(text, position):
        selectors.append(_selector(match, field))
        end = _SELECTOR_END.match(text, match.end())
        if end is None:
            break
        if not end["more"]:
            return tuple(selectors), end.end()
        position = end.end()
    return (), None


def _selector(match: re.Match[str], field: str) -> _Selector:
    if match["quoted"]:
        return _unquote(match["double"] if match["single"] is None else match["single"], field)
    if match["index"]:
        return int(match["index"])
    if match["every"]:
        return None
    start, stop, step = (
        None if number is None else int(number) for number in match.group("start", "stop", "step")
    )
    if step == 0:
        raise ValidationFailed(f"`{field}` has a slice with a step of 0.", field=field)
    return slice(start, stop, step)


def _select_all(
    nodes: Iterator[Any], selectors: tuple[_Selector, ...], charge: Callable[[int], None]
) -> Iterator[Any]:
    for node in nodes:
        for selector in selectors:
            charge(1)
            for child in _select(node, selector):
                charge(1)
                yield child


def _select(node: Any, selector: _Selector) -> Iterator[Any]:
    if isinstance(node, dict):
        if selector is None:
            yield from node.values()
        elif isinstance(selector, str) and selector in node:
            yield node[selector]
    elif isinstance(node, list):
        if selector is None:
            yield from node
        elif isinstance(selector, slice):
            yield from node[selector]
        elif isinstance(selector, int) and -len(node) <= selector < len(node):
            yield node[selector]


def _descendants(nodes: list[Any], charge: Callable[[int], None]) -> Iterator[Any]:
    """Yield the nodes and everything below them, a parent before its children."""
    pending = list(reversed(nodes))
    while pending:
        charge(1)
        node = pending.pop()
        yield node
        pending.extend(reversed(list(_select(node, None))))


def _check_path(path: str, field: str) -> str:
    """Return the path without its `$`, opening with a step if it has any."""
    if not isinstance(path, str):
        raise ValidationFailed(
            f"`{field}` must be text, not {type(path).__name__}.", field=field, hint=_EXAMPLE
        )
    if len(path) > limits.JSONPATH_CHARS_MAX:
        raise ValidationFailed(
            f"`{field}` is {len(path)} characters long; the limit is {limits.JSONPATH_CHARS_MAX}.",
            field=field,
            limit=limits.JSONPATH_CHARS_MAX,
            hint="Store the inner value under a key of its own.",
        )
    if _FORBIDDEN.search(path):
        raise ValidationFailed(
            f"`{field}` has a control character or half of a surrogate pair in it.",
            field=field,
            hint=r"Write such a character as an escape in quotes: $['a\tb'].",
        )
    text = path.strip(" ")
    if not text:
        raise ValidationFailed(f"`{field}` is empty.", field=field, hint=f"{_EXAMPLE} $ is all.")
    if text.startswith("$"):
        return text[1:]
    return text if text[0] in "[." else f".{text}"


def _unquote(text: str, field: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code, char = escape.groups()
        if code is not None:
            return chr(int(code, 16))
        if char not in _ESCAPED:
            raise ValidationFailed(
                f"`{field}` has an unknown escape, \\{char}.",
                field=field,
                hint=r"Write \\ for a backslash, \' for a quote, \u00e9 for a letter by its code.",
            )
        return _ESCAPED[char]

    name = _ESCAPE.sub(character, text)
    try:
        # Two escapes in a row may be the halves of one character.
        return name.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValidationFailed(
            f"`{field}` has half of a surrogate pair in it.",
            field=field,
            hint="Write the character itself, or both halves of the pair.",
        ) from None


def _plural_name(segment: _Segment) -> str:
    if segment.deep:
        return "a descendant search (`..`)"
    if len(segment.selectors) > 1:
        return "a list of places (`,`)"
    return "a slice (`:`)" if isinstance(segment.selectors[0], slice) else "a wildcard (`*`)"


def _plural(name: str, field: str) -> ValidationFailed:
    return ValidationFailed(
        f"`{field}` has {name}, which may match several places; a path names one.",
        field=field,
        hint=_EXAMPLE,
    )


def _refuse(text: str, position: int, field: str) -> NoReturn:
    if re.compile(r"\[ *[?(]").match(text, position):
        raise _plural("a filter (`?`)", field)
    if numbered := re.compile(r"\.(-?[0-9]+)").match(text, position):
        raise ValidationFailed(
            f"`{field}` has a number after a dot, which may be an element or a field.",
            field=field,
            hint=f"Write [{numbered[1]}] for the element, ['{numbered[1]}'] for the field.",
        )
    raise ValidationFailed(
        f"`{field}` cannot be read from {text[position : position + 20]!r} on.",
        field=field,
        hint=_EXAMPLE,
    )


def _render_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _SHORTHAND.fullmatch(step) else f"['{step.translate(_QUOTED)}']"


def _position(array: list[Json], step: str | int) -> int:
    """Return the position that a step names; if it names none, one beyond where items are added."""
    if isinstance(step, str) or step < -len(array):
        return len(array) + 1
    return step if step >= 0 else len(array) + step


def _inside(container: dict[str, Json] | list[Json], step: str | int) -> object:
    present, child = get(container, (step,))
    return child if present else _MISSING


def _copy_container(
    here: object, steps: Steps, depth: int, field: str
) -> dict[str, Json] | list[Json]:
    """Return a copy of the container that the next step goes into."""
    step = steps[depth]
    if here is _MISSING:
        here = [] if isinstance(step, int) else {}
    if isinstance(here, dict) and isinstance(step, str):
        return dict(here)
    if isinstance(here, list) and isinstance(step, int):
        if _position(here, step) <= len(here):
            return list(here)
        why = f"has a length of {len(here)}, so there is no place {_render_step(step)}"
        hint = f"Write [{len(here)}] to append."
    else:
        why = f"is {_kind(here)}, which has no {_render_step(step)}"
        hint = "Recall the value to see what it holds, or store that place as a whole."
    place = render(steps[:depth])
    raise ValidationFailed(
        f"`{field}` cannot be followed: {place} {why}.", field=field, place=place, hint=hint
    )


def _kind(node: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "text", bool: "a boolean"}
    return "null" if node is None else kinds.get(type(node), "a number")


def _place(container: dict[str, Json] | list[Json], step: str | int, value: Json) -> None:
    if isinstance(container, dict):
        container[str(step)] = value
    elif (position := _position(container, step)) < len(container):
        container[position] = value
    else:
        container.append(value)
