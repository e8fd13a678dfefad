"""Which word of a memory a misspelt one in a query may stand for.

What is one mistake away from a word (a letter too much, too few or wrong, or two that changed
places) is written down and looked up in the index with one statement, as a search would be. So
only texts that the caller may see are looked at, however much is stored, and the word that is named
stands in one of them. A word that the embedder knows well is spelled as it was meant.

Where there are hits all the same, those of a name that no text has are not about what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from string import ascii_lowercase
from typing import Any, Final

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.engine.lineage import View
from stratagem.memory.hits import is_doubtful
from stratagem.memory.kinds import ENTRY, event_text, event_title
from stratagem.search import analysis, ranking
from stratagem.search.embedding import Embedder
from stratagem.search.passages import span_of
from stratagem.search.stopwords import STOP_WORDS
from stratagem.storage.contract import EventContent, Reader

__all__ = ["find_absent_words", "find_near_words"]

# Shorter words are one mistake away from many others, longer ones are no words.
_CHARS_MIN: Final = 4
_CHARS_MAX: Final = 20
# Shorter names are abbreviations, which a text may write out.
_NAME_CHARS_MIN: Final = 3
# Of the words of a query, so many are looked up, and so many of those that no text has.
_WORDS_READ: Final = 12
_CHUNKS_READ: Final = 50
_WORDS_MAX: Final = 3
# So many passages are read: those that have a word which may have been meant.
_PASSAGES_READ: Final = 20
# Among the rarer words of a vocabulary are misspelt ones that many write.
_WELL_KNOWN_RANK: Final = 25_000
_WORD: Final = re.compile(r"[^\W\d_]++")
# Names of days, which texts have in numbers, too.
_CALENDAR: Final = frozenset({
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday",
    "Saturday", "Sunday",
})  # fmt: skip
# A name, and not where a sentence begins.
_NAME: Final = re.compile(r"(?<=[^.!?:\s]\s)[A-Z][^\W\d_]++")
# A code or an identifier, between the marks of its sentence: at most 64 characters.
_EDGES: Final = ".,;:!?()[]{}\"'`"
_TOKEN: Final = re.compile(r"[\w./:@#+-]{3,64}", re.ASCII)
# A digit behind a letter, a long number, two words joined as code and addresses join them.
_IDENTIFIER: Final = re.compile(r"[A-Za-z][-_.]?[0-9]|\A[0-9]{4,}\Z|[a-z][A-Z]|[a-z0-9][_.][a-z]")


class _Text(NamedTuple):
    """What an entry or a logged event says, and its key or label."""

    title: str
    text: str

    @classmethod
    def of(cls, event: EventContent) -> _Text:
        content: dict[str, Any] = orjson.loads(event.payload)
        if event.space.kind == ENTRY:
            return cls(event.key or "", values.text_of(content["value"]))
        return cls(event_title(content), event_text(content["data"]))

    def words(self, passage: int) -> Iterator[str]:
        """Yield the words of the title, and of one passage."""
        begin, end = span_of(self.text, passage)
        yield from map(str.lower, _WORD.findall(f"{self.title} {self.text[begin:end]}"))


def find_near_words(
    reader: Reader,
    view: View,
    query: str,
    *,
    spaces: Sequence[int] | None,
    tags: Sequence[str],
    embedder: Embedder | None = None,
) -> dict[str, str]:
    """Return the words of a query that no text has, each with one that a shown text has.

    `embedder`, where there is one, tells words from misspelt ones.
    """
    found: dict[str, str] = {}
    for word in _unknown_words(reader, query, embedder):
        candidates = _one_mistake_away(word)
        # As a title: what is no word must not push words out of what is remembered.
        terms = dict.fromkeys(analysis.title_terms(" ".join(sorted(candidates))).split())
        matches = reader.search.matches(
            view,
            analysis.match_expression(terms),
            weights=ranking.FIELD_WEIGHTS,
            spaces=spaces,
            tags=tags,
            limit=_PASSAGES_READ,
        )
        contents = reader.log.contents(list(dict.fromkeys(match[0] for match in matches)))
        # The word is said without being marked as data, so an untrusted text must not choose it.
        texts = {
            sequence: _Text.of(each)
            for sequence, each in contents.items()
            if not is_doubtful(reader, view, each)
        }
        passages = (
            texts[sequence].words(number) for sequence, number, _ in matches if sequence in texts
        )
        meant = _first_among(candidates, passages)
        if meant is not None:
            found[word] = meant
    return found


def find_absent_words(query: str, absent: set[str], embedder: Embedder | None) -> list[str]:
    """Return the names of a query, and its words that hardly any text uses, whose terms are absent.

    A hit without another word may say the same in other words; without a name it hardly can.
    """
    words = list(dict.fromkeys(_WORD.findall(query)))[:_WORDS_READ]
    names = set(_NAME.findall(query))
    # In a title most words begin with a capital.
    are_names = 2 * len(names) < len(words)
    codes = [code for code in _identifiers(query) if _is_absent_code(code, absent)]
    return [
        *codes,
        *(
            word
            for word in words
            if len(word) >= _NAME_CHARS_MIN
            and not any(word in code for code in codes)
            and absent >= set(analysis.query_terms(word))
            and ((are_names and word in names - _CALENDAR) or not _is_in_use(word, embedder))
        ),
    ][:_WORDS_MAX]


def _identifiers(query: str) -> list[str]:
    """Return the codes and identifiers of a query."""
    chunks = (chunk.strip(_EDGES).removesuffix("'s") for chunk in query.split()[:_CHUNKS_READ])
    return [each for each in chunks if _TOKEN.fullmatch(each) and _IDENTIFIER.search(each)]


def _is_absent_code(code: str, absent: set[str]) -> bool:
    """Whether no text has a code; one whose parts are all there may be written otherwise."""
    whole, *parts = analysis.query_terms(code) or [""]
    return whole in absent and (not parts or not absent.isdisjoint(parts))


def _unknown_words(reader: Reader, query: str, embedder: Embedder | None) -> list[str]:
    """Return words of a query that are long enough to be told, and that no text has."""
    words = dict.fromkeys(
        word
        for word in map(str.lower, _WORD.findall(query))
        if _CHARS_MIN <= len(word) <= _CHARS_MAX and word not in STOP_WORDS
    )
    terms = {word: analysis.query_terms(word) for word in islice(words, _WORDS_READ)}
    counts = reader.search.document_frequencies(
        list(dict.fromkeys(term for each in terms.values() for term in each))
    )
    unknown = [
        word
        for word, own in terms.items()
        if not any(counts.get(term) for term in own) and not _is_well_known(word, embedder)
    ]
    return unknown[:_WORDS_MAX]


def _is_in_use(word: str, embedder: Embedder | None) -> bool:
    """Whether a word has a meaning of its own; of none it is known without an embedder."""
    if embedder is None or not embedder.is_loaded:
        return True
    return embedder.rank(word.lower()) is not None


def _is_well_known(word: str, embedder: Embedder | None) -> bool:
    rank = embedder.rank(word) if embedder is not None and embedder.is_loaded else None
    return rank is not None and rank < _WELL_KNOWN_RANK


def _one_mistake_away(word: str) -> set[str]:
    """Return what a word may have been, had it been written with one mistake.

    No stop words: nothing is found by them.
    """
    letters = dict.fromkeys([*ascii_lowercase, *word] if word.isascii() else word)
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    fewer = (before + after[1:] for before, after in parts if after)
    swapped = (before + after[1] + after[0] + after[2:] for before, after in parts if after[1:])
    other = (before + each + after[1:] for before, after in parts if after for each in letters)
    more = (before + each + after for before, after in parts for each in letters)
    return {*fewer, *swapped, *other, *more} - {word} - STOP_WORDS


def _first_among(candidates: set[str], texts: Iterable[Iterator[str]]) -> str | None:
    return next((word for words in texts for word in words if word in candidates), None)
