"""Variants of the values that a schema lists.

The list is closed, so a variant is certain when it can only be one of them: the same letters in
another case, other spacing, other separators; or one slip of the pen in a word that is long
enough, when all the others are far away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from stratagem.gateway.correction.names import are_words
from stratagem.gateway.correction.scalars import number_of
from stratagem.gateway.correction.words import distance

__all__ = ["variants"]

Proposal = tuple[str, Any]

_SPACE: Final = re.compile(r"\s+")
# Between digits a separator means something: 1.5 is not 15, 3-4 is not 34. So it does before the
# first one (-5, .5), and a sign before a word: sorted by -date is the other way round.
_SEPARATORS: Final = re.compile(
    r"(?<=[^\W\d_])[\s_\-./'’]+(?=\w)|(?<=\d)[\s_\-./'’]+(?=[^\W\d])|^[\s_./'’]+(?=[^\W\d])"
)
_QUOTES: Final = "\"'`“”‘’"  # noqa: RUF001 -- quotes of every kind
_SIGNS: Final = frozenset("-+!~^")
_MISSPELT_CHARS_MIN: Final = 6
_NEXT_DISTANCE_MIN: Final = 3
_PREFIX_CHARS_MIN: Final = 2
_ABBREVIATED_CHARS_MIN: Final = 3
# Longer lists are compared by their style only.
_COMPARED_MAX: Final = 500
_COMPARED_CHARS_MAX: Final = 100


def variants(value: Any, options: Sequence[Any]) -> Iterator[Proposal]:
    """Yield the listed values that a value may stand for: one if it is certain."""
    text = _text(value)
    if text is None:
        return
    number = number_of(text) if not isinstance(value, bool) else None
    named = [option for option in options if _is_number(option) and option == number]
    if len(named) == 1:
        yield "string_to_number_conversion", named[0]
        return
    listed = {index: shown for index, option in enumerate(options) if (shown := _text(option))}
    # Where a plus means something, so does a minus: UTC-1 is not UTC 1.
    signed = any("+" in shown for shown in listed.values())
    for pattern, normal in _NORMALS[: -1 if signed else None]:
        wanted = normal(text)
        same = [index for index, shown in listed.items() if normal(shown) == wanted]
        if len(same) == 1 and wanted:
            yield pattern, options[same[0]]
            return
        if same:
            yield from (("enum_resembles", options[index]) for index in same)
            return
    yield from _similar_options(
        _fold_case(text), {i: _fold_case(t) for i, t in listed.items()}, options
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    """Return how a scalar is written."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return repr(value)
    return value if isinstance(value, str) else None


def _normalize_spaces(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).strip()
    if len(plain) > 1 and plain[0] in _QUOTES and plain[-1] in _QUOTES:
        plain = plain[1:-1].strip()
    return _SPACE.sub(" ", plain)


def _fold_case(text: str) -> str:
    return _normalize_spaces(text).casefold()


def _strip_separators(text: str) -> str:
    return _SEPARATORS.sub("", _fold_case(text))


# Tried in this order: the less is taken away, the more a match says.
_NORMALS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("enum_case_variant", _normalize_spaces),
    ("enum_case_variant", _fold_case),
    ("enum_punctuation_variant", _strip_separators),
)


def _similar_options(
    text: str, listed: dict[int, str], options: Sequence[Any]
) -> Iterator[Proposal]:
    if not text or len(text) > _COMPARED_CHARS_MAX or len(listed) > _COMPARED_MAX:
        return
    near = sorted(
        (distance(text, shown, _NEXT_DISTANCE_MIN), index) for index, shown in listed.items()
    )
    best, index = near[0]
    if text[0] in _SIGNS and text[1:].strip() in listed.values():
        yield from (
            ("enum_signed", options[i]) for i, shown in listed.items() if shown == text[1:].strip()
        )
        return
    following = near[1][0] if len(near) > 1 else _NEXT_DISTANCE_MIN
    if best == 1 and following >= _NEXT_DISTANCE_MIN and _clearly(text, listed[index]):
        yield "enum_misspelling", options[index]
    elif best <= 2 < len(text) and best < following:  # noqa: PLR2004 -- two slips
        yield "enum_resembles", options[index]
    else:
        yield from _partly(text, listed, options)


def _clearly(text: str, shown: str) -> bool:
    long_enough = min(len(text), len(shown)) >= _MISSPELT_CHARS_MIN
    alike = long_enough and text[0] == shown[0] and text.isascii()
    # A word that stands for itself is no misspelling of another.
    return alike and not _has_digits(text + shown) and not are_words(text)


def _has_digits(text: str) -> bool:
    return any(char.isdecimal() for char in text)


def _abbreviates(shown: str, text: str) -> bool:
    """Tell whether a listed value is a word cut short: `desc` for descending."""
    return len(shown) >= _ABBREVIATED_CHARS_MIN and text.isalpha() and text.startswith(shown)


def _partly(text: str, listed: dict[int, str], options: Sequence[Any]) -> Iterator[Proposal]:
    begun = [index for index, shown in listed.items() if shown.startswith(text)]
    if len(begun) == 1 and len(text) >= _PREFIX_CHARS_MIN:
        yield "enum_prefix", options[begun[0]]
        return
    words = set(re.findall(r"\w+", text))
    short = [i for i, shown in listed.items() if _abbreviates(shown, text)]
    if len(short) == 1:
        yield "enum_prefix", options[short[0]]
        return
    within = [i for i, shown in listed.items() if set(re.findall(r"\w+", shown)) <= words and shown]
    if len(within) == 1:
        yield "enum_contains", options[within[0]]
