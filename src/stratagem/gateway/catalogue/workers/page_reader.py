"""Reads a web page: an order as JSON and the page in, its text and where it links to as JSON out.

On a page made for that, finding the main text takes time that grows with the square of its size.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final, NoReturn
from urllib.parse import urljoin, urlsplit

__all__ = ["read_page"]

_BLANKS: Final = re.compile(r"\s+")
_LINK_CHARS: Final = 200
_FIELD_CHARS: Final = 1_000


def read_page(body: bytes, order: dict[str, Any]) -> dict[str, Any] | None:
    """Return the text of a page and what it says of itself; None where nothing can be read.

    The order has its `url`, the `format` of the text, and how many `links` are wanted.
    """
    from lxml import etree
    from trafilatura import bare_extraction, extract, load_html

    url = order["url"]
    try:
        tree = load_html(body)
    except (ValueError, etree.LxmlError):
        tree = None
    if tree is None:
        return None
    links = _links(tree, url, order["links"]) if order["links"] else []
    text = extract(
        tree,
        url=url,
        output_format="markdown" if order["format"] == "markdown" else "txt",
        include_comments=False,
        include_tables=True,
        include_links=order["format"] == "markdown",
        favor_recall=True,
    )
    document: Any = bare_extraction(tree, url=url, with_metadata=True, include_comments=False)
    said = document.as_dict() if document is not None else {}
    more = {
        "author": said.get("author"),
        "published": said.get("date"),
        "site": said.get("sitename") or said.get("hostname"),
        "description": said.get("description"),
        "language": said.get("language") or tree.get("lang"),
    }
    page = {"content": text or _all_text(tree), "title": said.get("title") or ""}
    page |= {name: str(value)[:_FIELD_CHARS] for name, value in more.items() if value}
    return {**page, "links": links} if order["links"] else page


def _all_text(tree: Any) -> str:
    """Return every text of a page in which no main part was found."""
    for node in tree.xpath("//script|//style|//noscript|//template"):
        node.drop_tree() if hasattr(node, "drop_tree") else node.getparent().remove(node)
    return _BLANKS.sub(" ", " ".join(tree.itertext())).strip()


def _links(tree: Any, base: str, most: int) -> list[dict[str, str]]:
    """Return where a page links to: each address once, in order, with the words on it."""
    found: dict[str, str] = {}
    for node in tree.iter("a"):
        target = (node.get("href") or "").strip()
        if not target or target.startswith("#"):
            continue
        try:
            url = urljoin(base, target)
            scheme = urlsplit(url).scheme
        except ValueError:
            continue
        if scheme in {"http", "https"} and url not in found:
            found[url] = _first_words(node)
        if len(found) >= most:
            break
    return [{"url": url, "text": text} for url, text in found.items()]


def _first_words(node: Any) -> str:
    """Return the first words of an element; all the rest of a page may be in it."""
    words, chars = [], 0
    for text in node.itertext():
        words.append(text[: 4 * _LINK_CHARS])
        chars += len(words[-1].strip())
        if chars > _LINK_CHARS:
            break
    return _BLANKS.sub(" ", " ".join(words)).strip()[:_LINK_CHARS]


def _main() -> NoReturn:
    order = json.loads(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    try:
        answer: dict[str, Any] = {"result": read_page(body, order)}
    except MemoryError:
        answer = {"failed": "The page takes too much memory."}
    sys.stdout.write(json.dumps(answer))
    sys.exit(0)


if __name__ == "__main__":
    _main()
