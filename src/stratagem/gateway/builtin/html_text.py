"""HTML in and out: a forgiving reader into a small tree, and what is made of that tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from html import escape, unescape
from html.parser import HTMLParser
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.builtin.tables import is_tabular, rows_of, scalar_text

__all__ = [
    "Element",
    "document_blocks",
    "from_value",
    "markdown_of",
    "markdown_table",
    "parse",
    "plain_text",
    "tables",
    "to_markdown",
]

_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_DROPPED: Final = frozenset({"script", "style", "template", "noscript", "head", "title", "svg"})
# Opening one ends an open one of these.
_ENDS: Final[dict[str, frozenset[str]]] = {
    "p": frozenset({"p"}),
    "li": frozenset({"li", "p"}),
    "tr": frozenset({"tr", "td", "th"}),
    "td": frozenset({"td", "th"}),
    "th": frozenset({"td", "th"}),
    "option": frozenset({"option"}),
}
# An open element beyond one of these is not ended from inside.
_WALLS: Final = frozenset({"table", "ul", "ol", "div", "section", "blockquote"})
_BLOCKS: Final = frozenset(
    {"p", "ul", "ol", "li", "blockquote", "pre", "hr", "table", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"div", "section", "article", "main", "header", "footer", "nav", "aside", "body", "html"}
    | {"dl", "dt", "dd", "figure", "form", "details", "summary"}
)
# Deeper ones are taken as if they were not marked at all.
_DEPTH_MAX: Final = 60
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~])")
_SAFE_LINK: Final = re.compile(r"(?:https?:|mailto:|[^:]*$|[^:]*[/?#])", re.IGNORECASE)
_MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}


@dataclass
class Element:
    """An element with what is in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def find(self, *tags: str) -> Iterator[Element]:
        """Yield the elements of these names below, the outermost of each nest."""
        for child in self.children:
            if isinstance(child, Element):
                if child.tag in tags:
                    yield child
                else:
                    yield from child.find(*tags)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_before(tag)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID and len(self._open) < _DEPTH_MAX:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].tag == tag:
                del self._open[index:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def _end_before(self, tag: str) -> None:
        ended = _ENDS.get(tag, frozenset())
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].tag in ended:
                del self._open[index:]
                self._end_before(tag)
                return
            if self._open[index].tag in _WALLS:
                return


def parse(text: str) -> Element:
    """Read HTML, as broken as it may be.

    Raises:
        ValueError: It cannot even be taken apart.
    """
    parser = _Parser()
    try:
        parser.feed(text)
    except AssertionError as error:
        # How the parser speaks of a declaration that it does not know.
        raise ValueError(str(error)) from error
    # What begins and never ends is text. The parser's own `close` would look for an end from
    # each `<` anew, in a time that grows with the square of the text.
    if parser.rawdata:
        parser.handle_data(unescape(parser.rawdata))
    return parser.root


def tables(root: Element) -> list[list[list[str]]]:
    """Return the cells of each table, as texts."""
    return [
        [[_plain(cell) for cell in row.find("td", "th")] for row in table.find("tr")]
        for table in root.find("table")
    ]


def from_value(value: Any) -> str:
    """Write a value as HTML: a table where it is one, else nested lists."""
    if is_tabular(value):
        header, rows = rows_of(value)
        lines = ["<table>"]
        if header is not None:
            lines += ["<thead>", _row(header, "th"), "</thead>"]
        lines += ["<tbody>", *(_row(row, "td") for row in rows), "</tbody>", "</table>"]
        return "\n".join(lines) + "\n"
    return f"{_nested_list(value)}\n"


def markdown_of(value: Any) -> str:
    """Write a value as Markdown: a table where it is one, else nested lists."""
    if is_tabular(value):
        header, rows = rows_of(value)
        # A table of Markdown has a header, if only an empty one.
        first = header if header is not None else [""] * len(rows[0])
        cells = [[_inline(scalar_text(cell)).strip() for cell in row] for row in [first, *rows]]
        return f"{markdown_table(cells)}\n"
    return "\n".join(_bullets(value, 0)) + "\n"


