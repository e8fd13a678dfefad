"""Find the lines of a text that state an error, where there is no stack.

Every line is weighed by the first kind of phrase that it has. The heaviest lines count, and of
those the last group, because a log ends with the fatal error. Within a group the first line counts,
because later errors are often consequences of it. For a compiler the first error of all counts, for
the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from stratagem.debugging.signatures.lines import LogLine
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import cache_texts

__all__ = ["CALM_LEVELS", "WEAK", "Span", "Window", "only_summarises", "prose", "window", "worst"]

# Such a line only uses a word that errors use: it may be prose.
WEAK: Final = 3
_SUMMARY: Final = 2
_TOLD: Final = 4
_STATED: Final = 6
_COMPILE: Final = 7
_RAISED: Final = 9
_GAP_LINES_MAX: Final = 3


class Span(NamedTuple):
    """The line that names an error, the end of its group, and how surely it names one."""

    line: int
    end: int
    weight: int


class Window(NamedTuple):
    """A part of a text, in whole lines, and whether it was cut in front and at the end."""

    text: str
    cut_before: bool
    cut_after: bool


# Says only that something before it went wrong.
_SUMMARIES: Final = (
    r"^make(?:\[\d+\])?: |^ninja: |^\* (?:What|Try|Where|Get)\b",
    r"\b(?:[Ee]xit(?:ed)?|returned)\b.{0,40}\b(?:code|status)\b|^exit \d|returned a non-zero code",
    r"[Bb]uild failed|BUILD FAIL|FAILURE: Build|failed to solve: process",
    r"^(?:error: )?Command failed",
    r"complete log of this run|collect2: error|ld returned \d|linker command failed",
    r"could not compile|aborting due to|For more information about|compilation terminated",
    r"^FAILED$|^Process finished|^Found \d+ errors?|(?<!\d)\d{1,6} errors? generated|ELIFECYCLE",
    r"(?<!\d)\d{1,6} (?:failed|errors?|failures?)(?:[.!]? *=*$|, | in \d)|test result: FAILED",
    r"^error: test failed|^SUMMARY: |^Aborted|ABORTING|^Some errors have detailed",
    # What it was about comes below.
    r"^(?:npm )?(?:ERR!|error) code E[A-Z0-9]+$|^code E[A-Z0-9]+$|^Problem \d+$",
    r"\b404 Not Found - (?:GET|PUT) ",
    # Gradle says what it was about one level deeper.
    r"Execution failed for task|Could not resolve all |^A problem occurred ",
    r"subprocess-exited-with-error|^Warning message:$",
    r"^failed to run custom build|^(?:errno|syscall|path) |^Error: Process completed",
    r"^(?:error: )?failed to push some refs to ",
    # Where it was, as webpack writes it behind the level: what it was comes below.
    r"^in \S+(?: \d+:\d+(?:-\d+(?::\d+)?)?)?$|^\d+ problems? \(",
)
# Somebody raised something.
_RAISINGS: Final = (
    (
        r"^(?:[\w$]+(?:\.|::|/))*[A-Z]\w*(?:Error|Exception|Fault|Failure|Timeout|Interrupt)\d?"
        r"(?: \[[\w-]+\])?(?::\s|$)"
    ),
    r"^(?:[a-z_]\w*\.)+[A-Z]\w+: |^(?:panic|fatal error): |\bpanicked at\b|Sanitizer: ",
    # As Node.js writes an error that has a code.
    r"^Error \[[A-Z][\w-]{1,60}\]: ",
    r"\bruntime error: |^(?:Uncaught|Unhandled) |^Exception in thread|^FAILED \S+ - ",
    r"^terminate called|Assertion .{1,300} failed",
)
# A compiler or a linker says what it could not do.
_COMPILERS: Final = (
    r":\s?(?:fatal )?error(?: [A-Z]{1,8}\d+)?: |^(?:fatal )?error(?:\[\w+\])?: |[:-] error TS\d+",
    r"undefined (?:reference to|symbol)|cannot find -l|cannot find package|unresolved external",
    r"no required module provides|^\S+\.go:\d+:\d+: |error [A-Z]{1,8}\d{3,5}: ",
    r"library not found for|^TS\d{4,5}: |^Module parse failed: |^\d+:\d+ +error +\S",
    r"^e: \S+\.kts?:|^\S+\.(?:java|kt|scala):\[\d+,\d+\] ",
)
# A program says what was not possible, in words that are used for nothing else.
_STATEMENTS: Final = (
    r"\bORA-\d|SQLSTATE|\bERROR \d{4} \(|\bE11000\b|\[Errno|\(os error|\bE[A-Z]{4,}\b: ",
    r"command not found|[Pp]ermission denied|No such file|^fatal: |^E: ",
    r"not recognized as (?:an?|the) ",
    r"[Cc]onnection (?:refused|reset|timed out)|^curl: \(|status code \d",
    r"\bHTTP(?:/[\d.]+)? [45]\d\d|failed to solve",
    r"Error response from daemon|[Ss]egmentation fault|core dumped|^Killed$|OOMKilled|^\(error\) ",
    r"[Oo]ut of memory|No space left|^[Ee]rror: |[A-Z]\w{0,80}(?:Error|Exception): ",
    r"[Cc](?:ould(?: not|n't)|annot) (?:connect|find|resolve|open)",
    r"\bCUDA error|signal SIG|version [`']",
    r"is not in (?:this|the npm) registry|could not be found in any version",
    r": \d+: \S+: not found$|unbound variable|[Ss]yntax error|^! \[(?:remote )?rejected\] ",
)
# What a package manager could not find or bring together.
_MISSING: Final = (
    r"\b[Nn]o (?:matching|available|compatible|candidates?|versions?|solution|package|formula)\b",
    r"\b[Nn]ot [Ff]ound\b|could not be (?:found|resolved|downloaded|loaded)",
    r"\bno (?:such|installation) ",
    r"does(?:n't| not) (?:exist|match|satisfy)\b|[Uu]nable to (?:find|locate|resolve|select|fetch)",
    r"[Ff]ailed to (?:fetch|download|pull|resolve|select)|[Uu]nsupported|[Uu]nknown package",
    r"[Nn]ot compatible|[Ii]ncompatible|conflicting|is not (?:in (?:this|the) |available)",
)
_WORDS: Final = (
    (
        r"(?i)\b(?:errors?|exceptions?|fatal|fail(?:ed|ures?|s)?|cannot|can't|could not|couldn't"
        r"|unable|denied|refused|timed? ?out|invalid|not found|unexpected|missing|undefined"
        r"|crash(?:ed)?|abort(?:ed)?|rejected|unauthori[sz]ed|forbidden|unavailable|killed|panic)\b"
    ),
)
_WEIGHTS: Final = tuple(
    (weight, re.compile("|".join(patterns)))
    for weight, patterns in (
        (_SUMMARY, _SUMMARIES),
        (_RAISED, _RAISINGS),
        (_COMPILE, _COMPILERS),
        (_STATED, _STATEMENTS),
        (_TOLD, _MISSING),
        (WEAK, _WORDS),
        (1, (r"(?i)\bwarn(?:ing)?\b",)),
    )
)
# A quick filter: a line that does not match it matches none of the patterns.
_SPARED: Final = re.compile(
    r"(?i)err|exception|fa(?:il|ult|tal)|panic|timed? ?out|interrupt|sanitizer|unhandled|uncaught"
    r"|terminate|assert|undefined|unresolved|not |cannot|can't|could|unable|denied|refused|invalid"
    r"|unexpected|missing|crash|abort|reject|unauth|forbid|unavail|kill|warn|no (?:such|space|req)"
    r"|library|sqlstate|ora-|e11000|e: |reset|status|exit|http|dumped|oom|memory|signal|version"
    r"|unbound|make|ninja|returned|log of|summary|process|syscall|path |\* |\.go:|\w\.[a-z]\w+: "
    r"|[a-z]{5}: |no [a-z]|incompatible|conflicting|unsupported|unknown|^in \S|^TS\d|:\[\d"
)
_BAD_LEVELS: Final = frozenset(
    {"ERROR", "ERR", "FATAL", "CRITICAL", "CRIT", "SEVERE", "ALERT", "EMERG", "PANIC"}
)
CALM_LEVELS: Final = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE"})
# What a level makes of a line that says little itself.
_LEVEL_WEIGHTS: Final = {0: 4, 1: 4, WEAK: 5}

# What a long text is searched for, kind by kind; the last place of the first kind found counts.
_MARKS: Final = (
    (
        *(
            "Traceback (most recent call last)",
            "\nE   ",
            "\tat ",
            "    at ",
            "panic: ",
            "panicked at",
        ),
        *("Sanitizer: ", "\ngoroutine ", "#0  ", "Caused by: "),
    ),
    (
        *("Error: ", "Exception: ", "error: ", "error[", " error TS", "fatal error", "FATAL"),
        *("ORA-", "SQLSTATE", "[Errno"),
    ),
    (
        *("ERROR", "CRITICAL", "SEVERE", "fatal: ", "command not found", "ermission denied"),
        *("Segmentation fault", "No such file", "refused"),
    ),
    (
        *("rror", "xception", "failed", "Failed", "FAILED", "cannot", "Cannot", "not found"),
        *("timed out", "denied"),
    ),
)


def worst(lines: Sequence[LogLine]) -> Span | None:
    """Return where a text says what went wrong; None if it says nothing of the kind."""
    # A level that every line has says nothing about any of them.
    graded = len({line.level for line in lines if line.text}) > 1
    weights = [_weight(line, graded=graded) for line in lines]
    top = max(weights, default=0)
    if top == 0:
        return None
    places = [line for line, weight in enumerate(weights) if weight == top]
    group = places if top == _COMPILE else _last_group(places)
    return Span(group[0], group[-1] + 1, top)


def only_summarises(line: LogLine) -> bool:
    """Say whether a line says only that something before it went wrong."""
    return _weight(line, graded=False) == _SUMMARY


def prose(lines: Sequence[LogLine]) -> str:
    """Return what a text says that names no error: what is marked as code, or all but chatter."""
    fences = [number for number, line in enumerate(lines) if line.text.startswith("```")]
    fenced = lines[fences[0] + 1 : fences[1]] if len(fences) > 1 else []
    for part in (fenced, [line for line in lines if line.level not in CALM_LEVELS], lines):
        if said := " ".join(line.text.strip() for line in part if line.text):
            return said
    return ""


def window(text: str, before: int, after: int) -> Window:
    """Return the surroundings of the last error of a text: so many characters to either side."""
    if len(text) <= before + after:
        return Window(text, cut_before=False, cut_after=False)
    places = (max(text.rfind(mark) for mark in marks) for marks in _MARKS)
    place = next((place for place in places if place >= 0), len(text))
    begin = _line_begin(text, place - before, place) if place > before else 0
    end = text.rfind("\n", begin, place + after) if place + after < len(text) else len(text)
    end = end if end > begin else min(place + after, len(text))
    return Window(text[begin:end], cut_before=begin > 0, cut_after=end < len(text))


def _line_begin(text: str, begin: int, end: int) -> int:
    """Return where the first whole line of a part begins; the part's begin, if it has none."""
    ends = (text.find(mark, begin, end) for mark in ("\n", "\r"))
    return next((place + 1 for place in ends if place >= 0), begin)


def _weight(line: LogLine, *, graded: bool) -> int:
    text = line.text.strip()
    if not text or (graded and line.level in CALM_LEVELS):
        return 0
    weight = _weigh_words(text)
    if graded and line.level in _BAD_LEVELS:
        return _LEVEL_WEIGHTS.get(weight, weight)
    return weight


# The lines of an error are weighed when it is looked for, for its signature and for its headline.
@cache_texts(256)
def _weigh_words(text: str) -> int:
    """Return the weight of the first kind of phrase that a line has."""
    if not _SPARED.search(text):
        return 0
    return next((weight for weight, pattern in _WEIGHTS if pattern.search(text)), 0)


def _last_group(places: Sequence[int]) -> Sequence[int]:
    first = len(places) - 1
    while first > 0 and places[first] - places[first - 1] <= _GAP_LINES_MAX:
        first -= 1
    return places[first:]
