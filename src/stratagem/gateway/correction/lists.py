"""Text that stands for a list.

Where elements are numbers or listed values, the schema decides: each part fits, the whole does
not. Where elements are text, the whole would fit as one element just as well, so the text itself
has to show that it is a list. Any sign of a single element with a comma in it ("Los Angeles, CA",
"Doe, Jane", "March 5, 2024", a sentence, a title) makes the list doubtful, and both readings are
offered.
"""

from __future__ import annotations

import re
from typing import Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.correction.words import NAMED_THINGS, PLACES, tokens

__all__ = [
    "SEPARATORS",
    "SplitText",
    "ambiguous_digits",
    "broken",
    "doubtful",
    "may_name_two_things",
    "one_place",
    "split",
]

SEPARATORS: Final = ("\n", ";", "|", ",", "\t")
_PARTS_MAX: Final = 1_000
_WORDS_MAX: Final = 5
_PART_CHARS_MAX: Final = 60
_BULLET: Final = re.compile(r"(?:(?<!\s)\s++)?(?:[-*•]|(?<!\d)\d++[.)])\s++")
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}([, ]\d{3})+")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_NUMERIC: Final = re.compile(r"[\W_]*\d[\d\W_]*")
_CODE: Final = re.compile(r"[(){}\[\]<>=`\"\\]|://|\s&\s|\bvs\b")
_CONJUNCTION: Final = re.compile(r"(?:^|\s)(?:and|or|but|nor|then|und|et|y|with|to|the)\s")
# One question or exclamation of several words; a full stop may end an abbreviation.
_SENTENCE: Final = re.compile(r"[A-Z][^?!.\s]*+\s[^?!]++[?!]")
_CONJOINED: Final = re.compile(r"\s(?:and|or|&|plus|und|et|y)\s", re.IGNORECASE)
_DONE: Final = re.compile(r"^\w{3,}ed$|^\w+ly \w+ed$")
_ASKING: Final = re.compile(r"[?!]$")
_CAPITAL: Final = re.compile(r"[^a-z\d]*[A-Z]")
_NUMBERED: Final = re.compile(r"\d+\s+\S")
_STATE_CODES: Final = frozenset(
    """AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM
    NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC AB BC MB NB NL NS ON PE QC SK UK US
    USA UAE NSW VIC QLD EU""".split()
)
_STATES: Final = frozenset(
    """alabama alaska arizona arkansas california colorado connecticut delaware florida georgia
    hawaii idaho illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts
    michigan minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon
    pennsylvania tennessee texas utah vermont virginia washington wisconsin wyoming ontario quebec
    manitoba alberta saskatchewan queensland victoria tasmania bavaria catalonia scotland wales
    england""".split()
) | {
    "new hampshire", "new jersey", "new mexico", "new york", "north carolina", "north dakota",
    "rhode island", "south carolina", "south dakota", "west virginia", "british columbia",
    "new south wales", "northern ireland",
}  # fmt: skip
_COUNTRIES: Final = frozenset(
    """argentina australia austria bangladesh belgium bolivia brazil bulgaria cambodia cameroon
    canada chile china colombia croatia cuba cyprus czechia denmark ecuador egypt estonia ethiopia
    finland france germany ghana greece guatemala hungary iceland india indonesia iran iraq ireland
    israel italy jamaica japan jordan kenya kuwait latvia lebanon lithuania luxembourg malaysia
    malta mexico monaco mongolia morocco myanmar nepal netherlands nigeria norway oman pakistan
    panama paraguay peru philippines poland portugal qatar romania russia rwanda senegal serbia
    singapore slovakia slovenia somalia spain sudan sweden switzerland syria taiwan tanzania
    thailand tunisia turkey uganda ukraine uruguay venezuela vietnam yemen zambia zimbabwe
    america""".split()
) | {
    "united states", "united kingdom", "south africa", "south korea", "north korea", "new zealand",
    "saudi arabia", "costa rica", "sri lanka", "hong kong", "czech republic", "great britain",
    "united arab emirates", "u.s.", "u.s.a.", "u.k.",
}  # fmt: skip
_SUFFIXES: Final = frozenset(
    """inc inc. ltd ltd. llc llp corp corp. co co. gmbh ag plc sa jr jr. sr sr. phd ph.d. md m.d.
    esq esq. mba ii iii iv d.c. dc etc etc. please thanks too""".split()
)


class SplitText(NamedTuple):
    """A text taken apart; `gaps` says that a part was empty and left out."""

    separator: str
    parts: tuple[str, ...]
    gaps: bool


