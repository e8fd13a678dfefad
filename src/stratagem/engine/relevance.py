"""How likely it is that two descriptions are about the same problem.

Search finds similar texts, and most of them are other problems in nearly the same words. They are
told apart by the *head* of an error, which is its own message, and by the *names* in it: the
missing module, the column, the code. Names count three times as much as other words, and a head of
one name alone is at most three quarters of a whole one.

    cq        share of the asked head that the known description has
    cc        share of the known head that the asked description has
    conflict  1 where each side has a name that the other one lacks
    cosine    how near their meaning is

    relevance = logistic(−5 + 2·cq + 4·cc − 2·conflict + 2·cosine), at most 0.97

No weight depends on what else is known, but for codes, so that a relevance means the same in a
collection of ten and in one of a hundred thousand.

Prose has no head. There, two things count: the share of the best result's title that the query has
(`title`, each word weighted by its rarity), and its lead over the next result (`gap`, at most 0.3).
A title of one or two words, beside those that any report has (`fails`), counts as the share that
both have of it and the query's first line: `Build fails on CI` is in much that is about something
else.

    relevance of the best = logistic(−3.5 + 3.5·title + 4·gap), at most 0.95

A code stands for its message, and may be asked about without it. Where both have one, the code
counts as a name that both heads have, and the words of the known head as said; its names do not.
A code says nothing where the question names what the known description lacks. Of `n` different
problems with that code one is meant at most: their relevance is an `n`th of what it would be.

The constants were fitted to pairs of which it is known whether they are the same problem, and
rounded. `python -m evals debug` shows how well the probabilities are calibrated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from math import exp, isnan
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "LISTED_MIN",
    "SAME_HEADLINE_MIN",
    "TRY_MIN",
    "CheckedWord",
    "Description",
    "HeadWord",
    "ProblemComparison",
    "compare",
    "compare_by_code",
    "may_reach",
    "prose_relevance",
    "title_share",
    "title_weight",
]

# From here on a fix is recommended, unless the setting says otherwise.
TRY_MIN: Final = 0.4
# Less likely incidents are not listed.
LISTED_MIN: Final = 0.1
# Words can be the same for two problems, so only the same signature is certain.
SAME_HEADLINE_MIN: Final = 0.97

_NAME_WEIGHT: Final = 3.0
_WORD_WEIGHT: Final = 1.0
# The least weight that a head is divided by. A library called `codec` is not every error that
# speaks of a codec, so a share of 1 takes a name and a word at least.
_SINGLE_WORD_TOTAL: Final = _NAME_WEIGHT + _WORD_WEIGHT
_BASE: Final = -5.0
_ASKED_SHARE: Final = 2.0
_KNOWN_SHARE: Final = 4.0
_CONFLICT: Final = -2.0
_MEANING: Final = 2.0
_PROSE_BASE: Final = -3.5
_PROSE_TITLE: Final = 3.5
_PROSE_GAP: Final = 4.0
_PROSE_GAP_MAX: Final = 0.3
_PROSE_MAX: Final = 0.95
# A title of so few terms is in many a text that is about something else.
_BRIEF_TITLE_TERMS: Final = 2
# What two ways to compute a relevance may differ by.
_ROUNDING: Final = 1e-9
# What joins the parts of a name.
_JOINTS: Final = frozenset("-_")
# At most 60 characters: what stands before a name. `@types/node` is not `node`.
_SCOPE: Final = re.compile(r"@[\w.-]+/$")
_SCOPE_CHARS_MAX: Final = 60
# Shorter words are parts of too many others.
_SUBSTRING_CHARS_MIN: Final = 4


class HeadWord(NamedTuple):
    """A word of a head, the terms it is found by, and whether it names something.

    `versions` are those in which something of that name is asked for, where the head says so. An
    ASCII text in small letters and without joints has all `beginnings` if it has the terms.
    """

    text: str
    terms: frozenset[str]
    is_name: bool
    versions: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """What it counts."""
        return _NAME_WEIGHT if self.is_name else _WORD_WEIGHT


Head = Sequence[HeadWord]


@dataclass(eq=False)
class Description:
    """The description of a problem: its heads, and its text, which `analyse` turns into terms."""

    heads: Sequence[Head]
    told: str
    analyse: Callable[[str], Iterable[str]]

    # Most words are found in the head of the other side: what the text has is rarely asked for.
    @cached_property
    def terms(self) -> frozenset[str]:
        """All terms of the text."""
        return frozenset(self.analyse(self.told))

    @cached_property
    def text(self) -> str:
        """The text in lower case."""
        return self.told.lower()

    @cached_property
    def _text_without_joints(self) -> str:
        """The same without joints."""
        return self.text.replace("-", "").replace("_", "").replace("'", "")

    def has(self, word: HeadWord) -> bool:
        """Whether the description contains a word."""
        # `torch` is not `torchvision`, nor `puma` a part of `puma_worker_killer`...
        if word.is_name and len(word.terms) == 1 and not word.text.isdigit():
            return _stands_in(word.text, self.text)
        may_have = not word.beginnings or self._may_have_terms(word)
        if may_have and word.terms and word.terms <= self.terms:
            return True
        if word.text.isdigit() or len(word.text) < _SUBSTRING_CHARS_MIN:
            return False
        # ...but `connect` is in `reconnecting`.
        return _stands_in(word.text, self.text) if word.is_name else word.text in self.text

    def _may_have_terms(self, word: HeadWord) -> bool:
        # Most texts have not, and it takes longer to analyse one than all the rest.
        return not self.told.isascii() or all(
            map(self._text_without_joints.__contains__, word.beginnings)
        )


# A word of a head, and whether the other side speaks of it.
CheckedWord = tuple[HeadWord, bool]


class ProblemComparison(NamedTuple):
    """How likely two descriptions are about one problem, and by which words."""

    relevance: float
    asked: Sequence[CheckedWord] = ()
    known: Sequence[CheckedWord] = ()

    @property
    def shared_words(self) -> tuple[str, ...]:
        """Words of either head that both have, names first."""
        return _texts([*self.asked, *self.known], found=True)

    @property
    def asked_only(self) -> tuple[str, ...]:
        """Words of the asked head that the known description lacks, names first."""
        return _texts(self.asked, found=False)

    @property
    def known_only(self) -> tuple[str, ...]:
        """Words of the known head that the asked description lacks, names first."""
        return _texts(self.known, found=False)

    @property
    def differs_in_names(self) -> bool:
        """Whether both heads say the same, each of something that the other does not name."""
        words = all(found for word, found in [*self.asked, *self.known] if not word.is_name)
        return words and _lacks_name(self.known) and _lacks_name(self.asked)


class _HeadPair(NamedTuple):
    """Two heads, each with the words that the other description shares."""

    asked: list[CheckedWord]
    known: list[CheckedWord]
    asked_share: float
    known_share: float

    @property
    def harmonic(self) -> float:
        total = self.asked_share + self.known_share
        return 2 * self.asked_share * self.known_share / total if total else 0.0

    @property
    def likeness(self) -> float:
        """By which the best of several pairs is chosen."""
        return self.harmonic + _dice(self.asked, self.known)

    def relevance(self, cosine: float) -> float:
        """Return how likely both are about one problem, if their texts are so near in meaning."""
        meaning = self.harmonic if isnan(cosine) else cosine
        logit = (
            _BASE
            + _ASKED_SHARE * self.asked_share
            + _KNOWN_SHARE * self.known_share
            + _CONFLICT * (_lacks_name(self.asked) and _lacks_name(self.known))
            + _MEANING * meaning
        )
        return min(SAME_HEADLINE_MIN, _logistic(logit))


def compare(asked: Description, known: Description, cosine: float) -> ProblemComparison:
    """Return how likely a known problem is the one asked about; the best pair of heads counts.

    Where the meaning is not known (`cosine` is NaN), it is taken to be as near as the words.
    """
    pairs = [_pair(asked, one, known, other) for one in asked.heads for other in known.heads]
    if not pairs:
        return ProblemComparison(0.0)
    best = pairs[0] if len(pairs) == 1 else max(pairs, key=lambda each: each.likeness)
    return ProblemComparison(best.relevance(cosine), best.asked, best.known)


def may_reach(least: float, asked: Description, known: Description, cosine: float) -> bool:
    """Say whether a known problem may be the one asked about with a probability of `least`.

    Of the words that were asked about only names are looked for: most problems lack them, and are
    told from the one asked about in half the time.
    """
    if least <= 0:
        return True
    pairs = (_most_alike(asked, one, known, other) for one in asked.heads for other in known.heads)
    return any(pair.relevance(cosine) >= least - _ROUNDING for pair in pairs)


def compare_by_code(
    asked: Description, known: Description, cosine: float, sharing: int
) -> ProblemComparison:
    """Return how likely a known problem is meant by a code that both descriptions have.

    Their heads are what they say beside the code. `sharing` different problems are known by the
    code, and no more than one of them is meant.
    """
    heads = [(one, other) for one in asked.heads or [()] for other in known.heads or [()]]
    pairs = [_pair(asked, one, known, other) for one, other in heads]
    best = max(pairs, key=lambda each: each.likeness)
    if _lacks_name(best.asked):
        return ProblemComparison(0.0)
    said = [(word, found or not word.is_name) for word, found in best.known]
    asked_share, known_share = _share_with_code(best.asked), _share_with_code(said)
    lacks_word = any(not found for _, found in best.asked)
    logit = (
        _BASE
        + _ASKED_SHARE * asked_share
        + _KNOWN_SHARE * known_share
        + _CONFLICT * (lacks_word and _lacks_name(best.known))
        + _MEANING * (min(asked_share, known_share) if isnan(cosine) else cosine)
    )
    return ProblemComparison(_logistic(logit) / sharing, best.asked, best.known)


def prose_relevance(title: float, gap: float) -> float:
    """Return how likely the best result for a description in prose is the problem asked about.

    `title` is the share of the result's title that was asked about, `gap` how far its score is
    ahead of the next one's.
    """
    ahead = min(_PROSE_GAP_MAX, max(0.0, gap))
    return min(_PROSE_MAX, _logistic(_PROSE_BASE + _PROSE_TITLE * title + _PROSE_GAP * ahead))


def title_share(title: Iterable[str], asked: frozenset[str], rarity: Mapping[str, float]) -> float:
    """Return which share of the terms of a title was asked about, rare ones first."""
    weights = {term: rarity.get(term, 0.0) for term in title}
    total = sum(weights.values())
    return sum(weights[term] for term in weights if term in asked) / total if total else 0.0


def title_weight(
    title: Collection[str], asked: Collection[str], untelling: Collection[str] = ()
) -> float:
    """Return how much of a match a title can be, from 0 to 1.

    A brief one counts as the share that both have of it and the line that says what is asked about.
    `untelling` terms make no title longer.
    """
    if len({*title}.difference(untelling)) > _BRIEF_TITLE_TERMS:
        return 1.0
    return len({*title}.intersection(asked)) / len({*title}.union(asked)) if title else 0.0


def _pair(asked: Description, one: Head, known: Description, other: Head) -> _HeadPair:
    ours = _check_words(one, known, other)
    theirs = _check_words(other, asked, one)
    return _HeadPair(ours, theirs, _share(ours), _share(theirs))


def _most_alike(asked: Description, one: Head, known: Description, other: Head) -> _HeadPair:
    """Return two heads as if the known description had all words of the asked one but names."""
    names = [word for word in one if word.is_name]
    ours = _check_words(names, known, other)
    ours += [(word, True) for word in one if not word.is_name]
    theirs = _check_words(other, asked, one)
    return _HeadPair(ours, theirs, _share(ours), _share(theirs))


def _check_words(head: Head, other: Description, other_head: Head) -> list[CheckedWord]:
    """Return the words of a head, and whether the other side has each in the same version."""
    texts = {word.text for word in other_head}
    return [
        (
            word,
            (word.text in texts or other.has(word))
            and not (word.versions and _is_other_version(word, other_head)),
        )
        for word in head
    ]


def _is_other_version(word: HeadWord, head: Head) -> bool:
    """Say whether a head names the same thing as a word, but only in another version."""
    same_name = (other.versions for other in head if other.text == word.text)
    return any(versions and not versions & word.versions for versions in same_name)


def _stands_in(name: str, text: str) -> bool:
    """Say whether a text has a name whole, and not as a part of a longer one."""
    begin = text.find(name)
    while begin >= 0:
        end = begin + len(name)
        before = text[max(0, begin - _SCOPE_CHARS_MAX) : begin]
        if not (_goes_on(text[end : end + 2]) or _goes_on(before[:-3:-1]) or _SCOPE.search(before)):
            return True
        begin = text.find(name, begin + 1)
    return False


def _goes_on(signs: str) -> bool:
    """Say whether a name goes on with these signs: `torch-geometric` is not `torch`."""
    return signs[:1].isalnum() or (signs[:1] in _JOINTS and signs[1:].isalpha())


def _share(words: Sequence[CheckedWord]) -> float:
    total = said = 0.0
    for word, found in words:
        weight = _NAME_WEIGHT if word.is_name else _WORD_WEIGHT
        total += weight
        if found:
            said += weight
    if len(words) == 1:
        total = _SINGLE_WORD_TOTAL
    return said / total if total else 0.0


def _share_with_code(words: Sequence[CheckedWord]) -> float:
    """Return which share of a head is said, of which the code is a part that is."""
    total = _NAME_WEIGHT + sum(word.weight for word, _ in words)
    return (_NAME_WEIGHT + sum(word.weight for word, found in words if found)) / total


def _dice(one: Sequence[CheckedWord], other: Sequence[CheckedWord]) -> float:
    mine, theirs = ({word.text: word.weight for word, _ in head} for head in (one, other))
    total = sum(mine.values()) + sum(theirs.values())
    shared = sum(mine[text] + theirs[text] for text in mine.keys() & theirs.keys())
    return shared / total if total else 0.0


def _lacks_name(words: Sequence[CheckedWord]) -> bool:
    return any(word.is_name and not found for word, found in words)


def _texts(words: Sequence[CheckedWord], *, found: bool) -> tuple[str, ...]:
    chosen = [word for word, there in words if there == found]
    ordered = sorted(chosen, key=lambda word: not word.is_name)
    return tuple(dict.fromkeys(word.text for word in ordered))


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit))
