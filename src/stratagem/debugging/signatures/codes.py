"""Codes of errors: `ORA-00942`, `TS2345`, `0x80070005`, `SQLSTATE 42P01`, `ECONNREFUSED`.

A code stands for the message that comes with it, so a question may be a code and nothing else.
Normalisation cannot keep it there: without its message a code looks like any number. So codes are
looked for in texts as they are. What reports only that something failed (`HTTP 500`, `exit code 1`)
is no code, and neither is the name of a standard (`SHA-256`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stratagem.debugging.signatures.vocabulary import ERRNOS, TECHNICAL
from stratagem.function_cache import cache_texts

__all__ = [
    "code_parts",
    "codes_at_end",
    "find_codes",
    "gives_cause",
    "gives_message",
    "has_codes",
    "is_bare_status",
    "is_code_line",
    "without_codes",
]

# A log that has more codes than this is not about any of them.
_CODES_MAX: Final = 20
_CHARS_READ_MAX: Final = 20_000
_DIGITS_MIN: Final = 3
# A longer number behind `error` means the same whatever stands before it.
_OWN_NUMBER_DIGITS: Final = 4
_SMALL_NUMBERS: Final = frozenset({"errno", "winerror", "sqlcode"})

_LABELS: Final = r"errno|winerror|sqlcode|sqlstate|error[ ]code|error|err|msg"
_CODE: Final = re.compile(
    rf"""
    (?<![\w.@/-])(?:
        (?P<label> {_LABELS} ) [^\w\n]{{1,3}}
        (?P<number> -?\d{{2,10}} | (?<=sqlstate.)[0-9a-z]{{5}} )
      | (?P<hex> 0x[0-9a-f]{{4,8}} )
      | (?P<name> [a-z]{{1,10}}-?\d{{2,8}}(?:-\d{{2,8}})?[a-z]? )
      | (?P<state> \d\d[a-z]\d\d | \d[0-9a-f]{{7}} )
      | (?P<symbol> (?-i:[A-Z][A-Z0-9]{{0,30}}+(?:_[A-Z0-9]{{1,30}}+){{1,12}}) )
      | (?P<errno> e[a-z0-9]{{2,15}} )
    )(?![\w-]|\.\w)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A part that makes a constant the name of an error.
_OF_ERRORS: Final = frozenset({"ERR", "ERROR", "ERRORS", "E", "EAI", "FAILURE", "EXCEPTION"})
# What has a number because there are many of it, or because a standard has: no code of an error.
_NUMBERED: Final = re.compile(
    rf"(?i:{'|'.join(TECHNICAL)}|(?:build|col|column|cuda?|day|fy|gb|gpt|gtx|int|issue|item|job|kb|line|mb"
    r"|ms|msvc|node|page|port|pr|py|python|q|rev|rfc|row|rs|rsa|rtx|sp|step|task|test|thread|user|v"
    r"|version|vs|worker|year)-?\d.*)"
)
_ERRNO: Final = re.compile("|".join(ERRNOS))
# At most 60 characters. What is said of any request or process that failed, and its number.
_BARE_STATUS: Final = re.compile(
    r"(?i)(?:(?:an?|the|got|getting|gives?|returns?|returned|exit(?:ed|s)?|with|http|https|status|code"
    r"|error|errors|response|server|internal|bad|gateway|request|not|found|forbidden|unauthorized"
    r"|service|unavailable|timeout|process|command|job|step|build|completed|failed|ended|non-zero"
    r"|\d{1,3})(?:[\s:,.()!?-]+|$))+"
)
_STATUS_CHARS_MAX: Final = 60
# At most 60 characters: of the same words, what failed and why. Beside a number, or `HTTP`, they
# only name the status.
_CAUSE: Final = re.compile(
    r"(?i)\bcommand\s+not\s+found\b|^(?!.*\bhttps?\b)\D*\b(?:build|code|gateway|job|process|request"
    r"|response|server|service|step)\b\D*\b(?:not\s+found|(?<!gateway )timeout|forbidden"
    r"|unauthorized)\b\D*$"
)
_PART: Final = re.compile(r"[a-z]+|\d+|[a-z0-9]+")
_ANNOUNCED: Final = frozenset(
    {"code", "err", "errno", "error", "hresult", "msg", "sqlstate", "winerror"}
)
# `Error: connect ECONNREFUSED 127.0.0.1:3000` is a message, `Error: E1234` is none.
_LABELLED_MESSAGE: Final = re.compile(
    r"\s*+[\w.]{0,80}(?:error|exception|fatal|panic):\s++\w", re.IGNORECASE
)
# At most 30 characters: what stands before a code.
_STATES: Final = re.compile(
    r"(?:(?:^|\n)[\s:]*|\b(?:with|error|code|fault|alarm|failure|failed|status|result|reason)[\s:=]*)"
    r"[#(\[{<'\"`]{0,3}$",
    re.IGNORECASE,
)
_STATES_CHARS_MAX: Final = 30
# Behind it only marks, and at most a remark in brackets.
_ENDS: Final = re.compile(
    r"[)\]}>'\"`]{0,3}[.,;:!?]{0,3}(?:[ \t]{1,8}\([^()\n]{0,80}\)[.,;!?]?)?[^\S\n]*+(?:\n|$)"
)
_CODE_LINE: Final = re.compile(
    r"\s*+(?:(?:error|exit|fault|result|return|status) )?(?:code|err|errno|error|fault|hresult"
    r"|reason|result|sqlstate|status|winerror)\s*+[:=]?\s*+[^\s:=]{2,40}+\s*$",
    re.IGNORECASE,
)
# Articles of Microsoft's knowledge base; `kb` is a unit otherwise.
_KB: Final = re.compile(r"kb\d{6,8}$")
# What stands behind a code is its message where a colon parts them.
_MESSAGE_BEHIND: Final = re.compile(r"(?: \(\w{5}\)|[\])]{1,2})?(?:(?<=\]) |: ?)[^\s:]")