def split(text: str) -> SplitText | None:
    """Take a text apart at the strongest separator that it has, or return None.

    Lines come before semicolons, these before commas: what the stronger one parts may have the
    weaker one inside.
    """
    for separator in SEPARATORS:
        if separator in text:
            pieces = [_BULLET.sub("", piece, count=1) for piece in text.split(separator)]
            parts = tuple(piece.strip() for piece in pieces if piece.strip())
            return SplitText(separator, parts[:_PARTS_MAX], gaps=len(parts) != len(pieces))
    return None


def broken(found: SplitText) -> bool:
    """Tell whether a list has parts that no habit makes into elements: clauses, formulas, gaps."""
    return found.gaps or len(found.parts) == _PARTS_MAX or _odd_shapes(found.parts)


def ambiguous_digits(text: str, *, fractions: bool) -> bool:
    """Tell whether commas may belong to one number: 1,000 or 3,5."""
    stripped = text.strip()
    if _GROUPED.fullmatch(stripped):
        return True
    return fractions and bool(_DECIMAL_COMMA.fullmatch(stripped))


def one_place(text: str, name: str, description: str) -> bool:
    """Tell whether a text is a city with its state, where a place is expected."""
    city, comma, rest = text.strip().partition(",")
    code = rest.strip()
    return (
        bool(comma)
        and code in _STATE_CODES
        and _about(PLACES, name, description)
        and len(city) > len("XXX")
        and city[0].isupper()
        and city.casefold() not in _STATES | _COUNTRIES
        and not any(char.isdecimal() for char in city)
    )


def doubtful(found: SplitText, text: str, name: str, description: str) -> bool:
    """Tell whether a text may as well be one element that has the separator in it."""
    parts = found.parts
    if found.gaps or len(parts) == _PARTS_MAX:
        return True
    if len(parts) > 1 and all(_SENTENCE.fullmatch(part) for part in parts):
        return False
    if _odd_shapes(parts) or _has_mixed_kinds(parts) or not _even(found, text):
        return True
    named = found.separator != "\n" and _about(NAMED_THINGS, name, "")
    return named or (found.separator == "," and _is_qualified(parts, name, description))


def _is_qualified(parts: tuple[str, ...], name: str, description: str) -> bool:
    """Tell whether the comma may part a thing from what qualifies it."""
    if _about(PLACES, name, description) or _names_one_thing(parts):
        return True
    # "Doe, Jane" and "Crouching Tiger, Hidden Dragon" look just like a list of two.
    return len(parts) == 2 and all(part[0].isupper() for part in parts)  # noqa: PLR2004


def may_name_two_things(text: str) -> bool:
    """Tell whether a text may name two things: "salt and pepper" is one or two."""
    return bool(_CONJOINED.search(text)) and not _SENTENCE.fullmatch(text)


def _odd_shapes(parts: tuple[str, ...]) -> bool:
    """Tell whether a part is no item of a list: a clause, a formula, a piece of a sentence."""
    return any(
        len(part.split()) > _WORDS_MAX
        or len(part) > _PART_CHARS_MAX
        or _CODE.search(part)
        or _CONJUNCTION.search(part.casefold())
        for part in parts
    )


def _has_mixed_kinds(parts: tuple[str, ...]) -> bool:
    """Tell whether the parts are of different kinds: numbers among words, names among words."""
    shapes = (_NUMERIC.fullmatch, _NUMBERED.match, _CAPITAL.match, _ASKING.search)
    return any(len({bool(shape(part)) for part in parts}) > 1 for shape in shapes)


def _even(found: SplitText, text: str) -> bool:
    """Tell whether every separator is written alike, and is no part of a number."""
    pieces = text.strip().split(found.separator)[1:]
    gaps = {piece[:1].isspace() for piece in pieces}
    return len(gaps) == 1 and not ambiguous_digits(text, fractions=True)


def _names_one_thing(parts: tuple[str, ...]) -> bool:
    """Tell whether a part only qualifies what comes before: a state, a country, a title."""
    if any(part.casefold() in _SUFFIXES for part in parts):
        return True
    # "tomatoes, chopped": what was done to the one before.
    if _DONE.search(parts[-1]) and not _DONE.search(parts[0]):
        return True
    regional = [_regional(part) for part in parts]
    return any(regional) and not all(regional)


def _regional(part: str) -> bool:
    return part in _STATE_CODES or part.casefold() in _STATES | _COUNTRIES


def _about(subjects: frozenset[str], name: str, description: str) -> bool:
    """Tell whether a parameter is about such things, by its name or what is said of it."""
    said = {word.casefold() for word in re.findall(r"[A-Za-z]+", description[:500])}
    return bool(subjects & {*tokens(name), *said})
