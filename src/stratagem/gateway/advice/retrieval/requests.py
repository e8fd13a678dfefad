"""What a request asks for: its words, each with what it may also be called.

A word that no tool uses may be misspelled, or be of another language. It then stands for the word
that was meant; which of these it is, a tool that uses it decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.advice.retrieval.lexicon import (
    fold_word,
    known_phrases,
    phrase,
    translate,
)
from stratagem.search import analysis
from stratagem.search.function_words import FUNCTION_WORDS, is_foreign
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Request", "Word", "read"]

_EDGES: Final = "¿¡.,;:!?()[]{}\"'`«»„“”。、，？！"  # noqa: RUF001 -- those of other scripts
# What a word counts that was guessed, beside one that was written.
_GUESSED: Final = 0.8
# "Tell" says that there is to be an answer, and nothing of what it is about.
_EMPTY_WORDS: Final = STOP_WORDS | {"tell"}
# Vietnamese writes every syllable by itself.
_PHRASE_MAX: Final = 3


class Word(NamedTuple):
    """A word of a request: as it was written, and the terms it stands for, with their weights.

    `meant` is what it was taken for, where that was guessed.
    """

    said: str
    terms: Mapping[str, float]
    meant: str = ""


class Request(NamedTuple):
    """A request, and the text whose meaning is compared."""

    words: tuple[Word, ...]
    text: str


class Vocabulary(NamedTuple):
    """What tools say: whether any uses a term, and which word is near another."""

    has: Callable[[str], bool]
    nearest: Callable[[str], str | None]


def read(text: str, vocabulary: Vocabulary) -> Request:
    """Return what a request asks for."""
    text = text[: limits.QUERY_CHARS_MAX]
    chunks = text.split()
    bare = [fold_word(chunk.strip(_EDGES)) for chunk in chunks]
    foreign = is_foreign(text)
    words: dict[tuple[str, ...], Word] = {}
    meant: list[str] = []
    for found, english in _parts(chunks, bare, vocabulary, foreign=foreign):
        words |= {tuple(each.terms): each for each in found if tuple(each.terms) not in words}
        meant += english or [each.said for each in found]
    telling = [each for each in words.values() if not _EMPTY_WORDS.issuperset(each.terms)]
    kept = telling or list(words.values()) or _symbols(text)
    # The meaning of English is compared as it was written: a guess at a word may be wrong.
    translated = foreign or not text.isascii()
    return Request(tuple(kept[: limits.QUERY_TERMS_MAX]), " ".join(meant) if translated else text)


def _parts(
    chunks: list[str], bare: list[str], vocabulary: Vocabulary, *, foreign: bool
) -> Iterator[tuple[list[Word], list[str]]]:
    """Yield the words, and what they are in English where that was guessed."""
    at = 0
    while at < len(chunks):
        size, english = _phrase(bare, at)
        if english:
            said = " ".join(chunks[at : at + size])
            yield [_translated_word(said, english)], [english]
        elif not (foreign and bare[at] in FUNCTION_WORDS):
            yield _read(chunks[at], bare[at], vocabulary, foreign=foreign)
        at += size


def _read(
    chunk: str, bare: str, vocabulary: Vocabulary, *, foreign: bool
) -> tuple[list[Word], list[str]]:
    terms = analysis.query_terms(chunk)
    written = (
        [Word(_written_form(chunk, term), {term: 1.0}) for term in terms]
        if len(terms) != 1
        else [Word(chunk.strip(_EDGES) or chunk, {terms[0]: 1.0})]
    )
    if not chunk.isascii() and (pieces := list(known_phrases(chunk))):
        return _words_of_pieces(pieces, written, vocabulary)
    known = any(map(vocabulary.has, terms))
    if known and not foreign:
        return written, []
    if english := list(translate(bare)):
        words = [_translated_word(chunk, each) for each in english]
        words[0] = _with_own_terms(words[0], terms)
        return words, [*english, chunk] if known else english
    if not known and (near := vocabulary.nearest(bare)) is not None:
        return [_translated_word(chunk, near)], [near]
    return written, []


def _words_of_pieces(
    pieces: list[tuple[str, str]], written: list[Word], vocabulary: Vocabulary
) -> tuple[list[Word], list[str]]:
    """Return the words of a text without spaces: what is known of it, and the rest."""
    words = [
        _with_own_terms(_translated_word(said, english), analysis.query_terms(said))
        for said, english in pieces
    ]
    there = {term for word in words for term in word.terms}
    # What a tool says in the same language is not to be compared in English.
    meant = [word.said if vocabulary.has(word.said) else word.meant for word in words]
    return [*words, *(word for word in written if there.isdisjoint(word.terms))], meant


def _with_own_terms(word: Word, terms: list[str]) -> Word:
    """Return a word that also stands for itself: a tool may speak the language of the request."""
    return word._replace(terms={**word.terms, **dict.fromkeys(terms, 1.0)})


def _phrase(bare: list[str], at: int) -> tuple[int, str | None]:
    """Return how many words belong together, and what they are in English."""
    for size in range(min(_PHRASE_MAX, len(bare) - at), 1, -1):
        if english := phrase(bare[at : at + size]):
            return size, english
    return 1, None


def _translated_word(said: str, english: str) -> Word:
    terms = [term for term in analysis.terms(english) if term not in STOP_WORDS]
    return Word(said.strip(_EDGES), dict.fromkeys(terms, _GUESSED), english)


def _written_form(chunk: str, term: str) -> str:
    place = next(iter(analysis.find(chunk, analysis.AskedTerms([term]), most=1).places), None)
    return chunk[place.start : place.end] if place else chunk.strip(_EDGES) or chunk


def _symbols(text: str) -> list[Word]:
    return [Word(term, {term: 1.0}) for term in analysis.query_terms(text)]
