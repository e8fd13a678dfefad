"""Stored values as people read them: text, a tree, Markdown, and the difference of two.

Whatever is returned here as markup was built from escaped parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = [
    "brief",
    "duration_text",
    "field_changes",
    "json_text",
    "json_tree",
    "looks_like_markdown",
    "mark_matches",
    "markdown",
    "read_value",
    "size_text",
    "text_changes",
]

_TREE_NODES_MAX: Final = 2_000
_OPEN_DEPTH: Final = 2
_BRIEF_CHARS: Final = 160
_CHANGES_MAX: Final = 500
# Comparing words takes time that grows with the square of their number.
_COMPARED_WORDS_MAX: Final = 2_000
_MARKDOWN_SIGNS: Final = ("# ", "## ", "- ", "* ", "1. ", "```", "> ")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def json_text(value: Any) -> str:
    """Return a value as JSON, indented."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def read_value(text: str, *, as_json: bool) -> Any:
    """Return the value that a person typed: text as it is, or what JSON says.

    Raises:
        ValueError: It is no JSON.
    """
    # Browsers send lines as CRLF.
    plain = text.replace("\r\n", "\n")
    return orjson.loads(plain) if as_json else plain


def brief(value: Any, chars: int = _BRIEF_CHARS) -> str:
    """Return the beginning of a value in one line."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    line = " ".join(text[: 4 * chars].split())
    return line if len(line) <= chars else f"{line[:chars].rstrip()}…"


def size_text(count: int | None) -> str:
    """Return a number of bytes as people say it."""
    if count is None:
        return "–"
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":  # noqa: PLR2004 -- the step of the units
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return ""


def duration_text(seconds: float) -> str:
    """Return how long ago something was, in one unit."""
    if seconds < 1:
        return "now"
    for length, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def json_tree(value: Any) -> Markup:
    """Return a value as a tree whose branches open and close."""
    left = [_TREE_NODES_MAX]
    return _node(value, left, 0)


def _node(value: Any, left: list[int], depth: int) -> Markup:
    left[0] -= 1
    if left[0] < 0:
        return Markup('<span class="quiet">…</span>')
    if isinstance(value, dict) and value:
        return _branch([(str(name), each) for name, each in value.items()], "{}", left, depth)
    if isinstance(value, list) and value:
        pairs = [(str(place), each) for place, each in enumerate(value)]
        return _branch(pairs, "[]", left, depth)
    kind = "text" if isinstance(value, str) else "atom"
    shown = value if isinstance(value, str) else orjson.dumps(value).decode()
    return Markup('<span class="json-{}">{}</span>').format(kind, shown)


def _branch(pairs: list[tuple[str, Any]], signs: str, left: list[int], depth: int) -> Markup:
    rows = Markup("").join(
        Markup('<li><span class="json-name">{}</span> {}</li>').format(
            name, _node(each, left, depth + 1)
        )
        for name, each in pairs
        if left[0] > 0
    )
    opened = Markup(" open") if depth < _OPEN_DEPTH else Markup("")
    return Markup(
        '<details class="json"{}><summary>{} <span class="quiet">{}</span> {}</summary>'
        "<ul>{}</ul></details>"
    ).format(opened, signs[0], len(pairs), signs[1], rows)


def looks_like_markdown(value: Any) -> bool:
    """Whether a text was probably written as Markdown."""
    if not isinstance(value, str):
        return False
    lines = value[:4000].splitlines()
    return sum(line.lstrip().startswith(_MARKDOWN_SIGNS) for line in lines) >= 2  # noqa: PLR2004


def markdown(text: str) -> Markup:
    """Return Markdown as markup; HTML in it stays text, links lead to the web or nowhere."""
    return Markup(_markdown().render(text))  # noqa: S704 -- made with HTML turned off


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # No images: their addresses would tell others who reads a memory, and when.
    made = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    made.validateLink = _is_web_address  # type: ignore[method-assign, assignment]
    return made


def _is_web_address(address: str) -> bool:
    return address.lower().startswith(("https://", "http://", "mailto:"))


def mark_matches(snippet: str) -> Markup:
    """Return a snippet of the search, in which `**` surrounds what matches."""
    parts = snippet.split("**")
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )


class FieldChange(NamedTuple):
    """A place in a document that two versions have differently; None where one lacks it."""

    path: str
    before: str | None
    after: str | None


def field_changes(before: Any, after: Any) -> list[FieldChange]:
    """Return which fields differ between two values, each as text."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    paths = list(dict.fromkeys([*old, *new]))
    changes = [
        FieldChange(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    ]
    return changes[:_CHANGES_MAX]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for place, each in enumerate(value):
            yield from _leaves(each, f"{path}[{place}]")
    elif value is not None or path:
        yield path, value if isinstance(value, str) else orjson.dumps(value).decode()


def text_changes(before: str | None, after: str | None) -> Markup:
    """Return two texts as one, with what was taken out and what was put in."""
    if before is None or after is None:
        sign, text = ("ins", after) if before is None else ("del", before)
        return _run(sign, text or "")
    old, new = _words(before), _words(after)
    if len(old) + len(new) > _COMPARED_WORDS_MAX:
        return _run("del", before) + Markup("<br>") + _run("ins", after)
    parts = []
    for sign, start, end, begin, until in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if sign == "equal":
            parts.append(escape("".join(old[start:end])))
            continue
        parts += [
            _run("del", "".join(old[start:end])),
            _run("ins", "".join(new[begin:until])),
        ]
    return Markup("").join(parts)


def _run(sign: str, text: str) -> Markup:
    if not text:
        return Markup("")
    return Markup("<{}>{}</{}>").format(Markup(sign), text, Markup(sign))  # noqa: S704 -- "ins" or "del"


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the white space after it."""
    found: list[str] = []
    for letter in text:
        if found and (letter.isspace() or not found[-1][-1].isspace()):
            found[-1] += letter
        else:
            found.append(letter)
    return found
