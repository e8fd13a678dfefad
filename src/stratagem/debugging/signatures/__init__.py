"""What one error has in common with all others of its cause.

A signature is the error as it would be told to somebody on another machine: type, code and
message without values, then the frames of the program itself, newest first, then the causes
in the same form. It is read from whatever is at hand: a traceback, a message, a log.

    ValueError: lookup failed at <time>
      in outer (main.py)
      in <module> (main.py)
    Caused by: KeyError: 'id'
      in inner (main.py)

The work has four steps, each in a module of its own: `lines` takes off what a log put around
the text, `stacks` and `telling` find the error in it, `frames` and `heads` read its parts, and
`placeholders` takes the values out of what it says.

Two promises hold for every text: a signature is its own signature, so stored ones can be
compared with new ones; and the time is linear in the length of the text. A change to any rule
makes other signatures of the same errors: it raises `VERSION`, and what is stored is read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from stratagem.debugging import redaction
from stratagem.debugging.signatures import frames, heads, lines, stacks, telling
from stratagem.debugging.signatures.placeholders import normalise
from stratagem.debugging.signatures.stacks import Fault, Report

__all__ = ["VERSION", "find_error", "fingerprint", "headline", "signature"]

VERSION: Final = 1

CHARS_MAX: Final = 2_000
_HEADLINE_CHARS_MAX: Final = 200
_FAULTS_MAX: Final = 8
_DIGEST_CHARS: Final = 32
# Enough for the deepest recursion a language allows, with its message at either end.
_WINDOW_CHARS: Final = 250_000
_CONTEXT_LINES: Final = 2
_ROUNDS_MAX: Final = 4


def signature(text: str) -> str:
    """Return the normalised error of a text: at most 2,000 characters, empty if there is none.

    The signature of a signature is itself, and secrets never get into one.
    """
    current = _signature(find_error(text))
    for _ in range(_ROUNDS_MAX):
        # A cut or a replaced value can, rarely, let another rule see something.
        again = _signature(current)
        if again == current:
            break
        current = again
    return current


def find_error(text: str, chars_max: int = 20_000) -> str:
    """Return the part of a text that is the error, as it stands there.

    The last stack with its message and causes; without a stack the lines that say most about
    what went wrong; a text that says nothing of the kind comes back whole, or its end.
    """
    read = lines.read(telling.window(text, _WINDOW_CHARS))
    begin, end = _place(read)
    return _bounded("\n".join(line.raw for line in read[begin:end]), chars_max)


def headline(text: str) -> str:
    """Return one line for a title, at most 200 characters: the newest error as it was written."""
    fault = next(iter(_faults(find_error(text))), None)
    line = " ".join((fault.head if fault else "").split())
    if not line and fault and fault.frames:
        line = str(fault.frames[0]).strip()
    if len(line) <= _HEADLINE_CHARS_MAX:
        return line
    return line[: _HEADLINE_CHARS_MAX - 1].rpartition(" ")[0][: _HEADLINE_CHARS_MAX - 1] + "…"


def fingerprint(text: str) -> str:
    """Return a short key that texts of one signature share; empty for an empty signature."""
    signed = signature(text)
    if not signed:
        return ""
    digest = hashlib.sha256(signed.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{VERSION}:{digest[:_DIGEST_CHARS]}"


def _signature(text: str) -> str:
    return _render(_faults(redaction.mask(text)))


def _faults(text: str) -> list[Fault]:
    """Return the error of a text and its causes, newest first."""
    read = lines.read(text)
    report = _last_report(read)
    if report is not None:
        return report.faults[:_FAULTS_MAX]
    span = telling.worst(read)
    texts = [line.text for line in read]
    if span is not None and span.weight != telling.WEAK:
        head, _ = heads.compose(texts, span.line, len(texts))
        file = heads.place(texts[span.line])
        return [Fault(head, [frames.module_frame("", file)] if file else [])]
    said = telling.prose(read)
    return [Fault(heads.rewrite(said), [])] if said else []


def _last_report(read: list[lines.Line]) -> Report | None:
    found = None
    for report in stacks.reports([line.text for line in read]):
        if any(fault.head or fault.frames for fault in report.faults):
            found = report
    return found


def _place(read: list[lines.Line]) -> tuple[int, int]:
    """Return from which line to which the error stands."""
    report = _last_report(read)
    if report is not None:
        return report.begin, report.end
    span = telling.worst(read)
    if span is None or span.weight == telling.WEAK:
        return 0, len(read)
    return max(span.begin - _CONTEXT_LINES, 0), min(span.end + 5 * _CONTEXT_LINES, len(read))


def _bounded(text: str, chars_max: int) -> str:
    """Return a text cut in its middle: what matters stands at its ends."""
    if len(text) <= chars_max:
        return text
    half = max((chars_max - 5) // 2, 0)
    first = text[:half].rpartition("\n")[0] or text[:half]
    last = text[len(text) - half :].partition("\n")[2] or text[len(text) - half :]
    return f"{first}\n...\n{last}"[:chars_max]


def _render(faults: Iterable[Fault]) -> str:
    """Return the signature of an error. Where there is no room, the oldest frames go first."""
    kept = list(_normalised(faults))
    room = CHARS_MAX - sum(len(head) + 1 for head, _ in kept)
    shown: list[str] = []
    for head, places in kept:
        shown.append(head)
        for frame in places:
            if len(frame) + 1 > room:
                break
            room -= len(frame) + 1
            shown.append(frame)
    return "\n".join(filter(None, shown))[:CHARS_MAX]


def _normalised(faults: Iterable[Fault]) -> Iterator[tuple[str, list[str]]]:
    """Yield messages and frames as they are shown, as many messages as there is room for."""
    room = CHARS_MAX
    for number, fault in enumerate(faults):
        head = normalise(fault.head)
        head = f"Caused by: {head}" if number else head
        room -= len(head) + 1
        if room < 0:
            return
        yield head, [str(frame) for frame in fault.frames]
