"""The few memories that answer a prompt well, and nothing else.

They are shown unasked, so they have to be right: words find candidates, words and meaning score
each by itself, and a candidate below a floor is not shown. A search takes either for an answer
(`search.relevance`); here both have to agree: the score of a text is the sum of the share of words
that it covers and of its cosine, as a share of what such a sum is where a text surely answers. A
search takes six words of a long query for all of it; a prompt of a hundred words shares six with
many a text, so most of its words count here. At three false hits in a hundred unrelated prompts
that brings 45 in a hundred answers along, where six words bring 35 (LoCoMo, BEAM and small stores
together). The numbers and the default of the floor, which is a setting, were chosen on one half of
the conversations; `python -m evals injection` measures the other half.

Only trusted text is shown: text of tools and the web is returned only by an explicit search,
because an instruction could hide in it. Texts that the session contains itself are left out; those
that it was shown already are marked, for they may be needed beside an older one. A message comes
with what was answered to it; one that only repeats the prompt is left out where nothing was. Of the
copies of a document one is enough, if possible an entry.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.hooks.context_text import cut, plain_words, text_key
from stratagem.memory.messages import is_message, side_of
from stratagem.search import analysis, relevance
from stratagem.search.passages import parts
from stratagem.search.plain_embedding import cosine, embed_text
from stratagem.search.static_tokens import MODEL_NAME
from stratagem.storage.sqlite.direct_reader import Content, DirectReader

__all__ = ["UNTRUSTED", "RecalledMemory", "find_memories"]

# The facet of what must not be shown unasked.
UNTRUSTED: Final = "untrusted"
# As `memory.kinds` has them.
_REVIEW: Final = "review"
_HIDING_DECISIONS: Final = ("correct", "discard")
# As `search.ranking` has them.
_COMMON_SHARE: Final = 0.3
_COMMON_FROM: Final = 200
_ASKED_MAX: Final = 24
_TEXTS_ASKED_MAX: Final = 8_000
_ASKED_MIN: Final = 4
# So many candidates are read, of which the best few are shown.
_CANDIDATES: Final = 24
# A prompt with fewer telling words asks for nothing ("go on", "yes, do that").
_TERMS_MIN: Final = 2
_QUERY_CHARS: Final = 2_000
_ASKED_CHARS: Final = 160
_ANSWER_CHARS: Final = 400
# Of the answer to a logged message so much is shown that both take no more, but at least a little.
_EXCHANGE_CHARS: Final = _ASKED_CHARS + _ANSWER_CHARS
_ANSWER_CHARS_MIN: Final = 160
# An answer is looked for among so many messages; as `memory.hits` has it.
_REPLY_TURNS: Final = 48
# What may stand around a word.
_MARKS: Final = ".,;:!?\"'()…"
# Of the words of a prompt, by their weight, this share counts as all of them.
_ENOUGH_SHARE: Final = 0.7
# What the cosine weighs beside the share of covered words, and their sum for a text that surely
# answers.
_COSINE_WEIGHT: Final = 1.3
_SURE_SUM: Final = 1.36
# What the session was shown already may answer a prompt by this share of the floor: it is only
# repeated, beside something older that answers.
_KNOWN_SHARE: Final = 0.5
# A passage as long as this that stands in another text too was copied.
_COPIED_CHARS_MIN: Final = 80
# An entry of a few words cannot cover many.
_SHORT_BONUS: Final = 0.1


class RecalledMemory(NamedTuple):
    """Something to show: what it is known by, how well it answers, and what it says.

    `answer` is what was answered to it, of which `text` has at least the beginning. `cut` is the
    content of which `text` has only a part. `is_known`: the session was shown it already.
    """

    id: str
    score: float
    content: Content
    text: str
    answer: Content | None = None
    cut: Content | None = None
    is_known: bool = False

    @property
    def keys(self) -> list[str]:
        """What it says, as `text_key` has it, and what was answered where all of that is shown."""
        said = [_text_of(self.content)]
        answer = _text_of(self.answer) if self.answer else ""
        # The rest of a long answer may be worth showing.
        if answer and self.text.endswith(answer):
            said.append(answer)
        return list(map(text_key, said))


def find_memories(
    reader: DirectReader, prompt: str, *, known: Collection[str], session: str, floor: float
) -> list[RecalledMemory]:
    """Return what answers a prompt at least as well as the floor asks, best first.

    `known` are the keys of the texts that the session was shown already. These are marked, and half
    of the floor is enough for them.
    """
    terms = analysis.query_terms(prompt[:_QUERY_CHARS])
    if len(terms) < _TERMS_MIN:
        return []
    total = max(reader.text_count(), 1)
    counts = {term: reader.document_frequency(term) for term in terms}
    asked = _select(terms, counts, total)
    if not asked:
        return []
    rows = reader.matches(
        analysis.match_expression(asked), without_facet=UNTRUSTED, limit=4 * _CANDIDATES
    )
    passages: dict[int, list[int]] = {}
    for sequence, passage, _score in rows:
        passages.setdefault(sequence, []).append(passage)
    contents = reader.contents(list(passages)[:_CANDIDATES])
    usable = [each for each in contents.values() if _is_usable(each, session)]
    thrown_away = _thrown_away(reader, usable)
    rarity = {term: math.log1p(total / (1 + counts[term])) for term in terms}
    # A word that is nowhere finds nothing, but the prompt means it.
    common = {term for term in terms if counts[term]}.difference(asked)
    judge = _Judge(reader, prompt, common, rarity)
    found = [
        judge.judge(each, passages[each.sequence])
        for each in usable
        if each.content.get("capture") not in thrown_away
    ]
    lowest = floor * _KNOWN_SHARE if known else floor
    good = sorted((each for each in found if each.score >= lowest), key=lambda each: -each.score)
    said: set[str] = set()
    chosen: list[RecalledMemory] = []
    memories = []
    for each in good:
        memory = _with_answer(reader, each, said.union(known))
        if memory is None or (memory.answer is None and _only_asks(memory.content, prompt, terms)):
            continue
        # Sessions say the same again and again; the best of them is enough.
        is_known = memory.keys[0] in known
        if memory.keys[0] in said or (each.score < floor and not is_known):
            continue
        memory = memory._replace(is_known=is_known)
        copies = [at for at, best in enumerate(chosen) if _is_copy(each, best)]
        if not copies:
            chosen.append(each)
            memories.append(memory)
        elif _replaces(each.content, chosen[copies[0]].content):
            chosen[copies[0]] = each
            memories[copies[0]] = memory
        said.update(memory.keys)
    return memories


def _replaces(entry: Content, event: Content) -> bool:
    """Whether an entry is shown in place of what was pasted into a conversation before it."""
    return bool(entry.key) and not event.key and entry.sequence > event.sequence


def _is_copy(found: RecalledMemory, best: RecalledMemory) -> bool:
    """Whether a memory says only what a better one does, as a copy of a document.

    One that says more may correct it.
    """
    return len(found.text) >= _COPIED_CHARS_MIN and found.text in _text_of(best.content)


def _with_answer(
    reader: DirectReader, found: RecalledMemory, shown: Collection[str]
) -> RecalledMemory | None:
    """Return a memory as it is shown: a message with what was answered to it.

    An earlier prompt says nothing new by itself; one without an answer is left out.
    """
    if _side_of(found.content) != "asking":
        return found
    reply = _find_reply(reader, found.content)
    answer = _text_of(reply) if reply else ""
    if "capture" in found.content.content:
        if reply is None or not answer:
            return None
        text = f"asked: {cut(found.text, _ASKED_CHARS)} Answered: {cut(answer, _ANSWER_CHARS)}"
        rest = reply if len(answer) > _ANSWER_CHARS else None
        return RecalledMemory(_id_of(reply), found.score, reply, text, cut=rest)
    if reply is None or not answer or text_key(answer) in shown:
        return found
    said = cut(answer, max(_EXCHANGE_CHARS - len(found.text), _ANSWER_CHARS_MIN))
    rest = found.cut or (reply if said != answer else None)
    text = f"{found.text} Answered: {said}"
    return RecalledMemory(found.id, found.score, found.content, text, reply, rest)


def _find_reply(reader: DirectReader, found: Content) -> Content | None:
    """Return what was answered to a message, unless it is untrusted or was thrown away.

    Of several texts it is the last: an agent says first what it is about to do.
    """
    session, event = found.content.get("session"), found.content.get("event")
    if session is None or event is None:
        return None
    last = None
    for each in reader.later_messages(session, event, found.sequence, limit=_REPLY_TURNS):
        side = _side_of(each) if each.namespace == found.namespace else None
        if side == "asking":
            break
        if side == "answering":
            last = each
    if last is None or last.content.get("trust") == UNTRUSTED or _thrown_away(reader, [last]):
        return None
    return last


def _only_asks(found: Content, prompt: str, terms: Sequence[str]) -> bool:
    """Whether a logged event says no more than a prompt, or asks nothing else."""
    if found.kind == "entry" or _side_of(found) == "answering":
        return False
    text = _text_of(found)
    if text.endswith("?"):
        return set(analysis.query_terms(text[:_QUERY_CHARS])) <= set(terms)
    return _bare_words(text) == _bare_words(prompt)


def _bare_words(text: str) -> list[str]:
    words = (word.strip(_MARKS) for word in text.casefold().split())
    return [word for word in words if word]


def _side_of(found: Content) -> str | None:
    """Return whether a message asks or answers, by its role; None where it does neither."""
    return side_of(found.content.get("data"))


def _text_of(found: Content) -> str:
    """Return what a memory says, on one line."""
    value = found.content["value" if found.kind == "entry" else "data"]
    return " ".join(plain_words(value).split())


def _passages_of(found: Content, text: str, matched: Sequence[int]) -> Iterator[str]:
    """Yield the passages that may answer: all of a text, of a very long one those that matched."""
    if len(text) <= limits.INDEXED_CHARS_MAX:
        yield from (text[begin:end] for begin, end in parts(text))
        return
    indexed = _indexed_text(found)
    spans = parts(indexed)
    # A command must not wait for all of a book.
    room = limits.INDEXED_CHARS_MAX
    for begin, end in (spans[number] for number in matched if number < len(spans)):
        room -= end - begin
        if room < 0:
            break
        part = indexed[begin:end]
        yield from (" ".join(part[first:last].split()) for first, last in parts(part))


def _indexed_text(found: Content) -> str:
    """Return what a memory is found by, as the index has it: passages are numbered in that."""
    value = found.content["value" if found.kind == "entry" else "data"]
    if isinstance(value, str):
        return value
    # An object of a hundred pages is rare, and this takes a while.
    from stratagem.engine import values
    from stratagem.memory import kinds

    return values.text_of(value) if found.kind == "entry" else kinds.event_text(value)


def _label_of(found: Content) -> str:
    """Return the label of a logged event; that of a message says nothing about it."""
    return "" if is_message(found.content.get("data")) else found.content.get("event") or ""


def _id_of(found: Content) -> str:
    return f"{found.namespace}/{found.key}" if found.key else f"@{found.sequence}"


def _is_usable(found: Content, session: str) -> bool:
    return found.content.get("session") != session and found.content.get("index", True)


def _thrown_away(reader: DirectReader, found: Sequence[Content]) -> set[str]:
    captured = [each.content["capture"] for each in found if "capture" in each.content]
    if not captured:
        return set()
    decided = reader.records_of(_REVIEW, captured)
    # Wherever it was thrown away: what somebody did not want is not shown unasked.
    return {each.key or "" for each in decided if each.content["decision"] in _HIDING_DECISIONS}


class _Judge:
    """Says how well a memory answers one prompt."""

    def __init__(
        self,
        reader: DirectReader,
        prompt: str,
        common: Collection[str],
        rarity: Mapping[str, float],
    ) -> None:
        enough = max(relevance.TERMS_ENOUGH, round(_ENOUGH_SHARE * len(rarity)))
        self._coverage = relevance.Coverage(rarity, enough=enough)
        self._asked = analysis.AskedTerms(rarity)
        self._vector = None
        if reader.embedder == MODEL_NAME:
            self._vector = embed_text(analysis.leave_out(prompt[:_QUERY_CHARS], common))

    def judge(self, found: Content, matched: Sequence[int]) -> RecalledMemory:
        """Return a memory by the passage of it that answers best, and how well that does.

        `matched` are the numbers of its passages that were found, best first.
        """
        text = _text_of(found)
        title = found.key or _label_of(found)
        best, shown = -1.0, ""
        for passage in _passages_of(found, text, matched):
            present = analysis.find_terms(f"{title} {passage}", self._asked)
            covered = self._coverage.of(present)
            if covered > best:
                best, shown = covered, passage
        shown = shown.strip()
        rest = found if shown != text else None
        score = self._score(found, best, text)
        return RecalledMemory(_id_of(found), score, found, shown, cut=rest)

    def _score(self, found: Content, covered: float, text: str) -> float:
        if self._vector is None or found.vector is None:
            return covered
        near = max(cosine(self._vector, found.vector), 0.0)
        is_short = len(text) <= relevance.SHORT_CHARS_MAX and "session" not in found.content
        bonus = _SHORT_BONUS if is_short else 0.0
        # Not cut at 1: of several that surely answer, the best are shown.
        return (covered + _COSINE_WEIGHT * near) / _SURE_SUM + bonus


def _select(terms: Sequence[str], counts: Mapping[str, int], total: int) -> list[str]:
    """Return the terms that are worth asking for: those that occur, the rarest first."""
    there = sorted((counts[term], term) for term in terms if counts[term])
    rare = [each for each in there if total < _COMMON_FROM or each[0] <= _COMMON_SHARE * total]
    kept: list[str] = []
    texts = 0
    for count, term in (rare or there)[:_ASKED_MAX]:
        texts += count
        if len(kept) >= _ASKED_MIN and texts > _TEXTS_ASKED_MAX:
            break
        kept.append(term)
    return kept
