"""Texts that are put before a model: marked, bounded, and recognised when they come back.

The mark says that a text comes from the memory and is data. Text inside the mark that comes back,
in a prompt that quotes it or in a summary, is never captured again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from stratagem.memory.messages import words_of
from stratagem.storage.sqlite.plain_hash import sha256

__all__ = ["cut", "mark", "pack_lines", "plain_words", "strip_marked", "text_key", "tokens_in"]

_BEGIN: Final = "<stratagem-memory>"
_END: Final = "</stratagem-memory>"
# The bracket of whatever a reader may take for one of them.
_TAG: Final = re.compile(r"(?i)<(?=\s*+/?\s*+stratagem-memory)")
_CHARS_PER_TOKEN: Final = 4


def mark(text: str) -> str:
    """Return a text as it is injected. It cannot end the mark by itself, whatever it says."""
    return f"{_BEGIN}\n{_TAG.sub('[', text)}\n{_END}"


def strip_marked(text: str) -> str:
    """Return a text without what was injected into it; an end that is missing is the text's own."""
    kept = []
    while True:
        before, found, rest = text.partition(_BEGIN)
        kept.append(before)
        if not found:
            return "".join(kept).strip()
        _, found, text = rest.partition(_END)
        if not found:
            return "".join(kept).strip()


def text_key(text: str) -> str:
    """Return the key by which an injected text is recognised, whoever stored it."""
    data = " ".join(text.split()).encode("utf-8", "surrogatepass")
    key: str = sha256(data).hexdigest()[:16]
    return key


def plain_words(value: Any) -> str:
    """Return the words of a value, without the names of its fields where it is a message."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if said := words_of(value):
            return said
        return "; ".join(f"{name}: {plain_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(plain_words, value))
    return str(value)


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its letters, each of another script."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // _CHARS_PER_TOKEN) + len(text) - plain


def cut(text: str, chars_max: int) -> str:
    """Return a text, or its beginning where it is too long."""
    return text if len(text) <= chars_max else f"{text[: max(chars_max - 1, 0)].rstrip()}…"


def pack_lines(head: str, lines: Sequence[str], *, tokens_max: int) -> tuple[str, int]:
    """Return the lines that there is room for, and how many those are; the first is cut to fit."""
    shown: list[str] = []
    for line in lines:
        text = mark("\n".join([head, *shown, line]))
        if tokens_in(text) > tokens_max:
            break
        shown.append(line)
    if lines and not shown:
        line = lines[0]
        while line and tokens_in(mark(f"{head}\n{line}…")) > tokens_max:
            line = line[: len(line) * 9 // 10].rstrip()
        shown = [f"{line}…"] if line else []
    return (mark("\n".join([head, *shown])), len(shown)) if shown else ("", 0)
