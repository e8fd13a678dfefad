"""From text to the terms that are indexed and asked for.

Every backend is given terms that are already analysed, joined by spaces, so that SQLite
and PostgreSQL find the same things. One text gives the same terms for ever: changing a
rule here means indexing anew, and `VERSION` says so.

A text is parted at white space into chunks, and a chunk into words by the *shape* of its
characters: upper case, lower case, digit, script without spaces, symbol. Then

* a word is folded (NFKC, case, and accents where the script treats them as ornament)
  and stemmed by the rules of English;
* a name made of words (`getUserName`, `snake_case`, `a.b.c`, `src/main.py`) gives its
  parts and, at each level where it is parted, the whole. `-` and `_` between words vanish
  from a whole, so that `e-mail` is `email` and `user_id` is `userId`;
* scripts without spaces give single characters and overlapping pairs; a query asks for
  the pairs, and for a single character only when it stands alone. Korean words also
  stay whole;
* stop words are indexed, but a query asks for them only when it consists of nothing
  else ("to be or not to be").
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import Stemmer

from stratagem import limits
from stratagem.search.memo import Memo
from stratagem.search.stopwords import STOP_WORDS

__all__ = [
    "TERM_CHARS_MAX",
    "TOKEN_CHARS",
    "VERSION",
    "content_terms",
    "match_expression",
    "query_terms",
    "terms",
]

VERSION: Final = 1
# The ASCII characters that a term may hold beside letters and digits: an FTS5 table needs
# them as `tokenize="ascii tokenchars '…'"`. No quotes and no backslash, so that a term can
# be quoted anywhere as it is.
TOKEN_CHARS: Final = "!#$%&()*+,-./:;<=>?@[]^_{|}~"
# Longer words are blobs; the start tells them apart well enough.
TERM_CHARS_MAX: Final = 64

# A chunk seen again is looked up. 32,768 of them take about 8 MB.
_CHUNKS_MAX: Final = 32_768
_CHUNK_CHARS_MAX: Final = 48
_CHARACTERS_MAX: Final = 4_096

# Shapes: A upper case, a other letters and marks, 0 digits, c scripts without spaces,
# k Korean, s symbols that stand for themselves; connectors are their own shape, and a
# space stands for the rest.
_WORD: Final = re.compile(
    r"[Aa]{1,2}(?:\+\+|#)(?![Aa0])"  # C++, F#
    r"|[Aa0]+(?:(?:[-._/:@'&]|::|:/|://)[Aa0]+)*"
    r"|c+|k+|s"
)
# What parts a name, from the outside in: paths and addresses, then dots, then hyphens.
_SEPARATED: Final = (re.compile(r"[^/:@]+"), re.compile(r"[^.&]+"), re.compile(r"[^-_]+"))
_CAMEL: Final = re.compile(r"A+(?!a)|A?a+|0+")
_SPACELESS: Final = re.compile(
    "[\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Thai to Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han and kana
    "\U0001b000-\U0001b16f\U00020000-\U000323af]"
)
_KOREAN: Final = re.compile("[\u1100-\u11ff\uac00-\ud7a3]")
# Accents after Latin and Greek letters, Hebrew points, Arabic vowel signs and its tatweel.
# Elsewhere a mark makes another letter.
_ORNAMENT: Final = re.compile(
    "(?<=[A-Za-z\u00c0-\u024f\u0370-\u03ff])[\u0300-\u036f]+"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
# Latin letters whose accent Unicode does not take apart; typewriter and other apostrophes.
_PLAIN: Final = {
    "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D",
    "þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ı": "i", "ħ": "h",
    "’": "'", "ʼ": "'", "\u200b": " ",
}  # fmt: skip
_CLITIC: Final = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
_JOINT: Final = re.compile(r"(?<![0-9])[-_]|[-_](?![0-9])|'")
_NOT_TOKEN: Final = re.compile(f"[^{re.escape(TOKEN_CHARS)}]+")

_stemmer: Final = Stemmer.Stemmer("english", 0)
_stemmer_lock: Final = threading.Lock()


def terms(text: str) -> list[str]:
    """Return the terms to index for a text, in order, with repeats.

    Reads the first `limits.INDEXED_CHARS_MAX` characters.
    """
    memo = _CHUNKS
    text = text[: limits.INDEXED_CHARS_MAX]
    found = [
        term
        for chunk in text.split()
        for term in (memo[chunk] if len(chunk) <= _CHUNK_CHARS_MAX else _index_terms(chunk))
    ]
    return found or _symbol_terms(text)


def content_terms(text: str) -> list[str]:
    """Return the terms of a text without stop words."""
    return [term for term in terms(text) if term not in STOP_WORDS]


def query_terms(text: str) -> list[str]:
    """Return the distinct terms to ask for, in order, at most `limits.QUERY_TERMS_MAX`.

    Stop words are left out unless there is nothing else.
    """
    text = text[: limits.QUERY_CHARS_MAX]
    found = dict.fromkeys(
        term
        for chunk in text.split()
        for term in (_CHUNKS[chunk] if chunk.isascii() else _chunk_terms(chunk, singles=False))
    )
    telling = [term for term in found if term not in STOP_WORDS]
    return (telling or list(found) or _symbol_terms(text))[: limits.QUERY_TERMS_MAX]


def match_expression(asked: Iterable[str]) -> str:
    """Return the FTS5 expression that matches any of the terms.

    Safe by construction: a term holds no quote, and what is quoted has no syntax.
    """
    return " OR ".join(f'"{term}"' for term in asked)


def _index_terms(chunk: str) -> tuple[str, ...]:
    return tuple(_chunk_terms(chunk, singles=True))


def _chunk_terms(chunk: str, *, singles: bool) -> Iterator[str]:
    text = chunk if chunk.isascii() else _fold(chunk)
    shape = text.translate(_SHAPES)
    for match in _WORD.finditer(shape):
        start, end = match.span()
        kind = shape[start]
        if kind in "ck":
            yield from _pairs(text[start:end], singles=singles, whole=kind == "k")
        else:
            yield from _name_terms(text[start:end], shape[start:end])


def _symbol_terms(text: str) -> list[str]:
    """Return the terms of a text that has no words: its runs of symbols as they are."""
    runs = (_NOT_TOKEN.sub("", chunk)[:TERM_CHARS_MAX] for chunk in text.split())
    return [run for run in runs if run]


def _pairs(run: str, *, singles: bool, whole: bool) -> Iterator[str]:
    if singles or len(run) == 1:
        yield from run
    yield from map("".join, pairwise(run))
    if whole and len(run) > 2:
        yield run[:TERM_CHARS_MAX]


def _name_terms(name: str, shape: str, level: int = 0) -> Iterator[str]:
    if level == len(_SEPARATED):
        yield from _word_terms(name, shape)
        return
    parts = [part.span() for part in _SEPARATED[level].finditer(shape)]
    if len(parts) > 1:
        yield _whole(name)
    for start, end in parts:
        yield from _name_terms(name[start:end], shape[start:end], level + 1)


def _word_terms(word: str, shape: str) -> Iterator[str]:
    word = _CLITIC.sub("", word)
    head, _, tail = word.rpartition("'")
    yield _whole(word)
    if head:
        # An elided article or a name: l'homme, O'Brien. What is short belongs to the word: don't.
        parts = [tail] if len(tail) > 2 else []
    else:
        parts = _camel(word, shape[: len(word)])
    yield from map(_whole, parts)


def _camel(word: str, shape: str) -> list[str]:
    parts = [word[part.start() : part.end()] for part in _CAMEL.finditer(shape)]
    # Borders at every other character: a hash or a blob, not a name.
    opaque = len(parts) > 3 and len(word) < 2 * len(parts)
    return [] if opaque or len(parts) == 1 else parts


def _whole(name: str) -> str:
    joined = _JOINT.sub("", name).replace("\\", "/").casefold()[:TERM_CHARS_MAX]
    if joined in STOP_WORDS or not (joined.isascii() and joined.isalpha()):
        return joined
    with _stemmer_lock:
        return str(_stemmer.stemWord(joined))


def _fold(chunk: str) -> str:
    """Return a chunk in one spelling, with its case."""
    plain = unicodedata.normalize("NFKC", chunk).translate(_FOLDS)
    bare = _ORNAMENT.sub("", unicodedata.normalize("NFD", plain))
    return unicodedata.normalize("NFC", bare)


def _folded(code: int) -> str:
    character = chr(code)
    if character in _PLAIN:
        return _PLAIN[character]
    invisible = unicodedata.category(character) in {"Cf", "Cs"} or 0xFE00 <= code <= 0xFE0F
    return "" if invisible else character


def _shape(code: int) -> str:
    character = chr(code)
    if code < 0x80 and not character.isalnum():
        return {"\\": "/"}.get(character, character if character in "-._/:@'&+#" else " ")
    if _SPACELESS.match(character):
        return "c"
    if _KOREAN.match(character):
        return "k"
    category = unicodedata.category(character)
    # What Unicode has not named yet is most likely a new emoji.
    return _SHAPE_OF.get(category) or _SHAPE_OF.get(category[0], " ")


_SHAPE_OF: Final = {"Lu": "A", "Lt": "A", "L": "a", "M": "a", "N": "0", "S": "s", "Sk": " ", "Cn": "s"}
_SHAPES: Final = Memo(_shape, entries_max=_CHARACTERS_MAX)
_FOLDS: Final = Memo(_folded, entries_max=_CHARACTERS_MAX)
_CHUNKS: Final = Memo(_index_terms, entries_max=_CHUNKS_MAX)
