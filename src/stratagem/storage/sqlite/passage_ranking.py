"""Ranks passages as FTS5 does, by the same numbers, without asking it about each match.

To rank a match FTS5 looks up how long it is, in a table, and goes through the occurrences of each
term a second time to count them: three quarters of the time of a full-text query. Here the lengths
are cached in memory once a process has searched several times, and the occurrences of each term are
read only once. The scores are equal, bit for bit: they are computed by the same operations in the
same order.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import clear_at_purge
from stratagem.storage.contract import ScoredPassages
from stratagem.storage.relational.session import Queries, Shape
from stratagem.storage.sorted_numbers import SortedNumbers
from stratagem.storage.sqlite.varints import read_varints

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MATCHES_MAX",
    "IndexTotals",
    "LengthCache",
    "PassageLengths",
    "PostingCache",
    "Postings",
    "count_passages",
    "find_postings",
    "rank_passages",
]

_LENGTH_ROW: Final = Shape[tuple[int, bytes]]()
_OCCURRENCES_ROW: Final = Shape[tuple[str, str | None]]()

# FTS5's.
_K1: Final = 1.2
_B: Final = 0.75
_IDF_MIN: Final = 1e-6

# Each occurrence of a term takes some sixty bytes while it is ranked; FTS5 takes no more for many.
MATCHES_MAX: Final = 300_000

# Reading all lengths takes about as long as so many searches gain by it.
_SEARCHES_BEFORE_KEPT: Final = 16
# Twelve bytes for each.
_PASSAGES_MAX: Final = 4_000_000
_PAGE: Final = 100_000
# Of a term in more passages these are counted by FTS5, which then takes less than reading them.
_COUNTED_MAX: Final = 5_000
# In an index of no more passages all occurrences are read, however many: most are ranked next.
_READ_WHOLE_MAX: Final = 100_000
# Of the terms that were asked for last.
_POSTING_BYTES_MAX: Final = 4 * 1024 * 1024
# What a term takes of its own, even one that occurs nowhere: an entry, its text and an array.
_TERM_BYTES: Final = 256
# The lowest bits of an occurrence are the number of a column, those of a row that of a passage.
_COLUMN_BITS: Final = 2
_PASSAGE_BITS: Final = 8


class IndexTotals(NamedTuple):
    """How many passages an index holds, and how many terms these have together."""

    passages: int
    terms: int

    @classmethod
    def read(cls, queries: Queries) -> IndexTotals:
        """Return what FTS5 itself keeps a record of; counting would read every passage."""
        return _read_totals(queries.value(bytes, "text_averages") or b"")


# Each search asks three times, and mostly about the same record as the one before.
@lru_cache(maxsize=16)
def _read_totals(record: bytes) -> IndexTotals:
    # Damage can leave a record without a number in it.
    passages, *columns = read_varints(record) or [0]
    return IndexTotals(passages, sum(columns))


class PassageLengths:
    """How many terms each passage of an index has, in the order of their rows.

    A row is given other terms only when the index is made anew, in another `generation`.
    """

    def __init__(
        self, rows: NDArray[np.int64], lengths: NDArray[np.int32], terms: int, generation: int
    ) -> None:
        self.rows = rows
        self.lengths = lengths
        self.totals = IndexTotals(len(rows), terms)
        self.generation = generation
        self._sorted = SortedNumbers(rows, _PASSAGE_BITS) if len(rows) else None

    @classmethod
    def read(cls, queries: Queries, totals: IndexTotals, generation: int) -> PassageLengths | None:
        """Return those of all passages; None where that does not make the totals."""
        nothing = cls(np.zeros(0, np.int64), np.zeros(0, np.int32), 0, generation)
        return nothing.extend(queries, totals)

    def extend(self, queries: Queries, totals: IndexTotals) -> PassageLengths | None:
        """Return these and those of later passages; None where that does not make the totals."""
        rows, lengths, terms = [self.rows], [self.lengths], self.totals.terms
        last = int(self.rows[-1]) if len(self.rows) else 0
        while page := queries.rows(_LENGTH_ROW, "passage_lengths", last, _PAGE):
            last = page[-1][0]
            try:
                counts = [_count_terms(sizes) for _, sizes in page]
                lengths.append(np.array(counts, np.int32))
            except (AttributeError, OverflowError, TypeError):
                # Damage can leave anything in a column: FTS5 will say so.
                return None
            rows.append(np.fromiter((row for row, _ in page), np.int64, len(page)))
            terms += sum(counts)
        if len(rows) == 1:
            return self if self.totals == totals else None
        extended = PassageLengths(
            np.concatenate(rows), np.concatenate(lengths), terms, self.generation
        )
        return extended if extended.totals == totals else None

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int32] | None:
        """Return the lengths of some passages in the order of their rows; None where one lacks."""
        if self._sorted is None:
            return None
        there, places = self._sorted.find(rows)
        return self.lengths[places] if there.all() else None


class LengthCache:
    """The lengths of a store's passages, and `postings`, shared by all of its readers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: PassageLengths | None = None
        self._searches = 0
        self.postings = PostingCache()

    def get(self, queries: Queries, totals: IndexTotals) -> PassageLengths | None:
        """Return the lengths of all passages that a reader sees; None where they are not kept."""
        kept = self._kept
        # The totals can be equal by chance, because a purge shortens texts that quote the purged
        # one.
        generation = queries.number("setting", "vector_generation")
        if kept is not None and kept.generation == generation and kept.totals == totals:
            return kept
        # Whoever comes while another reads them does without.
        if totals.passages > _PASSAGES_MAX or not self._lock.acquire(blocking=False):
            return None
        try:
            return self._read(queries, totals, generation)
        finally:
            self._lock.release()

    def _read(
        self, queries: Queries, totals: IndexTotals, generation: int
    ) -> PassageLengths | None:
        kept = self._kept
        extended = None
        if kept is not None and kept.generation == generation:
            extended = kept.extend(queries, totals)
        if extended is None:
            self._searches += 1
            if self._searches <= _SEARCHES_BEFORE_KEPT:
                return None
            self._searches = 0
            extended = PassageLengths.read(queries, totals, generation)
        if extended is not None:
            self._kept = extended
        return extended


