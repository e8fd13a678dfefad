"""From text to the terms that are indexed and asked for.

Every backend is given terms that are already analysed, joined by spaces, so that SQLite
and PostgreSQL find the same things. Changing a rule here means indexing anew, and
`VERSION` says so.

A text is parted at white space into chunks, and a chunk into words by the shapes of its
characters (see `characters`). Then

* a word is folded, put into lower case and stemmed, by the rules of the language that its
  script stands for (`stemming`);
* a name made of words (`getUserName`, `snake_case`, `a.b.c`, `src/main.py`) gives its
  parts and, at each level where it is parted, the whole. `-` and `_` between words vanish
  from a whole, so that `e-mail` is `email` and `user_id` is `userId`;
* of a name with a dotted number (`v2.5.1`, `Python3.12`) the number is a term, too, and so is what
  it is one of (2.5). A code (`E4019`, `v2.5`, `3.0`) asks for itself: a query does not ask for its
  single letters and digits;
* a telephone number or an account number that is written in groups (`+47 22 33 44 55`) is a term
  without its spaces, too, and a query with one asks for that (`spaced_codes`);
* a number is one term, however its thousands are marked (12,000, 12'000, 12_000, 5.488.000);
* scripts without spaces give single characters and overlapping pairs; a query asks for
  the pairs, and for a single character only when it stands alone. Korean words also
  stay whole;
* stop words are indexed, but a query asks for them only when it consists of nothing
  else ("to be or not to be"). Keeping them costs a seventh of the index and 3 µs a text. The same
  holds for those of other languages, in queries that are in one (`function_words`);
* a text without any word gives its runs of symbols.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Self

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import FunctionCache, cache_texts
from stratagem.search.characters import fold, group_marks, join_groups, shape
from stratagem.search.function_words import leave_out_function_words
from stratagem.search.spaced_codes import TERM_CHARS_MIN, find_spaced_codes, may_have_spaced_code
from stratagem.search.stemming import stem
from stratagem.search.stopwords import STOP_WORDS

__all__ = [
    "TERM_CHARS_MAX",
    "TOKEN_CHARS",
    "VERSION",
    "AskedTerms",
    "Occurrences",
    "TermOccurrence",
    "content_terms",
    "document_terms",
    "find",
    "find_lone_name",
    "find_terms",
    "index_terms",
    "leave_out",
    "match_expression",
    "query_terms",
    "terms",
    "title_terms",
]

VERSION: Final = 4
# The ASCII characters that a term may hold beside letters and digits: an FTS5 table needs
# them as `tokenize="ascii tokenchars '…'"`. No quotes and no backslash, so that a term can
# be quoted anywhere as it is.
TOKEN_CHARS: Final = "!#$%&()*+,-./:;<=>?@[]^_{|}~"
# Longer words are blobs; the start tells them apart well enough.
TERM_CHARS_MAX: Final = 64

# A chunk seen again is looked up. 131,072 of them take about 18 MB.
_CHUNKS_MAX: Final = 131_072
_CHUNK_CHARS_MAX: Final = 48

# How many short texts have their terms cached, in two megabytes at most: what was written on a
# branch, or in a transaction, is indexed again when it is merged. No more than two of the largest
# calls write: each new text drops the oldest, and of many texts that has left the processor's
# cache. Longer texts are rarer, and would fill the cache.
_DOCUMENTS_MAX: Final = 2 * limits.ITEMS_MAX
_DOCUMENT_CHARS_MAX: Final = 400

_PAIR: Final = 2
_ENDING_CHARS_MAX: Final = 2
_BORDERS_FEW: Final = 3
_SHORT_STEM_CHARS: Final = 4
# Titles up to so long are looked at wherever a term may begin.
_KEY_CHARS: Final = 64

_WORD: Final = re.compile(
    r"[Aa]{1,2}(?:\+\+|#)(?![Aa0])"  # C++, F#
    r"|[Aa0]+(?:(?:[-._/:@'&]|::|:/|://)[Aa0]+)*"
    r"|c+|k+|s"
)
_PLAIN_WORD: Final = re.compile(r"A?a+|A+|0+")
# Where a term of an ASCII word may begin; stemming leaves the first letter as it is.
_INITIAL: Final = re.compile(r"[A-Z]|(?<![A-Za-z])[a-z]|(?<![0-9])[0-9]")
# What may surround a word and is never part of a term.
_EDGES: Final = ".,;:!?()[]\"'"
# What parts a name, from the outside in: paths and addresses, then dots, then hyphens.
_SEPARATORS: Final = (frozenset("/:@"), frozenset(".&"), frozenset("-_"))
_DOTS: Final = 1
_SEPARATED: Final = (re.compile(r"[^/:@]+"), re.compile(r"[^.&]+"), re.compile(r"[^-_]+"))
_CAMEL: Final = re.compile(r"A+(?!a)|A?a+|0+")
_LEVELS: Final = (*_SEPARATED, _CAMEL)
# What dots hold together: a version in a name.
_DOTTED: Final = re.compile(r"(?<![0-9.])[0-9]+(?:\.[0-9]+)+(?![0-9.])")
_DOT: Final = re.compile(r"\.")
_VERSION_LEVELS_MAX: Final = 3
# A word with a digit after a letter, or after another and a dot, says which one is meant: a code.
# 7pm and 10km are none.
_CODE_WORD: Final = re.compile(r"[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*")
_CODE_BORDER: Final = re.compile(r"[A-Za-z][0-9]|[0-9]\.[0-9]")
_CLITIC: Final = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
# Hyphens hold a date together (2024-05-01); elsewhere they only join words.
_JOINT: Final = re.compile(r"(?<![0-9])[-_]|[-_](?![0-9])|'")
_NOT_TOKEN: Final = re.compile(f"[^{re.escape(TOKEN_CHARS)}]+")


class TermOccurrence(NamedTuple):
    """A place in a text, and the term that stands there."""

    start: int
    end: int
    term: str


class Occurrences(NamedTuple):
    """Where terms stand in a text, in order, and which of them it has."""

    places: list[TermOccurrence]
    terms: set[str]


def terms(text: str) -> list[str]:
    """Return the terms to index for a text, in order, with repeats.

    Reads the first `limits.INDEXED_CHARS_MAX` characters.
    """
    return index_terms(text).split()


def index_terms(text: str) -> str:
    """Return the terms of a text as the index takes them, with a space between any two."""
    text = text[: limits.INDEXED_CHARS_MAX]
    found = " ".join(filter(None, map(_look_up, text.split()))) or _symbol_terms(text)
    return _with_spaced_codes(found, text) if may_have_spaced_code(text) else found


_short_text_terms: Final = cache_texts(_DOCUMENTS_MAX)(index_terms)


def document_terms(text: str) -> str:
    """Return the same; a short text that comes again is looked up."""
    return _short_text_terms(text) if len(text) <= _DOCUMENT_CHARS_MAX else index_terms(text)


# Titles are indexed again too, and labels of logged events recur.
@cache_texts(_DOCUMENTS_MAX)
def title_terms(title: str) -> str:
    """Return the same for a title.

    Most titles are keys, which come once each. Their chunks are looked up and not remembered, or
    they would push all words out.
    """
    title = title[: limits.INDEXED_CHARS_MAX]
    known = _CHUNKS.get
    found = [known(chunk) or _chunk_terms(chunk) for chunk in title.split()]
    joined = " ".join(filter(None, found)) or _symbol_terms(title)
    return _with_spaced_codes(joined, title) if may_have_spaced_code(title) else joined


def _with_spaced_codes(found: str, text: str) -> str:
    """Return the terms of a text with those of its codes that are written in groups."""
    codes = [term for code in find_spaced_codes(text) for term in code.terms]
    return " ".join([found, *codes]) if codes else found


def content_terms(text: str) -> list[str]:
    """Return the terms of a text without stop words: what it lends to another as context."""
    return [term for term in terms(text) if term not in STOP_WORDS]


def has_more_content_terms(text: str, most: int) -> bool:
    """Say whether a text has more than `most` content terms, reading no further than it must."""
    count = 0
    for chunk in text[: limits.INDEXED_CHARS_MAX].split():
        count += sum(term not in STOP_WORDS for term in _look_up(chunk).split())
        if count > most:
            return True
    return False


def query_terms(text: str) -> list[str]:
    """Return the distinct terms to ask for, in order, at most `limits.QUERY_TERMS_MAX`.

    Stop words are left out unless there is nothing else; those of another language in a query that
    is in it.
    """
    codes, text = _take_codes(text[: limits.QUERY_CHARS_MAX])
    chunks = leave_out_function_words(text.split())
    found = [(term, chunk) for chunk in chunks for term in _query_terms(chunk)]
    telling = [term for term, chunk in found if not _is_stop_word(term, chunk)]
    kept = [*codes, *telling] or [term for term, _ in found] or _symbol_terms(text).split()
    # Each once: a term asked for a hundred times is looked up a hundred times.
    return list(dict.fromkeys(kept))[: limits.QUERY_TERMS_MAX]


def find_lone_name(query: str) -> str | None:
    """Return the term of the whole name where a query is nothing but a name of parts."""
    chunks = query.split()
    terms = _query_terms(chunks[0]) if len(chunks) == 1 else []
    return terms[0] if len(terms) > 1 and terms[0].isascii() else None


def _is_stop_word(term: str, chunk: str) -> bool:
    """Whether a term of a chunk is that of a stop word; `owns` is none, and has the stem of one."""
    if term not in STOP_WORDS:
        return False
    word = chunk.strip(_EDGES).casefold()
    return word in STOP_WORDS or stem(word) != term


def _take_codes(text: str) -> tuple[list[str], str]:
    """Return the terms of the codes that a query has in groups, and the query without them."""
    codes = [code for code in find_spaced_codes(text) if code.is_sure]
    for code in reversed(codes):
        text = f"{text[: code.start]} {text[code.end :]}"
    return [term for code in codes for term in code.terms], text


def leave_out(text: str, unwanted: Collection[str]) -> str:
    """Return a query without the words that stand for unwanted terms only.

    A query of nothing else comes back as it is.
    """
    kept = [chunk for chunk in text.split() if not _all_in(_query_terms(chunk), unwanted)]
    return " ".join(kept) or text


def match_expression(asked: Iterable[str]) -> str:
    """Return the FTS5 expression that matches any of the terms.

    Safe by construction: a term holds no quote, and what is quoted has no syntax.
    """
    return " OR ".join(f'"{term}"' for term in asked)


class AskedTerms(frozenset[str]):
    """Terms that texts are searched for, with what tells the words that may have one of them."""

    are_symbols: bool
    # The first letters of words that may give one of them.
    initials: frozenset[str]
    # An ASCII text that has one of the terms has one of these, in small letters and without joints.
    # There are none where a term begins with a symbol.
    heads: tuple[str, ...]
    # Whether all of them are words: else commas may be joints, too.
    are_words: bool
    # Whether one may be a code that texts have in groups.
    may_be_spaced: bool

    def __new__(cls, asked: Iterable[str]) -> Self:
        """Take terms as `query_terms` gives them."""
        self = super().__new__(cls, asked)
        firsts = {term[0] for term in self}
        symbols = [first for first in firsts if not first.isalnum()]
        self.are_symbols = len(symbols) == len(firsts)
        self.initials = frozenset([*firsts, *map(str.upper, firsts)])
        self.heads = () if symbols else tuple({_head(term) for term in self})
        self.are_words = "".join(self).isalpha()
        self.may_be_spaced = not self.are_words and any(
            len(term) >= TERM_CHARS_MIN and term.isalnum() and not term.isalpha() for term in self
        )
        return self


def _head(term: str) -> str:
    """Return what the words that give a term begin with.

    Stemming changes one letter of those it leaves at most, and two of `dying`, which gives `die`.
    """
    length = next((at for at, letter in enumerate(term) if not letter.isalnum()), len(term))
    sure = length - 2 if length > _SHORT_STEM_CHARS or term[:length].endswith("ie") else length - 1
    return term[: max(sure, 1)]


def find(text: str, asked: AskedTerms, *, most: int) -> Occurrences:
    """Return which of some terms a text has, and where: its words are parted by one space each.

    Of a name the largest pieces that are asked for are the places, and all of its pieces the
    terms. Looks no further than the first `most` places.
    """
    places: list[TermOccurrence] = []
    present: set[str] = set()
    for start, word in _likely_words(text, asked):
        found = _terms_among(word, asked.initials)
        if found not in asked and (" " not in found or asked.isdisjoint(found.split())):
            continue
        terms_found = found.split()
        present.update(asked.intersection(terms_found))
        places += _places(word, start, terms_found, asked)
        if len(places) >= most:
            break
    codes = _spaced_places(text, asked)
    if codes:
        present.update(place.term for place in codes)
        places = sorted([*places, *codes])
    _add_ends(present, asked)
    return Occurrences(places[:most], present or _symbols_among(text, asked))


def find_terms(text: str, asked: AskedTerms) -> set[str]:
    """Return which of some terms a text has."""
    present = {place.term for place in _spaced_places(text, asked)}
    if not asked.heads or not text.isascii() or _may_begin(text, asked):
        initials = asked.initials
        found = {term for word in text.split() for term in _terms_among(word, initials).split()}
        present |= found & asked or (set() if present else _symbols_among(text, asked))
    _add_ends(present, asked)
    return present


def _add_ends(present: set[str], asked: AskedTerms) -> None:
    """Add the asked numbers that another one ends with: `+47 22 33 44 55` asks for both."""
    if asked.may_be_spaced:
        numbers = {term for term in asked if len(term) >= TERM_CHARS_MIN and term.isdigit()}
        present |= {each for each in numbers for term in present if term.endswith(each)}


def _spaced_places(text: str, asked: AskedTerms) -> list[TermOccurrence]:
    """Return where a text has asked codes in groups."""
    if not asked.may_be_spaced:
        return []
    return [
        TermOccurrence(code.start, code.end, term)
        for code in find_spaced_codes(text)
        for term in code.terms
        if term in asked
    ]


def _may_begin(text: str, asked: AskedTerms) -> bool:
    """Whether one of some terms may begin in an ASCII text."""
    heads = asked.heads
    joined = _remove_joints(text.lower(), asked)
    for head in heads:
        if head in joined:
            break
    else:
        return False
    # Many words have a short head somewhere within; a key has few places where a term may begin.
    return len(text) > _KEY_CHARS or any(
        _remove_joints(text[initial.start() :].lower(), asked).startswith(heads)
        for initial in _INITIAL.finditer(text)
    )


def _likely_words(text: str, asked: AskedTerms) -> list[tuple[int, str]]:
    """Return the words that may have one of some terms, and where each begins."""
    heads = asked.heads
    if heads and text.isascii():
        lowered = text.lower()
        joined = _remove_joints(lowered, asked)
        # `e-mail` has the head of `email` only once joints vanish, and 12,000 that of 12000.
        if joined is lowered or all(joined.count(head) == lowered.count(head) for head in heads):
            return _words_with(heads, lowered, text)
    initials = asked.initials
    likely: list[tuple[int, str]] = []
    start = 0
    for word in text.split(" "):
        # Most words are neither, and are told here as `_is_plain` would, without the call.
        plain = word.isascii() and word.isalpha() and word.islower()
        if word and not (plain and word[0] not in initials):
            likely.append((start, word))
        start += len(word) + 1
    return likely


def _words_with(heads: Iterable[str], lowered: str, text: str) -> list[tuple[int, str]]:
    """Return the words of a text that hold any of some heads, and where each begins."""
    words: dict[int, str] = {}
    for head in heads:
        place = lowered.find(head)
        while place >= 0:
            start = lowered.rfind(" ", 0, place) + 1
            end = lowered.find(" ", place)
            words[start] = text[start:end] if end >= 0 else text[start:]
            place = lowered.find(head, end) if end >= 0 else -1
    return sorted(words.items())


def _remove_joints(text: str, asked: AskedTerms) -> str:
    """Return a text without what may be joints in asked terms: itself, where it has none."""
    # A tenth of the time of `str.translate`.
    joined = text.replace("-", "").replace("_", "").replace("'", "")
    return joined if asked.are_words else joined.replace(",", "").replace(".", "")


def _symbols_among(text: str, asked: AskedTerms) -> set[str]:
    """Return the terms that a text of symbols alone has: only then is it one term as it stands."""
    return set(terms(text)) & asked if asked.are_symbols else set()


def _terms_among(word: str, initials: Collection[str]) -> str:
    """Return the terms of a word, separated by spaces; "" if none can begin with an initial."""
    found = _CHUNKS.get(word)
    if found is None:
        found = _CHUNKS[word] if _may_have(word, initials) else ""
    return found


def _may_have(word: str, initials: Collection[str]) -> bool:
    """Whether a term of a word may begin with an initial: ten times as fast as the analysis."""
    if not word.isascii():
        return True
    bare = word.strip(_EDGES)
    if _is_plain(bare):
        return bare[0] in initials
    return any(initial in initials for initial in map(str.lower, _INITIAL.findall(word)))


def _places(
    word: str, start: int, found: Sequence[str], asked: frozenset[str]
) -> list[TermOccurrence]:
    bare = word.strip(_EDGES)
    if len(found) == 1 and _is_plain(bare):
        # One word: the patterns would find the same, and take ten times as long.
        start += word.index(bare)
        return [TermOccurrence(start, start + len(bare), found[0])]
    return [TermOccurrence(start + a, start + b, term) for a, b, term in _spans(word, asked)]


def _chunk_terms(chunk: str) -> str:
    """Return the terms to index for a chunk, with a space between any two."""
    bare = chunk.strip(_EDGES)
    if _is_plain(bare):
        return _plain_term(bare)
    return " ".join(_key_terms(bare) or _word_terms(chunk, singles=True))


def _is_plain(word: str) -> bool:
    """Whether a word is one term whatever the patterns say, which cost ten times as much."""
    if not word.isascii():
        return False
    if word.isalpha():
        return word.islower() or word.istitle() or word.isupper()
    return word.isdecimal()


def _plain_term(word: str) -> str:
    term = word.lower()[:TERM_CHARS_MAX]
    return term if term in STOP_WORDS else stem(term)


def _key_terms(name: str) -> list[str] | None:
    """Return the terms of plain words with one hyphen or low line between any two.

    Most keys are such names. The patterns would find the same, and take five times as long. None
    for other names.
    """
    parts = name.replace("_", "-").split("-")
    if len(parts) == 1 or not name.isascii():
        return None
    found: list[str] = []
    numbers = 0
    for part in parts:
        if part.isdecimal():
            # No number is a stop word, or has a stem.
            found.append(part[:TERM_CHARS_MAX])
            numbers += 1
        elif part.isalpha() and (part.islower() or part.istitle() or part.isupper()):
            found.append(_CHUNKS[part])
        else:
            return None
    if numbers == len(parts) and "_" in name:
        # A number whose thousands are marked, perhaps.
        return None
    # Between two numbers a hyphen stays.
    found.insert(0, _plain_term("".join(parts)) if numbers <= 1 else _whole(name))
    return found


def _part_term(word: str) -> str:
    # The words of keys recur, their numbers do not.
    return _CHUNKS[word] if word.isalpha() else _plain_term(word)


def _query_terms(chunk: str) -> list[str]:
    found = _CHUNKS[chunk].split() if chunk.isascii() else _word_terms(chunk, singles=False)
    if len(found) == 1 or not _CODE_BORDER.search(chunk):
        return found
    codes = filter(_CODE_BORDER.search, _CODE_WORD.findall(chunk))
    pieces = {term for code in codes for term in _CHUNKS[code].split() if len(term) == 1}
    # Who asks for 3.12.1 does not ask for any 3.12.
    dotted = [term for term in found if "." in term]
    pieces.update(term for term in dotted for each in dotted if each.startswith(f"{term}."))
    return [term for term in found if term not in pieces]


def _word_terms(chunk: str, *, singles: bool) -> list[str]:
    text = fold(join_groups(chunk))
    shapes = shape(text)
    found: list[str] = []
    for match in _WORD.finditer(shapes):
        start, end = match.span()
        word, kind = text[start:end], shapes[start]
        if kind in "ck":
            found += _pairs(word, singles=singles, whole=kind == "k")
        elif _PLAIN_WORD.fullmatch(shapes, start, end):
            found.append(_whole(word))
        else:
            _add_name_terms(found, word, shapes[start:end])
    return found


def _symbol_terms(text: str) -> str:
    runs = (_NOT_TOKEN.sub("", chunk)[:TERM_CHARS_MAX] for chunk in text.split())
    return " ".join(filter(None, runs))


def _pairs(run: str, *, singles: bool, whole: bool) -> Iterator[str]:
    if singles or len(run) == 1:
        yield from run
    yield from map("".join, pairwise(run))
    if whole and len(run) > _PAIR:
        yield run[:TERM_CHARS_MAX]


# The terms of a name are added to a list: names are keys, each write has one, and generators within
# generators take three times as long.
def _add_name_terms(found: list[str], name: str, shapes: str, level: int = 0) -> None:
    # Connectors are their own shape: without one there is nothing to part.
    if not shapes.isalnum():
        for at in range(level, len(_SEPARATED)):
            if _SEPARATORS[at].isdisjoint(shapes):
                continue
            parts = [part.span() for part in _SEPARATED[at].finditer(shapes)]
            if len(parts) > 1:
                found.append(_whole(name))
                if at == _DOTS and (number := _find_version(name)):
                    found += _version_terms(number[0])
                for start, end in parts:
                    _add_name_terms(found, name[start:end], shapes[start:end], at + 1)
                return
    _add_word_terms(found, name, shapes)


def _find_version(name: str) -> re.Match[str] | None:
    """Return the number within a name (`v2.5.1`); one that stands by itself is a term anyway.

    What it is one of is no term there: bug reports are full of such numbers.
    """
    number = _DOTTED.search(name)
    return number if number and number[0] != name else None


def _version_terms(number: str) -> list[str]:
    """Return the terms of a version, 3.12.1, and of what it is one of: 3.12, and not 3."""
    number = number[:TERM_CHARS_MAX]
    dots = [dot.start() for dot in _DOT.finditer(number)][1 : 1 + _VERSION_LEVELS_MAX]
    return [number, *(number[:dot] for dot in reversed(dots))]


def _add_word_terms(found: list[str], word: str, shapes: str) -> None:
    if _is_plain(word):
        found.append(_part_term(word))
        return
    word = _CLITIC.sub("", word)
    head, _, tail = word.rpartition("'")
    found.append(_whole(word))
    if not head:
        found += map(_whole, _camel(word, shapes[: len(word)]))
    elif len(tail) > _ENDING_CHARS_MAX:
        # After an elided article or in a name: l'homme, O'Brien. A shorter one ends: don't.
        found.append(_whole(tail))


def _camel(word: str, shapes: str) -> list[str]:
    parts = [word[part.start() : part.end()] for part in _CAMEL.finditer(shapes)]
    # Borders at every other character: a hash or a blob, not a name.
    opaque = len(parts) > _BORDERS_FEW and len(word) < 2 * len(parts)
    return [] if opaque or len(parts) == 1 else parts


def _whole(name: str) -> str:
    folded = name.casefold()
    if not folded.isalnum():
        folded = _JOINT.sub("", folded).replace("\\", "/")
    folded = folded[:TERM_CHARS_MAX]
    return folded if folded in STOP_WORDS else stem(folded)


def _all_in(found: Collection[str], unwanted: Collection[str]) -> bool:
    return bool(found) and all(term in unwanted for term in found)


def _spans(chunk: str, asked: frozenset[str]) -> Iterator[TermOccurrence]:
    marks = set(group_marks(chunk))
    if not marks:
        yield from _word_spans(chunk, asked)
        return
    kept = [at for at in range(len(chunk)) if at not in marks]
    for start, end, term in _word_spans("".join(chunk[at] for at in kept), asked):
        yield TermOccurrence(kept[start], kept[end - 1] + 1, term)


def _word_spans(chunk: str, asked: frozenset[str]) -> Iterator[TermOccurrence]:
    shapes = shape(chunk)
    for match in _WORD.finditer(shapes):
        start, end = match.span()
        text = chunk[start:end]
        of_script = shapes[start] in "ck"
        found = _pair_spans(text, asked) if of_script else _name_spans(text, asked, _LEVELS)
        for a, b, term in found:
            yield TermOccurrence(start + a, start + b, term)


def _name_spans(
    name: str, asked: frozenset[str], levels: Sequence[re.Pattern[str]]
) -> Iterator[TermOccurrence]:
    bare = _CLITIC.sub("", name)
    term = _whole(fold(bare))
    if term in asked:
        yield TermOccurrence(0, len(bare), term)
    elif levels:
        number = _find_version(name) if levels[0] is _SEPARATED[_DOTS] else None
        known = [each for each in _version_terms(number[0]) if each in asked] if number else []
        if number and known:
            begin, end = number.start(), number.start() + len(known[0])
            parts = [(0, begin), (begin, end), (end, len(name))]
        else:
            parts = [part.span() for part in levels[0].finditer(shape(name))]
        for start, end in parts:
            for a, b, found in _name_spans(name[start:end], asked, levels[1:]):
                yield TermOccurrence(start + a, start + b, found)


def _pair_spans(run: str, asked: frozenset[str]) -> Iterator[TermOccurrence]:
    folded = fold(run)
    text = folded if len(folded) == len(run) else run
    for start in range(len(text)):
        for size in (_PAIR, 1):
            term = text[start : start + size]
            if term in asked:
                yield TermOccurrence(start, start + len(term), term)
                break


_CHUNKS: Final = FunctionCache(_chunk_terms, entries_max=_CHUNKS_MAX, chars_max=_CHUNK_CHARS_MAX)
_look_up: Final = _CHUNKS.__getitem__
