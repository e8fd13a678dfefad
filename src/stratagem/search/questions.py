"""What a query asks for, in addition to the meaning of its words.

The meaning of a text of a few words is the sum of a few vectors, so that one word that fits is
enough to look like an answer: "how do whales sleep?" is near to an alarm at 6:15. Four things that
can be read from the query exclude many of those. Each is worth so many standard deviations of
nearness (`nearness`):

* A question says what kind of answer it wants: "when" a time, "how many" a number, "who" somebody,
  "where" a place, "why" a reason. A text that has one is likelier to be the answer, and one
  without it is less likely.
* A name that is asked for and is not there, nor anything like it, speaks against a text. So does a
  number of several digits: no other is like it. A text without a code that is asked for (`E4019`,
  `v2.5`) is not alike at all: its pieces make it near to every other code.
* So do telling words that nothing in the text is like, the more the rarer they are in general:
  "sourdough" more than "recipe".
* A question about oneself ("my", "our") is more likely to be answered by a memory than one about
  the world.

The weights are those of a logistic regression over the questions of seven stores (142 that a short
entry answers, 489 that none does), rounded. `python -m evals entries` measures them on two others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.search.characters import join_groups
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Question", "content_words", "in_first_person", "is_number", "telling_words"]

_KIND_WEIGHT: Final = 1.5
_NAME_WEIGHT: Final = 4.5
_WORD_WEIGHT: Final = 5.0
_OWN_WEIGHT: Final = 1.0

# How near a word has to be to stand for a name, and for any other word.
_NAME_NEARNESS: Final = 4.0
_WORD_NEARNESS: Final = 3.0
# In a longer query not every name and code is meant.
_WORDS_WITH_NAMES_MAX: Final = 6
# The ranks of words that tell next to nothing, and of words that tell most.
_COMMON_RANK: Final = 300
_RARE_RANK: Final = 30_000

_WORD: Final = re.compile(r"\w+")
# A version is a word, too.
_VERSION_OR_WORD: Final = re.compile(r"\d+(?:\.\d+)+|\w+")
# camelCase | snake_case | v2.5
_BORDER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_|(?<=[A-Za-z])(?=\d++\.\d)")
# E4019 | 2.5
_CODE: Final = re.compile(r"[^\W\d]+\d\w*|\d+(?:\.\d+)+")
# OPS-4472 | compute_net_total | useShoppingCart: of two that differ in one part each is another.
_COMPOUND: Final = re.compile(r"\b[A-Za-z]+-\d[\w-]*|\b[a-zA-Z]\w*_\w+|\b[a-z]+[A-Z]\w*")
_JOINTS: Final = re.compile(r"[\s_-]+")
_NAME_JOINTS: Final = ("", " ", "-", "_")
# With a digit behind it each of these goes on with a name: OPS-4472-1.
_WITHIN_NAMES: Final = ".-_"
_DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
# Not where a sentence begins.
_NAME_WITHIN: Final = re.compile(r"(?<=[^.!?:\s]\s)[A-Z][a-z]+")
_THE_USERS: Final = re.compile(r"\b(?:the )?user['’]s\b", re.IGNORECASE)
_THE_USER: Final = re.compile(r"\bthe user\b", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_ADDRESS: Final = re.compile(r"[/\\]")
_ACCOUNT: Final = re.compile(r"[@#]\w")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN: Final = _words("i me my mine myself we us our ours you your")
_NUMBERS: Final = _words("one two three four five six seven eight nine ten dozen half once twice")
_TIMES: Final = _NUMBERS | _words(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec spring summer autumn winter
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
    mondays tuesdays wednesdays thursdays fridays saturdays sundays weekday weekdays weekend
    day days week weeks fortnight month months year years hour hours minute minutes
    daily weekly monthly yearly every until today tomorrow morning noon evening night dawn
    """
)
_PEOPLE: Final = _words("team aunt uncle mother father brother sister wife husband")
_PREPOSITIONS: Final = _words("in at on")
_PLACES: Final = _PREPOSITIONS | _words(
    "under behind near room hall rack shelf street floor box boxes"
)
_REASONS: Final = _words("because since so reason")


class _Kind(NamedTuple):
    """What a text must have to be an answer of a kind: any of these."""

    words: frozenset[str]
    pattern: re.Pattern[str] | None = None
    named: bool = False

    def fits(self, text: str) -> bool:
        """Whether a text has what is asked for."""
        if self.pattern is not None and self.pattern.search(text):
            return True
        # "On Mondays" is neither a place nor somebody's name.
        words = _words_but_times(text) if self.named else _WORD.findall(text)
        if self.named and any(word[0].isupper() and word[1:2].islower() for word in words):
            return True
        return not self.words.isdisjoint(map(str.casefold, words))