class Postings(dict[str, "NDArray[np.int64]"]):
    """Where terms occur in the passages of one state: rows in order, with the column of each.

    Those that were used last come last.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._size_bytes = 0

    def use(self, terms: Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """Return what is known of some terms, which are dropped after the others from now on."""
        with self._lock:
            found = {term: self.pop(term) for term in terms if term in self}
            self.update(found)
            return found

    def add(self, more: Mapping[str, NDArray[np.int64]]) -> None:
        """Add those of further terms; for want of room those that were used longest ago go."""
        with self._lock:
            for term, places in more.items():
                if term not in self:
                    self._size_bytes += _size_of(places)
                    self[term] = places
            while self and self._size_bytes > _POSTING_BYTES_MAX:
                self._size_bytes -= _size_of(self.pop(next(iter(self))))


class PostingCache:
    """Where the terms occur that were asked for last, in one state of the texts.

    Shared by the readers of a store: each says which state it sees.
    """

    def __init__(self) -> None:
        self.clear_all()
        clear_at_purge(self)

    def clear_all(self) -> None:
        """Drop everything: the terms that were asked for may be those of a purged text."""
        self._kept: tuple[Hashable, Postings] = (None, Postings())

    def of(self, state: Hashable) -> Postings:
        """Return what is known of a state, to be added to; those of other states are dropped.

        What a reader adds that sees no certain state, None, is not kept.
        """
        if state is None:
            return Postings()
        seen, kept = self._kept
        if seen != state:
            kept = Postings()
            self._kept = state, kept
        return kept


def _size_of(places: NDArray[np.int64]) -> int:
    return _TERM_BYTES + places.nbytes


def count_passages(queries: Queries, terms: Sequence[str], known: Postings) -> dict[str, int]:
    """Return in how many passages each of some terms is, unless these are very many.

    Where they occur is added to what is known: mostly the same terms are ranked by afterwards.
    """
    if IndexTotals.read(queries).passages <= _READ_WHOLE_MAX:
        few = _read_postings(queries, terms)
    else:
        read = _read_postings(queries, terms, _COUNTED_MAX)
        few = {term: places for term, places in read.items() if len(places) < _COUNTED_MAX}
    known.add(few)
    return {term: _count_different(places >> _COLUMN_BITS) for term, places in few.items()}


def _read_postings(
    queries: Queries, terms: Sequence[str], most: int | None = None
) -> dict[str, NDArray[np.int64]]:
    asked = queries.array(terms)
    if most is None:
        rows = queries.rows(_OCCURRENCES_ROW, "occurrences", asked)
    else:
        rows = queries.rows(_OCCURRENCES_ROW, "first_occurrences", asked, most)
    return {term: np.fromstring(places or "", np.int64, sep=",") for term, places in rows}


def find_postings(
    queries: Queries, terms: Sequence[str], known: Postings
) -> list[NDArray[np.int64]]:
    """Return where each of some terms occurs; what was not known is added to what is."""
    found = known.use(terms)
    unknown = [term for term in terms if term not in found]
    if unknown:
        read = _read_postings(queries, unknown)
        known.add(read)
        found |= read
    return [found[term] for term in terms]


def rank_passages(
    occurrences: Sequence[NDArray[np.int64]],
    weights: tuple[float, float, float],
    lengths: PassageLengths,
    limit: int | None,
) -> ScoredPassages | None:
    """Return the best passages that have any of some terms, or all, in the order of their rows.

    `weights` are those of title, body and context. None where the lengths are not those of what is
    found.
    """
    lists = [places for places in occurrences if len(places)]
    if not lists:
        return ScoredPassages.from_rows(())
    counts = _count(lists, weights)
    order = np.argsort(counts.rows, kind="stable")
    ascending = counts.rows[order]
    is_first = _is_other(ascending)
    rows = ascending[is_first]
    sizes = lengths.of(rows)
    if sizes is None:
        return None
    places = np.empty(len(order), np.int64)
    places[order] = is_first.cumsum() - 1
    passages = lengths.totals.passages
    mean = lengths.totals.terms / passages
    damping = (_K1 * (1 - _B + _B * sizes.astype(np.float64) / mean))[places]
    rarity = np.repeat([_rarity(count, passages) for count in counts.per_term], counts.per_term)
    parts = rarity * (counts.frequencies * (_K1 + 1.0) / (counts.frequencies + damping))
    # Those of the first term first, as FTS5 adds them.
    scores = _add_up(places, parts)
    numbers = rows & (1 << _PASSAGE_BITS) - 1
    if limit is not None:
        best = _find_best(rows, numbers, scores, limit)
        rows, numbers, scores = rows[best], numbers[best], scores[best]
    return ScoredPassages(rows >> _PASSAGE_BITS, numbers, scores)


class _TermCounts(NamedTuple):
    """The passages that have a term, and how often, by the weights of the columns it is in.

    One term follows the other; `per_term` says how many passages have each.
    """

    rows: NDArray[np.int64]
    frequencies: NDArray[np.float64]
    per_term: list[int]


def _count(lists: Sequence[NDArray[np.int64]], weights: tuple[float, float, float]) -> _TermCounts:
    """Count the occurrences of terms, each of which has a list of them."""
    occurrences = np.concatenate(lists)
    rows = occurrences >> _COLUMN_BITS
    is_first = _is_other(rows)
    begins = list(accumulate(map(len, lists[:-1]), initial=0))
    is_first[begins] = True
    each = np.array(weights)[occurrences & (1 << _COLUMN_BITS) - 1]
    if is_first.all():
        return _TermCounts(rows, each, [*map(len, lists)])
    places = is_first.cumsum() - 1
    ends = [*places[begins[1:]].tolist(), int(places[-1]) + 1]
    per_term = [end - begin for begin, end in pairwise((0, *ends))]
    return _TermCounts(rows[is_first], _add_up(places, each), per_term)


def _count_different(ascending: NDArray[np.int64]) -> int:
    return len(ascending) - int(np.count_nonzero(ascending[1:] == ascending[:-1]))


def _is_other(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are not the same as those before them."""
    other = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=other[1:])
    return other


