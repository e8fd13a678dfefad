"""Every vector of a database, ready to be compared with a query.

The database is where vectors are kept. For searching they stand side by side in a file next to
it, mapped into memory, so that all processes share one copy and none has to read it first. The
file is a cache: each search brings it up to date from the database under a lock, and anything
doubtful about it (another generation, another embedder, a torn header) makes it be written anew.

Beside each vector are the numbers a view is decided by: its sequence, the sequence that
superseded it, its branch and its space. They only say what a branch itself shows; what a nearer
branch hides, and what has expired, the store is asked about the few vectors that come out best.

Up to a point every vector is compared with the query. Beyond it codes of one bit for each number
(`codes`) choose the vectors that are worth comparing.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stratagem.engine.lineage import OPEN_END, View
from stratagem.search import ranking
from stratagem.search.codes import Codes
from stratagem.search.columns import HEADER, HEADER_BYTES, MAGIC, NAMES, Columns
from stratagem.storage.contract import Reader, VectorRow

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows: the file is then private to the process
    fcntl = None

__all__ = ["Nearest", "VectorMap"]

_CAPACITY_MIN: Final = 1_024
_PAGE: Final = 5_000
# A process that was stopped may hold the file; the others then do without it.
_LOCK_SECONDS_MAX: Final = 2.0
_LOCK_POLL_SECONDS: Final = 0.005


class Nearest(NamedTuple):
    """Versions and how near each one's vector is to the query's."""

    sequences: NDArray[np.int64]
    cosines: NDArray[np.float32]


class VectorMap:
    """The vectors of one database. Safe to share between threads."""

    def __init__(self, path: Path | None, dimensions: int) -> None:
        self._path = path if fcntl else None
        self._dimensions = dimensions
        self._codes = Codes(dimensions)
        self._lock = threading.Lock()
        self._columns: Columns | None = None
        self._inode = 0
        self._bytes = 0
        self._order: tuple[int, NDArray[np.int64]] | None = None

    def nearest(
        self,
        reader: Reader,
        view: View,
        query: NDArray[np.float32],
        *,
        spaces: NDArray[np.int64] | None,
        sequences: NDArray[np.int64] | None,
        depth: int,
    ) -> Nearest:
        """Return the visible versions whose vectors are nearest to a query, nearest first.

        `spaces` and `sequences`, where given, are the only ones that count.
        """
        columns, _ = self._current(reader)
        # Another process may have brought the file further than this reader sees.
        head = reader.head().sequence
        rows = _candidates(columns, view, head, spaces=spaces, sequences=sequences)
        wanted = depth
        while True:
            best, cosines = self._best(columns, rows, query, wanted)
            found = columns.sequence[best]
            seen = reader.visible_among(view, found.tolist())
            kept = np.fromiter((each in seen for each in found.tolist()), bool, len(found))
            if kept.sum() >= depth or len(best) == len(rows):
                return Nearest(found[kept][:depth], cosines[kept][:depth])
            wanted *= 4

    def cosines(
        self, reader: Reader, sequences: NDArray[np.int64], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return how near some versions are to a query; NaN for those that have no vector."""
        columns, count = self._current(reader)
        answer = np.full(len(sequences), np.nan, np.float32)
        if not count:
            return answer
        order = self._ordered(columns, count)
        by_sequence = columns.sequence[:count] if order is None else columns.sequence[:count][order]
        places = np.minimum(np.searchsorted(by_sequence, sequences), count - 1)
        there = by_sequence[places] == sequences
        rows = places[there] if order is None else order[places[there]]
        answer[there] = _cosines(columns.vectors[rows], query)
        return answer

    def check(self, reader: Reader) -> None:
        """Discard vectors of another log: of a database that was put back from a copy, say.

        `reader` has to see the newest state.
        """
        with self._lock:
            columns = self._columns
        if columns is None or (not self._was_replaced() and _belongs(columns, reader)):
            return
        with suppress(OSError), self._exclusive():
            if not self._was_replaced() and _belongs(columns, reader):
                return
        self.discard()

    def discard(self) -> None:
        """Forget everything; it is read from the database again when next needed."""
        with self._lock:
            self._columns, self._order = None, None
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)

    def _best(
        self, columns: Columns, rows: NDArray[np.int64], query: NDArray[np.float32], wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows nearest to a query, nearest first, and their cosines."""
        if len(rows) > ranking.EXACT_VECTORS_MAX:
            rows = self._by_codes(columns, rows, query, max(wanted, ranking.RESCORED_MIN))
            cosines = _cosines(columns.vectors[rows], query)
        elif len(rows) * 4 > columns.get("count"):
            # Most rows are wanted: one pass over all of them is faster than picking them out.
            cosines = _cosines(columns.vectors[: columns.get("count")], query)[rows]
        else:
            cosines = _cosines(columns.vectors[rows], query)
        if len(rows) > wanted:
            top = np.argpartition(-cosines, wanted - 1)[:wanted]
            rows, cosines = rows[top], cosines[top]
        order = np.lexsort((-columns.sequence[rows], -cosines))
        return rows[order], cosines[order]

    def _by_codes(
        self, columns: Columns, rows: NDArray[np.int64], query: NDArray[np.float32], wanted: int
    ) -> NDArray[np.int64]:
        """Return about `wanted` rows, at least, whose codes are nearest to the query."""
        if len(rows) <= wanted:
            return rows
        count = columns.get("count")
        everything = len(rows) * 4 > count
        codes = columns.codes[:, :count] if everything else columns.codes[:, rows]
        apart = self._codes.apart(codes, query)
        apart = apart[rows] if everything else apart
        # Counting how many lie at each distance is three times as fast as sorting them.
        cut = int(np.searchsorted(np.bincount(apart).cumsum(), wanted))
        return rows[apart <= cut]

    def _size(self, capacity: int) -> int:
        return Columns.size(self._dimensions, self._codes.words, capacity)

    def _ordered(self, columns: Columns, count: int) -> NDArray[np.int64] | None:
        """Return the rows in order of sequence; None where they already are."""
        if columns.get("ascending"):
            return None
        if self._order is None or self._order[0] != count:
            self._order = (count, np.argsort(columns.sequence[:count], kind="stable"))
        return self._order[1]

    def _current(self, reader: Reader) -> tuple[Columns, int]:
        """Return the columns, up to date with what the reader sees."""
        generation = int(reader.setting("vector_generation") or 0)
        head = reader.head().sequence
        with self._lock:
            columns = self._columns
            if (
                columns is None
                # First of all: of a file that was cut not even the header can be touched.
                or self._was_replaced()
                or columns.get("generation") != generation
                or columns.get("position") < head
                or columns.get("last_id") < (reader.vector_last() or 0)
            ):
                columns = self._brought_up(reader, generation, head)
            return columns, columns.get("count")

    def _brought_up(self, reader: Reader, generation: int, head: int) -> Columns:
        try:
            with self._exclusive():
                return self._catch_up(reader, generation, head)
        except OSError:
            # No room, no permission, or nobody to be waited for: memory of one's own will do.
            self._path, self._columns, self._order = None, None, None
            return self._catch_up(reader, generation, head)

    def _catch_up(self, reader: Reader, generation: int, head: int) -> Columns:
        columns = self._open(reader, generation)
        if columns is None:
            columns = self._create(generation, max(_CAPACITY_MIN, reader.vector_count()))
        columns.begin()
        while rows := reader.vectors_after(columns.get("last_id"), _PAGE):
            if columns.get("count") + len(rows) > columns.capacity:
                columns = self._grow(columns, len(rows))
                columns.begin()
            _add(columns, rows, self._codes)
        if columns.get("position") < head:
            _supersede(columns, reader.superseded_after(columns.get("position")))
            columns.put("position", head)
            columns.put("anchor", _anchor(reader.hash_of(head)))
        columns.seal()
        self._columns = columns
        return columns

    def _open(self, reader: Reader, generation: int) -> Columns | None:
        """Return the columns in use by all processes, if there is no doubt about them."""
        known = self._columns
        columns = known if self._path is None else self._mapped()
        if columns is None or not columns.is_whole():
            return None
        if columns.get("generation") != generation:
            return None
        # What was mapped just now may be left from any time, and any log.
        if columns is not known and not (_belongs(columns, reader) and columns.is_sound()):
            return None
        return columns

    def _mapped(self) -> Columns | None:
        assert self._path is not None
        if self._columns is not None and not self._was_replaced():
            return self._columns
        try:
            size = self._path.stat().st_size
            head = np.fromfile(self._path, HEADER, 1)
        except FileNotFoundError:
            return None
        if len(head) == 0 or size < HEADER_BYTES or head["dimensions"][0] != self._dimensions:
            return None
        capacity = int(head["capacity"][0])
        if capacity <= 0 or size != self._size(capacity):
            return None
        return self._map(self._path, capacity)

    def _map(self, path: Path, capacity: int) -> Columns:
        with path.open("r+b") as file:
            self._bytes = self._size(capacity)
            buffer = mmap.mmap(file.fileno(), self._bytes)
            self._inode = os.fstat(file.fileno()).st_ino
        return Columns(buffer, self._dimensions, self._codes.words, capacity)

    def _create(self, generation: int, capacity: int) -> Columns:
        """Return empty columns; a file is written aside and put in place whole."""
        size = self._size(capacity)
        aside: Path | None = None
        if self._path is None:
            columns = Columns(bytearray(size), self._dimensions, self._codes.words, capacity)
        else:
            aside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            _allocate(aside, size)
            columns = self._map(aside, capacity)
        columns.header["magic"][0] = MAGIC
        for name, value in (
            ("generation", generation),
            ("dimensions", self._dimensions),
            ("capacity", capacity),
            ("ascending", 1),
            ("writing", 1),
        ):
            columns.put(name, value)
        if aside is not None and self._path is not None:
            aside.replace(self._path)
        self._columns = columns
        return columns

    def _grow(self, old: Columns, more: int) -> Columns:
        count = old.get("count")
        columns = self._create(old.get("generation"), 2 * max(old.capacity, count + more))
        for name in (*NAMES, "vectors"):
            getattr(columns, name)[:count] = getattr(old, name)[:count]
        columns.codes[:, :count] = old.codes[:, :count]
        for name in ("last_id", "position", "ascending", "anchor", "digest", "count"):
            columns.put(name, old.get(name))
        return columns

    def _was_replaced(self) -> bool:
        """Whether the file mapped here has another in its place, or was cut.

        To touch a page of a map that its file no longer has ends the process: so this is asked
        before anything else, with every use. We ourselves never cut a file, we replace it.
        """
        if self._path is None:
            return False
        try:
            found = self._path.stat()
        except OSError:
            return True
        return found.st_ino != self._inode or found.st_size < self._bytes

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other processes from changing the file."""
        if self._path is None:
            yield
            return
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(lock)
            yield
        finally:
            os.close(lock)


def _candidates(
    columns: Columns,
    view: View,
    head: int,
    *,
    spaces: NDArray[np.int64] | None,
    sequences: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """Return the rows that their own branch shows in a view and no filter excludes."""
    count = columns.get("count")
    sequence, end = columns.sequence[:count], columns.sequence_to[:count]
    shown = np.zeros(count, bool)
    for branch, cut in view.lineage:
        limit = min(cut, head)
        own = columns.branch[:count] == branch
        shown |= own & (sequence <= limit) & (end > limit)
    if spaces is not None:
        shown &= _membership(spaces, columns.space[:count])
    if sequences is not None:
        shown &= np.isin(sequence, sequences)
    return np.flatnonzero(shown)


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


def _add(columns: Columns, rows: list[VectorRow], codes: Codes) -> None:
    begin = columns.get("count")
    end = begin + len(rows)
    columns.sequence[begin:end] = [row.sequence for row in rows]
    columns.sequence_to[begin:end] = [row.sequence_to or OPEN_END for row in rows]
    columns.branch[begin:end] = [row.branch for row in rows]
    columns.space[begin:end] = [row.space for row in rows]
    vectors = np.frombuffer(b"".join(row.vector for row in rows), np.float32)
    columns.vectors[begin:end] = vectors.reshape(len(rows), -1)
    columns.codes[:, begin:end] = codes.of(columns.vectors[begin:end])
    sequences = columns.sequence[max(begin - 1, 0) : end]
    if columns.get("ascending") and not (sequences[1:] > sequences[:-1]).all():
        columns.put("ascending", 0)
    columns.extend(end)
    columns.put("last_id", rows[-1].id)


def _belongs(columns: Columns, reader: Reader) -> bool:
    """Whether columns were made from the log that a reader sees: their last event is in it."""
    position = columns.get("position")
    return not position or columns.get("anchor") == _anchor(reader.hash_of(position))


def _anchor(link: bytes | None) -> int:
    return int.from_bytes((link or b"")[:8], "little", signed=True)


def _supersede(columns: Columns, superseded: list[tuple[int, int]]) -> None:
    if not superseded:
        return
    ends = dict(superseded)
    sequences = columns.sequence[: columns.get("count")]
    rows = np.flatnonzero(np.isin(sequences, np.fromiter(ends, np.int64, len(ends))))
    columns.supersede(rows, np.array([ends[each] for each in sequences[rows].tolist()], np.int64))


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    # A matrix product would start threads that wait for each other busily: on a machine that has
    # something else to do it then takes five times as long.
    near: NDArray[np.float32] = np.vecdot(vectors, query)
    return near


def _membership(members: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some small numbers are members: one look-up each."""
    table = np.zeros(int(max(members.max(initial=0), numbers.max(initial=0))) + 1, bool)
    table[members] = True
    return table[numbers]