def is_bare_status(text: str) -> bool:
    """Say whether a text says no more than that something failed: `HTTP 500`, `exit code 1`."""
    line = text.strip()
    return len(line) <= _STATUS_CHARS_MAX and _BARE_STATUS.fullmatch(line) is not None


def gives_cause(text: str) -> bool:
    """Say whether a bare status tells what failed, and why: `service: command not found`.

    The same words are the same problem then, which they are not in `HTTP 404 Not Found`.
    """
    line = text.strip()
    return len(line) <= _STATUS_CHARS_MAX and _CAUSE.search(line) is not None


# Of twenty known errors, and again for the next one that is asked about.
@cache_texts(1024)
def find_codes(text: str) -> frozenset[str]:
    """Return the codes of a text, in lower case."""
    codes: dict[str, None] = {}
    for code, _ in _codes(text):
        codes[code] = None
        if len(codes) > _CODES_MAX:
            return frozenset()
    return frozenset(codes)


def has_codes(text: str) -> bool:
    """Say whether a text has any code, however many."""
    return next(_codes(text), None) is not None


def code_parts(code: str) -> frozenset[str]:
    """Return a code, what words may be left of it in a headline, and what announces codes."""
    return frozenset({code, *_PART.findall(code), *_ANNOUNCED})


def without_codes(text: str) -> str:
    """Return a text without its codes and what announces them."""
    kept, end = [], 0
    for _, found in _codes(text):
        kept.append(text[end : found.start()])
        end = found.end()
    return " ".join([*kept, text[end:]])


def gives_message(text: str) -> bool:
    """Say whether a text has the message of its code: `E1234: licence expired`."""
    if any(_MESSAGE_BEHIND.match(text, found.end()) for _, found in _codes(text)):
        return True
    return _LABELLED_MESSAGE.match(without_codes(text)) is not None


def is_code_line(line: str) -> bool:
    """Say whether a line only states the code of an error: `Error code: 0x80070005`."""
    return _CODE_LINE.match(line) is not None


def codes_at_end(text: str) -> frozenset[str]:
    """Return the codes that a line of a text ends in, where what stands before announces one.

    Elsewhere in a sentence it may be the number of an order, which is a value.
    """
    return frozenset(
        code
        for code, found in _codes(text)
        if _STATES.search(text, max(0, found.start() - _STATES_CHARS_MAX), found.start())
        and _ENDS.match(text, found.end())
    )


def _codes(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for found in _CODE.finditer(text[:_CHARS_READ_MAX]):
        if code := _code(found):
            yield code, found


def _code(found: re.Match[str]) -> str:
    """Return what was found as codes are compared; nothing where it is none."""
    said = found[0].lower()
    if found["label"]:
        return _code_of_number(found["label"].lower(), found["number"].lower())
    if found["symbol"]:
        return said if _OF_ERRORS.intersection(found["symbol"].split("_")) else ""
    if found["errno"]:
        return said if _ERRNO.fullmatch(said) else ""
    if found["hex"]:
        return said if said.strip("0x") else ""
    if found["state"]:
        return said if not said.isdigit() else ""
    digits = sum(sign.isdigit() for sign in said)
    is_numbered = _NUMBERED.fullmatch(said) and not _KB.match(said)
    return "" if digits < _DIGITS_MIN or is_numbered else said


def _code_of_number(label: str, number: str) -> str:
    """Return the code that an announced number is, or nothing.

    `error 404` only says that something failed.
    """
    digits = number.lstrip("-")
    if label == "sqlstate" or len(digits) >= _OWN_NUMBER_DIGITS:
        return digits
    return f"{label} {digits}" if label in _SMALL_NUMBERS else ""