_KINDS: Final[Mapping[str, _Kind]] = {
    "time": _Kind(_TIMES, _DIGIT),
    "number": _Kind(_NUMBERS, _DIGIT),
    "person": _Kind(_PEOPLE, _ACCOUNT, named=True),
    "place": _Kind(_PLACES, _ADDRESS, named=True),
    "reason": _Kind(_REASONS),
}
# The kind of answer that a question word asks for; of some with the word that follows it.
_ASKED: Final[Mapping[str, str]] = {
    "when": "time",
    "who": "person",
    "whom": "person",
    "whose": "person",
    "where": "place",
    "why": "reason",
}
_ASKED_WITH_NEXT: Final[Mapping[str, Mapping[str, str]]] = {
    "how": dict.fromkeys(("often", "long"), "time")
    | dict.fromkeys(_words("many much old fast high tall large big deep far"), "number"),
    "what": dict.fromkeys(_words("time day date year month hour"), "time")
    | dict.fromkeys(_words("number amount price age temperature percentage"), "number")
    | dict.fromkeys(_words("town city country place room street"), "place"),
}
_QUESTION_WORDS: Final = frozenset({*_ASKED, *_ASKED_WITH_NEXT, "which"})


class Question:
    """What one query asks for; `rank_of` says how rare a word is, None where it is not known."""

    def __init__(self, text: str, rank_of: Callable[[str], int | None]) -> None:
        self.words = telling_words(text)
        spoken = _WORD.findall(text.casefold())
        self._own = not _OWN.isdisjoint(spoken)
        self._kind = _kind_of_answer(spoken)
        self._names = _names_in(text, self.words)
        self._weights = {word: _weight(rank_of(word)) for word in self.words}
        self._codes = _codes_in(self.words, rank_of)
        self._compounds = _compounds_in(text, self.words, rank_of)
        self._dates = _DATE.findall(text)

    def misses_code(self, title: str, text: str) -> bool:
        """Whether a text lacks a code or a name that is asked for, or has another date.

        Its title counts, too: many a key is a code.
        """
        if not (self._codes or self._compounds or self._dates):
            return False
        text = f"{title}\n{text}"
        if _has_another_date(text, self._dates):
            return True
        if not (self._codes or self._compounds):
            return False
        small = text.casefold()
        if not all(_has_code(small, code) for code in self._codes):
            return True
        # A text of megabytes is searched for parts in a tenth of the time that joining it takes.
        if not all(part in small for parts in self._compounds for part in parts):
            return True
        joined = _remove_joints(small) if self._compounds else ""
        return not all(_has_compound(small, joined, parts) for parts in self._compounds)

    def misses_name(self, text: str) -> bool:
        """Whether a text lacks a name that is asked for; something like it may be there."""
        return bool(self._names) and not all(name in text.casefold() for name in self._names)

    def support(self, text: str) -> float:
        """Return what the kind of answer, and who is asked about, say for a text (or against)."""
        own = _OWN_WEIGHT if self._own else 0.0
        if self._kind is None:
            return own
        return own + (_KIND_WEIGHT if self._kind.fits(text) else -_KIND_WEIGHT)

    def objection(self, nearness: Mapping[str, float]) -> float:
        """Return what speaks against a text, by how near it is to each word of the query."""
        missing = sum(
            weight * min(max(1.0 - nearness[word] / _WORD_NEARNESS, 0.0), 1.0)
            for word, weight in self._weights.items()
        )
        nameless = any(nearness[name] < _NAME_NEARNESS for name in self._names)
        return _WORD_WEIGHT * missing / max(len(self.words), 1) + _NAME_WEIGHT * nameless


def in_first_person(query: str) -> str:
    """Return a query as the user would ask it.

    An agent asks where "the user" lives, and the user said "I live in Oslo". Meant is the same, but
    "user" is a telling word that no such text has anything like.
    """
    if "user" not in query.casefold():
        return query
    return _THE_USER.sub("I", _THE_USERS.sub("my", query))


def telling_words(text: str) -> list[str]:
    """Return the distinct words of a text that say what it is about; all, where none does."""
    pattern = _WORD
    if _DIGIT.search(text):
        # Most texts have no number, and are read in half of the time.
        text, pattern = join_groups(text), _VERSION_OR_WORD
    found = pattern.findall(_BORDER.sub(" ", text).casefold())
    words = [word for word in found if len(word) > 1 or word.isdigit()]
    return list(dict.fromkeys([word for word in words if word not in STOP_WORDS] or words))


