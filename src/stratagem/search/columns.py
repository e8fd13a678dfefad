"""The arrays that vectors stand in, over a mapped file or private memory, and their seal.

The file is written by whichever process searches first after a write, and any of them may be
killed, and the machine may lose power, in the midst of it. So the header says whether somebody is
writing, and holds a digest of everything else: a sum over the rows, to which a new row is added
and from which an old value is taken, so that keeping it costs no more than the row itself. Whoever
maps the file checks the digest once, and believes nothing that does not agree with it.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["HEADER", "HEADER_BYTES", "MAGIC", "Columns"]

HEADER: Final = np.dtype(
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
HEADER_BYTES: Final = 4_096
MAGIC: Final = b"STRAVEC4"
NAMES: Final = ("sequence", "sequence_to", "branch", "space")

_CHECKED: Final = tuple(name for name in HEADER.names or () if name not in {"check", "writing"})
_CHUNK: Final = 8_192
# Odd, so that multiplying by them loses nothing.
_ODD: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


class Columns:
    """One row for each vector: its version, what decides whether a view shows it, and itself."""

    sequence: NDArray[np.int64]
    sequence_to: NDArray[np.int64]
    branch: NDArray[np.int64]
    space: NDArray[np.int64]

    def __init__(self, buffer: Any, dimensions: int, words: int, capacity: int) -> None:
        self.header = np.frombuffer(buffer, HEADER, 1)
        self.capacity = capacity
        offset = HEADER_BYTES
        for name in NAMES:
            setattr(self, name, np.frombuffer(buffer, np.int64, capacity, offset))
            offset += 8 * capacity
        # By word, not by vector: each is gone through from end to end.
        codes = np.frombuffer(buffer, np.uint64, capacity * words, offset)
        self.codes = codes.reshape(words, capacity)
        offset += 8 * capacity * words
        vectors = np.frombuffer(buffer, np.float32, capacity * dimensions, offset)
        self.vectors = vectors.reshape(capacity, dimensions)

    @staticmethod
    def size(dimensions: int, words: int, capacity: int) -> int:
        """Return how many bytes so many rows take."""
        return HEADER_BYTES + capacity * (8 * len(NAMES) + 8 * words + 4 * dimensions)

    def get(self, name: str) -> int:
        """Return a number of the header."""
        return int(self.header[name][0])

    def put(self, name: str, value: int) -> None:
        """Set a number of the header."""
        self.header[name][0] = value

    def begin(self) -> None:
        """Say that the rows are being changed."""
        self.put("writing", 1)

    def extend(self, end: int) -> None:
        """Take in the rows that were written behind the last one."""
        added = self._digest(self.get("count"), end)
        self.put("digest", (self.get("digest") + added) % 2**64)
        self.put("count", end)

    def supersede(self, rows: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Set the ends of some rows."""
        before = self._ends(rows)
        self.sequence_to[rows] = ends
        changed = self.get("digest") + self._ends(rows) - before
        self.put("digest", changed % 2**64)

    def seal(self) -> None:
        """Say that the rows are whole again."""
        self.put("check", self._check())
        self.put("writing", 0)

    def is_whole(self) -> bool:
        """Whether nobody was interrupted while changing the rows, as far as the header says."""
        count = self.get("count")
        return (
            self.header["magic"][0] == MAGIC
            and not self.get("writing")
            and self.get("check") == self._check()
            and 0 <= count <= self.capacity
        )

    def is_sound(self) -> bool:
        """Whether every row is as it was written; reads them all."""
        return self.is_whole() and self.get("digest") == self._digest(0, self.get("count"))

    def _check(self) -> int:
        return zlib.crc32(b"".join(self.header[name].tobytes() for name in _CHECKED))

    def _digest(self, begin: int, end: int) -> int:
        total = 0
        for start in range(begin, end, _CHUNK):
            rows = slice(start, min(start + _CHUNK, end))
            total += self._rows(rows) + self._ends(np.arange(rows.start, rows.stop))
        return total % 2**64

    def _rows(self, rows: slice) -> int:
        with np.errstate(over="ignore"):
            words = self.vectors[rows].view(np.uint64)
            weights = np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64)
            each = (words * weights).sum(axis=1, dtype=np.uint64)
            for place, word in enumerate(self.codes):
                each += word[rows] * np.uint64(2 * place + 3)
            each += self.branch[rows].view(np.uint64) * np.uint64(_ODD[0])
            each += self.space[rows].view(np.uint64) * np.uint64(_ODD[1])
            return int((each * self._keys(rows)).sum(dtype=np.uint64))

    def _ends(self, rows: Any) -> int:
        with np.errstate(over="ignore"):
            ends = self.sequence_to[rows].view(np.uint64) * np.uint64(_ODD[2])
            return int((ends * self._keys(rows)).sum(dtype=np.uint64))

    def _keys(self, rows: Any) -> NDArray[np.uint64]:
        """Return an odd number for each row, so that rows cannot change places."""
        keys: NDArray[np.uint64]
        keys = self.sequence[rows].view(np.uint64) * np.uint64(2) + np.uint64(1)
        return keys
