"""From the matches of the index to the hits that a search returns.

Each hit is judged by itself (`search.relevance`), and shown by the passage that matches best. Of a
logged conversation a hit is an exchange: a user's message comes with what was replied, an
assistant's with what it replied to.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

import orjson

from stratagem import limits
from stratagem.answers import chars_of
from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments, values
from stratagem.engine.lineage import View
from stratagem.memory.kinds import (
    ENTRY,
    HIDING_DECISIONS,
    REVIEWS,
    TRUST,
    UNTRUSTED,
    event_text,
    event_title,
    logged_events,
    origin_moment,
    origin_time,
)
from stratagem.memory.messages import Side, role_of, side_of, words_of
from stratagem.memory.models import Hit, Instruction, Lowered, Reply, WhyFound
from stratagem.memory.standing import STANDING, find_standing
from stratagem.search import analysis, ranking, relevance
from stratagem.search.index import Ranked, Ranking, lent_terms
from stratagem.search.record_finders import FoundByName
from stratagem.search.snippets import Excerpt, excerpt, is_cut, snippet
from stratagem.storage.contract import EventContent, Reader

__all__ = [
    "HitReader",
    "NamedPlace",
    "Page",
    "hit_by_name",
    "is_doubtful",
    "is_thrown_away",
    "newest_instructions",
    "read_instruction",
]

_SCORE_DIGITS: Final = 4
# Hits are read in groups: most of the first ones are good enough.
_READ_MIN: Final = 8
# So many hits are read before they are ordered by how well each answers by itself, too: the first
# page. So the order does not depend on how many are asked for.
_SORTED_TOGETHER: Final = limits.SEARCH_K_DEFAULT
# Entries that say the same in as many words, under keys of other lengths, are ranked so far apart.
_EQUAL_RANKS: Final = 0.06
# The namespace of an event, its label, whose side a message is of, its trust, and its words.
_Identity: TypeAlias = tuple[str, str, Side | None, str | None, str]
# So much of a text shows whether its words are known.
_SAMPLE_CHARS: Final = 200
# How many that are too weak to be hits are named where there is no hit.
_NEAREST_MAX: Final = 3
# What a reply replies to is looked for among so many messages: calls of tools may lie between.
_EXCHANGE_TURNS: Final = 12
# Of the newest standing instructions those of one namespace are shown: of so many, and where they
# are too few of more.
_INSTRUCTIONS_READ: Final = 100
_INSTRUCTIONS_MOST: Final = 5_000
# And a reply among so many: an agent that works on a question calls tools twenty times, and says a
# word before each.
_REPLY_TURNS: Final = 48
# Mostly the next message is the reply, and the one after it the next question.
_REPLY_TURNS_FIRST: Final = 2
# A question may say so many terms that the query does not, and be no answer to it; one that was
# captured more of them.
_NEW_TERMS: Final = 2
_NEW_TERMS_CAPTURED: Final = 4
# A longer one tells something.
_QUESTION_CHARS: Final = 500
# Nobody types a longer message twice.
_REPEATED_CHARS: Final = 4_000
_QUESTION_MARKS: Final = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_CLOSING: Final = "\"')*_"
# Prompts often have no mark. At most 500 characters.
_UNMARKED_QUESTION: Final = deferred_pattern(
    r"(?:what|when|where|which|who|why|how)"
    r"(?:'s|\s(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|had))\b"
    r"[^.:;!?\n]*",
    re.IGNORECASE,
)
# What is stated or asked for as a favour, all the same.
_NO_QUESTION: Final = deferred_pattern(
    r"\A(?:can|could|will|would) you (?:please )?(?:keep in mind|note|remember)\b"
    r"|[,;:.!] ?(?:correct|no|ok|okay|please|right|yes)[^\w\s]+\Z|\w[.!] \S",
    re.IGNORECASE,
)
# So many hits are put after all others; of each the session is read.
_LAST_MAX: Final = 50


class NamedPlace(NamedTuple):
    """What an entry or a logged event is called, and its namespace."""

    name: str
    namespace: str


class Page(NamedTuple):
    """Hits, and whether there are more; where there is none at all, what is nearest.

    `terms` are those of the query that any of its entries and logged events has, as it is shown.
    `ended_at` says how many hits there are, where they end before the page.
    """

    hits: list[Hit]
    more: bool
    terms: set[str]
    nearest: Sequence[NamedPlace] = ()
    ended_at: int | None = None


class _Found(NamedTuple):
    """A version that a ranking found, what is shown of it, and what it has of the query.

    `present` are the terms asked for that it has, and `covered` is how much of the query they are.
    `near` is how near a text of a few words is; NaN for a longer one.
    """

    ranking: Ranking
    ranked: Ranked
    event: EventContent
    content: Mapping[str, Any]
    is_entry: bool
    title: str
    value: Any
    text: str
    excerpt: Excerpt
    present: set[str]
    covered: float
    near: float

    @property
    def key_and_text(self) -> tuple[str | None, str]:
        """What is compared word for word where the text is short."""
        return (self.title, f"{self.title} {self.text}") if self.is_entry else (None, self.text)

    @property
    def place(self) -> NamedPlace:
        label = self.content.get("event")
        name = repr(self.title) if self.is_entry else f"@{self.event.sequence} {label}"
        return NamedPlace(name, self.event.space.namespace)


class _Judgement(NamedTuple):
    """How well a hit answers, and how much words and meaning contribute to that."""

    score: float
    covered: float
    alike: float


class _Judged(NamedTuple):
    """A version that was found and is good enough; `lowered` as in a hit."""

    found: _Found
    judgement: _Judgement
    lowered: Lowered | None = None

    @property
    def score(self) -> float:
        """How well it answers, as a hit says it."""
        return round(self.judgement.score, _SCORE_DIGITS)


class HitReader:
    """Reads what rankings found, as a view shows it; each ranking goes on after the one before."""

    def __init__(
        self,
        reader: Reader,
        view: View,
        rankings: Iterable[Ranking],
        rarity: Mapping[str, float],
        *,
        min_score: float | None,
        explain: bool = False,
    ) -> None:
        self._reader = reader
        self._explain = explain
        self._view = view
        self._rankings = rankings
        self._coverage = relevance.Coverage(rarity)
        self._asked = analysis.AskedTerms(rarity)
        self._min_score = min_score
        self._weak: list[NamedPlace] = []
        self._last: list[_Judged] = []
        self._replies: dict[int, EventContent | None] = {}

    def read(self, skip: int, k: int, others: Sequence[Iterable[Hit]] = ()) -> Page:
        """Return `k` hits that are good enough, after those of earlier pages.

        `others` are what other systems found: each hit is merged in by how well it answers.
        """
        places: Sequence[_Judged | Hit]
        beyond = False
        if others:
            places = self._merge(skip + k + 1, others)
        else:
            places, beyond = self._whole_blocks(skip + k)
        ended_at = len(places) if 0 < len(places) <= skip else None
        nearest = () if places else self._weak
        more = beyond or len(places) > skip + k
        page = places[skip : skip + k]
        terms = set[str]().union(
            *(each.found.present for each in page if not isinstance(each, Hit))
        )
        return Page(self._finish(page), more, terms, nearest, ended_at)

    def _merge(self, wanted: int, others: Sequence[Iterable[Hit]]) -> list[_Judged | Hit]:
        blocks = self._blocks(self._good_enough(wanted + _SORTED_TOGETHER))
        own = (each for block in blocks for each in _sort_block(block, _by_score))
        lists: list[Iterable[_Judged | Hit]] = [own, *others]
        places = list(islice(heapq.merge(*lists, key=lambda place: -place.score), wanted))
        return places if len(places) == wanted else [*places, *self._last_places(_by_score)]

    def _whole_blocks(self, wanted: int) -> tuple[list[_Judged], bool]:
        """Return at least so many places where there are, and whether there is one more."""
        end = wanted + -wanted % _SORTED_TOGETHER
        found = self._good_enough(end + 1)
        blocks = islice(self._blocks(found), end // _SORTED_TOGETHER)
        places = [each for block in blocks for each in _sort_block(block, _by_both)]
        if len(places) < end:
            return [*places, *self._last_places(_by_both)], False
        return places, bool(self._last) or next(found, None) is not None

    def _last_places(self, key: Callable[[_Judged], float]) -> Iterator[_Judged]:
        """Yield what says nothing new, which comes after everything else."""
        last = iter(self._last)
        while block := list(islice(last, _SORTED_TOGETHER)):
            yield from _sort_block(block, key)

    def _blocks(self, found: Iterator[_Judged]) -> Iterator[list[_Judged]]:
        """Yield hits a few at a time, without those that come last: they are put aside.

        Sorted all together, each page would be cut out of another order. What was logged again in
        the same words (a question, the failure of a tool) gives its place to the better one of the
        same block alone, for the same reason.
        """
        block: list[_Judged] = []
        said: dict[_Identity, int] = {}
        begin = 0
        for each in found:
            if not _may_repeat(each.found) or len(self._last) >= _LAST_MAX:
                block.append(each)
            elif self._only_asks(each.found):
                self._last.append(each._replace(lowered="unanswered"))
            else:
                place = said.setdefault(_identity_of(each.found), begin + len(block)) - begin
                if place == len(block):
                    block.append(each)
                else:
                    worse = each
                    if place >= 0 and self._says_more(each.found, block[place].found):
                        worse, block[place] = block[place], each
                    self._last.append(worse._replace(lowered="repeated"))
            if len(block) == _SORTED_TOGETHER:
                yield block
                begin += len(block)
                block = []
        if block:
            yield block

    def _only_asks(self, found: _Found) -> bool:
        """Whether a message asks, and says next to nothing that the query does not say.

        It is no answer then: not even the prompt of this turn, which matches best of all. The
        session is read last, and only for such a message.
        """
        words = _words_of_user(found)
        if words is None or len(words) > _QUESTION_CHARS or not _is_question(words):
            return False
        new = [term for term in analysis.query_terms(words) if term not in self._asked]
        # A reply to what was captured would have been captured, too. Who logs may log users only.
        most = _NEW_TERMS_CAPTURED if "capture" in found.content else _NEW_TERMS
        if len(new) > most or any(map(_has_digit, new)):
            return False
        return self._find_reply(found) is None and not self._answers_question(found)

    def _answers_question(self, found: _Found) -> bool:
        before = self._sides_of(self._turns(found, before=1, after=0))
        return any(
            side == "answering" and _is_question(words_of(_data(event))) for event, side in before
        )

    def _says_more(self, one: _Found, other: _Found) -> bool:
        """Whether of two events in the same words one is a question with an answer, or is newer."""
        if _words_of_user(one) is None:
            return one.event.sequence > other.event.sequence
        mine, theirs = (
            (self._find_reply(each) is not None, each.event.sequence) for each in (one, other)
        )
        return mine > theirs

    def _good_enough(self, wanted: int) -> Iterator[_Judged]:
        weak_count = 0
        for each in self._open_all(max(wanted, _READ_MIN)):
            judged = self._judge(each)
            score = judged.score
            is_hit = score >= self._floor(each)
            weak_count += not is_hit
            if weak_count > limits.SEARCH_WEAK_MAX:
                return
            is_weak = score > 0 and len(self._weak) < _NEAREST_MAX
            if not (is_hit or is_weak) or is_thrown_away(self._reader, self._view, each.content):
                continue
            if is_hit:
                yield _Judged(each, judged)
            else:
                self._weak.append(each.place)

    def _open_all(self, size: int) -> Iterator[_Found]:
        """Read what was found, best first, in groups."""
        for part in self._rankings:
            found = part.found
            begin = 0
            while begin < len(found):
                group = found[begin : begin + size]
                begin += size
                # Where few are good enough, a server is not asked for a few at a time.
                size *= 2
                events = self._reader.log.contents([ranked.sequence for ranked in group])
                opened = [self._open(part, ranked, events[ranked.sequence]) for ranked in group]
                _embed_unsure(part, opened)
                yield from opened

    def _open(self, part: Ranking, ranked: Ranked, event: EventContent) -> _Found:
        content = orjson.loads(event.payload)
        is_entry = event.space.kind == ENTRY
        title = event.key or "" if is_entry else event_title(content)
        value = content["value" if is_entry else "data"]
        text = values.text_of(value) if is_entry else event_text(value)
        shown = excerpt(text, self._asked, ranked.passage)
        present = shown.terms
        if len(present) < len(self._asked):
            present = present | analysis.find_terms(title, self._asked)
        covered = self._coverage.of(present)
        near = math.nan
        if part.nearness is not None and len(text) <= relevance.SHORT_CHARS_MAX:
            near = part.nearness.of_cosine(ranked.cosine)
            near -= 0.0 if is_entry else relevance.EVENT_NEARNESS
        return _Found(
            part, ranked, event, content, is_entry, title, value, text, shown, present, covered,
            near,
        )  # fmt: skip

    def _floor(self, found: _Found) -> float:
        if self._min_score is not None:
            return self._min_score
        nearness = found.ranking.nearness
        by_words = nearness is not None and nearness.is_foreign
        cosine = math.nan if by_words else found.ranked.cosine
        return relevance.floor(found.event.space.kind, cosine)

    def _judge(self, found: _Found) -> _Judgement:
        covered = found.covered
        is_long = math.isnan(found.near)
        alike = self._likeness_of_long(found) if is_long else self._likeness_of_short(found)
        score = relevance.score(covered, alike)
        if score < relevance.UNSURE and not _stands_alone(found):
            # Some words that match may not be its own, but of the messages before it.
            covered = self._coverage.of(found.present, self._lent_terms(found))
            if covered > found.covered:
                # What it answers is said before it: it need not be an answer by itself.
                alike = max(alike, self._likeness_of_long(found))
            score = relevance.score(covered, alike)
        return _Judgement(score, covered, alike)

    def _likeness_of_short(self, found: _Found) -> float:
        nearness, near = found.ranking.nearness, found.near
        key, text = found.key_and_text
        if nearness is not None and nearness.question.misses_code(found.title, found.text):
            return 0.0
        if nearness is None or (
            found.covered >= relevance.UNSURE and not nearness.question.misses_name(text)
        ):
            return relevance.short_likeness(near)
        if key is not None:
            near = max(near, (near + nearness.of_key(key, text)) / 2)
        near += nearness.question.support(found.text)
        alike = relevance.short_likeness(near)
        # Missing words can only lower its score.
        if not alike or self._is_too_weak(found, alike):
            return alike
        if not nearness.says_something(text):
            return 0.0
        near -= nearness.question.objection(nearness.of_words(text, key))
        return relevance.short_likeness(near)

    def _likeness_of_long(self, found: _Found) -> float:
        alike, nearness = relevance.likeness(found.ranked.cosine), found.ranking.nearness
        if not alike or nearness is None:
            return alike
        if nearness.question.misses_code(found.title, found.text):
            return 0.0
        if found.covered >= relevance.UNSURE:
            return alike
        if self._is_too_weak(found, alike) and _stands_alone(found):
            return alike
        return alike if nearness.says_something(found.text[:_SAMPLE_CHARS]) else 0.0

    def _is_too_weak(self, found: _Found, alike: float) -> bool:
        """Whether something is no hit even if its meaning says what it seems to say."""
        return relevance.score(found.covered, alike) < self._floor(found)

    def _lent_terms(self, found: _Found) -> set[str]:
        turns = self._turns(found, before=ranking.CONTEXT_WINDOW, after=0)
        texts = (event_text(_data(each)) for each in self._events(turns))
        return {term for text in texts for term in lent_terms(text).split(" ")}

    def _turns(self, found: _Found, *, before: int, after: int) -> list[int]:
        session = found.content.get("session")
        if session is None:
            return []
        event = found.event
        return self._reader.search.turns(
            self._view.lineage,
            logged_events(event.space.namespace),
            session,
            event.sequence,
            before=before,
            after=after,
        )

    def _events(self, sequences: Sequence[int]) -> list[EventContent]:
        events = self._reader.log.contents(sequences) if sequences else {}
        return [events[sequence] for sequence in sequences]

    def _finish(self, places: Sequence[_Judged | Hit]) -> list[Hit]:
        return [each if isinstance(each, Hit) else self._hit(each) for each in places]

    def _why(self, found: _Found, judged: _Judgement) -> WhyFound | None:
        if not self._explain:
            return None
        return WhyFound(
            round(judged.covered, _SCORE_DIGITS),
            round(judged.alike, _SCORE_DIGITS),
            sorted(self._asked & found.present),
            sorted(self._asked - found.present),
        )

    def _hit(self, place: _Judged) -> Hit:
        found, judged = place.found, place.judgement
        event, content, is_entry = found.event, found.content, found.is_entry
        passage = found.excerpt.passage
        begin, chars = _place_in_value(found, passage) if passage is not None else (None, None)
        hit = Hit(
            kind="entry" if is_entry else "event",
            value=found.value,
            score=round(judged.score, _SCORE_DIGITS),
            snippet=found.excerpt.snippet,
            namespace=event.space.namespace,
            version=event.sequence,
            timestamp=moments.iso(event.at),
            tags=content.get("tags", []),
            key=event.key,
            event=content.get("event"),
            sequence=None if is_entry else event.sequence,
            session=content.get("session"),
            actor=event.actor,
            passage=passage,
            passage_at=begin,
            chars=chars,
            source=content.get("source"),
            trust=content.get(TRUST),
            occurred=origin_time(content),
            lowered=place.lowered,
            why=self._why(found, judged),
        )
        if "expires_at" in content:
            hit.expires = moments.iso(content["expires_at"])
        side = None if is_entry else side_of(found.value)
        if side is not None:
            self._add_exchange(hit, found, side)
        return hit

    def _add_exchange(self, hit: Hit, found: _Found, side: Side) -> None:
        """Add what was replied to a message, or what a reply replied to."""
        other = self._find_reply(found) if side == "asking" else self._find_question(found)
        if other is None:
            return
        content = orjson.loads(other.payload)
        reply = Reply(other.sequence, None, content.get("source"), content.get(TRUST))
        self._show_part(reply, found.ranking, content["data"])
        if side == "asking":
            hit.reply = reply
        else:
            hit.reply_to = reply

    def _find_reply(self, found: _Found) -> EventContent | None:
        """Return what was replied to a message: the last that was said before the next question.

        An agent says what it is about to do ("Let me look at the logs first."), works, and answers
        in the end. Those interim lines repeat the words of the question, so what matches best is
        often one of them. Of a turn that goes on for longer the last line in sight comes nearest
        to the answer.
        """
        sequence = found.event.sequence
        if sequence not in self._replies:
            last = None
            turns = self._turns(found, before=0, after=_REPLY_TURNS)
            for event, side in self._sides_of(turns, _REPLY_TURNS_FIRST, _EXCHANGE_TURNS):
                if side == "answering":
                    last = event
                elif last is not None:
                    break
            self._replies[sequence] = last
        return self._replies[sequence]

    def _find_question(self, found: _Found) -> EventContent | None:
        """Return what a message replied to: the nearest question before it."""
        turns = self._turns(found, before=_EXCHANGE_TURNS, after=0)[::-1]
        return next((event for event, side in self._sides_of(turns, 1) if side == "asking"), None)

    def _sides_of(self, turns: Sequence[int], *parts: int) -> Iterator[tuple[EventContent, Side]]:
        """Yield the messages of a session that ask or answer, read in parts that end at places."""
        for begin, end in pairwise((0, *parts, len(turns))):
            for event in self._events(turns[begin:end]):
                content = orjson.loads(event.payload)
                side = side_of(content["data"])
                if side is not None and not is_thrown_away(self._reader, self._view, content):
                    yield event, side

    def _show_part(self, reply: Reply, found: Ranking, data: Any) -> None:
        """Show a message by what was asked for; one that has nothing of it by its beginning.

        An answer begins with what it says.
        """
        text = event_text(data)
        passage = found.best_passage(reply.sequence)
        shown = excerpt(text, self._asked, passage, chars_max=limits.REPLY_CHARS)
        reply.passage = shown.snippet
        if not shown.terms:
            reply.passage = snippet(text, (), chars_max=limits.REPLY_CHARS)
        if is_cut(text, reply.passage):
            reply.chars = _chars_of(data)


def _stands_alone(found: _Found) -> bool:
    """Whether something has no words of earlier messages that it may be found by."""
    return found.content.get("session") is None or found.ranked.passage is None


def _embed_unsure(part: Ranking, found: Sequence[_Found]) -> None:
    """Embed at once the entries that are compared word for word when they are judged."""
    unsure = [
        each.key_and_text
        for each in found
        if each.covered < relevance.UNSURE and each.is_entry and not math.isnan(each.near)
    ]
    if part.nearness is not None and unsure:
        part.nearness.embed(unsure)


def hit_by_name(kind: Any, namespace: str, found: FoundByName) -> Hit:
    """Return what another system found, as the one search shows it."""
    passage = found.shown.passage
    return Hit(
        kind=kind,
        value=found.value,
        score=round(found.score, _SCORE_DIGITS),
        snippet=found.shown.snippet,
        namespace=namespace,
        version=found.version,
        timestamp=moments.iso(found.at),
        tags=[],
        key=found.key,
        passage=passage,
        passage_at=None if passage is None else found.passage_at,
        chars=None if passage is None else len(found.value),
        name=found.name,
        contested_by=list(found.contested_by) or None,
    )


def _sort_block(block: Sequence[_Judged], key: Callable[[_Judged], float]) -> Iterator[_Judged]:
    """Yield a few hits, those with the highest key first."""
    return _newer_of_equals(sorted(block, key=key, reverse=True))


def _words_of_user(found: _Found) -> str | None:
    """Return what a message of a user says; None of anything else."""
    return (words_of(found.value).strip() or None) if side_of(found.value) == "asking" else None


def _may_repeat(found: _Found) -> bool:
    """Whether something may have been logged before in the same words; what tells a lot is read."""
    return not found.is_entry and len(found.text) <= _REPEATED_CHARS


def _identity_of(found: _Found) -> _Identity:
    """Return what events that say the same have in common; a namespace may be another user's."""
    said = " ".join(found.text.casefold().split())
    trust = found.content.get(TRUST)
    return found.event.space.namespace, found.title, side_of(found.value), trust, said


