"""Rows read straight from the pages of a database file, even if the rest of it is damaged.

SQLite finds a row by descending a tree, so one bad page near the root hides every row below it. The
rows themselves lie in the leaves, each page by itself. Here every page is read in turn, and every
cell on it, by the format in https://www.sqlite.org/fileformat2.html. Data in the header of a page
are not trusted where they can be avoided; the caller has to tell genuine rows from others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.storage.sqlite.varints import read_varint

__all__ = ["Cell", "PageFile"]

_PAGE_SIZE_DEFAULT: Final = 4_096
_FILE_HEADER_BYTES: Final = 100
_LEAF_HEADER_BYTES: Final = 8
_INTERIOR_HEADER_BYTES: Final = 12
_INDEX_INTERIOR: Final = 0x02
_INDEX_LEAF: Final = 0x0A
_COLUMNS_MAX: Final = 64
# Bytes of the numbers that the serial types 1 to 6 stand for.
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)
_REAL: Final = 7
_ZERO: Final = 8
_ONE: Final = 9
_BLOB: Final = 12


class Cell(NamedTuple):
    """A row: where it lies, its number (None in an index) and its columns."""

    page: int
    offset: int
    number: int | None
    columns: list[Any]


class PageFile:
    """The pages of a database file that is not written to meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        header = self._file.read(_FILE_HEADER_BYTES).ljust(_FILE_HEADER_BYTES, b"\0")
        size = int.from_bytes(header[16:18], "big")
        size = 65_536 if size == 1 else size
        right = 512 <= size <= 65_536 and size & (size - 1) == 0  # noqa: PLR2004
        self.page_size = size if right else _PAGE_SIZE_DEFAULT
        self._usable = self.page_size - (header[20] if right else 0)
        self.count = -(-path.stat().st_size // self.page_size)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def cells(self, page: int) -> Iterator[Cell]:
        """Return every row of a page that can be read."""
        data = self._read(page)
        begin = _FILE_HEADER_BYTES if page == 1 else 0
        kind = data[begin] if len(data) > begin else 0
        indexed = kind in {_INDEX_LEAF, _INDEX_INTERIOR}
        header = _INTERIOR_HEADER_BYTES if kind == _INDEX_INTERIOR else _LEAF_HEADER_BYTES
        for offset in _pointers(data, begin + header):
            # A cell of an interior page begins with the number of its child page.
            place = offset + 4 if kind == _INDEX_INTERIOR else offset
            cell = self._cell(page, place, data, indexed=indexed)
            if cell is not None:
                yield cell

    def cell(self, page: int, offset: int) -> Cell | None:
        """Return a row of a table again."""
        return self._cell(page, offset, self._read(page), indexed=False)

    def _read(self, page: int) -> bytes:
        self._file.seek((page - 1) * self.page_size)
        return self._file.read(self.page_size).ljust(self.page_size, b"\0")

    def _cell(self, page: int, offset: int, data: bytes, *, indexed: bool) -> Cell | None:
        try:
            size, at = read_varint(data, offset)
            number = None
            if not indexed:
                number, at = read_varint(data, at)
            payload = self._payload(data, at, size, indexed=indexed)
            return Cell(page, offset, number, _columns(payload))
        except (IndexError, ValueError, struct.error):
            return None

    def _payload(self, data: bytes, at: int, size: int, *, indexed: bool) -> bytes:
        """Return the bytes of a row, from its page and from those that it overflows to."""
        # The bounds are those of SQLite's file format: a payload longer than `most` leaves `local`
        # bytes on its page, at least `least`, chosen so that its overflow pages are filled.
        usable = self._usable
        most = (usable - 12) * 64 // 255 - 23 if indexed else usable - 35
        # A damaged size must not make us follow pages that lead in a circle.
        if size > self.count * self.page_size:
            raise ValueError("longer than the file")
        if size <= most:
            return _exactly(data[at : at + size], size)
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= most else least
        parts = [data[at : at + local]]
        following = int.from_bytes(data[at + local : at + local + 4], "big")
        left = size - local
        while left > 0:
            if not 1 <= following <= self.count:
                raise ValueError("its next page does not exist")
            more = self._read(following)
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left -= len(parts[-1])
            following = int.from_bytes(more[:4], "big")
        return _exactly(b"".join(parts), size)


def _pointers(data: bytes, begin: int) -> Iterator[int]:
    """Return where cells may begin, without asking the page how many it has.

    The pointers end at the latest where the first cell begins. Behind the last one may be old ones:
    their cells were overwritten with zeros.
    """
    end, at = len(data), begin
    while at + 2 <= end:
        pointer = int.from_bytes(data[at : at + 2], "big")
        at += 2
        if begin < pointer < len(data):
            # A pointer that was damaged may point anywhere: it alone does not end the others.
            end = min(end, pointer) if pointer >= len(data) // 4 else end
            yield pointer


def _columns(payload: bytes) -> list[Any]:
    size, at = read_varint(payload, 0)
    place = size
    columns: list[Any] = []
    while at < size:
        kind, at = read_varint(payload, at)
        if len(columns) >= _COLUMNS_MAX:
            raise ValueError("no row of ours has so many columns")
        value, place = _value(payload, place, kind)
        columns.append(value)
    # Bytes that are not a row hardly ever end where their header says.
    if at != size or place != len(payload):
        raise ValueError("its header does not fit it")
    return columns


def _value(payload: bytes, place: int, kind: int) -> tuple[Any, int]:
    # Serial types: 0 is NULL, then integers by their length, a real, the constants 0 and 1; from
    # `_BLOB` on the number holds the length, of a blob where it is even, of a text where it is odd.
    if kind == 0:
        return None, place
    if kind in {_ZERO, _ONE}:
        return kind - _ZERO, place
    if kind < _REAL:
        end = place + _INTEGER_BYTES[kind]
        return int.from_bytes(payload[place:end], "big", signed=True), end
    if kind == _REAL:
        return struct.unpack(">d", payload[place : place + 8])[0], place + 8
    if kind < _BLOB:
        raise ValueError("there is no such type")
    end = place + (kind - _BLOB) // 2
    value = payload[place:end]
    # A text that is no UTF-8 raises what a row without sense does.
    return (value if kind % 2 == 0 else value.decode()), end


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("it is cut off")
    return data
