"""Which known name was probably meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stratagem.deferred_modules import difflib

__all__ = ["nearest"]

_ALIKE_MIN: Final = 0.6
_PART_LIKENESS: Final = 0.9
_AS_BLANKS: Final = str.maketrans("/:._-", "     ")


def nearest(wanted: str, among: Iterable[str], count: int) -> list[str]:
    """Return the names that are most like the one that is wanted, if they are alike at all."""
    folded = _fold(wanted)
    scored = [
        (score, each) for each in among if (score := _likeness(folded, _fold(each))) >= _ALIKE_MIN
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    return [each for _score, each in scored[:count]]


def _fold(name: str) -> str:
    """Return a name without case and word separators, which people rarely remember."""
    return name.casefold().translate(_AS_BLANKS)


def _likeness(wanted: str, name: str) -> float:
    """Return how alike two names are, or what was wanted and the same number of a name's words."""
    words, count = name.split(), len(wanted.split())
    parts = {" ".join(words[:count]), " ".join(words[-count:])} - {name}
    return max([_ratio(wanted, name), *(_PART_LIKENESS * _ratio(wanted, part) for part in parts)])


def _ratio(wanted: str, name: str) -> float:
    if len(wanted) == len(name) and sorted(wanted) == sorted(name):
        # Letters that changed places: of a short name they are most of it.
        return 1.0
    matcher = difflib.SequenceMatcher(None, wanted, name)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _ALIKE_MIN:
        return 0.0
    return matcher.ratio()