def _is_question(words: str) -> bool:
    said = words.rstrip().rstrip(_CLOSING)
    if said.endswith(_QUESTION_MARKS):
        return _NO_QUESTION.search(said) is None
    return _UNMARKED_QUESTION.fullmatch(said) is not None


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _newer_of_equals(ordered: Sequence[_Judged]) -> Iterator[_Judged]:
    """Yield hits with the newer first of neighbours that answer equally well."""
    equals: list[_Judged] = []
    for each in ordered:
        if equals and not _answer_equally(equals[0], each):
            yield from sorted(equals, key=_by_age, reverse=True)
            equals = []
        equals.append(each)
    yield from sorted(equals, key=_by_age, reverse=True)


def _answer_equally(one: _Judged, other: _Judged) -> bool:
    """Whether two hits have the same score and words of the query, and which is newer decides.

    Ranks of entries differ then by the length of a key, or by words that were not asked for. Those
    that have none of the words are found by meaning alone, and their ranks tell them apart. What a
    user wants from now on is taken back in more words than it was said in ("I changed my mind: …"),
    so that the newer may be far behind. Other messages are left in their order: most tell
    different things in the same words, and the older is as often the one that is asked for.
    """
    mine, theirs = one.found, other.found
    return (
        one.score == other.score
        and len(mine.present) > 0
        and mine.present == theirs.present
        and (_rank_equally(mine, theirs) or (mine.ranked.is_raised and theirs.ranked.is_raised))
    )


