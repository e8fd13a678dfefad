"""The lines of a text without what a log put around them.

Colours, carriage returns, line prefixes (time, level, process, thread, logger, container), the
gutter of an exception group and lines that only point at something go. Indentation stays: it is
how a traceback shows where it ends. A prefix is a run of parts, each from a table; some parts
are so common in messages that they count only behind another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple

__all__ = ["GROUP_PART", "LogLine", "plain", "read"]

# A longer line is data; what it says about an error, it says at its beginning.
_CHARS_MAX: Final = 2_000
_PREFIX_PARTS_MAX: Final = 10
# Enough for a traceback of a thousand frames in one string.
_PIECES_CHARS_MAX: Final = 100_000
# How a signature indents its frames; nobody quoted them.
_SHOWN_FRAME: Final = "  in "
# Stands where a part of an exception group begins.
GROUP_PART: Final = "[sub-exception]"


class LogLine(NamedTuple):
    """A line without its prefix, as it was with it, and how bad it calls itself."""

    text: str
    raw: str
    level: str = ""


_ANSI: Final = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
    # Pasted from a terminal, the escape itself is often lost.
    r"|\[(?:\d{1,3};){0,4}\d{1,3}m(?!\])"
)
_LINE_END: Final = re.compile(r"\r\n?")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_ESCAPED_END: Final = re.compile(r"\\r?\\n|\\n(?=\s|\\t|[A-Za-z\"}])")
_ESCAPED_TRACE: Final = re.compile(r"\\n(?: {2,8}|\\t)(?:File |at )")

_CLOCK: Final = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}(?= )|[+-]\d{2}:?\d{2}))?"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME: Final = (
    rf"(?:\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}[T _]{_CLOCK}{_ZONE}"
    rf"|\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}[ :]{_CLOCK}{_ZONE}"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?"
    rf"{_MONTH} {{1,2}}\d{{1,2}} (?:\d{{4}} )?{_CLOCK}(?: \d{{4}})?"
    rf"|\d{{2}}-\d{{2}} {_CLOCK}|{_CLOCK}{_ZONE})"
)
_LEVELS: Final = (
    *("TRACE", "DEBUG", "INFO", "NOTICE", "WARN(?:ING)?", "ERR(?:OR)?", "FATAL", "CRIT(?:ICAL)?"),
    *("SEVERE", "ALERT", "EMERG", "PANIC"),
)
_LEVEL: Final = f"(?:{'|'.join(_LEVELS)})"

# What may open a line.
_OPENING: Final = (
    rf"\[{_TIME}[^\[\]]{{0,80}}\]",
    rf"\(?{_TIME}\)?(?=[\s:|,\]-]|$),?",
    r"[DIWEF], \[[^\[\]]{10,80}\] +[A-Z]{3,8} -- [^:]{0,40}:",
    r"[IWEF]\d{4} \d{2}:\d{2}:\d{2}\.\d{1,9} +\d+ [\w./-]{1,100}:\d+\]",
    rf"\[ *(?P<bracketed>(?i:{_LEVEL})) *\](?::(?=\s))?",
    # `ERROR 1045 (28000): …` is MySQL, and the number is the point of it.
    rf"(?P<level>{_LEVEL})(?=[\s:|\]-])(?! +\d{{3,5}} \()(?::[\w.]{{1,80}}:)?:?",
    r"==\d{1,8}==",
    r"[VDIWEF]/[\w.-]{1,60} *\( *\d{1,7}\):",
    r"##\[(?:error|warning)\]|::(?:error|warning)(?: [^:]{1,200})?::",
    r"npm (?:ERR!|error|WARN)(?: (?:notarget|notsup|engine|network)(?= [A-Z]))?(?=\s|$)",
    # How a terminal draws a list or a tree.
    r"[\u2500-\u257f\u25b6\u27a4\u2716\u2717\u2718\u2a2f\u00d7\u276f\u2022]{1,8}(?=\s|$)",
    r"\[!\](?=\s)|>(?= [A-Z])",
    r"#\d{1,4} \d{1,6}\.\d{1,4}(?=\s)",
    r"\[pod/[^\]]{1,200}\]",
    r"[a-z][a-z0-9_.-]{0,62} *\|(?=\s|$)",
    r"\[std(?:err|out)\](?=\s)|std(?:err|out) ?[|:>](?=\s)",
    r"remote:(?=\s)",
    r"\[\d{1,7}\](?=\s)",
)
# What may only follow an opening.
_FOLLOWING: Final = (
    r"(?:[\w.-]{1,100} )?[\w./@-]{1,100}\[(?:\w{1,20}\.)?\d{1,8}\]:",
    r"[\w.-]{1,100} [\w./-]{1,60}:(?=\s)(?<=kernel:)",
    r"\[(?!Errno|WinError|E\d|[A-Z]+-?\d{3}|cause\]|errors\]|sub-ex)[^\[\]]{0,100}\](?::(?=\s))?",
    r"\((?:MainThread|pid|PID|tid|[Tt]hread|Process|[Pp]rocess)[\w #:=-]{0,40}\):?",
    r"(?:pid|PID|tid|thread)[=: ]{1,2}[\w-]{1,40}:?",
    r"\d{1,7}(?= +---| +\[)",
    r"\d{1,7} +\d{1,7} [VDIWEF] [\w.]{1,60} *:",
    r"\d{1,8}#\d{1,8}:(?: \*\d{1,12})?",
    r"---|[|-](?=\s)|:(?=\s)",
    # The name of a logger, but not of a file.
    (
        r"(?![\w.]{1,120}\.(?:py|rb|go|[cm]?[jt]sx?|java|kt|scala|cs|[ch](?:c|pp|xx)?|rs|sh|php):)"
        r"[a-z_][\w$]{0,60}(?:\.[a-z_][\w$]{0,60}){1,12}:(?=\s)"
    ),
    r"[A-Za-z_][\w$]{0,60}(?:\.[A-Za-z_][\w$]{0,60}){0,12}(?:\(\d+\))?(?= +[-:] )",
)
_OPEN: Final = re.compile("|".join(_OPENING))
_FOLLOW: Final = re.compile("|".join((*_OPENING, *_FOLLOWING)))
_SPACES: Final = re.compile(r"[ \t]*")

_GROUP_GUTTER: Final = re.compile(r"^ *(?:\| ?|\+ (?=Exception Group Traceback))")
_GROUP_RULE: Final = re.compile(r"^ *+\+-[+-]*+(?:(?<=[+-][+-]-) (?:\d++|\.\.\.) -++)?\+?$")
_POINTER: Final = re.compile(r"^[\s|]*[\^~][\s^~+-]*$|^ *[=_*-]{5,}$|^\s*[─━═]{3,}$")

_LOGFMT: Final = re.compile(
    r'\b(level|lvl|msg|message|err|error)=(?:"((?:[^"\\]|\\.){0,2000})"|(\S{1,500}))'
)
_LOGFMT_NAMES: Final = {"lvl": "level", "message": "msg", "error": "err"}
_JSON_LEVEL: Final = ("level", "severity", "levelname", "log.level")
_JSON_MESSAGE: Final = ("message", "msg", "event", "error", "err", "exception")
_JSON_TRACE: Final = ("stack", "stack_trace", "stacktrace", "traceback", "exc_info", "exception")


def read(text: str) -> list[LogLine]:
    """Return the lines of a text, each without its prefix."""
    lines = []
    for raw in _strip_quotation(plain(text).split("\n")):
        for piece in _pieces(raw):
            level, stripped = _strip(piece[:_CHARS_MAX])
            lines.append(LogLine(_clean(stripped), piece, level))
    return lines


def plain(text: str) -> str:
    """Return a text without colours, carriage returns and control characters."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return _CONTROL.sub("", text)


