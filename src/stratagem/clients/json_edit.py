"""Changes to JSON that people wrote, comments and trailing commas included.

The text is changed in one place, not parsed and written anew, so that order, indentation, comments
and everything a newer version of the client may have put there stay as they were.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import InvalidInput

__all__ = ["JsonText", "Path"]

# A place in the document: names of members and numbers of elements.
Path = tuple[str | int, ...]

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_SPACE_IN_LINE: Final = re.compile(r"[ \t\r]*+")
_SCALAR: Final = re.compile(
    r"true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
)
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_DEPTH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class _Node:
    """A value, where it stands in the text, and its parts in order.

    A part's key is the name of a member, or the number of an element; `begin` of the part is where
    that name stands. `comma` is where a comma follows the last part, if one does.
    """

    begin: int
    end: int
    value: Any
    parts: tuple[_Part, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    key: str | int
    begin: int
    node: _Node
    comma: int | None


class JsonText:
    """A JSON document as text, and the changed texts that can be made of it.

    Raises:
        InvalidInput: It is not JSON, even with comments and trailing commas allowed.
    """

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._root: Final = _parse(text)
        self.value: Final = self._root.value
        indents = _INDENT.findall(text)
        self._indent: Final = min(indents, key=len) if indents else "  "

    def with_value(self, path: Path, value: Any) -> str:
        """Return the text with a value at a path; objects on the way are made where missing."""
        node, depth = self._root, 0
        for at, step in enumerate(path):
            part = _part(node, step)
            if part is None:
                for name in reversed(path[at + 1 :]):
                    value = {name: value}
                return self._add_part(node, step, value, depth + 1)
            node, depth = part.node, depth + 1
        return self.text[: node.begin] + self._dump(value, depth) + self.text[node.end :]

    def with_element(self, path: Path, value: Any) -> str:
        """Return the text with one more element at the end of the list at a path."""
        node = self._find(path)
        assert isinstance(node.value, list)
        return self._add_part(node, len(node.parts), value, len(path) + 1)

    def without(self, path: Path) -> str:
        """Return the text without the member or element at a path, which must be there."""
        holder = self._find(path[:-1])
        at = next(i for i, part in reversed([*enumerate(holder.parts)]) if part.key == path[-1])
        part = holder.parts[at]
        begin, end = part.begin, part.node.end if part.comma is None else part.comma + 1
        before = self.text[:begin].rstrip(" \t")
        if before.endswith("\n"):
            begin = len(before.removesuffix("\n").removesuffix("\r"))
        if part.comma is None and at:
            # Without the comma that leads to it.
            comma = holder.parts[at - 1].comma
            assert comma is not None
            return self.text[:comma] + self.text[comma + 1 : begin] + self.text[end:]
        text = self.text[:begin] + self.text[end:]
        close = holder.end - (end - begin)
        inside = text[holder.begin + 1 : close - 1]
        if not inside.strip():
            return text[: holder.begin + 1] + text[close - 1 :]
        return text

    def _find(self, path: Path) -> _Node:
        node = self._root
        for step in path:
            part = _part(node, step)
            assert part is not None
            node = part.node
        return node

    def _add_part(self, holder: _Node, key: str | int, value: Any, depth: int) -> str:
        """Return the text with a part added at the end of an object or list."""
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
        new = f"\n{self._indent * depth}{name}{self._dump(value, depth)}"
        text, close = self.text, holder.end - 1
        if not holder.parts:
            inside = text[holder.begin + 1 : close]
            if not inside.strip():
                inside = ""
            tail = "\n" + self._indent * (depth - 1)
            return text[: holder.begin + 1] + inside.rstrip() + new + tail + text[close:]
        last = holder.parts[-1]
        if last.comma is None:
            rest, comma = text[last.node.end :], ""
            head = text[: last.node.end] + ","
        else:
            # Whoever ends lists with commas goes on to do so.
            rest, comma = text[last.comma + 1 :], ","
            head = text[: last.comma + 1]
        # A comment on the line of the last part belongs to that part.
        kept = _skip(rest, 0, _SPACE_IN_LINE)
        line_end = kept if rest[kept : kept + 1] == "\n" else 0
        line_end -= len(rest[:line_end]) - len(rest[:line_end].rstrip("\r"))
        return head + rest[:line_end] + new + comma + rest[line_end:]

    def _dump(self, value: Any, depth: int) -> str:
        lines = json.dumps(value, indent=self._indent, ensure_ascii=False).splitlines()
        return ("\n" + self._indent * depth).join(lines)


def _part(node: _Node, key: str | int) -> _Part | None:
    # Of a key that occurs twice a parser takes the last.
    found = [part for part in node.parts if part.key == key]
    return found[-1] if found else None


def _parse(text: str) -> _Node:
    node = _value(text, _skip(text, 0), 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise _fault(text, end, "there is something after the end")
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    first = text[at : at + 1]
    if depth > _DEPTH_MAX:
        raise _fault(text, at, "it is nested too deeply")
    if first in {"{", "["}:
        return _container(text, at, depth, is_object=first == "{")
    if first == '"':
        value, end = _string(text, at)
        return _Node(at, end, value)
    found = _SCALAR.match(text, at)
    if found is None:
        raise _fault(text, at, "a value was expected")
    return _Node(at, found.end(), json.loads(found[0]))


def _container(text: str, begin: int, depth: int, *, is_object: bool) -> _Node:
    close = "}" if is_object else "]"
    parts: list[_Part] = []
    at = _skip(text, begin + 1)
    while text[at : at + 1] != close:
        if parts and parts[-1].comma is None:
            raise _fault(text, at, f"a comma or {close} was expected")
        key: str | int = len(parts)
        key_begin = at
        if is_object:
            key, at = _key(text, at)
        node = _value(text, at, depth + 1)
        at = _skip(text, node.end)
        comma = at if text[at : at + 1] == "," else None
        parts.append(_Part(key, key_begin, node, comma))
        if comma is not None:
            at = _skip(text, at + 1)
    value: Any = (
        {part.key: part.node.value for part in parts}
        if is_object
        else [part.node.value for part in parts]
    )
    return _Node(begin, at + 1, value, tuple(parts))


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise _fault(text, at, "a name in quotes was expected")
    key, at = _string(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise _fault(text, at, "a colon was expected")
    return key, _skip(text, at + 1)


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = scanstring(text, at + 1)
    except json.JSONDecodeError as error:
        raise _fault(text, at, error.msg) from error
    return value, end


def _skip(text: str, at: int, space: re.Pattern[str] = _SPACE) -> int:
    """Return where the next thing stands that is neither space nor a comment."""
    while True:
        found = space.match(text, at)
        assert found is not None
        at = found.end()
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at) and (end := text.find("*/", at + 2)) >= 0:
            at = end + 2
        else:
            return at


def _fault(text: str, at: int, words: str) -> InvalidInput:
    return InvalidInput(f"It is not JSON (line {text.count(chr(10), 0, at) + 1}: {words}).")