def _rank_equally(one: _Found, other: _Found) -> bool:
    """Whether two entries differ by so little that they say the same in as many words."""
    if not (one.is_entry and other.is_entry):
        return False
    return abs(one.ranked.score - other.ranked.score) <= _EQUAL_RANKS


def _by_age(judged: _Judged) -> tuple[int, int]:
    """Return when something was written, or first said where it was imported."""
    event = judged.found.event
    return origin_moment(judged.found.content) or event.at, event.sequence


def _by_score(judged: _Judged) -> float:
    return judged.score


def _by_both(judged: _Judged) -> float:
    """Return what hits are ordered by: how well they match beside others, and by themselves.

    A standing instruction comes before what was said once where it bears on the query. One that
    hardly answers by itself is not raised among the ten beside it: the others were asked for.
    """
    ranked, own = judged.found.ranked, judged.judgement.score
    is_lowered = ranked.is_raised and own < relevance.UNSURE
    beside = ranked.score / ranking.RAISED if is_lowered else ranked.score
    return beside + ranking.OWN_SCORE_WEIGHT * own


def is_thrown_away(reader: Reader, view: View, content: Mapping[str, Any]) -> bool:
    """Whether something captured was thrown away, or corrected, in review."""
    if "capture" not in content:
        return False
    decided = reader.records.current(view.lineage, REVIEWS, content["capture"])
    if decided is None or decided.payload is None:
        return False
    return orjson.loads(decided.payload).get("decision") in HIDING_DECISIONS


