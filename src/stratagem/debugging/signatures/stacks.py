"""Stacks in a text: which error they belong to, and what caused it.

All but Python write the message first, the newest frame below it, and the cause at the end.
Python does it the other way round (`tracebacks`). Both come out as one: the newest error first,
then its causes, each with its frames, newest first. Other threads and the history of a block of
memory are read over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stratagem.debugging.signatures import frames, heads, tracebacks
from stratagem.debugging.signatures.error_chain import (
    ErrorChain,
    ParsedError,
    indent,
    next_filled_line,
)
from stratagem.debugging.signatures.frames import Frame

__all__ = ["error_chains"]

# How far above its first frame the message of a stack may stand.
_HEAD_LINES_MAX: Final = 15
_REASON_LINES_MAX: Final = 6
_ASIDE_LINES_MAX: Final = 5
_CAUSES_MAX: Final = 8

# What every first line of a stack has; it spares most lines all other patterns.
_HINT: Final = re.compile(
    r"^\s*(?:File |at |#\d|\d+: |E {3}|Cell |from |in |Caused by:|Suppressed:|Wrapped by:"
    r"|\[cause\]:|\[errors\]:|--->|<ipython)|Traceback \(|@[a-z-]{2,20}://|\.py(?::\d| in )"
)
_SKIPPED_ABOVE: Final = re.compile(
    r"^\s*$|^goroutine \d+|^stack backtrace:|^\[?[Ss]tack ?trace:?|^\[signal |^note: |^Hint: "
    r"|^Require stack:|^- |^0x[0-9a-f]+ in |^\d+\t|^\(gdb\)|^(?:READ|WRITE) of size|^\s*[{}\]]"
    r"|^The signal is"
)
_ABORTING: Final = re.compile(r"^terminate called|Assertion .{1,300} failed")
_MORE: Final = re.compile(r"^\s*(?:\.\.\.(?: ?(?:\d+|additional) |$)|\[CIRCULAR|--- End of)")
_ASIDE: Final = re.compile(
    r"^(?:goroutine \d+ |freed by thread|previously allocated by|allocated by thread|Thread \d+ \("
    r"|Uninitialized value was|Thread T\d+ created)"
)
_GO_CALL: Final = re.compile(
    r"^(?:created by )?(?P<name>[A-Za-z_][^\s()]*(?:\(\*?[^()]{1,200}\)[^\s()]*)?)"
    r"(?:\((?:[^()]|\([^()]*\))*\))?(?: in goroutine \d+)?$"
)
_GO_PLACE: Final = re.compile(r"^\s+(?P<file>\S+\.(?:go|s)):\d+(?: \+0x[0-9a-f]+)?$")
_RUST_CALL: Final = re.compile(r"^\s*\d+:\s+(?:0x[0-9a-f]+ - )?(?P<name>[\w<{_]\S.*)$")
_RUST_PLACE: Final = re.compile(r"^\s+at (?P<file>\S+?)(?::\d+){1,2}$")
_RUST_STACK: Final = "stack backtrace:"
_NUMBERED: Final = re.compile(r"^\d+: ")
_PROPERTY_CODE: Final = re.compile(r"^\s*code: '?(?P<code>[\w-]+)'?,?$")


def error_chains(texts: Sequence[str]) -> Iterator[ErrorChain]:
    """Yield the errors of the stacks in a text, in the order of the text."""
    at = 0
    while at < len(texts):
        chain = _parse_chain(texts, at)
        at = at + 1 if chain is None else max(chain.end, at + 1)
        if chain is not None and (chain := chain.with_relevant_frames()).errors:
            yield chain


def _parse_chain(texts: Sequence[str], at: int) -> ErrorChain | None:
    if not (_HINT.search(texts[at]) or _is_go(texts, at)):
        return None
    chain = tracebacks.parse_traceback(texts, at) or tracebacks.parse_test_failure(texts, at)
    if chain is None and (_call(texts, at) or (at > 0 and heads.CHAIN.match(texts[at]))):
        return _stack(texts, at)
    return chain


def _stack(texts: Sequence[str], at: int) -> ErrorChain:
    above = _head_above(texts, at)
    begin = at if above is None else above
    head = "" if above is None else heads.compose(texts, above, at)[0]
    errors: list[ParsedError] = []
    while True:
        found, at = _run(texts, at)
        at, code = _properties(texts, at)
        errors.append(ParsedError(_with_code(head, code), found))
        at = _past_asides(texts, at)
        link = next_filled_line(texts, at)
        match = None if link is None else heads.CHAIN.match(texts[link])
        if link is None or match is None:
            return ErrorChain(errors, begin, at)
        head, at = match["head"].rstrip(" {"), link + 1
        if not head:
            causes, at = _causes_below(texts, at)
            errors.extend(causes)
        elif len(errors) < _CAUSES_MAX:
            head = heads.rewrite(head)


def _causes_below(texts: Sequence[str], at: int) -> tuple[list[ParsedError], int]:
    """Read the causes that stand below `Caused by:`, one on each line, as `anyhow` lists them."""
    found: list[ParsedError] = []
    while at < len(texts) and len(found) < _CAUSES_MAX:
        if not texts[at].startswith((" ", "\t")) or _call(texts, at) is not None:
            break
        said = _NUMBERED.sub("", texts[at].strip())
        found.append(ParsedError(heads.rewrite(said), []))
        at += 1
    return found, at


def _head_above(texts: Sequence[str], at: int) -> int | None:
    """Return where the message of the stack stands whose first line is known."""
    nearest, apart = None, False
    for line in range(at - 1, max(at - 1 - _HEAD_LINES_MAX, -1), -1):
        text = texts[line]
        if _SKIPPED_ABOVE.match(text):
            apart = apart or (nearest is not None and not text)
            continue
        if heads.is_message(text.strip()) and not heads.CHAIN.match(text):
            # Beyond an empty line stands something else, unless it announces what follows.
            return _reason(texts, line) if not apart or text.endswith(":") else nearest
        nearest = line if nearest is None else nearest
    return nearest


def _reason(texts: Sequence[str], line: int) -> int:
    """Return where a program said why it was about to abort, if it did."""
    if "SIGABRT" not in texts[line]:
        return line
    above = range(line - 1, max(line - _REASON_LINES_MAX, -1), -1)
    return next((at for at in above if _ABORTING.search(texts[at])), line)


def _run(texts: Sequence[str], at: int) -> tuple[list[Frame], int]:
    """Read frames as long as there are any."""
    found: list[Frame] = []
    while at < len(texts):
        call = _call(texts, at, rust=bool(found))
        if call is not None:
            frame, lines = call
            found.append(frame)
            at += lines
        elif _MORE.match(texts[at]):
            at += 1
        else:
            break
    return found, at


def _call(texts: Sequence[str], at: int, *, rust: bool = False) -> tuple[Frame, int] | None:
    """Return the frame that begins at a line, and how many lines it takes."""
    text = texts[at]
    if shown := frames.parse_signature_frame(text):
        return shown, 1
    below = texts[at + 1] if at + 1 < len(texts) else ""
    if _is_go(texts, at) and (call := _GO_CALL.match(text)):
        place = _GO_PLACE.match(below)
        return frames.module_frame(call["name"], place["file"] if place else ""), 2
    if call := _RUST_CALL.match(text):
        if place := _RUST_PLACE.match(below):
            return frames.module_frame(call["name"], place["file"]), 2
        if rust or (at > 0 and texts[at - 1] == _RUST_STACK):
            return frames.module_frame(call["name"], ""), 1
    frame = frames.frame(text)
    return None if frame is None else (frame, 1)


def _is_go(texts: Sequence[str], at: int) -> bool:
    """Say whether a line is one of Go's calls: its place stands below, indented."""
    below = texts[at + 1] if at + 1 < len(texts) else ""
    return indent(below) > 0 and not indent(texts[at]) and _GO_PLACE.match(below) is not None


def _properties(texts: Sequence[str], at: int) -> tuple[int, str]:
    """Read what Node shows of an error below its stack; return its code."""
    if not (0 < at < len(texts)) or not texts[at - 1].endswith("{"):
        return at, ""
    code = ""
    while at < len(texts) and not texts[at].startswith("}") and not heads.CHAIN.match(texts[at]):
        match = _PROPERTY_CODE.match(texts[at])
        code = code or (match["code"] if match else "")
        at += 1
    return at, code


def _with_code(head: str, code: str) -> str:
    return head if not code or code in head else f"{head} (code {code})"


def _past_asides(texts: Sequence[str], at: int) -> int:
    """Return where the report goes on behind other threads and the history of a block."""
    while True:
        near = range(at, min(at + _ASIDE_LINES_MAX, len(texts)))
        aside = next((line for line in near if _ASIDE.match(texts[line])), None)
        if aside is None:
            return at
        _, end = _run(texts, aside)
        _, at = _run(texts, max(end, aside + 1))
