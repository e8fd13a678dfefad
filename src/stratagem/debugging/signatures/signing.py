"""Find the error of a text, read it, and write it as a signature.

The rules are some hundred patterns, which take a while to make ready: this module is imported
when the first text comes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from stratagem import redaction
from stratagem.debugging.signatures import frames, heads, lines, stacks, telling
from stratagem.debugging.signatures.faults import Fault, Report
from stratagem.debugging.signatures.placeholders import CHARS_READ_MAX, normalise

__all__ = ["find_error", "headline", "signature"]

_CHARS_MAX: Final = 2_000
_HEADLINE_CHARS_MAX: Final = 200
_ERROR_CHARS_MAX: Final = 20_000
_FAULTS_MAX: Final = 8
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
# Such words say that something went wrong, and nothing of what: alone they match any error. A
# status above two was given for a reason: 127 is a missing command, 137 a killed process.
_SAYS_NOTHING: Final = re.compile(
    r"(?i)[\s\W\d_]|(?<![^\W_])(?:an?|the|with|was|is|has|by|due|to|in|did|not|of|from|complete[ds]?"
    r"|errors?|err|errno|exceptions?|exit(?:ed|s)?|code|status|return(?:ed|s)?|value|non|zero|process"
    r"|command|script|task|job|step|build|run|running|test|tests|child|sub|program|failed|failure"
    r"|fails?|fatal|unknown|unexpected|unhandled|uncaught|occurred|something|went|wrong|make|npm"
    r"|successfully|terminated|aborted|aborting|stopped|finished|segmentation|fault|core|dumped"
    r"|killed|internal|server|caused|n)(?![^\W_])"
)
_TELLING_STATUS: Final = re.compile(
    r"(?i)(?:code|status)\b\W{0,4}(?!255\b)(?:[3-9]|\d{2,})\b|\b(?:errno|error) [1-9]\d"
)


def signature(text: str) -> str:
    """Return the normalised error of a text."""
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


def find_error(text: str, chars_max: int = _ERROR_CHARS_MAX) -> str:
    """Return the part of a text that is the error."""
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
    """Return the newest error of a text in one line."""
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


def _signature(text: str) -> str:
    signed = _render(_faults(redaction.mask(text)))
    return signed if _names_a_cause(signed) else ""


def _names_a_cause(signed: str) -> bool:
    """Say whether a signature tells one problem from others: values and `exit code 1` do not."""
    said = _PLACEHOLDER.sub("", signed)
    if _TELLING_STATUS.search(said):
        return True
    return _WORD.search(_SAYS_NOTHING.sub("", said)) is not None


def _faults(text: str) -> list[Fault]:
    """Return the error of a text and its causes, newest first."""
    read = lines.read(text)
    report = _last_report(read)
    if report is not None:
        return report.faults[:_FAULTS_MAX]
    span = telling.worst(read)
    if span is None or span.weight <= telling.WEAK:
        said = heads.rewrite(telling.prose(read))
        # Of a longer text only the beginning would count, and that is not where it went wrong.
        return [Fault(said, [])] if said and len(said) <= CHARS_READ_MAX else []
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
    if span is None or span.weight <= telling.WEAK:
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
        # One program ends its sentence, the next one does not.
        head = normalise(fault.head).rstrip(" .")
        head = f"Caused by: {head}" if number else head
        room -= len(head) + 1
        if room < 0:
            return
        yield head, [str(frame) for frame in fault.frames]
