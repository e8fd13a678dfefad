"""Stored values as people read them: text, a tree, Markdown, and the difference of two.

Whatever is returned here as markup was built from escaped parts.

Parsing Markdown and comparing words take time that grows faster than the text, and values may be
any stored text. So a page has a budget of steps for both, and a value that would exceed it is shown
as plain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson
from markupsafe import Markup, escape

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import paths, values
from stratagem.engine.paths import Steps

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = [
    "FieldChange",
    "begin_page",
    "brief",
    "duration_text",
    "field_changes",
    "json_text",
    "json_tree",
    "looks_like_markdown",
    "mark_matches",
    "markdown",
    "read_value",
    "record_changes",
    "size_text",
    "text_changes",
]

_TREE_NODES_MAX: Final = 2_000
_OPEN_DEPTH: Final = 2
_BRIEF_CHARS: Final = 160
_CHANGES_MAX: Final = 500
# What a letter, a sign that may mean something and an open bracket cost to parse, in steps.
_LETTER_STEPS: Final = 10
_SIGN_STEPS: Final = 300
_BRACKET_STEPS: Final = 10
_SIGNS: Final = "[]()*_`<>&!\\|~#"
_WORD: Final = re.compile(r"\S+\s*|\s+")
_steps_left: ContextVar[int] = ContextVar("steps_left", default=limits.CONSOLE_PAGE_STEPS)
_MARKDOWN_SIGNS: Final = ("# ", "## ", "- ", "* ", "1. ", "```", "> ")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def begin_page() -> None:
    """Give the page that is rendered now, in this context, all of its steps."""
    _steps_left.set(limits.CONSOLE_PAGE_STEPS)


def _take_steps(count: int) -> bool:
    """Take steps from those that the page has left; False where it has not as many."""
    left = _steps_left.get()
    if count > left:
        return False
    _steps_left.set(left - count)
    return True


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
    return values.read(plain.encode("utf-8", "surrogatepass")) if as_json else plain


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
    if not _take_steps(_parsing_steps(text)):
        return Markup('<div class="words">{}</div>').format(text)
    return Markup(_markdown().render(text))  # noqa: S704 -- made with HTML turned off


def _parsing_steps(text: str) -> int:
    """Return how many steps it takes at most to parse a text as Markdown."""
    signs = sum(text.count(sign) for sign in _SIGNS)
    # An open bracket is looked for the end of through all signs that follow.
    brackets = text.count("[") * signs
    return _LETTER_STEPS * len(text) + _SIGN_STEPS * signs + _BRACKET_STEPS * brackets


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
    side: str | None = None


def field_changes(
    before: Any, after: Any, changed_by: Mapping[str, str] | None = None
) -> list[FieldChange]:
    """Return which fields differ between two values, each as text, and who changed it."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    places = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    return [
        FieldChange(_path_text(place), old.get(place), new.get(place), _side(place, changed_by))
        for place in places[:_CHANGES_MAX]
    ]


def record_changes(change: Mapping[str, Any]) -> list[FieldChange]:
    """Return what changed in a record, and what changed beside the value of an entry."""
    changed_by = change.get("changed_by")
    changes = field_changes(change.get("before"), change.get("after"), changed_by)
    beside = []
    if "tags_before" in change:
        tags = (", ".join(change[side]) or "none" for side in ("tags_before", "tags_after"))
        beside.append(FieldChange("tags", *tags))
    if "expires" in change.get("differs", ()):
        ends = (change.get(side, "never") for side in ("expires_before", "expires_after"))
        beside.append(FieldChange("expires", *ends))
    if changed_by:
        beside = [each._replace(side=changed_by[each.path]) for each in beside]
    return changes + beside


def _leaves(value: Any, place: Steps = ()) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, (*place, str(name)))
    elif isinstance(value, list) and value:
        for position, each in enumerate(value):
            yield from _leaves(each, (*place, position))
    elif value is not None or place:
        yield place, value if isinstance(value, str) else orjson.dumps(value).decode()


def _path_text(place: Steps) -> str:
    steps = (f".{each}" if isinstance(each, str) else f"[{each}]" for each in place)
    return "".join(steps).removeprefix(".")


def _side(place: Steps, changed_by: Mapping[str, str] | None) -> str | None:
    """Return who changed a place, where both sides changed something."""
    outer = paths.enclosing_place(changed_by, paths.render(place)) if changed_by else None
    return changed_by[outer] if changed_by and outer is not None else None


def text_changes(before: str | None, after: str | None) -> Markup:
    """Return two texts as one, with what was taken out and what was put in."""
    if before is None or after is None:
        sign, text = ("ins", after) if before is None else ("del", before)
        return _run(sign, text or "")
    old, new = _WORD.findall(before), _WORD.findall(after)
    begin, end = _common_ends(old, new)
    middle = old[begin : len(old) - end], new[begin : len(new) - end]
    changed = _changed_words(*middle)
    return escape("".join(old[:begin])) + changed + escape("".join(old[len(old) - end :]))


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many words two texts have in common at their beginning, and at their end."""
    shorter = min(len(old), len(new))
    begin = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    left = shorter - begin
    end = next((at for at in range(left) if old[-1 - at] != new[-1 - at]), left)
    return begin, end


def _changed_words(old: list[str], new: list[str]) -> Markup:
    if not _take_steps(_comparing_steps(old, new)):
        return _run("del", "".join(old)) + Markup("<br>") + _run("ins", "".join(new))
    parts = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for sign, start, end, begin, until in matcher.get_opcodes():
        if sign == "equal":
            parts.append(escape("".join(old[start:end])))
            continue
        parts += [
            _run("del", "".join(old[start:end])),
            _run("ins", "".join(new[begin:until])),
        ]
    return Markup("").join(parts)


def _comparing_steps(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many steps it takes at most to compare two texts: the square, times each match."""
    counts = Counter(new)
    pairs = sum(counts[word] for word in old)
    return (len(old) + len(new) + pairs) * (min(len(old), len(new)) + 1)


def _run(sign: str, text: str) -> Markup:
    if not text:
        return Markup("")
    return Markup("<{}>{}</{}>").format(Markup(sign), text, Markup(sign))  # noqa: S704 -- "ins" or "del"
