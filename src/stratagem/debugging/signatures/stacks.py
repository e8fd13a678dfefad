"""Stacks in a text: which error they belong to, and what caused it.

Python writes the oldest frame first, the message last, and a cause before what it caused.
Everybody else writes the message first, the newest frame below it, and the cause at the end.
Both come out one way: the newest error first, each with its frames, newest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from stratagem.debugging.signatures import frames, heads
from stratagem.debugging.signatures.frames import Frame
from stratagem.debugging.signatures.lines import GROUP_PART

__all__ = ["Fault", "Report", "reports"]

# How far above its first frame the message of a stack may stand.
_HEAD_LINES_MAX: Final = 15
_TEST_LINES_MAX: Final = 400
_ASIDE_LINES_MAX: Final = 5


class Fault(NamedTuple):
    """One error: what it says and where it was."""

    head: str
    frames: list[Frame]


class Report(NamedTuple):
    """An error with its causes, newest first, and the lines it was read from."""

    faults: list[Fault]
    begin: int
    end: int


_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):?\s*$")
_LINKED: Final = re.compile(
    r"^\s*(?:The above exception was the direct cause|During handling of the above exception)"
)
_REPEATED: Final = re.compile(
    r"^\s*(?:\[Previous line repeated|\.\.\. ?\d+ (?:more|common)|\[\.\.\.|\.\.\.|-+> ?\d+ )"
)
_TEST_LINE: Final = re.compile(r"^E {3,}\S")
_TEST_PLACE: Final = re.compile(
    r"^(?P<file>[\w./\\-]{1,300}\.py):\d+:(?: in (?P<name>\S+)| (?P<type>[\w.]+))?\s*$"
)
_TEST_HEADER: Final = re.compile(r"^_{3,} .+ _{3,}$")
_FUNCTION: Final = re.compile(r"^[> ] {2,}(?:async )?def (?P<name>\w+)\(")
_SKIPPED_ABOVE: Final = re.compile(
    r"^\s*$|^goroutine \d+|^stack backtrace:|^\[?[Ss]tack ?trace:?|^\[signal |^note: |^Require stack:|^- |^0x[0-9a-f]+ in |^\d+\t"
    r"|^(?:READ|WRITE) of size|^\s*[{}\]]|^The signal is caused|^Hint: "
)
_ABORTING: Final = re.compile(r"^terminate called|Assertion .{1,300} failed")
_MORE: Final = re.compile(r"^\s*(?:\.\.\.(?: ?(?:\d+|additional) |$)|\[CIRCULAR|--- End of)")
_ASIDE: Final = re.compile(
    r"^(?:goroutine \d+ |freed by thread|previously allocated by|allocated by thread|created by |Thread \d+ \(|Uninitialized value was|Thread T\d+ created)"
)
_GO_CALL: Final = re.compile(
    r"^(?:created by )?(?P<name>[A-Za-z_][^\s()]*(?:\(\*?[^()]{1,200}\)[^\s()]*)?)"
    r"(?:\((?:[^()]|\([^()]*\))*\))?(?: in goroutine \d+)?$"
)
_GO_PLACE: Final = re.compile(r"^\s+(?P<file>\S+\.(?:go|s)):\d+(?: \+0x[0-9a-f]+)?$")
_RUST_CALL: Final = re.compile(r"^\s*\d+:\s+(?:0x[0-9a-f]+ - )?(?P<name>[\w<{_]\S.*)$")
_RUST_PLACE: Final = re.compile(r"^\s+at (?P<file>\S+?)(?::\d+){1,2}$")
_PROPERTY_CODE: Final = re.compile(r"^\s*code: '?(?P<code>[\w-]+)'?,?$")


def reports(texts: Sequence[str]) -> Iterator[Report]:
    """Yield what the stacks in a text report, in the order in which they stand there."""
    at = 0
    while at < len(texts):
        report = _report(texts, at)
        if report is None:
            at += 1
        else:
            yield report._replace(faults=_told(report.faults))
            at = max(report.end, at + 1)


def _report(texts: Sequence[str], at: int) -> Report | None:
    text = texts[at]
    if not text:
        return None
    if _TRACEBACK.search(text) or frames.python_frame(text):
        return _python(texts, at)
    if _TEST_LINE.match(text):
        return _test(texts, at)
    if _call(texts, at) or (heads.CHAIN.match(text) and at > 0):
        return _stack(texts, at)
    return None


# Python


def _python(texts: Sequence[str], at: int) -> Report:
    chain: list[Fault] = []
    parts: list[Fault] = []
    begin, part = at, False
    while True:
        fault, at = _traceback(texts, at)
        (parts if part else chain).append(fault)
        after = _next(texts, at)
        if after is None:
            break
        part = part or texts[after] == GROUP_PART
        if not (texts[after] == GROUP_PART or _LINKED.match(texts[after])):
            break
        at = _next(texts, after + 1) or len(texts)
        if at == len(texts):
            break
    return Report([*reversed(chain), *parts], begin, at)


def _traceback(texts: Sequence[str], at: int) -> tuple[Fault, int]:
    """Read one traceback, from its header or first frame to its message."""
    found: list[Frame] = []
    base = None
    if _TRACEBACK.search(texts[at]):
        base, at = _indent(texts[at]), at + 1
    flush, source = False, False
    while at < len(texts):
        text = texts[at]
        frame = frames.python_frame(text)
        if frame is not None:
            found.append(frame)
            base = max(_indent(text) - 2, 0) if base is None else base
            flush = _indent(text) <= base
        elif not _inside(text, base or 0, flush=flush, source=source):
            break
        source = frame is not None
        at += 1
    head, at = _exception(texts, at)
    return Fault(head, found[::-1]), at


def _inside(text: str, base: int, *, flush: bool, source: bool) -> bool:
    """Say whether a line without a frame belongs to the traceback above it."""
    if not text or _REPEATED.match(text) or _indent(text) > base:
        return True
    return flush and source and not heads.is_message(text)


def _exception(texts: Sequence[str], at: int) -> tuple[str, int]:
    """Read the message below a traceback; nothing where the text ends before it."""
    if at >= len(texts) or texts[at] == GROUP_PART or _LINKED.match(texts[at]):
        return "", at
    if not texts[at - 1] and not heads.TYPE.match(texts[at].strip()):
        return "", at
    return heads.compose(texts, at, len(texts))


def _test(texts: Sequence[str], at: int) -> Report:
    """Read a failure as pytest shows it: `E` before the message, the place below."""
    end = at
    while end < len(texts) and _TEST_LINE.match(texts[end]):
        end += 1
    head = heads.rewrite(texts[at].strip())
    place = _next(texts, end)
    if place is not None and (match := _TEST_PLACE.match(texts[place])):
        end = place + 1
        kind = match["type"]
        if kind and not heads.is_message(head):
            head = f"{kind}: {head}"
    begin = max(at - _TEST_LINES_MAX, 0)
    headers = [line for line in range(begin, at) if _TEST_HEADER.match(texts[line])]
    begin = headers[-1] if headers else begin
    found = _test_frames(texts[begin:end])
    return Report([Fault(head, found[::-1])], begin if found else at, end)


def _test_frames(texts: Sequence[str]) -> list[Frame]:
    """Return the frames of a failed test, oldest first, in the short and the long style."""
    found, name = [], ""
    for text in texts:
        if match := _FUNCTION.match(text):
            name = match["name"]
        elif match := _TEST_PLACE.match(text):
            line = f'File "{match["file"]}", line 1, in {match["name"] or name or "<module>"}'
            frame = frames.python_frame(line)
            assert frame is not None, "it was written as one"
            found.append(frame)
    return found


# Everybody else


def _stack(texts: Sequence[str], at: int) -> Report:
    above = _head_above(texts, at)
    begin = at if above is None else above
    head = "" if above is None else heads.compose(texts, above, at)[0]
    faults: list[Fault] = []
    while True:
        found, at = _run(texts, at)
        at, code = _properties(texts, at)
        faults.append(Fault(_with_code(head, code), found))
        at = _past_asides(texts, at)
        after = _next(texts, at)
        link = heads.CHAIN.match(texts[after]) if after is not None else None
        if link is None or after is None:
            return Report(_without_repeats(faults), begin, at)
        at = after + 1
        if not link["head"].strip():
            at = _next(texts, at) or at
        head = _cause(texts, after, at)


def _cause(texts: Sequence[str], link: int, at: int) -> str:
    """Return the message of a cause, which stands behind `Caused by:` or below it."""
    match = heads.CHAIN.match(texts[link])
    assert match is not None, "the caller found it"
    said = match["head"].strip() or (texts[at].strip() if at < len(texts) else "")
    return heads.rewrite(re.sub(r"^\d+: ", "", said).rstrip(" {"))


def _head_above(texts: Sequence[str], at: int) -> int | None:
    """Return where the message of the stack stands whose first line is known."""
    nearest, apart = None, False
    for line in range(at - 1, max(at - 1 - _HEAD_LINES_MAX, -1), -1):
        text = texts[line]
        if _SKIPPED_ABOVE.match(text):
            apart = apart or (nearest is not None and not text)
            continue
        # Beyond an empty line stands something else, unless it announces what follows.
        if heads.is_message(text.strip()) and not heads.CHAIN.match(text):
            if not apart or text.endswith(":"):
                return _reason(texts, line)
            break
        nearest = line if nearest is None else nearest
    return nearest


def _reason(texts: Sequence[str], line: int) -> int:
    """Return where a program said why it was about to abort, if it did."""
    if "SIGABRT" not in texts[line]:
        return line
    above = range(line - 1, max(line - 6, -1), -1)
    return next((at for at in above if _ABORTING.search(texts[at])), line)


def _run(texts: Sequence[str], at: int) -> tuple[list[Frame], int]:
    """Read frames as long as there are any."""
    found: list[Frame] = []
    rust = at > 0 and texts[at - 1].startswith("stack backtrace:")
    while at < len(texts):
        call = _call(texts, at, rust=rust)
        if call is not None:
            frame, lines = call
            found.append(frame)
            rust = rust or lines == 0
            at += lines
        elif texts[at] and _MORE.match(texts[at]):
            at += 1
        else:
            break
    return found, at


def _call(texts: Sequence[str], at: int, *, rust: bool = False) -> tuple[Frame, int] | None:
    """Return the frame that begins at a line, and how many lines it takes."""
    text = texts[at]
    if shown := frames.SHOWN.match(text):
        return (
            (Frame(shown["name"] or "", shown["file"] or ""), 1) if text.strip() != "in" else None
        )
    below = texts[at + 1] if at + 1 < len(texts) else ""
    if (place := _GO_PLACE.match(below)) and (call := _GO_CALL.match(text)):
        return frames.module_frame(call["name"], place["file"]), 2
    if call := _RUST_CALL.match(text):
        if place := _RUST_PLACE.match(below):
            return frames.module_frame(call["name"], place["file"]), 2
        if rust or texts[at - 1].startswith("stack backtrace:"):
            return frames.module_frame(call["name"], ""), 1
    frame = frames.frame(text)
    return None if frame is None else (frame, 1)


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


def _told(faults: list[Fault]) -> list[Fault]:
    """Return faults with the frames that count. Those of the system do where there are no others."""
    ours = any(not frame.system for fault in faults for frame in fault.frames)
    return [Fault(fault.head, frames.telling(fault.frames, ours=ours)) for fault in faults]


def _without_repeats(faults: list[Fault]) -> list[Fault]:
    """Leave out a cause that only says again what was said; keep one if all are empty."""
    seen: set[str] = set()
    kept = []
    for fault in faults:
        if (fault.head or fault.frames) and (not fault.head or fault.head not in seen):
            seen.add(fault.head)
            kept.append(fault)
    return kept or faults[:1]


def _next(texts: Sequence[str], at: int) -> int | None:
    """Return the next line that is not empty."""
    return next((line for line in range(at, len(texts)) if texts[line]), None)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
