"""What one error has in common with all others of its cause.

A signature is the error as it would be told to somebody on another machine: type, code and
message without values, then the frames of the program itself, newest first, then the causes
in the same form. It is read from whatever is at hand: a traceback, a message, a log.

    ValueError: lookup failed at <time>
      in outer (main.py)
      in <module> (main.py)
    Caused by: KeyError: 'id'
      in inner (main.py)

`lines` takes off what a log put around the text; `stacks`, `tracebacks` and `telling` find the
error in it; `frames` and `heads` read its parts; `placeholders` takes the values out of what it
says. What the rules know of languages and tools is data: `vocabulary`, `provenance`, and the
tables at the top of each module.

Two promises hold for every text: a signature is its own signature, so that stored ones can be
compared with new ones; and the time is linear in the length of the text. A change to any rule
gives the same errors other signatures: it raises `VERSION`, and what is stored is read anew.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from stratagem.debugging import redaction
from stratagem.debugging.signatures import frames, heads, lines, stacks, telling
from stratagem.debugging.signatures.faults import Fault, Report
from stratagem.debugging.signatures.placeholders import normalise

__all__ = ["VERSION", "find_error", "fingerprint", "headline", "signature"]

VERSION: Final = 1

_CHARS_MAX: Final = 2_000
_HEADLINE_CHARS_MAX: Final = 200
_FAULTS_MAX: Final = 8
_DIGEST_CHARS: Final = 32
_ROUNDS_MAX: Final = 4
# Nearly every error fits into the first; the second holds the deepest recursion, prefixes included.
_WINDOW_CHARS: Final = 24_000
_WINDOW_CHARS_MAX: Final = 300_000
# Of a longer text only the error is masked.
_MASKED_CHARS_MAX: Final = 100_000
_LINES_BEFORE: Final = 2
_LINES_AFTER: Final = 10
_CUT: Final = "\n...\n"
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_WORD: Final = re.compile(r"[^\W\d_]")


def signature(text: str) -> str:
    """Return the normalised error of a text: at most 2,000 characters, empty if there is none.

    The signature of a signature is itself, and no secret gets into one.
    """
    # A secret may hide in what looks like an error, and the other way round.
    if len(text) <= _MASKED_CHARS_MAX:
        text = redaction.mask(lines.plain(text))
    current = _signature(find_error(text))
    for _ in range(_ROUNDS_MAX):
        # What a cut or a placeholder leaves may, rarely, fit another rule.
        again = _signature(current)
        if again == current:
            break
        current = again
    return current


def find_error(text: str, chars_max: int = 20_000) -> str:
    """Return the part of a text that is the error, as it stands there.

    The last stack with its message and causes; without a stack the lines that say most about
    what went wrong. A text that says nothing of the kind comes back whole, or its end. Colours
    and quotation marks of a mail are left out, and a record in JSON is unpacked.
    """
    shown = telling.window(text, _WINDOW_CHARS, _WINDOW_CHARS)
    read = lines.read(shown.text)
    report = _last_report(read)
    if report is not None and _at_edge(report, len(read), shown):
        before = _WINDOW_CHARS_MAX if report.begin == 0 else _WINDOW_CHARS
        after = _WINDOW_CHARS_MAX if report.end == len(read) else _WINDOW_CHARS
        read = lines.read(telling.window(text, before, after).text)
        report = _last_report(read)
    begin, end = _place(read, report)
    return _bounded("\n".join(line.raw for line in read[begin:end]), chars_max)


def headline(text: str) -> str:
    """Return one line for a title, at most 200 characters: the newest error as it was written."""
    fault = next(iter(_faults(find_error(text))), None)
    if fault is None:
        return ""
    line = " ".join(fault.head.split())
    if not line and fault.frames:
        line = str(fault.frames[0]).strip()
    if len(line) <= _HEADLINE_CHARS_MAX:
        return line
    cut = line[: _HEADLINE_CHARS_MAX - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"


def fingerprint(text: str) -> str:
    """Return a short key that texts of one signature share; empty for an empty signature."""
    signed = signature(text)
    if not signed:
        return ""
    digest = hashlib.sha256(signed.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{VERSION}:{digest[:_DIGEST_CHARS]}"


def _signature(text: str) -> str:
    signed = _render(_faults(redaction.mask(text)))
    # Values alone name no cause.
    return signed if _WORD.search(_PLACEHOLDER.sub("", signed)) else ""


def _faults(text: str) -> list[Fault]:
    """Return the error of a text and its causes, newest first."""
    read = lines.read(text)
    report = _last_report(read)
    if report is not None:
        return report.faults[:_FAULTS_MAX]
    span = telling.worst(read)
    if span is None or span.weight == telling.WEAK:
        said = heads.rewrite(telling.prose(read))
        return [Fault(said, [])] if said else []
    texts = [line.text for line in read]
    head, _ = heads.compose(texts, span.line, len(texts))
    file = heads.place(texts[span.line])
    return [Fault(head, [frames.file_frame(file)] if file else [])]


def _last_report(read: list[lines.Line]) -> Report | None:
    found = deque(stacks.reports([line.text for line in read]), maxlen=1)
    return found[0] if found else None


def _at_edge(report: Report, count: int, shown: telling.Window) -> bool:
    """Say whether a report may go on where the window was cut."""
    return (report.begin == 0 and shown.cut_before) or (report.end == count and shown.cut_after)


def _place(read: list[lines.Line], report: Report | None) -> tuple[int, int]:
    """Return from which line to which the error stands."""
    if report is not None:
        return report.begin, report.end
    span = telling.worst(read)
    if span is None or span.weight == telling.WEAK:
        return 0, len(read)
    return max(span.line - _LINES_BEFORE, 0), span.end + _LINES_AFTER


def _bounded(text: str, chars_max: int) -> str:
    """Return a text cut in its middle: what matters stands at its ends."""
    if len(text) <= chars_max:
        return text
    half = max((chars_max - len(_CUT)) // 2, 0)
    first = text[:half].rpartition("\n")[0] or text[:half]
    last = text[len(text) - half :]
    return (first + _CUT + (last.partition("\n")[2] or last))[:chars_max]


def _render(faults: Iterable[Fault]) -> str:
    """Return the signature of an error. Where there is no room, the oldest frames go first."""
    said = list(_said(faults))
    room = _CHARS_MAX - sum(len(head) + 1 for head, _ in said)
    shown: list[str] = []
    for head, found in said:
        shown.append(head)
        for frame in found:
            room -= len(frame) + 1
            if room < 0:
                break
            shown.append(frame)
    return "\n".join(filter(None, shown))


def _said(faults: Iterable[Fault]) -> Iterator[tuple[str, list[str]]]:
    """Yield messages and frames as they are shown, as many messages as there is room for."""
    room = _CHARS_MAX
    for number, fault in enumerate(faults):
        head = normalise(fault.head)
        head = f"Caused by: {head}" if number else head
        room -= len(head) + 1
        if room < 0:
            return
        yield head, [str(frame) for frame in fault.frames]
