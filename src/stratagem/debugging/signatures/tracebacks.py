"""Python's tracebacks: oldest frame first, the message below, a cause before what it caused.

Indentation shows where a traceback ends: frames are indented by two, the source by four, the
message not at all. Where it was lost, the message is told by its shape. A part of an exception
group stands below the group, and comes out like a cause of it. pytest has two styles of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from stratagem.debugging.signatures import frames, heads
from stratagem.debugging.signatures.error_chain import (
    ErrorChain,
    ParsedError,
    indent,
    next_filled_line,
)
from stratagem.debugging.signatures.frames import Frame
from stratagem.debugging.signatures.lines import GROUP_PART

__all__ = ["parse_test_failure", "parse_traceback"]

# The longest function that pytest shows around a failure.
_TEST_LINES_MAX: Final = 400

_HEADER: Final = re.compile(r"Traceback \(most recent call last\):?\s*$")
_LINKED: Final = re.compile(
    r"^\s*(?:The above exception was the direct cause|During handling of the above exception)"
)
_REPEATED: Final = re.compile(r"^\s*(?:\[Previous line repeated|\[?\.\.\.|-+> ?\d+ )")
_TEST_LINE: Final = re.compile(r"^E {3,}\S")
_TEST_PLACE: Final = re.compile(
    r"^(?P<file>[\w./\\-]{1,300}\.py):\d+:(?: in (?P<name>\S+)| (?P<type>[\w.]+))?\s*$"
)
_TEST_HEADER: Final = re.compile(r"^_{3,} .+ _{3,}$")
_FUNCTION: Final = re.compile(r"^[> ] {2,}(?:async )?def (?P<name>\w+)\(")


def parse_traceback(texts: Sequence[str], at: int) -> ErrorChain | None:
    """Read the traceback that begins at a line, with those it is linked with."""
    if not (_HEADER.search(texts[at]) or frames.python_frame(texts[at])):
        return None
    chain: list[ParsedError] = []
    parts: list[ParsedError] = []
    begin, into = at, chain
    while True:
        error, at = _parse_traceback(texts, at)
        into.append(error)
        link = next_filled_line(texts, at)
        if link is None:
            break
        if texts[link] == GROUP_PART:
            into = parts
        elif not _LINKED.match(texts[link]):
            break
        following = next_filled_line(texts, link + 1)
        if following is None:
            break
        at = following
    return ErrorChain([*reversed(chain), *parts], begin, at)


def parse_test_failure(texts: Sequence[str], at: int) -> ErrorChain | None:
    """Read a failure as pytest shows it, whose message begins at a line: `E` before it."""
    if not _TEST_LINE.match(texts[at]):
        return None
    end = _past_test_lines(texts, at)
    head = heads.rewrite(texts[at].strip())
    place = next_filled_line(texts, end)
    if place is not None and (match := _TEST_PLACE.match(texts[place])):
        end = place + 1
        if match["type"] and not heads.is_message(head):
            head = f"{match['type']}: {head}"
    begin = max(at - _TEST_LINES_MAX, 0)
    headers = [line for line in range(begin, at) if _TEST_HEADER.match(texts[line])]
    begin = headers[-1] if headers else begin
    found = _test_frames(texts[begin:end])
    return ErrorChain([ParsedError(head, found[::-1])], begin if found else at, end)


def _parse_traceback(texts: Sequence[str], at: int) -> tuple[ParsedError, int]:
    """Read one traceback, from its header or first frame to its message."""
    found: list[Frame] = []
    base = None
    if _HEADER.search(texts[at]):
        base, at = indent(texts[at]), at + 1
    flush, source = False, False
    while at < len(texts):
        frame = frames.python_frame(texts[at])
        if frame is not None:
            found.append(frame)
            base = max(indent(texts[at]) - 2, 0) if base is None else base
            flush = indent(texts[at]) <= base
        elif not _inside(texts[at], base or 0, flush=flush, source=source):
            break
        source = frame is not None
        at += 1
    head, at = _message(texts, at)
    return ParsedError(head, found[::-1]), at


def _inside(text: str, base: int, *, flush: bool, source: bool) -> bool:
    """Say whether a line without a frame belongs to the traceback above it."""
    if not text or _REPEATED.match(text) or indent(text) > base:
        return True
    return flush and source and not heads.is_message(text)


def _message(texts: Sequence[str], at: int) -> tuple[str, int]:
    """Read the message below a traceback; nothing where the text ends before it."""
    if at >= len(texts) or texts[at] == GROUP_PART or _LINKED.match(texts[at]):
        return "", at
    if not texts[at - 1] and not heads.TYPE.match(texts[at]):
        return "", at
    head, end = heads.compose(texts, at, len(texts))
    return head, _past_test_lines(texts, at) if _TEST_LINE.match(texts[at]) else end


def _past_test_lines(texts: Sequence[str], at: int) -> int:
    while at < len(texts) and _TEST_LINE.match(texts[at]):
        at += 1
    return at


def _test_frames(texts: Sequence[str]) -> list[Frame]:
    """Return the frames of a failed test, oldest first, in the short and the long style."""
    found, name = [], "<module>"
    for text in texts:
        if match := _FUNCTION.match(text):
            name = match["name"]
        elif match := _TEST_PLACE.match(text):
            found.append(frames.python_function_frame(match["file"], match["name"] or name))
    return found
