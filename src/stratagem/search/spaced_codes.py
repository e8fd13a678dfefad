"""Telephone numbers and account numbers (IBAN) that are written in groups: `+47 22 33 44 55`.

People write them in groups, and forms and programs without (`+4722334455`). So a text in which one
stands in groups has it as a term, too. Of a telephone number that begins with the code of a
country, or with a zero, so is what follows: `+44 20 7946 0112` is `020 7946 0112` at home.

A row of two digits and more each (`22 33 44 55`) may be one, and counts in texts. In a query it may
as well be a list, and asks for its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stratagem.deferred_tuples import NamedTuple

__all__ = ["TERM_CHARS_MIN", "SpacedCode", "find_spaced_codes", "may_have_spaced_code"]

_DIGITS_MIN: Final = 7
_DIGITS_MAX: Final = 15
# With fewer it may be a date: 01 02 2026.
_DIGITS_BEHIND_ZERO_MIN: Final = 9
_ACCOUNT_CHARS_MIN: Final = 15
_ACCOUNT_DIGITS_MIN: Final = 8
# What follows the code of a country may be shorter by that.
TERM_CHARS_MIN: Final = 6

# All of them have two groups that begin or end with digits, and most texts have not.
may_have_spaced_code: Final = re.compile(r"[0-9]\)?[ \u00a0.(-]\(?[0-9]").search
_SPACE: Final = r"[ \u00a0]"
_SEPARATOR: Final = rf"(?:{_SPACE}?\(0\){_SPACE}?|[ \u00a0.-]|{_SPACE}?\(|\)[ \u00a0-]?)"
# Neither within a number, a date or a time nor in a longer row of numbers.
_BEGIN: Final = rf"(?<![\w.,:/+-])(?<![0-9]{_SPACE})"
_END: Final = r"(?![\w:/-]|[ \u00a0.,][0-9])"
_SPACED: Final = re.compile(
    rf"(?<![\w+])(?P<country>\+[1-9][0-9]{{0,3}})(?:{_SEPARATOR}[0-9]{{1,8}}){{1,8}}(?!\w)"
    rf"|{_BEGIN}(?P<zero>\(?0)[0-9]{{1,4}}\)?(?:{_SPACE}[0-9]{{2,8}}){{1,6}}{_END}"
    rf"|(?<!\w)(?P<account>[A-Z]{{2}}[0-9]{{2}})(?:{_SPACE}[A-Z0-9]{{4}}){{2,7}}"
    rf"(?:{_SPACE}\w{{0,2}}[0-9]\w{{0,2}})?(?!\w)"
    rf"|{_BEGIN}(?P<bare>[0-9]{{2,4}})(?:{_SPACE}[0-9]{{2,4}}){{2,6}}{_END}",
    re.IGNORECASE | re.ASCII,
)
_TRUNK: Final = "(0)"
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Za-z0-9]")


class SpacedCode(NamedTuple):
    """Where a code stands, and the terms that it gives; `is_sure`: it is no list of numbers."""

    start: int
    end: int
    terms: list[str]
    is_sure: bool


def find_spaced_codes(text: str) -> Iterator[SpacedCode]:
    """Yield the codes of a text that are written in groups."""
    if not may_have_spaced_code(text):
        return
    for found in _SPACED.finditer(text):
        terms = _terms_of(found)
        if terms:
            yield SpacedCode(*found.span(), terms, found["bare"] is None)


def _terms_of(found: re.Match[str]) -> list[str]:
    whole = _join(found[0])
    digits = sum(map(str.isdigit, whole))
    if found["account"]:
        is_account = len(whole) >= _ACCOUNT_CHARS_MIN and digits >= _ACCOUNT_DIGITS_MIN
        return [whole] if is_account else []
    least = _DIGITS_BEHIND_ZERO_MIN if found["zero"] else _DIGITS_MIN
    if not least <= digits <= _DIGITS_MAX:
        return []
    within = whole[len(_join(found["country"] or found["zero"] or "")) :]
    return [whole, within] if TERM_CHARS_MIN <= len(within) < len(whole) else [whole]


def _join(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text.replace(_TRUNK, "")).casefold()
