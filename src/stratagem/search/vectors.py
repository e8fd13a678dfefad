"""Every vector of a database, ready to be compared with a query.

The database is where vectors are kept. For searching they stand side by side in a file next to
it, so that all processes share one copy, in the memory of the operating system, and none has to
read it first. The file is a cache: each search brings it up to date from the database under a lock,
and it is rewritten if anything about it is doubtful (another generation, another embedder, a torn
header, missing rows).

Beside each vector are the numbers a view is decided by: its sequence, the sequence that
superseded it, its branch and its space. They only tell what a branch itself shows; for the few best
vectors the store is asked whether a nearer branch hides them or they have expired.

Up to a point every vector is compared with the query. Beyond it codes of one bit for each number
(`codes`) choose the vectors that are worth comparing, and these are compared by copies of a byte
for each number: a quarter of the memory to go through, and exact enough to choose the few whose
vectors are read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Head
from stratagem.engine.lineage import OPEN_END, View
from stratagem.search import ranking
from stratagem.search.codes import Codes
from stratagem.search.vector_columns import (
    HEADER_BYTES,
    OwnRows,
    VectorColumns,
    VectorRows,
    VectorSnapshot,
    header_dtype,
    quantize,
)
from stratagem.search.vector_storage import FileStorage, MemoryStorage, VectorsDamagedError
from stratagem.storage.contract import LogReader, Reader, RecordReader, VectorRow

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows: the file is then private to the process
    fcntl = None

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BestKnown",
    "Nearest",
    "TextVectors",
    "VectorCache",
    "VectorComparison",
    "VectorSource",
    "WantedRows",
    "knows_what_is_shown",
]

T = TypeVar("T")

_CAPACITY_MIN: Final = 1_024
_PAGE: Final = 5_000
# A stopped process may hold the lock; the others then use private memory.
_LOCK_SECONDS_MAX: Final = 2.0
_LOCK_POLL_SECONDS: Final = 0.005
# After so many damaged files in a row, private memory is used instead.
_REBUILDS_MAX: Final = 3


class Nearest(NamedTuple):
    """Versions, and the similarity of each one's vector to the query."""

    sequences: NDArray[np.int64]
    cosines: NDArray[np.float32]


class BestKnown(NamedTuple):
    """How good each of some known versions is, and how many of the best count at most."""

    scores: NDArray[np.float64]
    limit: int


class WantedRows(NamedTuple):
    """The rows to choose from, what they are compared with, and the rows to compare anyway.

    The first are all of the `own` ones, or some of them.
    """

    rows: NDArray[np.int64]
    query: NDArray[np.float32]
    known: tuple[NDArray[np.bool_], NDArray[np.int64]]
    own: OwnRows


class VectorComparison(NamedTuple):
    """What is nearest to a query, and which of some known versions count, with their cosines.

    None of these is among the nearest. `places` are those among the known. A version without a
    vector is NaN. Where codes chose what was compared, all cosines are estimates, within a
    hundredth, and `exact` gives those of some versions as they are.
    """

    near: Nearest
    places: NDArray[np.int64]
    cosines: NDArray[np.float32]
    exact: Callable[[NDArray[np.int64]], NDArray[np.float32]] | None = None


class VectorSource(Protocol):
    """Where the vectors of a cache are kept."""

    def after(self, reader: Reader, columns: VectorColumns, limit: int) -> list[VectorRow]:
        """Return vectors that columns do not have yet, in the order of their ids."""

    def last(self, reader: Reader) -> int:
        """Return the id of the newest vector, where vectors may come later than their versions."""

    def count(self, reader: Reader) -> int:
        """Return about how many vectors there are."""


class TextVectors:
    """The vectors of texts, which an embedder made."""

    def after(self, reader: Reader, columns: VectorColumns, limit: int) -> list[VectorRow]:
        """See `VectorSource`."""
        last = columns.get("last_id")
        return reader.vectors.after(last, limit) if last < self.last(reader) else []

    def last(self, reader: Reader) -> int:
        """See `VectorSource`."""
        return reader.vectors.last() or 0

    def count(self, reader: Reader) -> int:
        """See `VectorSource`."""
        return reader.vectors.count()