def _strip_quotation(raw: list[str]) -> list[str]:
    """Return lines without the marks of a quotation and without what all are indented by."""
    filled = [line for line in raw if line.strip()]
    if filled and all(line.startswith(">") for line in filled):
        raw = [line[1:].removeprefix(" ") for line in raw]
        filled = [line for line in raw if line.strip()]
    shortest = min(filled, key=_indent, default="")
    common = shortest[: _indent(shortest)]
    if shortest.startswith(_SHOWN_FRAME) or not all(line.startswith(common) for line in filled):
        return raw
    return [line.removeprefix(common) for line in raw]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _clean(line: str) -> str:
    """Return a line without gutter; nothing of one that only points or separates."""
    if _GROUP_RULE.match(line):
        return GROUP_PART if "- " in line else ""
    line = _GROUP_GUTTER.sub("", line, count=1)
    return "" if _POINTER.match(line) else line.rstrip()


def _pieces(raw: str) -> Iterator[str]:
    """Yield what a line holds: a whole traceback, where it is a record or a string."""
    if raw.lstrip().startswith("{") and (record := _record(raw)):
        yield from record.split("\n")
    elif "\\n" in raw and _ESCAPED_TRACE.search(raw):
        unescaped = (
            _ESCAPED_END.sub("\n", raw[:_PIECES_CHARS_MAX]).replace("\\t", "\t").replace('\\"', '"')
        )
        yield from unescaped.split("\n")
    else:
        yield raw


def _record(line: str) -> str:
    """Return the message and the trace of a log record in JSON; nothing if it is none."""
    # Few texts have one, and importing it takes longer than reading most of them.
    import orjson

    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(record, dict):
        return ""
    said = [text for name in _JSON_MESSAGE if (text := _field_text(record.get(name)))]
    trace = next(
        (text for name in _JSON_TRACE if "\n" in (text := _field_text(record.get(name)))), ""
    )
    level = next((str(record[name]).upper() for name in _JSON_LEVEL if name in record), "")
    head = ": ".join(dict.fromkeys(text for text in said if text not in trace))
    return "\n".join(filter(None, (f"[{level}] {head}" if head and level else head, trace)))


def _field_text(value: Any) -> str:
    """Return what a field of a record says; an error is often an object of its own."""
    if isinstance(value, dict):
        names = (*_JSON_TRACE, "message", "msg")
        value = next((value[name] for name in names if name in value), "")
    return value if isinstance(value, str) else ""


def _strip(line: str) -> tuple[str, str]:
    """Return the level that a line gives itself, and the line without its prefix."""
    if "msg=" in line and (fields := dict(_fields(line))).get("msg"):
        return fields.get("level", ""), ": ".join(filter(None, map(fields.get, ("msg", "err"))))
    level, end, position = "", 0, _past_spaces(line, 0)
    for part in range(_PREFIX_PARTS_MAX):
        match = (_FOLLOW if part else _OPEN).match(line, position)
        if match is None:
            break
        level = level or (match["level"] or match["bracketed"] or "").upper()
        end = match.end()
        position = _past_spaces(line, end)
    # One space parts the prefix from the line; the rest is the line's own indentation.
    parted = end > 0 and line[end : end + 1] in {" ", "\t"}
    return level, line[end + parted :]


def _past_spaces(line: str, position: int) -> int:
    match = _SPACES.match(line, position)
    assert match is not None, "it fits nothing as well"
    return match.end()


def _fields(line: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a log record in the form `name=value` that say something."""
    for match in _LOGFMT.finditer(line):
        name = _LOGFMT_NAMES.get(match[1], match[1])
        value = (match[2] or match[3] or "").replace('\\"', '"')
        yield name, value.upper() if name == "level" else value
