"""Where the arrays of the vector cache are: a file that processes share, or private memory.

Another program may truncate the file at any moment (`cp` or `rsync --inplace` onto it). To touch a
page of a mapping that its file no longer has ends the process with SIGBUS, so Python never touches
one: system calls copy what is needed, and report a page that is missing as an error. Whoever
truncates a file may lengthen it again, and then zeros are read without an error: so each read is
followed by a look at the size, which nothing here ever changes.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from stratagem.deferred_modules import np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = ["FileStorage", "MemoryStorage", "VectorStorage", "VectorsDamagedError", "aligned_array"]

# The most pieces that POSIX systems take in one call.
_PIECES_MAX: Final = 1_024
# Of a line of the processor's cache.
_ALIGNMENT: Final = 64


class VectorsDamagedError(Exception):
    """The file has lost what was written to it."""


class VectorStorage(Protocol):
    """A range of bytes of a fixed size."""

    def read(self, offset: int, array: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes at an offset."""

    def gather(self, offsets: NDArray[np.int64], array: NDArray[Any]) -> None:
        """Fill each row of a contiguous array with the bytes at its offset."""

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """Write the bytes of an array at an offset."""

    def sync(self) -> None:
        """Wait until all that was written is on the disk."""

    def check_size(self) -> None:
        """Raise `VectorsDamagedError` if the size is not the one it was made with."""


class MemoryStorage:
    """Memory of this process."""

    def __init__(self, size: int) -> None:
        self._bytes = np.zeros(size, np.uint8)

    def read(self, offset: int, array: NDArray[Any]) -> None:
        """See `VectorStorage`."""
        array.reshape(-1).view(np.uint8)[:] = self._bytes[offset : offset + array.nbytes]

    def gather(self, offsets: NDArray[np.int64], array: NDArray[Any]) -> None:
        """See `VectorStorage`."""
        size = array.nbytes // max(len(offsets), 1)
        rows = np.lib.stride_tricks.sliding_window_view(self._bytes, size)
        array.reshape(len(offsets), -1).view(np.uint8)[:] = rows[offsets]

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """See `VectorStorage`."""
        written = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._bytes[offset : offset + len(written)] = written

    def sync(self) -> None:
        """See `VectorStorage`."""

    def check_size(self) -> None:
        """See `VectorStorage`."""


class FileStorage:
    """A file that other processes read and write too, and that anybody may truncate."""

    def __init__(self, path: Path, size: int) -> None:
        """Open a file.

        Raises:
            VectorsDamagedError: Its size is not `size`.
        """
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        self._size = size
        self.inode = os.fstat(self._file).st_ino
        try:
            self._map = np.frombuffer(
                mmap.mmap(self._file, size, access=mmap.ACCESS_READ), np.uint8
            )
        except ValueError as error:
            raise VectorsDamagedError from error
        self._address = self._map.ctypes.data
        # Rows are copied through this file, which nobody else can reach.
        self._between = _anonymous_file()
        weakref.finalize(self, os.close, self._between)
        self._gathering = threading.Lock()

    def read(self, offset: int, array: NDArray[Any]) -> None:
        """See `VectorStorage`."""
        _read(self._file, offset, array)
        self.check_size()

    def gather(self, offsets: NDArray[np.int64], array: NDArray[Any]) -> None:
        """See `VectorStorage`.

        A call for each row would take four times as long, and ten times while another thread is
        busy: each call gives way to it. One call can read only what lies together, but it can
        write pieces from anywhere, and copies them from the mapping without touching it here.
        """
        size = array.nbytes // max(len(offsets), 1)
        for begin in range(0, len(offsets), _PIECES_MAX):
            at = offsets[begin : begin + _PIECES_MAX]
            pieces = np.full((len(at), 2), size, np.uintp)
            pieces[:, 0] = at + self._address
            with self._gathering:
                self._copy(pieces, array[begin : begin + len(at)])
        self.check_size()

    def _copy(self, pieces: NDArray[np.uintp], array: NDArray[Any]) -> None:
        copied = _write_pieces()(self._between, pieces.ctypes.data, len(pieces), 0)
        if copied != array.nbytes:
            raise VectorsDamagedError
        _read(self._between, 0, array)

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """See `VectorStorage`."""
        rest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while rest:
            written = os.pwrite(self._file, rest, offset)
            rest, offset = rest[written:], offset + written

    def sync(self) -> None:
        """See `VectorStorage`."""
        os.fsync(self._file)

    def check_size(self) -> None:
        """See `VectorStorage`."""
        if os.fstat(self._file).st_size != self._size:
            raise VectorsDamagedError


def aligned_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array that the kernel fills in half the time it takes for any other."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def _read(file: int, offset: int, array: NDArray[Any]) -> None:
    try:
        # A regular file gives all that it has, up to 2 GB, in one call.
        count = os.preadv(file, [array.data], offset)
    except OSError as error:
        raise VectorsDamagedError from error
    if count != array.nbytes:
        raise VectorsDamagedError


@cache
def _write_pieces() -> Callable[[int, int, int, int], int]:
    """Return the system call `pwritev`, which here takes the pieces as an array.

    `os.pwritev` takes an object for each, and making a thousand takes as long as copying them.
    """
    import ctypes

    call = ctypes.CDLL(None).pwritev
    call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_long]
    call.restype = ctypes.c_ssize_t
    return call


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stratagem-vectors", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:  # pragma: no cover -- macOS
        return os.dup(file.fileno())
