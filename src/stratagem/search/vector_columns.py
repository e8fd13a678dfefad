"""The arrays that vectors stand in, and their seal.

They are written by the process that searches first after a write. It may be killed, and the machine
may lose power, at any point. So the header says whether a write is in progress, and holds a digest
of everything else: a sum over the rows, to which a new row is added and from which an old value is
subtracted, so that maintaining it costs no more than the row itself. A process that opens the file
checks the digest once, and rejects a file that does not match it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import OPEN_END
from stratagem.search.vector_storage import VectorStorage, aligned_array
from stratagem.storage.sorted_numbers import SortedNumbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "HEADER_BYTES",
    "OwnRows",
    "VectorColumns",
    "VectorRows",
    "VectorSnapshot",
    "header_dtype",
    "quantize",
]

HEADER_BYTES: Final = 4_096
_TAIL_BYTES: Final = 64

_MAGIC: Final = b"STRAVEC7"
_NUMBERS: Final = ("sequence", "sequence_to", "branch", "space", "norm", "step")
# The largest number in a quantized vector.
_STEPS: Final = 127
# Vectors of so many bytes are synced before they are sealed.
SYNCED_BYTES_MIN: Final = 256 * 1024 * 1024
# What `check` is a checksum of: the fields before it.
_CHECKED_BYTES: Final = 80
# Few calls, and yet the vectors of one are still in the processor's cache when compared.
_CHUNK: Final = 1_024
# The same of quantized vectors, each of which is made a whole one in new memory.
_ESTIMATED: Final = 256
# Eight bytes for each row, and few ask about more than that.
_OWN_ROWS_KEPT: Final = 4
# Quantized vectors of so many bytes are kept in memory, once as much was asked for as reading them
# all takes: whoever asks once, or after every write, reads only what is compared.
_QUANTIZED_BYTES_KEPT: Final = 32 * 1024 * 1024
_ASKED_BEFORE_KEPT: Final = 8
# Odd, so that multiplying by them loses nothing.
_ODD: Final = (
    0x9E3779B97F4A7C15,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x27D4EB2F165667C5,
    0xD6E8FEB86659FD93,
)


@cache
def header_dtype() -> np.dtype[np.void]:
    """Return the fields of the header."""
    return np.dtype(
        [
            ("magic", "S8"),
            ("generation", "<i8"),
            ("dimensions", "<i8"),
            ("capacity", "<i8"),
            ("count", "<i8"),
            ("last_id", "<i8"),
            ("position", "<i8"),
            ("ascending", "<i8"),
            ("anchor", "<i8"),
            ("digest", "<u8"),
            ("check", "<i8"),
            ("writing", "<i8"),
        ]
    )


class VectorRows(NamedTuple):
    """Vectors with their codes, their versions and what decides whether a view shows them.

    Vectors have the length one; `norm` is how long each was, as the bits of a 64-bit number. The
    numbers of a `quantized` vector are whole; times `step`, given as bits, they are those of the
    vector, nearly.
    """

    sequence: NDArray[np.int64]
    sequence_to: NDArray[np.int64]
    branch: NDArray[np.int64]
    space: NDArray[np.int64]
    norm: NDArray[np.int64]
    step: NDArray[np.int64]
    # By word, not by vector: each is gone through from end to end.
    codes: NDArray[np.uint64]
    vectors: NDArray[np.float32]
    quantized: NDArray[np.int8]


class VectorColumns:
    """One row for each vector, in a storage.

    Raises:
        VectorsDamagedError: From any method that reads: the storage has lost rows.
    """

    def __init__(self, storage: VectorStorage, dimensions: int, words: int, capacity: int) -> None:
        self.storage = storage
        self.capacity = capacity
        self.header = np.zeros(1, header_dtype())
        self.snapshot = VectorSnapshot(self)
        self._dimensions = dimensions
        self._words = words
        self._numbers_at = {
            name: HEADER_BYTES + 8 * capacity * place for place, name in enumerate(_NUMBERS)
        }
        self._codes_at = HEADER_BYTES + 8 * capacity * len(_NUMBERS)
        self._vectors_at = self._codes_at + 8 * capacity * words
        self._quantized_at = self._vectors_at + 4 * capacity * dimensions

    @staticmethod
    def size(dimensions: int, words: int, capacity: int) -> int:
        """Return how many bytes so many rows take, with some at the end that nobody writes to.

        If the file is truncated while rows are written to it, they lengthen it again, but never
        to its full size.
        """
        row = 8 * len(_NUMBERS) + 8 * words + 5 * dimensions
        return HEADER_BYTES + capacity * row + _TAIL_BYTES

    def format(self, generation: int) -> None:
        """Write the header of columns without rows."""
        self.header["magic"] = _MAGIC
        self.put("generation", generation)
        self.put("dimensions", self._dimensions)
        self.put("capacity", self.capacity)
        self.put("ascending", 1)
        self.begin()

    def get(self, name: str) -> int:
        """Return a number of the header, as it was last read or written."""
        return int(self.header[name][0])

    def put(self, name: str, value: int) -> None:
        """Set a number of the header; `seal` writes it."""
        self.header[name][0] = value

    def refresh(self) -> None:
        """Read the header, and drop cached rows if they have changed."""
        header = np.zeros(1, header_dtype())
        self.storage.read(0, header)
        # As bytes: field by field it takes ten times as long.
        if header.tobytes() != self.header.tobytes():
            self.header = header
            self._renew_snapshot()

    def begin(self) -> None:
        """Mark the rows as being changed."""
        self.put("writing", 1)
        self.storage.write(0, self.header)

    def seal(self) -> None:
        """Mark the rows as complete again.

        Raises:
            VectorsDamagedError: The storage was truncated since they were begun.
        """
        self.storage.check_size()
        if self.get("count") * self._dimensions * 4 > SYNCED_BYTES_MIN:
            # A file that large is not read through when it is opened: its seal is believed, and so
            # must not be on the disk before the rows are.
            self.storage.sync()
        self.put("check", self._check())
        self.put("writing", 0)
        self.storage.write(0, self.header)
        self._renew_snapshot()

    def is_intact(self) -> bool:
        """Whether the header is one of ours; another process may be changing the rows."""
        return (
            self.header["magic"][0] == _MAGIC
            and self.get("check") == self._check()
            and 0 <= self.get("count") <= self.capacity
        )

    def is_whole(self) -> bool:
        """Whether no change of the rows was interrupted, as far as the header says."""
        return self.is_intact() and not self.get("writing")

    def is_sound(self) -> bool:
        """Whether every row is as it was written; reads them all, unless those are very many."""
        if self.get("count") * self._dimensions * 4 > SYNCED_BYTES_MIN:
            return self.is_whole()
        digest = sum(_digest(rows) for rows in self.chunks())
        return self.is_whole() and self.get("digest") == digest % 2**64

    def numbers(self, name: str, begin: int, end: int) -> NDArray[np.int64]:
        """Return `sequence`, `sequence_to`, `branch`, `space`, `norm` or `step` of some rows."""
        numbers = aligned_array((end - begin,), np.int64)
        self.storage.read(self._numbers_at[name] + 8 * begin, numbers)
        return numbers

    def codes(self, begin: int, end: int) -> NDArray[np.uint64]:
        """Return the codes of some rows."""
        codes = aligned_array((self._words, end - begin), np.uint64)
        for word in range(self._words):
            self.storage.read(self._code_at(word, begin), codes[word])
        return codes

    def cosines(self, query: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """Return how near each of the first rows is to a query."""
        cosines = np.empty(count, np.float32)
        buffer = aligned_array((_CHUNK, self._dimensions), np.float32)
        for begin in range(0, count, _CHUNK):
            vectors = buffer[: count - begin]
            self.storage.read(self._vector_at(begin), vectors)
            _compare(vectors, query, cosines[begin : begin + _CHUNK])
        return cosines

    def cosines_of(
        self, rows: NDArray[np.int64], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return how near some rows are to a query."""
        cosines = np.empty(len(rows), np.float32)
        buffer = aligned_array((min(len(rows), _CHUNK), self._dimensions), np.float32)
        for begin in range(0, len(rows), _CHUNK):
            vectors = buffer[: len(rows) - begin]
            offsets = self._vectors_at + 4 * self._dimensions * rows[begin : begin + _CHUNK]
            self.storage.gather(offsets, vectors)
            _compare(vectors, query, cosines[begin : begin + _CHUNK])
        return cosines

    def are_few(self, count: int) -> bool:
        """Whether the quantized vectors of so many rows may be kept in memory."""
        return count * self._dimensions <= _QUANTIZED_BYTES_KEPT

    def quantized_vectors(self, begin: int, end: int) -> NDArray[np.int8]:
        """Return the quantized vectors of some rows."""
        quantized = aligned_array((end - begin, self._dimensions), np.int8)
        self.storage.read(self._quantized_at + self._dimensions * begin, quantized)
        return quantized

    def quantized_of(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the quantized vectors of rows that lie anywhere."""
        quantized = aligned_array((len(rows), self._dimensions), np.int8)
        self.storage.gather(self._quantized_at + self._dimensions * rows, quantized)
        return quantized

    def chunks(self) -> Iterator[VectorRows]:
        """Yield all rows, some at a time."""
        count = self.get("count")
        for begin in range(0, count, _CHUNK):
            end = min(begin + _CHUNK, count)
            sequence, sequence_to, branch, space, norm, step = (
                self.numbers(name, begin, end) for name in _NUMBERS
            )
            vectors = aligned_array((end - begin, self._dimensions), np.float32)
            self.storage.read(self._vector_at(begin), vectors)
            codes = self.codes(begin, end)
            quantized = self.quantized_vectors(begin, end)
            yield VectorRows(
                sequence, sequence_to, branch, space, norm, step, codes, vectors, quantized
            )

    def extend(self, rows: VectorRows) -> None:
        """Write rows behind the last one."""
        count = self.get("count")
        for name in _NUMBERS:
            self.storage.write(self._numbers_at[name] + 8 * count, getattr(rows, name))
        for word in range(self._words):
            self.storage.write(self._code_at(word, count), rows.codes[word])
        self.storage.write(self._vector_at(count), rows.vectors)
        self.storage.write(self._quantized_at + self._dimensions * count, rows.quantized)
        self.put("digest", (self.get("digest") + _digest(rows)) % 2**64)
        self.put("count", count + len(rows.sequence))

    def supersede(self, ends: dict[int, int]) -> None:
        """Set the ends of some versions."""
        if not ends:
            return
        count = self.get("count")
        sequence = self.numbers("sequence", 0, count)
        rows = np.flatnonzero(np.isin(sequence, np.fromiter(ends, np.int64, len(ends))))
        if not len(rows):
            return
        sequence = sequence[rows]
        column = self.numbers("sequence_to", 0, count)
        digest = self.get("digest") - _digest_of_ends(sequence, column[rows])
        column[rows] = [ends[each] for each in sequence.tolist()]
        changed = slice(int(rows[0]), int(rows[-1]) + 1)
        self.storage.write(self._numbers_at["sequence_to"] + 8 * changed.start, column[changed])
        self.put("digest", (digest + _digest_of_ends(sequence, column[rows])) % 2**64)

    def _renew_snapshot(self) -> None:
        # Most events have no vector: they move the position, and the rows stay as they are.
        if not self.snapshot.has_rows_of(self):
            self.snapshot = VectorSnapshot(self)

    def _code_at(self, word: int, row: int) -> int:
        return self._codes_at + 8 * (self.capacity * word + row)

    def _vector_at(self, row: int) -> int:
        return self._vectors_at + 4 * self._dimensions * row

    def _check(self) -> int:
        return zlib.crc32(self.header.tobytes()[:_CHECKED_BYTES])


class OwnRows:
    """Some of the rows: their numbers, and for each row whether it is one of them.

    `codes` and `quantized` are copies of theirs, where a snapshot has made any.
    """

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask
        self.numbers = np.flatnonzero(mask)
        self.codes: NDArray[np.uint64] | None = None
        self.quantized: NDArray[np.int8] | None = None

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """The place of each of them in `numbers`, by its row."""
        return np.cumsum(self.mask, dtype=np.int32) - 1


class VectorSnapshot:
    """The header at one moment, and the columns that every search needs.

    These are cached, because they are small: 76 bytes or a little more for each vector of 256
    numbers, and a copy of half of them for the rows of each of the last few questions. Vectors are
    not, and quantized ones only where they are not too many and asked for again and again.
    """

    def __init__(self, columns: VectorColumns) -> None:
        self.columns = columns
        self._asked = 0
        self.count = columns.get("count")
        self._is_ascending = bool(columns.get("ascending"))
        self._rows = _rows_of(columns)
        self._own_rows: dict[
            tuple[tuple[tuple[int, int], ...], tuple[int, ...] | None], OwnRows
        ] = {}
        # The rows whose quantized vectors are kept, where all of them would be too many.
        self._kept: OwnRows | None = None

    def has_rows_of(self, columns: VectorColumns) -> bool:
        """Whether the rows that the header tells of now are those of this moment."""
        return self._rows == _rows_of(columns)

    @cached_property
    def sequence(self) -> NDArray[np.int64]:
        """The version that each vector belongs to."""
        return self.columns.numbers("sequence", 0, self.count)

    @cached_property
    def sequence_to(self) -> NDArray[np.int64]:
        """The version that superseded each one."""
        return self.columns.numbers("sequence_to", 0, self.count)

    @cached_property
    def branch(self) -> NDArray[np.int64]:
        """The branch of each version."""
        return self.columns.numbers("branch", 0, self.count)

    @cached_property
    def space(self) -> NDArray[np.int64]:
        """The space of each version."""
        return self.columns.numbers("space", 0, self.count)

    @cached_property
    def norm(self) -> NDArray[np.float64]:
        """How long each vector was before it was given the length one."""
        return self.columns.numbers("norm", 0, self.count).view(np.float64)

    @cached_property
    def step(self) -> NDArray[np.float64]:
        """What the numbers of each quantized vector are multiplied by."""
        return self.columns.numbers("step", 0, self.count).view(np.float64)

    @cached_property
    def _quantized_vectors(self) -> NDArray[np.int8]:
        return self.columns.quantized_vectors(0, self.count)

    def estimates_of(
        self, rows: NDArray[np.int64], query: NDArray[np.float32], own: OwnRows
    ) -> NDArray[np.float32]:
        """Return about how near some rows are to a query: within a hundredth.

        `own` are the rows that they were chosen from.
        """
        self._asked += 1
        quantized = self._pick_quantized(rows, own)
        products = np.empty(len(rows), np.float32)
        for begin in range(0, len(rows), _ESTIMATED):
            vectors = quantized[begin : begin + _ESTIMATED].astype(np.float32)
            _compare(vectors, query, products[begin : begin + _ESTIMATED])
        products *= self.step.take(rows)
        return products

    def _pick_quantized(self, rows: NDArray[np.int64], own: OwnRows) -> NDArray[np.int8]:
        if self._asked > _ASKED_BEFORE_KEPT:
            if self.columns.are_few(self.count):
                return self._quantized_vectors.take(rows, axis=0)
            if self._keeps(own) and own.mask[rows].all():
                if own.quantized is None:
                    own.quantized = self.columns.quantized_of(own.numbers)
                return own.quantized.take(own.places[rows], axis=0)
        return self.columns.quantized_of(rows)

    def _keeps(self, own: OwnRows) -> bool:
        """Whether the quantized vectors of some rows are kept: of the first that are not many."""
        if self._kept is None and self.columns.are_few(len(own.numbers)):
            self._kept = own
        return self._kept is own

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """The code of each vector, a word of bits in each row."""
        return self.columns.codes(0, self.count)

    def codes_of(self, own: OwnRows) -> NDArray[np.uint64]:
        """Return the codes of some rows, which are picked out once."""
        if len(own.numbers) == self.count:
            return self.codes
        if own.codes is None:
            own.codes = self.codes.take(own.numbers, axis=1)
        return own.codes

    @cached_property
    def order(self) -> NDArray[np.int64] | None:
        """The rows in order of sequence; None where they already are."""
        return None if self._is_ascending else np.argsort(self.sequence, kind="stable")

    @cached_property
    def by_sequence(self) -> SortedNumbers:
        """The sequences in their order."""
        return SortedNumbers(self.sequence if self.order is None else self.sequence[self.order])

    @cached_property
    def last_change(self) -> int:
        """The last sequence that made or superseded any of the versions."""
        ends = self.sequence_to[self.sequence_to < OPEN_END]
        return int(max(self.sequence.max(initial=0), ends.max(initial=0)))

    def own_rows(
        self, cuts: tuple[tuple[int, int], ...], spaces: tuple[int, ...] | None
    ) -> OwnRows:
        """Return the rows of some spaces that their own branches show, up to a limit on each.

        Those of the last few questions are kept: mostly the same is asked.
        """
        # Above the last change every limit gives the same rows.
        limits = tuple((branch, min(limit, self.last_change)) for branch, limit in cuts)
        rows = self._own_rows.get((limits, spaces))
        if rows is None:
            rows = self._find_own_rows(limits, spaces)
            if len(self._own_rows) >= _OWN_ROWS_KEPT:
                self._own_rows.clear()
            self._own_rows[limits, spaces] = rows
        return rows

    def _find_own_rows(
        self, cuts: tuple[tuple[int, int], ...], spaces: tuple[int, ...] | None
    ) -> OwnRows:
        shown = np.zeros(self.count, bool)
        for branch, limit in cuts:
            shown |= (self.branch == branch) & (self.sequence <= limit) & (self.sequence_to > limit)
        if spaces is not None:
            shown &= _membership(np.array(spaces, np.int64), self.space)
        return OwnRows(shown)


def _rows_of(columns: VectorColumns) -> tuple[int, ...]:
    """Return a value that changes with every change of the rows."""
    return tuple(columns.get(name) for name in ("generation", "count", "ascending", "digest"))


def quantize(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Return vectors in whole numbers of a byte, and what to multiply those of each by."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    step = np.where(largest > 0, largest, 1.0) / np.float32(_STEPS)
    return np.rint(vectors / step[:, np.newaxis]).astype(np.int8), step.astype(np.float64)


def _membership(members: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some small numbers are members: one look-up each."""
    table = np.zeros(int(max(members.max(initial=0), numbers.max(initial=0))) + 1, bool)
    table[members] = True
    return table[numbers]


def _compare(
    vectors: NDArray[np.float32], query: NDArray[np.float32], cosines: NDArray[np.float32]
) -> None:
    # A matrix product would start threads that wait for each other busily: on a machine that has
    # something else to do it then takes five times as long.
    np.vecdot(vectors, query, out=cosines)


def _digest(rows: VectorRows) -> int:
    with np.errstate(over="ignore"):
        words = rows.vectors.view(np.uint64)
        weights = np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64)
        each = (words * weights).sum(axis=1, dtype=np.uint64)
        for place, word in enumerate(rows.codes):
            each += word * np.uint64(2 * place + 3)
        each += rows.branch.view(np.uint64) * np.uint64(_ODD[0])
        each += rows.space.view(np.uint64) * np.uint64(_ODD[1])
        each += rows.norm.view(np.uint64) * np.uint64(_ODD[3])
        each += rows.step.view(np.uint64) * np.uint64(_ODD[4])
        # By halves: the numbers of a vector are a multiple of two, not of eight.
        halves = rows.quantized.view(np.uint16)
        weights = np.arange(1, 2 * halves.shape[1], 2, dtype=np.uint64)
        each += (halves * weights).sum(axis=1, dtype=np.uint64)
        total = int((each * _keys(rows.sequence)).sum(dtype=np.uint64))
    return total + _digest_of_ends(rows.sequence, rows.sequence_to)


def _digest_of_ends(sequence: NDArray[np.int64], sequence_to: NDArray[np.int64]) -> int:
    with np.errstate(over="ignore"):
        ends = sequence_to.view(np.uint64) * np.uint64(_ODD[2])
        return int((ends * _keys(sequence)).sum(dtype=np.uint64))


def _keys(sequence: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return an odd number for each row, so that rows cannot change places."""
    keys: NDArray[np.uint64] = sequence.view(np.uint64) * np.uint64(2) + np.uint64(1)
    return keys