def _bullets(value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if not isinstance(value, dict | list):
        yield f"{indent}{_inline(scalar_text(value))}"
        return
    pairs = value.items() if isinstance(value, dict) else ((None, child) for child in value)
    for name, child in pairs:
        label = "" if name is None else f"**{_inline(name)}**:"
        if isinstance(child, dict | list) and child:
            yield f"{indent}- {label}".rstrip()
            yield from _bullets(child, depth + 1)
        else:
            text = "" if isinstance(child, dict | list) else _inline(scalar_text(child))
            yield f"{indent}- {label} {text}".replace("-  ", "- ").rstrip()


def _row(cells: list[Any], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(scalar_text(cell))}</{tag}>' for cell in cells)}</tr>"


def _nested_list(value: Any) -> str:
    if isinstance(value, dict):
        entries = "".join(
            f"<dt>{escape(name)}</dt><dd>{_nested_list(child)}</dd>"
            for name, child in value.items()
        )
        return f"<dl>{entries}</dl>"
    if isinstance(value, list):
        return f"<ul>{''.join(f'<li>{_nested_list(child)}</li>' for child in value)}</ul>"
    return escape(scalar_text(value))


def _plain(node: Element | str) -> str:
    if isinstance(node, str):
        return node
    if node.tag in _DROPPED:
        return ""
    return " ".join("".join(_plain(child) for child in node.children).split())


def to_markdown(root: Element) -> str:
    """Write a tree as Markdown; what Markdown has no word for keeps its text."""
    return "\n\n".join(block for block in _blocks(root) if block.strip()) + "\n"


def document_blocks(node: Element) -> list[dict[str, Any]]:
    """Return a tree as the blocks of a document: headings, texts, lists, tables and code."""
    return [block for block in _plain_blocks(node) if any(block.values())]


def plain_text(root: Element) -> str:
    """Return a tree as a reader would read it aloud: no marks, a table by its rows."""
    pieces: list[str] = []
    for block in document_blocks(root):
        rows = [" | ".join(row) for row in block.get("rows", ())]
        items = [f"- {item}" for item in block.get("items", ())]
        words = [block[key] for key in ("heading", "text", "code") if key in block]
        pieces.append("\n".join([*words, *items, *rows]))
    return "\n\n".join(pieces) + "\n"


def _plain_blocks(node: Element) -> Iterator[dict[str, Any]]:
    loose: list[str] = []
    for child in node.children:
        if isinstance(child, Element) and (child.tag in _BLOCKS or child.tag in _DROPPED):
            yield {"text": _join(loose)}
            loose = []
            yield from _plain_block(child)
        else:
            loose.append(_plain(child) if isinstance(child, Element) else child)
    yield {"text": _join(loose)}


def _plain_block(node: Element) -> Iterator[dict[str, Any]]:
    if node.tag in _DROPPED:
        return
    if node.tag[0] == "h" and node.tag[1:].isdecimal():
        yield {"heading": _plain(node), "level": int(node.tag[1])}
    elif node.tag == "pre":
        yield {"code": _raw(node).rstrip()}
    elif node.tag in {"ul", "ol"}:
        yield {"items": [_plain(item) for item in node.find("li")]}
    elif node.tag == "table":
        yield {"rows": [[_plain(cell) for cell in row.find("td", "th")] for row in node.find("tr")]}
    else:
        yield from _plain_blocks(node)


def _join(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())


def _blocks(node: Element) -> Iterator[str]:
    """Yield the blocks in an element; what lies loose between them is a paragraph."""
    loose: list[str] = []
    for child in node.children:
        if isinstance(child, Element) and (child.tag in _BLOCKS or child.tag in _DROPPED):
            yield _tidy("".join(loose))
            loose = []
            yield from _block(child)
        else:
            loose.append(_inline(child))
    yield _tidy("".join(loose))


def _block(node: Element) -> Iterator[str]:
    if node.tag in _DROPPED:
        return
    if node.tag[0] == "h" and node.tag[1:].isdecimal():
        yield f"{'#' * int(node.tag[1])} {_tidy(_inner(node))}"
    elif node.tag == "hr":
        yield "---"
    elif node.tag == "pre":
        yield _fenced_code(node)
    elif node.tag in {"ul", "ol"}:
        yield _list(node)
    elif node.tag == "blockquote":
        inner = "\n\n".join(block for block in _blocks(node) if block.strip())
        yield "\n".join(f"> {line}".rstrip() for line in inner.splitlines())
    elif node.tag == "table":
        rows = ([_cell(cell) for cell in row.find("td", "th")] for row in node.find("tr"))
        yield markdown_table(list(rows))
    else:
        yield from _blocks(node)


def markdown_table(rows: list[list[str]]) -> str:
    """Write rows as a table, the first of them as its header."""
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _cell(node: Element) -> str:
    return " ".join(_inner(node).split())


def _list(node: Element) -> str:
    lines: list[str] = []
    items = [child for child in node.children if isinstance(child, Element) and child.tag == "li"]
    for number, item in enumerate(items, start=1):
        mark = f"{number}. " if node.tag == "ol" else "- "
        inner = "\n".join(block for block in _blocks(item) if block.strip())
        first, *rest = inner.splitlines() or [""]
        lines.append(f"{mark}{first}".rstrip())
        lines += [f"{' ' * len(mark)}{line}" for line in rest]
    return "\n".join(lines)


def _fenced_code(node: Element) -> str:
    text = "".join(_raw(child) for child in node.children).strip("\n")
    code = next(node.find("code"), None)
    language = re.search(r"language-([\w+-]+)", (code or node).attributes.get("class", ""))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language[1] if language else ''}\n{text}\n{fence}"


def _raw(node: Element | str) -> str:
    return node if isinstance(node, str) else "".join(_raw(child) for child in node.children)


def _inner(node: Element) -> str:
    return "".join(_inline(child) for child in node.children)


def _inline(node: Element | str) -> str:
    if isinstance(node, str):
        return _SPECIAL.sub(r"\\\1", re.sub(r"\s+", " ", node))
    if node.tag in _DROPPED or node.tag == "br":
        return "" if node.tag in _DROPPED else "  \n"
    if node.tag == "img":
        return _link("!", node.attributes.get("alt", ""), node.attributes.get("src", ""))
    if node.tag == "code":
        text = _raw(node)
        fence = "``" if "`" in text else "`"
        return f"{fence}{text}{fence}" if text else ""
    inner = _inner(node)
    if node.tag == "a":
        return _link("", inner.strip(), node.attributes.get("href", ""))
    mark = _MARKS.get(node.tag, "")
    return f"{mark}{inner.strip()}{mark}" if mark and inner.strip() else inner


def _link(mark: str, text: str, target: str) -> str:
    target = "".join(target.split())
    if not target or not _SAFE_LINK.match(target):
        # A script behind a link is not carried over.
        return text
    return (
        f"{mark}[{text}](<{target}>)" if set("()<>") & set(target) else f"{mark}[{text}]({target})"
    )


def _tidy(text: str) -> str:
    """Return a paragraph without blanks around it or its lines, but for those that end a line."""
    lines = [line.strip() for line in text.strip().split("\n")]
    return "  \n".join(lines)