def content_words(text: str) -> list[str]:
    """Return all words of a text but stop words: half of the time of telling words."""
    words = _WORD.findall(_BORDER.sub(" ", text).casefold())
    return [word for word in words if word not in STOP_WORDS]


def _words_but_times(text: str) -> list[str]:
    """Return the words of a text without those of times, and what stands before these."""
    kept: list[str] = []
    for word in _WORD.findall(text):
        if word.casefold() not in _TIMES and not word[0].isdigit():
            kept.append(word)
        elif kept and kept[-1].casefold() in _PREPOSITIONS:
            kept.pop()
    return kept


def _kind_of_answer(words: list[str]) -> _Kind | None:
    """Return what the first question word asks for."""
    for word, following in pairwise([*words, ""]):
        if word in _QUESTION_WORDS:
            kinds = _ASKED_WITH_NEXT.get("what" if word == "which" else word, {})
            return _KINDS.get(_ASKED.get(word) or kinds.get(following, ""))
    return None


def _names_in(text: str, words: list[str]) -> list[str]:
    """Return the words that are names by their capital, and numbers; none if all are capital.

    None of a long query, either.
    """
    capitals = {word.casefold() for word in _WORD.findall(text) if word[0].isupper()}
    if len(words) > _WORDS_WITH_NAMES_MAX or capitals.issuperset(words):
        return []
    names = {name.casefold() for name in _NAME_WITHIN.findall(text)}
    return [word for word in words if word in names or is_number(word)]


def _codes_in(words: list[str], rank_of: Callable[[str], int | None]) -> list[str]:
    """Return the codes among words; none of a long query.

    A word such as mp3 is no code: it has a meaning of its own.
    """
    if len(words) > _WORDS_WITH_NAMES_MAX:
        return []
    return [word for word in words if _CODE.fullmatch(word) and rank_of(word) is None]


def _compounds_in(
    text: str, words: list[str], rank_of: Callable[[str], int | None]
) -> list[list[str]]:
    """Return the parts of each name made of some that a query asks for; none of a long query.

    A word such as iPhone is none: it has a meaning of its own.
    """
    if len(words) > _WORDS_WITH_NAMES_MAX:
        return []
    return [
        _JOINTS.split(_BORDER.sub(" ", found).strip("-_ ").casefold())
        for found in _COMPOUND.findall(text)
        if not found.isalpha() or rank_of(found.casefold()) is None
    ]


def _has_another_date(text: str, dates: Collection[str]) -> bool:
    """Whether a text has dates, and not all of some."""
    found = _DATE.findall(text) if dates else []
    return bool(found) and not set(dates).issubset(found)


def _remove_joints(text: str) -> str:
    return "".join(text.replace("-", "").replace("_", "").split())


def _has_compound(text: str, joined: str, parts: Sequence[str]) -> bool:
    """Whether a text in small letters has a name made of parts; `joined` is it without joints.

    There a number that follows the name, or stands before it, looks like a part of it: `iPhone 13`.
    """
    name = "".join(parts)
    if name not in joined:
        return False
    return _has_code(joined, name) or any(
        _has_code(text, joint.join(parts), going_on=_WITHIN_NAMES) for joint in _NAME_JOINTS
    )


def _has_code(text: str, code: str, *, going_on: str = ".") -> bool:
    """Whether a text in small letters has a code: 2.5 is neither in 12.5 nor in 2.5.1.

    A code goes on where one of some marks and a digit follow.
    """
    place = text.find(code)
    while place >= 0:
        end = place + len(code)
        before, after = text[place - 1 : place], text[end : end + 2]
        goes_on = after[:1].isdigit() or (after[:1] in going_on and after[1:].isdigit())
        if not (before.isdigit() or before == "." or goes_on):
            return True
        place = text.find(code, place + 1)
    return False


def is_number(word: str) -> bool:
    """Whether a word is a number that says which one is meant: 1966, and not 2."""
    return len(word) > 1 and word.isdigit()


def _weight(rank: int | None) -> float:
    """Return how much a word tells, from 0 to 1, by its rank in the language."""
    if rank is None:
        return 1.0
    span = math.log(_RARE_RANK / _COMMON_RANK)
    return min(max(math.log(max(rank, 1) / _COMMON_RANK) / span, 0.0), 1.0)