class VectorCache:
    """The vectors of one database, or of one collection. Safe to share between threads."""

    def __init__(
        self, path: Path | None, dimensions: int, source: VectorSource | None = None
    ) -> None:
        self._source = source or TextVectors()
        self._path = path if fcntl else None
        self._dimensions = dimensions
        self._codes = Codes(dimensions)
        self._lock = threading.Lock()
        self._columns: VectorColumns | None = None
        self._inode = 0

    def compare(
        self,
        reader: Reader,
        view: View,
        query: NDArray[np.float32],
        known: NDArray[np.int64],
        *,
        spaces: NDArray[np.int64] | None,
        sequences: NDArray[np.int64] | None,
        depth: int,
        best: BestKnown | None = None,
    ) -> VectorComparison:
        """Return the visible versions nearest to a query, nearest first, and how near some are.

        `spaces` and `sequences`, where given, are the only ones that count as nearest. Of the
        `known` versions, which are left out of the nearest, all count, or only the `best` of those
        that can be seen, as far as their vectors tell (`knows_what_is_shown`).
        """

        def search() -> VectorComparison:
            snapshot = self._current(reader)
            # Another process may have brought the file further than this reader sees.
            head = reader.log.head().sequence
            own = _own_rows(snapshot, view, head, spaces)
            rows = own.numbers
            if sequences is not None:
                # Looked up one by one: mostly they are few, and the rows are many.
                among = _find_rows(snapshot, sequences)[1]
                rows = among[own.mask[among]]
            there, known_rows = _find_rows(snapshot, known)
            places = np.arange(len(known))
            if best is not None:
                places = _best_shown(known, there, own.mask[known_rows], best)
                row_of = np.zeros(len(known), np.int64)
                row_of[there] = known_rows
                there = there[places]
                known_rows = row_of[places[there]]
            wanted = WantedRows(rows, query, (there, known_rows), own)
            near, cosines = self._nearest(reader, view, snapshot, wanted, depth)
            if len(rows) <= ranking.EXACT_VECTORS_MAX:
                return VectorComparison(near, places, cosines)
            exact = partial(self._exact_cosines, reader, snapshot, query)
            return VectorComparison(near, places, cosines, exact)

        return self._rebuild_and_retry(search)

    def cosines(
        self, reader: Reader, sequences: NDArray[np.int64], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return how near some versions are to a query; NaN for those that have no vector."""
        return self._rebuild_and_retry(lambda: _cosines(self._current(reader), sequences, query))

    def _rebuild_and_retry(self, read: Callable[[], T]) -> T:
        """Return the result of `read`; if it finds the file damaged, rewrite the file first."""
        for _ in range(_REBUILDS_MAX):
            try:
                return read()
            except VectorsDamagedError:
                with self._lock:
                    self._columns = None
        with self._lock:
            self._path = None
        return read()

    def _nearest(
        self, reader: Reader, view: View, snapshot: VectorSnapshot, wanted: WantedRows, depth: int
    ) -> tuple[Nearest, NDArray[np.float32]]:
        count = depth
        while True:
            rows, cosines, known = self._cosines_for(snapshot, wanted, count)
            best = _highest(cosines, snapshot.sequence.take(rows), count)
            best_rows = rows.take(best)
            found = snapshot.sequence.take(best_rows)
            seen = _find_visible(reader.records, view, found)
            if len(seen) >= depth or len(best) == len(wanted.rows):
                is_known = np.zeros(snapshot.count, bool)
                is_known[wanted.known[1]] = True
                near = seen[:depth]
                near = near[~is_known.take(best_rows.take(near))]
                return Nearest(found.take(near), cosines.take(best.take(near))), known
            count *= 4

    def _cosines_for(
        self, snapshot: VectorSnapshot, wanted: WantedRows, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Return the rows that may be the nearest, and the cosines of these and of the known.

        A collection has a metric of its own, and other scores in their place.
        """
        rows, query, (places, known), own = wanted
        answer = np.full(len(places), np.nan, np.float32)
        if len(rows) > ranking.EXACT_VECTORS_MAX:
            compared = int(len(rows) * ranking.RESCORED_SHARE)
            compared = min(max(compared, ranking.RESCORED_MIN), ranking.RESCORED_MAX)
            rows = self._by_codes(snapshot, wanted, max(count, compared))
            both = snapshot.estimates_of(np.concatenate((rows, known)), query, own)
        elif len(rows) * 4 > snapshot.count:
            # Most rows are wanted: one pass over all of them is faster than picking them out.
            every = snapshot.columns.cosines(query, snapshot.count)
            answer[places] = every[known]
            return rows, every[rows], answer
        else:
            both = snapshot.columns.cosines_of(np.concatenate((rows, known)), query)
        answer[places] = both[len(rows) :]
        return rows, both[: len(rows)], answer

    def _exact_cosines(
        self,
        reader: Reader,
        snapshot: VectorSnapshot,
        query: NDArray[np.float32],
        sequences: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        try:
            return _cosines(snapshot, sequences, query)
        except VectorsDamagedError:
            return self.cosines(reader, sequences, query)

    def belongs_to(self, log: LogReader) -> bool:
        """Whether no vectors are known that a log does not have, or has not yet."""
        with self._lock:
            columns = self._columns
        return columns is None or (not self._was_replaced() and _belongs(columns, log))

    def check(self, reader: Reader) -> None:
        """Discard vectors of another log: of a database that was put back from a copy, say.

        `reader` has to see the newest state.
        """
        if self.belongs_to(reader.log):
            return
        columns = self._columns
        if columns is None:
            return
        with suppress(OSError, VectorsDamagedError), self._exclusive():
            columns.refresh()
            if not self._was_replaced() and _belongs(columns, reader.log):
                return
        self.discard()

    def discard(self) -> None:
        """Drop the file; it is read from the database again by need."""
        with self._lock:
            self._columns = None
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)

    def _by_codes(
        self, snapshot: VectorSnapshot, wanted: WantedRows, count: int
    ) -> NDArray[np.int64]:
        """Return about so many of the wanted rows: those whose codes are nearest to the query."""
        rows, own = wanted.rows, wanted.own
        if len(rows) <= count:
            return rows
        codes = snapshot.codes_of(own) if rows is own.numbers else snapshot.codes
        return self._codes.nearest(codes, rows, wanted.query, count)

    def _size(self, capacity: int) -> int:
        return VectorColumns.size(self._dimensions, self._codes.words, capacity)

    def _current(self, reader: Reader) -> VectorSnapshot:
        """Return the vectors, up to date with what the reader sees."""
        generation = int(reader.settings.number("vector_generation") or 0)
        head = reader.log.head()
        with self._lock:
            columns = self._columns
            if columns is not None and not self._was_replaced():
                columns.refresh()
                if (
                    columns.is_intact()
                    and columns.get("generation") == generation
                    and columns.get("position") >= head.sequence
                    and columns.get("last_id") >= self._source.last(reader)
                ):
                    return columns.snapshot
            return self._bring_up_to_date(reader, generation, head).snapshot

    def _bring_up_to_date(self, reader: Reader, generation: int, head: Head) -> VectorColumns:
        try:
            with self._exclusive():
                return self._catch_up(reader, generation, head)
        except OSError:
            # No room, no permission, or a lock that is not released: private memory is used
            # instead.
            self._path, self._columns = None, None
            return self._catch_up(reader, generation, head)

    def _catch_up(self, reader: Reader, generation: int, head: Head) -> VectorColumns:
        columns = self._open(reader, generation)
        if columns is None:
            columns = self._create(generation, max(_CAPACITY_MIN, self._source.count(reader)))
        columns.begin()
        while rows := self._source.after(reader, columns, _PAGE):
            if columns.get("count") + len(rows) > columns.capacity:
                columns = self._grow(columns, len(rows))
            _add(columns, rows, self._codes)
        if columns.get("position") < head.sequence:
            columns.supersede(dict(reader.vectors.superseded_after(columns.get("position"))))
            columns.put("position", head.sequence)
            columns.put("anchor", _anchor(head.hash))
        columns.seal()
        self._columns = columns
        return columns

    def _open(self, reader: Reader, generation: int) -> VectorColumns | None:
        """Return the columns in use by all processes, if there is no doubt about them."""
        known = None if self._was_replaced() else self._columns
        columns = known or self._open_shared()
        if columns is None:
            return None
        columns.refresh()
        if not columns.is_whole() or columns.get("generation") != generation:
            return None
        # What was opened just now may be left from any time, and any log.
        if not _belongs(columns, reader.log) or (columns is not known and not columns.is_sound()):
            return None
        return columns

    def _open_shared(self) -> VectorColumns | None:
        """Return the columns of the file, if its size is right."""
        if self._path is None:
            return None
        try:
            size = self._path.stat().st_size
            head = np.fromfile(self._path, header_dtype(), 1)
        except FileNotFoundError:
            return None
        if len(head) == 0 or size < HEADER_BYTES or head["dimensions"][0] != self._dimensions:
            return None
        capacity = int(head["capacity"][0])
        if capacity <= 0 or size != self._size(capacity):
            return None
        return self._open_file(self._path, capacity)

    def _open_file(self, path: Path, capacity: int) -> VectorColumns:
        storage = FileStorage(path, self._size(capacity))
        self._inode = storage.inode
        return VectorColumns(storage, self._dimensions, self._codes.words, capacity)

    def _create(self, generation: int, capacity: int) -> VectorColumns:
        """Return empty columns; a file is written aside and put in place whole."""
        size = self._size(capacity)
        if self._path is None:
            memory = MemoryStorage(size)
            columns = VectorColumns(memory, self._dimensions, self._codes.words, capacity)
            columns.format(generation)
        else:
            aside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            _allocate(aside, size)
            columns = self._open_file(aside, capacity)
            columns.format(generation)
            aside.replace(self._path)
        self._columns = columns
        return columns

    def _grow(self, old: VectorColumns, more: int) -> VectorColumns:
        capacity = 2 * max(old.capacity, old.get("count") + more)
        columns = self._create(old.get("generation"), capacity)
        for rows in old.chunks():
            columns.extend(rows)
        for name in ("last_id", "position", "ascending", "anchor"):
            columns.put(name, old.get(name))
        return columns

    def _was_replaced(self) -> bool:
        """Whether another file is in the place of the one used here, or none."""
        if self._path is None:
            return False
        try:
            return self._path.stat().st_ino != self._inode
        except OSError:
            return True

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other processes from changing the file."""
        if self._path is None:
            yield
            return
        assert fcntl is not None
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(lock)
            try:
                yield
            finally:
                # Closing would leave it to a child forked meanwhile, which has a copy.
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)


def _own_rows(
    snapshot: VectorSnapshot, view: View, head: int, spaces: NDArray[np.int64] | None
) -> OwnRows:
    """Return the rows of some spaces that their own branch shows in a view."""
    cuts = tuple((branch, min(limit, head)) for branch, limit in view.lineage)
    return snapshot.own_rows(cuts, None if spaces is None else tuple(spaces.tolist()))


def knows_what_is_shown(records: RecordReader, view: View) -> bool:
    """Whether a view shows every version that its own branch shows: nothing hides one of these."""
    return len(view.lineage) == 1 and not records.any_expires()


def _best_shown(
    known: NDArray[np.int64],
    there: NDArray[np.bool_],
    shown: NDArray[np.bool_],
    best: BestKnown,
) -> NDArray[np.int64]:
    """Return the places of the best versions, without those whose vectors say they are hidden.

    `there` says which have a vector, and `shown` which of these are shown.
    """
    seen = np.ones(len(known), bool)
    seen[there] = shown
    places = np.flatnonzero(seen)
    if len(places) <= best.limit:
        return places
    return places[_highest(best.scores[places], known[places], best.limit)]


def _find_visible(
    records: RecordReader, view: View, sequences: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return where the versions are that a view shows, of those that their own branch shows."""
    if knows_what_is_shown(records, view):
        return np.arange(len(sequences))
    given = sequences.tolist()
    seen = records.visible_among(view, given)
    return np.array([place for place, each in enumerate(given) if each in seen], np.int64)


def _find_rows(
    snapshot: VectorSnapshot, sequences: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which of some versions have a vector, and the rows of these."""
    if not snapshot.count:
        return np.zeros(len(sequences), bool), np.zeros(0, np.int64)
    there, places = snapshot.by_sequence.find(sequences)
    places = places[there]
    return there, places if snapshot.order is None else snapshot.order[places]


def _cosines(
    snapshot: VectorSnapshot, sequences: NDArray[np.int64], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    places, rows = _find_rows(snapshot, sequences)
    answer = np.full(len(sequences), np.nan, np.float32)
    answer[places] = snapshot.columns.cosines_of(rows, query)
    return answer


def _highest(
    scores: NDArray[np.floating], sequences: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return where the highest scores are, highest first; of equals the newer first."""
    if len(scores) <= count:
        return np.lexsort((-sequences, -scores))
    top = np.argpartition(-scores, count - 1)[:count]
    best: NDArray[np.int64] = top[np.lexsort((-sequences[top], -scores[top]))]
    return best


def _allocate(path: Path, size: int) -> None:
    """Write a file of zeros: not a hole, writing into one on a full disk ends the process."""
    try:
        with path.open("wb") as file:
            path.chmod(0o600)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:  # pragma: no cover -- macOS
                for _ in range(0, size, HEADER_BYTES):
                    file.write(bytes(HEADER_BYTES))
                file.truncate(size)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _lock(file: int) -> None:
    """Take the lock on a file.

    Raises:
        TimeoutError: Another process kept it; an `OSError`.
    """
    assert fcntl is not None
    for _ in range(int(_LOCK_SECONDS_MAX / _LOCK_POLL_SECONDS)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_POLL_SECONDS)
        else:
            return
    raise TimeoutError("another process holds the file of vectors")


def _add(columns: VectorColumns, rows: list[VectorRow], codes: Codes) -> None:
    count = columns.get("count")
    last = columns.numbers("sequence", max(count - 1, 0), count)
    sequence = np.array([row.sequence for row in rows], np.int64)
    vectors = np.frombuffer(b"".join(row.vector for row in rows), np.float32)
    vectors = vectors.reshape(len(rows), -1)
    quantized, step = quantize(vectors)
    columns.extend(
        VectorRows(
            sequence,
            np.array([row.sequence_to or OPEN_END for row in rows], np.int64),
            np.array([row.branch for row in rows], np.int64),
            np.array([row.space for row in rows], np.int64),
            np.array([row.norm for row in rows], np.float64).view(np.int64),
            step.view(np.int64),
            codes.of(vectors),
            vectors,
            quantized,
        )
    )
    if not (np.diff(np.concatenate((last, sequence))) > 0).all():
        columns.put("ascending", 0)
    columns.put("last_id", rows[-1].id)


def _belongs(columns: VectorColumns, log: LogReader) -> bool:
    """Whether columns were made from the log that a reader sees: their last event is in it."""
    position = columns.get("position")
    if not position:
        return True
    head = log.head()
    # Mostly it is the newest one, which a snapshot knows already.
    link = head.hash if head.sequence == position else log.hash_of(position)
    return columns.get("anchor") == _anchor(link)


def _anchor(link: bytes | None) -> int:
    return int.from_bytes((link or b"")[:8], "little", signed=True)
