"""Between text, numbers, booleans and null: what a scalar of the wrong type stands for.

A conversion is certain only when it can be undone: the text names exactly this number, in digits
that all survive. `"3.7"` is not the integer 3, `""` is not 0, `"007"` is more than 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.correction.words import tokens

__all__ = ["conversions", "number_of"]

Proposal = tuple[str, Any]

_DIGITS: Final = r"(?:0|[1-9][0-9]*)"
_NUMBER: Final = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?")
_PADDED: Final = re.compile(r"[+-]?0[0-9]+")
# Underscores group digits in programs and nowhere else.
_UNDERSCORED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:_[0-9]{3})+")
_GROUPED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}((?:,[0-9]{3})+)(\.[0-9]+)?")
_DOTTED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}")
_WITH_UNIT: Final = re.compile(
    rf"[$€£¥]?\s*([+-]?{_DIGITS}(?:\.[0-9]+)?)\s*(?:%|[A-Za-zµ°Ω€£¥$][^0-9]{{0,15}})?"
)
_TYPOGRAPHIC: Final = str.maketrans({"−": "-", "\u00a0": " "})
# Longer text is no number that anybody wrote.
_NUMBER_CHARS_MAX: Final = 64

_TRUE: Final = frozenset({"true", "yes", "on", "1", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "0", "n"})
_TRUE_WORDS: Final = frozenset({"t", "enabled", "enable", "active", "include", "included", "sure"})
_FALSE_WORDS: Final = frozenset(
    {"f", "disabled", "disable", "inactive", "exclude", "excluded", "none", "never"}
)
_NULLS: Final = frozenset({"null", "None", "nil", "NULL"})
_NUMBER_WORDS: Final = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "hundred": 100, "thousand": 1000}

# A number that stands for such a thing may have lost a zero before it came here.
_CODES: Final = frozenset({"zip", "zipcode", "postal", "postcode", "phone", "telephone", "version"})
_CODE_DIGITS_MIN: Final = 5
# `20.00` are twenty dollars; an integer of such a name may count cents.
_MONEY: Final = frozenset(
    {"amount", "balance", "budget", "cent", "cents", "charge", "cost", "deposit", "fee", "payment",
     "price", "refund", "salary", "subtotal", "sum", "tax", "tip", "total"}
)  # fmt: skip


def conversions(value: Any, types: frozenset[str], name: str) -> Iterator[Proposal]:
    """Yield what a scalar may stand for where one of the types is expected."""
    if isinstance(value, str):
        yield from _from_text(value, types, name)
    elif isinstance(value, bool):
        yield from _from_boolean(value, types)
    elif isinstance(value, int | float):
        yield from _from_number(value, types, name)


def number_of(text: str) -> int | float | None:
    """Return the number that text names exactly, or None."""
    stripped = text.strip().translate(_TYPOGRAPHIC)
    if len(stripped) > _NUMBER_CHARS_MAX:
        return None
    if _UNDERSCORED.fullmatch(stripped):
        return _exact(stripped.replace("_", ""))
    if _DOTTED.fullmatch(stripped):
        return _exact(stripped.replace(".", ""))
    grouped = _GROUPED.fullmatch(stripped)
    if grouped and (grouped[1].count(",") > 1 or grouped[2]):
        return _exact(stripped.replace(",", ""))
    return _exact(stripped) if _NUMBER.fullmatch(stripped) else None


def _exact(digits: str) -> int | float | None:
    """Return the number if a number of JSON holds it without loss."""
    exact = Decimal(digits)
    if not any(mark in digits for mark in ".eE"):
        whole = int(digits)
        return whole if limits.INTEGER_MIN <= whole <= limits.INTEGER_MAX else None
    number = float(digits)
    return number if isfinite(number) and Decimal(repr(number)) == exact else None


def _from_text(text: str, types: frozenset[str], name: str) -> Iterator[Proposal]:
    word = text.strip().casefold()
    if "boolean" in types and word in _TRUE | _FALSE:
        yield "string_to_boolean_conversion", word in _TRUE
    elif "boolean" in types and word in _TRUE_WORDS | _FALSE_WORDS:
        yield "boolean_word_conversion", word in _TRUE_WORDS
    if "null" in types and text.strip() in _NULLS:
        yield "string_to_null_conversion", None
    if types & {"integer", "number"}:
        yield from _numbers(text, types, name)


def _numbers(text: str, types: frozenset[str], name: str) -> Iterator[Proposal]:
    number = number_of(text)
    if number is not None:
        fitted = _as_allowed_type(number, types)
        if fitted is not None and "number" not in types and _has_cents(text, name):
            yield "cents_dropped_conversion", fitted
        elif fitted is None:
            yield "rounded_conversion", round(number)
        else:
            yield "string_to_number_conversion", fitted
        return
    stripped = text.strip()[:_NUMBER_CHARS_MAX]
    if stripped.casefold() in _NUMBER_WORDS:
        yield "number_word_conversion", _NUMBER_WORDS[stripped.casefold()]
    elif _PADDED.fullmatch(stripped):
        yield "padded_digits_conversion", int(stripped)
    elif _GROUPED.fullmatch(stripped):
        # As a decimal comma it would make a fraction, which an integer cannot be.
        certain = "number" not in types
        pattern = "string_to_number_conversion" if certain else "grouped_digits_conversion"
        yield pattern, int(stripped.replace(",", ""))
    elif _NUMBER.fullmatch(stripped) and "number" in types and isfinite(float(stripped)):
        yield "precision_lost_conversion", float(stripped)
    elif with_unit := _WITH_UNIT.fullmatch(stripped):
        amount = number_of(with_unit[1])
        fitted = None if amount is None else _as_allowed_type(amount, types)
        if fitted is not None:
            yield "unit_dropped_conversion", fitted


def _has_cents(text: str, name: str) -> bool:
    """Tell whether a whole sum was written with its cents."""
    return text.strip().endswith(".00") and not _MONEY.isdisjoint(tokens(name))


def _as_allowed_type(number: float, types: frozenset[str]) -> int | float | None:
    """Return the number as the types allow it; a fraction is no integer."""
    if "number" in types or isinstance(number, int):
        return number
    whole = number.is_integer() and limits.INTEGER_MIN <= number <= limits.INTEGER_MAX
    return int(number) if whole else None


def _from_boolean(value: bool, types: frozenset[str]) -> Iterator[Proposal]:  # noqa: FBT001
    if "string" in types:
        yield "boolean_to_string_conversion", "true" if value else "false"
    if types & {"integer", "number"}:
        yield "boolean_to_number_conversion", int(value)


def _from_number(value: float, types: frozenset[str], name: str) -> Iterator[Proposal]:
    if "boolean" in types and isinstance(value, int) and value in {0, 1}:
        yield "number_to_boolean_conversion", value == 1
    if "string" in types:
        yield from _number_text(value, name)
    if "integer" in types and isinstance(value, float) and isfinite(value):
        yield "rounded_conversion", round(value)


def _number_text(value: float, name: str) -> Iterator[Proposal]:
    if isinstance(value, int):
        lossy = set(tokens(name)) & _CODES - {"version"} and len(str(value)) < _CODE_DIGITS_MIN
    elif value.is_integer():
        yield "whole_number_to_string_conversion", str(int(value))
        return
    else:
        lossy = bool(set(tokens(name)) & _CODES) or "e" in repr(value)
    text = repr(value)
    yield "short_code_to_string_conversion" if lossy else "number_to_string_conversion", text
