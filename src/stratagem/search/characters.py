"""The shape of each character, and the folding of spellings.

`fold` brings a text into one spelling: compatibility forms, accents and invisible
characters are settled here, case is not, because case shows where a name is parted.
`join_groups` does the same for numbers: 12,000 and 12'000 are 12000.

`shape` gives one letter for each character, so that the rules about words can be short
patterns over shapes that hold for every script:

    A  upper case          c  script without spaces between words
    a  other letters       k  Korean
    0  digits              s  symbol that stands for itself (emoji, currency, arrows)

The connectors `- . _ / : @ ' & + #` are their own shape, a backslash is a slash, and a
space stands for everything else.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from stratagem.deferred_patterns import deferred_pattern
from stratagem.function_cache import FunctionCache

__all__ = ["fold", "group_marks", "join_groups", "shape"]

_CHARACTERS_MAX: Final = 4_096

_CONNECTORS: Final = "-._/:@'&+#"
_SPACELESS: Final = deferred_pattern(
    "[\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Thai to Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"  # Han, kana
    "\U0001b000-\U0001b16f\U00020000-\U000323af]"
)
_KOREAN: Final = deferred_pattern("[\u1100-\u11ff\uac00-\ud7a3]")
# By general category, or by its first letter. What Unicode has not named yet (Cn) is most
# likely a new emoji; skin tones and spacing accents (Sk) say nothing by themselves.
_SHAPE_OF: Final = {
    "Lu": "A", "Lt": "A", "L": "a", "M": "a", "N": "0", "S": "s", "Sk": " ", "Cn": "s",
}  # fmt: skip

# Accents after Latin and Greek letters, Hebrew points, Arabic vowel signs and its tatweel
# are ornament. Elsewhere a mark makes another letter: й is not и, ド is not ト.
_ORNAMENT: Final = deferred_pattern(
    "(?<=[A-Za-z\u00c0-\u024f\u0370-\u03ff])[\u0300-\u036f]+"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
# Latin letters whose accent Unicode does not take apart, and the other apostrophes. A
# zero-width space is put where a word ends, the other invisible characters anywhere.
_PLAIN: Final = {
    "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D",
    "þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "\u0131": "i", "ħ": "h",
    "\u2019": "'", "\u02bc": "'", "\u200b": " ",
}  # fmt: skip
# Thousands: with commas also after a currency (USD5,000), with the other marks only where nothing
# else is joined to them, since they join the words of names. With dots millions only: 1.234 may be
# a fraction, and four numbers are an address (192.168.100.200).
_GROUPED: Final = deferred_pattern(
    r"(?<![0-9_.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?!,?[0-9])"
    r"|(?<![\w.,])[1-9][0-9]{0,2}(?:\.[0-9]{3}){2}(?!\.?\w)"
    r"|(?<![\w.,'\u2019/:@-])[1-9][0-9]{0,2}"
    r"(?:(?:['\u2019][0-9]{3})+(?!['\u2019]?\w)|(?:_[0-9]{3})+(?![\w/:@-]))"
)
_GROUP_MARKS: Final = (",", "'", "_", "\u2019", ".")
_VARIATION_SELECTORS: Final = range(0xFE00, 0xFE10)


def fold(text: str) -> str:
    """Return a text in the one spelling that stands for all of its spellings, with its case."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", text).translate(_FOLDS)
    bare = _ORNAMENT.sub("", unicodedata.normalize("NFD", plain))
    return unicodedata.normalize("NFC", bare)


def shape(text: str) -> str:
    """Return the shapes of a text's characters: a string of the same length."""
    return text.translate(_SHAPES)


def group_marks(text: str) -> list[int]:
    """Return where the marks between the thousands of numbers stand in a text."""
    for mark in _GROUP_MARKS:
        if mark in text:
            break
    else:
        return []
    return [
        at
        for number in _GROUPED.finditer(text)
        for at in range(*number.span())
        if text[at] in _GROUP_MARKS
    ]


def join_groups(text: str) -> str:
    """Return a text without the marks between the thousands of its numbers."""
    begin = 0
    parts: list[str] = []
    for mark in group_marks(text):
        parts.append(text[begin:mark])
        begin = mark + 1
    return "".join([*parts, text[begin:]]) if parts else text


def _fold(code: int) -> str:
    character = chr(code)
    if character in _PLAIN:
        return _PLAIN[character]
    invisible = unicodedata.category(character) in {"Cf", "Cs"} or code in _VARIATION_SELECTORS
    return "" if invisible else character


def _shape(code: int) -> str:
    character = chr(code)
    if character.isascii():
        if not character.isalnum():
            return "/" if character == "\\" else character if character in _CONNECTORS else " "
    elif _SPACELESS.match(character):
        return "c"
    elif _KOREAN.match(character):
        return "k"
    category = unicodedata.category(character)
    return _SHAPE_OF.get(category) or _SHAPE_OF.get(category[0], " ")


_FOLDS: Final = FunctionCache(_fold, entries_max=_CHARACTERS_MAX)
_SHAPES: Final = FunctionCache(_shape, entries_max=_CHARACTERS_MAX)