def is_doubtful(reader: Reader, view: View, event: EventContent) -> bool:
    """Whether an entry or a logged event is untrusted, or was thrown away in review."""
    content = orjson.loads(event.payload)
    return content.get(TRUST) == UNTRUSTED or is_thrown_away(reader, view, content)


def newest_instructions(reader: Reader, view: View, namespace: str) -> Iterator[EventContent]:
    """Yield the entries and logged events with the newest instructions, the newest first.

    An untrusted text is never an instruction.
    """
    limit = _INSTRUCTIONS_READ
    while True:
        newest = reader.catalogue.with_facet(view, STANDING, limit=limit)
        events = reader.log.contents(newest)
        own = [
            events[each]
            for each in reversed(newest)
            if events[each].space.namespace == namespace
            and not is_doubtful(reader, view, events[each])
        ]
        # Those of other namespaces must not push its own out.
        if len(newest) < limit or len(own) > limits.INSTRUCTIONS_MAX or limit > _INSTRUCTIONS_MOST:
            return iter(own)
        limit *= 4


def read_instruction(event: EventContent) -> Instruction:
    """Return the standing instruction that an entry or a logged event holds."""
    content = orjson.loads(event.payload)
    is_entry = event.space.kind == ENTRY
    value = content["value" if is_entry else "data"]
    said = find_standing(words_of(value), role_of(value)) or ""
    return Instruction(
        snippet(said, (), chars_max=limits.INSTRUCTION_CHARS),
        event.sequence,
        moments.iso(event.at),
        event.key,
        None if is_entry else event.sequence,
        event.actor,
    )


def _place_in_value(found: _Found, passage: str) -> tuple[int | None, int]:
    """Return where a passage begins in a value, and how long that is, as a recall counts.

    It counts the characters of a text, and of any other value those of its JSON. None where the
    passage has no place there: it is made of several fields.
    """
    begin = found.excerpt.begin
    chars = _chars_of(found.value)
    if isinstance(found.value, str):
        return begin, chars
    text = orjson.dumps(found.value).decode()
    place = text.find(orjson.dumps(passage).decode()[1:-1])
    if place < 0:
        return (None if begin else 0), chars
    return place, chars


def _chars_of(value: Any) -> int:
    """Return how long a value is as a recall counts: as text, or as JSON."""
    return len(value) if isinstance(value, str) else chars_of(value)


def _data(event: EventContent) -> Any:
    return orjson.loads(event.payload)["data"]
