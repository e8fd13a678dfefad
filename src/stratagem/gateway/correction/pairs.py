"""Arguments as names and values without braces: lines, `name=value`, flags, YAML.

The names decide. Where every name is a parameter of the tool, in whatever style, and nothing is
left over, the text says what it says. Where a name is none, or a value has another name in it, or
may be no value at all, what was read is only offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.correction.json_text import Malformed
from stratagem.gateway.correction.words import normal

__all__ = ["Pairs", "read"]

_CHARS_MAX: Final = 10_000
_PAIR: Final = re.compile(r"\s*+(?:[-*•]\s++)?([A-Za-z_][\w .-]*+)\s*+[:=](.*+)", re.DOTALL)
_NAME: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+[:=]")
_SPACED: Final = re.compile(r"[\w.-]+=\S*[^\s,;&](?:\s+[\w.-]+=\S*[^\s,;&])*")
_FLAG: Final = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
# Anchors, tags and comments: what YAML makes of them is not what a model meant.
_YAML_MARKS: Final = re.compile(r"(?:^|[\s:-])[&*!%@`|>]|\s#|^#", re.MULTILINE)
_NOTHING: Final = frozenset({"", "~", "null", "none", "nil", "undefined", "n/a"})
_QUOTES: Final = "\"'`"
_ODD_STARTS: Final = frozenset("\"'`[{(&*!|>@%")


class Pairs(NamedTuple):
    """Names and values, and whether the text can be read in no other way."""

    values: dict[str, Any]
    certain: bool


def read(text: str, parameters: frozenset[str]) -> Pairs | None:
    """Return the names and values that a text spells; `parameters` are names in normal style."""
    if len(text) > _CHARS_MAX:
        return None
    stripped = text.strip()
    found = [each for each in _readings(stripped, parameters) if each.values]
    certain = [each for each in found if each.certain]
    return next(iter(certain or found), None)


def _readings(text: str, parameters: frozenset[str]) -> Iterator[Pairs]:
    if text.startswith("-") and not text.startswith(("---", "- ")):
        flags = _flags(text, parameters)
        if flags is not None:
            yield Pairs(flags, _certain(flags, parameters))
        return
    pieces = [text.split(separator) for separator in ("&", "\n", ";", ",")]
    if _SPACED.fullmatch(text):
        pieces.insert(0, text.split())
    for parts in sorted(pieces, key=len, reverse=True):
        values = _pairs_of(parts)
        if values is not None:
            encoded = "&" in text and any(mark in text for mark in "%+")
            yield Pairs(values, _certain(values, parameters) and not encoded)
    nested = _outline(text)
    if nested is not None:
        yield Pairs(nested, _certain(nested, parameters) and not _YAML_MARKS.search(text))


def _pairs_of(parts: list[str]) -> dict[str, Any] | None:
    """Return the pairs that all parts are, none of them twice."""
    pairs = [_PAIR.fullmatch(part) for part in parts if part.strip()]
    found = {pair[1].rstrip(): _strip_quotes(pair[2].strip()) for pair in pairs if pair}
    return found if pairs and len(found) == len(pairs) else None


def _strip_quotes(text: str) -> str:
    quoted = len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]
    return text[1:-1] if quoted else text


def _flags(text: str, parameters: frozenset[str]) -> dict[str, Any] | None:
    """Return the values of flags such as `--days 3 --detailed`."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    found: dict[str, Any] = {}
    last: str | None = None
    for word in words:
        flag = _FLAG.fullmatch(word)
        if flag and normal(flag[1]) in parameters:
            if flag[1] in found:
                return None
            found[flag[1]] = True if flag[2] is None else flag[2]
            last = flag[1] if flag[2] is None else None
        elif last is None or word.startswith("--"):
            return None
        else:
            found[last], last = word, None
    return found


def _certain(values: dict[str, Any], parameters: frozenset[str]) -> bool:
    styles = [normal(name) for name in values]
    return (
        len(set(styles)) == len(styles)
        and set(styles) <= parameters
        and not any(_doubtful(value, parameters) for value in values.values())
    )


def _doubtful(value: Any, parameters: frozenset[str]) -> bool:
    """Tell whether a value may be none, or has a name and a value in it."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return any(_doubtful(each, parameters) for each in inner)
    if not isinstance(value, str):
        return False
    names = _NAME.findall(value)
    if re.search(r"\w: ", value):
        return True
    odd = value.casefold() in _NOTHING or value[:1] in _ODD_STARTS or value[-1:] in _QUOTES
    return (
        odd or " #" in value or "\n" in value or any(normal(name) in parameters for name in names)
    )


def _outline(text: str) -> dict[str, Any] | None:
    """Return what YAML with inner objects and lists spells, every scalar as text."""
    if "\n" not in text:
        return None
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        value = _plain(node) if isinstance(node, MappingNode) else None
    except (yaml.YAMLError, Malformed, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _plain(node: Node) -> Any:
    if isinstance(node, ScalarNode):
        if node.start_mark.line != node.end_mark.line and node.style not in {"|", ">"}:
            raise Malformed("one value on two lines")
        return node.value
    if isinstance(node, SequenceNode):
        return [_plain(item) for item in node.value]
    found: dict[str, Any] = {}
    for key, item in node.value:
        if not isinstance(key, ScalarNode) or key.value in found:
            raise Malformed("an invalid name, or one given twice")
        found[key.value] = _plain(item)
    return found