def _add_up(places: NDArray[np.int64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the numbers of each place, added in their order."""
    sums: NDArray[np.float64] = np.bincount(places, numbers)  # type: ignore[assignment]
    return sums


def _rarity(count: int, passages: int) -> float:
    rarity = math.log((passages - count + 0.5) / (count + 0.5))
    return rarity if rarity > 0 else _IDF_MIN


def _find_best(
    rows: NDArray[np.int64],
    numbers: NDArray[np.int64],
    scores: NDArray[np.float64],
    limit: int,
) -> NDArray[np.int64]:
    """Return where the highest scores are, highest first; of equals the newer text first."""
    # The newest first: rows ascend.
    places = np.arange(len(scores) - 1, -1, -1)
    if limit < len(scores):
        lowest = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        places = places[scores[::-1] >= lowest]
    lowered = -scores[places]
    if numbers.any():
        rows = rows[places]
        order = np.lexsort((rows, -(rows >> _PASSAGE_BITS), lowered))
    else:
        # A third of the time.
        order = lowered.argsort(kind="stable")
    best: NDArray[np.int64] = places[order[:limit]]
    return best


def _count_terms(sizes: bytes) -> int:
    """Return how many terms a passage has, by what FTS5 keeps of its columns."""
    return sum(sizes) if sizes.isascii() else sum(read_varints(sizes))
