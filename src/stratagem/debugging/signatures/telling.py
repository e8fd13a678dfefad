"""Which lines of a text say what went wrong, where there is no stack.

Every line is weighed by the first pattern that fits it. The heaviest lines count, and of those
the last group: a log ends with what ended it. Within a group the first line counts, because
what comes after an error often comes of it. A compiler's first error counts for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from stratagem.debugging.signatures.lines import Line

__all__ = ["WEAK", "Span", "window", "worst"]

# Such a line only uses a word that errors use: it may be prose.
WEAK: Final = 3
_COMPILE: Final = 7
_GAP_LINES_MAX: Final = 3


class Span(NamedTuple):
    """The lines of an error: the one that names it, those around it, and how sure we are."""

    line: int
    begin: int
    end: int
    weight: int


# Says only that something before it went wrong.
_SUMMARY: Final = (
    r"^make(?:\[\d+\])?: |^ninja: |\b(?:exit(?:ed)?|returned)\b.{0,40}\b(?:code|status)\b|^exit \d"
    r"|^(?:error: )?Command failed|[Bb]uild failed|BUILD FAIL|FAILURE: Build|failed to solve: process|returned a non-zero code"
    r"|complete log of this run|collect2: error|ld returned \d|clang: error: linker command failed|could not compile|aborting due to"
    r"|For more information about this error|^FAILED$|^Process finished|^Found \d+ errors?|\d+ errors? generated|ELIFECYCLE"
    r"|compilation terminated|\d+ (?:failed|errors?)\b.{0,60}$(?<=[\ds=!.)])|test result: FAILED|^error: test failed|^SUMMARY: |DUE TO SIGNAL|^Aborted|ABORTING"
    r"|^Some errors have detailed|^failed to run custom build|^errno |^syscall |^path |^\* (?:What|Try|Where|Get)|^Error: Process completed"
)
_WEIGHTS: Final = tuple(
    (weight, re.compile(pattern))
    for weight, pattern in (
        (2, _SUMMARY),
        (
            9,
            r"^(?:[\w$]+(?:\.|::|/))*[A-Z]\w*(?:Error|Exception|Fault|Failure|Timeout|Interrupt)\d?(?: \[[\w-]+\])?(?::\s|$)"
            r"|^(?:panic|fatal error): |\bpanicked at\b|Sanitizer: |\bruntime error: |^(?:Uncaught|Unhandled) |^Exception in thread|^FAILED \S+ - |^terminate called|Assertion .{1,300} failed",
        ),
        (
            _COMPILE,
            r":\s?(?:fatal )?error(?: [A-Z]{1,8}\d+)?: |^(?:fatal )?error(?:\[\w+\])?: |[:-] error TS\d+|undefined (?:reference to|symbol)|cannot find -l|cannot find package"
            r"|no required module provides|^\S+\.go:\d+:\d+: |error [A-Z]{1,8}\d{3,5}: |unresolved external|library not found for",
        ),
        (
            6,
            r"\bORA-\d|SQLSTATE|\bERROR \d{4} \(|\bE11000\b|\[Errno|\(os error|\bE[A-Z]{4,}\b: |command not found|[Pp]ermission denied|No such file"
            r"|not recognized as an? |[Cc]onnection (?:refused|reset|timed out)|^fatal: |^curl: \(|status code \d|\bHTTP(?:/[\d.]+)? [45]\d\d|^E: |Error response from daemon"
            r"|[Ss]egmentation fault|core dumped|^Killed$|OOMKilled|[Oo]ut of memory|No space left|^error: |^Error: |\b\w+(?:Error|Exception)\b: "
            r"|[Cc](?:ould not|annot) (?:connect|find|resolve|open)|failed to solve|\bCUDA error|signal SIG|^\(error\) |version `|: \d+: \S+: not found$|unbound variable|[Ss]yntax error",
        ),
        (
            WEAK,
            r"(?i)\b(?:errors?|exceptions?|fatal|fail(?:ed|ure|s)?|cannot|can't|could not|couldn't|unable to|denied|refused|timed? ?out|timeout"
            r"|invalid|not found|unexpected|missing|undefined|crash(?:ed)?|abort(?:ed)?|rejected|unauthori[sz]ed|forbidden|unavailable|killed|panic|denied)\b",
        ),
        (1, r"(?i)\bwarn(?:ing)?\b"),
    )
)
_BAD_LEVELS: Final = frozenset(
    {"ERROR", "ERR", "FATAL", "CRITICAL", "CRIT", "SEVERE", "ALERT", "EMERG", "PANIC"}
)
_CALM_LEVELS: Final = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE"})
# What a level adds to a line that says little itself.
_LEVEL_WEIGHTS: Final = {0: 4, 1: 4, WEAK: 5}

# What a text of any size is searched for, kind by kind; the last place of a kind found counts.
_MARKS: Final = (
    (
        "Traceback (most recent call last)",
        "\nE   ",
        "\tat ",
        "    at ",
        "panic: ",
        "panicked at",
        "Sanitizer: ",
        "\ngoroutine ",
        "#0  ",
        "Caused by: ",
    ),
    (
        "Error: ",
        "Exception: ",
        "error: ",
        "error[",
        " error TS",
        "fatal error",
        "FATAL",
        "ORA-",
        "SQLSTATE",
        "[Errno",
    ),
    (
        "ERROR",
        "CRITICAL",
        "SEVERE",
        "fatal: ",
        "command not found",
        "ermission denied",
        "Segmentation fault",
        "No such file",
        "refused",
    ),
    (
        "rror",
        "xception",
        "failed",
        "Failed",
        "FAILED",
        "cannot",
        "Cannot",
        "not found",
        "timed out",
        "denied",
    ),
)


def worst(lines: Sequence[Line]) -> Span | None:
    """Return where a text says what went wrong; None if it says nothing of the kind."""
    weights = _weights(lines)
    top = max(weights, default=0)
    if top == 0:
        return None
    places = [line for line, weight in enumerate(weights) if weight == top]
    group = places if top == _COMPILE else _last_group(places)
    return Span(group[0], group[0], group[-1] + 1, top)


def prose(lines: Sequence[Line]) -> str:
    """Return what a text says that names no error: what is marked as code, or all but chatter."""
    fences = [number for number, line in enumerate(lines) if line.text.startswith("```")]
    fenced = lines[fences[0] + 1 : fences[1]] if len(fences) > 1 else []
    for part in (fenced, [line for line in lines if line.level not in _CALM_LEVELS], lines):
        if said := " ".join(line.text.strip() for line in part if line.text):
            return said
    return ""


def window(text: str, chars: int) -> str:
    """Return the part of a long text, in whole lines, that has its last error in it."""
    if len(text) <= 2 * chars:
        return text
    for marks in _MARKS:
        place = max(text.rfind(mark) for mark in marks)
        if place >= 0:
            return _whole_lines(text, place - chars, place + chars)
    return _whole_lines(text, len(text) - chars, len(text))


def _whole_lines(text: str, begin: int, end: int) -> str:
    begin = text.find("\n", begin) + 1 if begin > 0 else 0
    end = text.rfind("\n", begin, end) if end < len(text) else len(text)
    return text[begin : end if end > begin else begin + 1]


def _weights(lines: Sequence[Line]) -> list[int]:
    # A level that every line has says nothing about any of them.
    graded = len({line.level for line in lines if line.text}) > 1
    return [_weight(line, graded=graded) for line in lines]


def _weight(line: Line, *, graded: bool) -> int:
    text = line.text.strip()
    if not text or (graded and line.level in _CALM_LEVELS):
        return 0
    weight = next((weight for weight, pattern in _WEIGHTS if pattern.search(text)), 0)
    if graded and line.level in _BAD_LEVELS and weight in _LEVEL_WEIGHTS:
        return _LEVEL_WEIGHTS[weight]
    return weight


def _last_group(places: Sequence[int]) -> Sequence[int]:
    first = len(places) - 1
    while first > 0 and places[first] - places[first - 1] <= _GAP_LINES_MAX:
        first -= 1
    return places[first:]
