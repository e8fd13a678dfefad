"""Which parameter a name means that the schema does not have.

A name is a *style variant* when it differs only in case and separators. It is a *misspelling*
when one slip (two in a long name) leads to exactly one parameter and to no other, and what was
slipped upon is not itself a word: `wieght` is `weight`, but `height` is not. Numbers and units in
names are never slips, nor is a letter that makes another quantity: `xmax` is not `max`.
Everything else is only offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.correction.words import (
    SYNONYMS,
    UNITS,
    distance,
    is_common,
    is_word,
    normal,
    singular,
    tokens,
)

__all__ = ["NameMatch", "Names", "are_words"]

_LONG_NAME: Final = 9
_SHORT_WORD: Final = 5
_LONG_WORD: Final = 7
_LEAST: Final = 3
_FAR: Final = 3
_DIGITS: Final = re.compile(r"[0-9]+")
_NEGATIONS: Final = ("in", "un", "non", "dis", "no", "not", "de", "ex", "im", "a")
_CONTAINED_MIN: Final = 3
# Letters that make one quantity into another: `xmax`, `nrows`, `tempc`.
_INDEX_LETTERS: Final = frozenset("abcdefijkmnpqrtuvwxyz")
_AXES: Final = frozenset("cfkxyz")
_ENDINGS: Final = ("s", "es", "ed", "d", "ing", "er", "r", "or", "ion", "al", "ly", "y")
# What stands before some of them.
_BEFORE: Final[dict[str, str | tuple[str, ...]]] = {
    "d": "e",
    "r": "e",
    "es": ("s", "x", "z", "h", "o"),
}
# What means something else in the plural.
_OTHER_IN_PLURAL: Final = frozenset(
    """arm compass content custom damage due earning force glass good look manner mean minute new
    odd remain saving work""".split()
)
_BRITISH: Final = {
    "analyse": "analyze",
    "catalogue": "catalog",
    "centre": "center",
    "cheque": "check",
    "colour": "color",
    "colours": "colors",
    "favourite": "favorite",
    "grey": "gray",
    "licence": "license",
    "litre": "liter",
    "metre": "meter",
    "normalise": "normalize",
    "optimise": "optimize",
    "organisation": "organization",
    "programme": "program",
    "standardise": "standardize",
    "summarise": "summarize",
}


# The same word cut short, wherever it stands. Not `min`, which is a unit, nor what may be cut from
# several words: `desc`, `dir`, `temp`, `num`.
_ABBREVIATED: Final = {
    "addr": "address",
    "avg": "average",
    "cfg": "configuration",
    "config": "configuration",
    "ctx": "context",
    "db": "database",
    "dest": "destination",
    "dst": "destination",
    "env": "environment",
    "idx": "index",
    "img": "image",
    "lang": "language",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "max": "maximum",
    "msg": "message",
    "org": "organization",
    "params": "parameters",
    "passwd": "password",
    "pkg": "package",
    "pwd": "password",
    "qty": "quantity",
    "repo": "repository",
    "src": "source",
    "tz": "timezone",
}


class NameMatch(NamedTuple):
    """A parameter that may be meant, and by which pattern."""

    name: str
    pattern: str


class Names:
    """The parameters of one object, ready for being looked up by a name that is not theirs."""

    def __init__(self, parameters: Iterable[str]) -> None:
        self.parameters = list(parameters)
        self._styles = _group_by_form(self.parameters, normal)
        self._american = _group_by_form(self.parameters, _american)
        self._singular = _group_by_form(self.parameters, _singular)
        self._spelled_out = _group_by_form(self.parameters, _spelled_out)

    def names_of_other_style(self, key: str) -> list[str]:
        """Return the parameters that differ from a name in nothing but style."""
        return self._styles.get(normal(key), [])

    def cost(self) -> int:
        """Return how much work it is to look for what resembles a name."""
        known = len(self.parameters)
        return 1 if known > limits.CORRECTION_SPELLED_MAX else 1 + known

    def matches(self, key: str) -> list[NameMatch]:
        """Return the parameters that a name may mean: the certain ones, or what resembles it.

        Parameters that are already given count too: a name that is as near to one of them as to
        another parameter is not a clear misspelling.
        """
        if not normal(key):
            return []
        by_style = self.names_of_other_style(key) or self._american.get(_american(key), [])
        if by_style:
            return [NameMatch(name, "key_style_variant") for name in by_style]
        by_length = self._spelled_out.get(_spelled_out(key), [])
        if len(by_length) == 1 and not self._goes_on(key, by_length[0]):
            return [NameMatch(by_length[0], "key_abbreviation")]
        by_number = self._singular.get(_singular(key), [])
        if by_number:
            other = any(singular(word) in _OTHER_IN_PLURAL for word in tokens(key))
            return [
                NameMatch(name, "key_other_word" if other else "key_plural") for name in by_number
            ]
        if len(self.parameters) > limits.CORRECTION_SPELLED_MAX:
            return []
        return list(_similar_spellings(key, self.parameters)) or list(
            _related_names(key, self.parameters)
        )

    def _goes_on(self, key: str, name: str) -> bool:
        """Tell whether another parameter begins with a name: it may be that one cut short."""
        begun = normal(key)
        return any(other != name and normal(other).startswith(begun) for other in self.parameters)


def _group_by_form(names: list[str], form: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(form(name), []).append(name)
    return found


def _american(name: str) -> str:
    return "".join(_BRITISH.get(word, word) for word in tokens(name))


def _spelled_out(name: str) -> str:
    words = (_BRITISH.get(word, word) for word in tokens(name))
    return "".join(_ABBREVIATED.get(word, word) for word in words)


def _singular(name: str) -> str:
    return "".join(singular(word) for word in tokens(name))


def _similar_spellings(key: str, known: list[str]) -> Iterator[NameMatch]:
    wanted = normal(key)
    near = sorted((distance(wanted, normal(name), _FAR), name) for name in known)
    if not near or near[0][0] >= _FAR:
        return
    best = near[0][0]
    nearest = [name for slips, name in near if slips == best]
    if len(nearest) == 1 and _misspelt(key, nearest[0], best):
        yield NameMatch(nearest[0], "key_misspelling")
    elif len(wanted) > _LEAST or best == 1:
        for name in nearest:
            other = are_words(key) or _DIGITS.findall(key) != _DIGITS.findall(name)
            yield NameMatch(name, "key_other_word" if other else "key_resembles")


def _misspelt(key: str, name: str, slips: int) -> bool:
    """Tell whether a name is clearly a slip for another."""
    one, other = normal(key), normal(name)
    if min(len(one), len(other)) < _LEAST or (slips > 1 and len(other) < _LONG_NAME):
        return False
    if _DIGITS.findall(one) != _DIGITS.findall(other) or _is_negation(one, other):
        return False
    return not _real_words(tokens(key), tokens(name))


def _is_negation(one: str, other: str) -> bool:
    return any(one == prefix + other or other == prefix + one for prefix in _NEGATIONS)


def _real_words(given: tuple[str, ...], meant: tuple[str, ...]) -> bool:
    """Tell whether what differs is made of words that mean something else."""
    if len(given) != len(meant):
        # A letter by itself is a word here: `k_value` is not `value`.
        return all(len(word) == 1 or _real(word) for word in given)
    pairs = [(one, other) for one, other in zip(given, meant, strict=True) if one != other]
    return any(
        _means_itself(one, other)
        or _another(one, other)
        or _differ_in_unit(one, other)
        or _differ_in_index(one, other)
        for one, other in pairs
    )


def _differ_in_unit(one: str, other: str) -> bool:
    """Tell whether two words are units, or end in different ones: `lengthcm`, `lengthmm`."""
    if one in UNITS and other in UNITS:
        return True
    if is_word(other):
        # `promt` and `prompt` end in units only by chance.
        return False
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    ends = (one[shared:], other[shared:])
    both = max(map(len, ends)) > 1 and set(ends) <= UNITS
    # What the two units begin with alike: `lengthmm` and `lengthm`.
    longer = (one[shared - 1 :], other[shared - 1 :])
    return shared > _LEAST and (both or set(longer) <= UNITS)


def _differ_in_index(one: str, other: str) -> bool:
    """Tell whether a letter more makes the name of another quantity."""
    if not is_word(other) or len(one) != len(other) + 1:
        return False
    before = one[1:] == other and one[0] in _INDEX_LETTERS and one[0] != other[0]
    return before or (one[:-1] == other and one[-1] in _AXES and one[-1] != other[-1])


def are_words(key: str) -> bool:
    """Tell whether a name is made of words, so that it means something by itself."""
    return all(_real(word) for word in tokens(key))


def _means_itself(one: str, other: str) -> bool:
    """Tell whether a word is no slip for another.

    That a slip in a long word leaves two words is chance: `forcast`, `prodcut`, `destnation`.
    """
    plain = len(other) >= _LONG_WORD and is_word(other) and one[0] == other[0]
    return _is_listed_word(one) or _is_inflected(one) or (not plain and _compound(one))


def _real(word: str) -> bool:
    return _is_listed_word(word) or _compound(word) or _is_inflected(word)


def _is_listed_word(word: str) -> bool:
    return is_word(word) or word.isdecimal()


def _compound(word: str) -> bool:
    return any(is_common(word[:at]) and is_common(word[at:]) for at in range(_LEAST, len(word) - 2))


def _is_inflected(word: str) -> bool:
    return len(word) >= _SHORT_WORD and any(
        word.endswith(ending) and _takes_ending(word[: -len(ending)], ending) for ending in _ENDINGS
    )


def _takes_ending(stem: str, ending: str) -> bool:
    """Tell whether a word can have an ending: `user` is one, `customr` and `queryy` are slips."""
    if is_common(stem + "e") and ending not in {"s", "d", "r"}:
        return True
    return is_common(stem) and stem.endswith(_BEFORE.get(ending, "")) and stem[-1] != ending


def _another(one: str, other: str) -> bool:
    """Tell whether two words are too different for a slip.

    A word has one slip at most. Abbreviations are too short for a wrong letter, and in short
    words the first or last letter makes another word.
    """
    if distance(one, other, 2) > 1:
        return True
    if len(one) != len(other) or sorted(one) == sorted(other):
        return False
    if len(other) < _SHORT_WORD:
        return len(other) <= _LEAST or one[1:] == other[1:] or one[:-1] == other[:-1]
    return len(other) == _SHORT_WORD and one[1:] == other[1:]


def _related_names(key: str, known: list[str]) -> Iterator[NameMatch]:
    """Yield what means about the same, or is a part of the name, or has it as a part."""
    words = {singular(word) for word in tokens(key)}
    wanted = normal(key)
    for name in known:
        others = {singular(word) for word in tokens(name)}
        other = normal(name)
        if any(wanted in group and other in group for group in SYNONYMS):
            yield NameMatch(name, "key_synonym")
        elif words <= others or others <= words or _abbreviates(wanted, other):
            yield NameMatch(name, "key_contained")
        elif any(_synonymous(words, others, group) for group in SYNONYMS):
            yield NameMatch(name, "key_synonym")


def _abbreviates(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _CONTAINED_MIN and long.startswith(short)


def _synonymous(words: set[str], others: set[str], group: frozenset[str]) -> bool:
    """Tell whether two names differ in one word each, and the two mean about the same."""
    mine, theirs = words - others, others - words
    return len(mine) == 1 and len(theirs) == 1 and mine <= group and theirs <= group
