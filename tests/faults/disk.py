"""A disk that remembers, forgets and fails.

While a `Disk` is in place every file that SQLite opens in this process goes through it; the
package need not know. It can do three things:

* Remember each write and each sync in order, so that `Disk.power_losses` can say what a
  real disk might hold had the power failed at any of those moments. What was synced is there.
  Of what was not, any sector may be there or not: that is all a disk promises.
* Fail: `Disk.fail` makes the n-th of some calls, and those after it, raise an I/O error.
* Be full: `Disk.quota` bounds the bytes that all files may have together.

Shared memory (`-shm`) is not a file that survives anything, and is left alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import apsw

SECTOR = 512
Call = Literal["read", "write", "sync", "truncate", "delete", "open", "size"]
Survival = Literal["nothing", "prefix", "sectors", "pages", "everything"]
SURVIVALS: tuple[Survival, ...] = ("nothing", "prefix", "sectors", "pages", "everything")
_BASE = "unix"


class Entry(NamedTuple):
    """Something that happened to a file; `at` and `data` mean what the call says."""

    call: Call
    name: str
    at: int = 0
    data: bytes = b""


class Disk:
    """The files of one folder, as SQLite sees them."""

    def __init__(self, folder: Path, *, remember: bool = False) -> None:
        self.folder = str(folder)
        self.quota: int | None = None
        self.calls = 0
        self.failed = 0
        self.entries: list[Entry] = []
        self._remember = remember
        self._sizes: dict[str, int] = {}
        self._fault: _Fault | None = None

    @property
    def moment(self) -> int:
        """How much has happened so far: a place to cut the power."""
        return len(self.entries)

    def fail(
        self, calls: set[Call], error: Callable[[], Exception], *, after: int, times: int
    ) -> None:
        """Let so many of these calls pass, and make the next ones fail."""
        self._fault = _Fault(frozenset(calls), error, after, times)

    def heal(self) -> None:
        """Stop failing, and have room again."""
        self._fault, self.quota = None, None

    def happens(self, call: Call, name: str, at: int = 0, data: bytes = b"") -> None:
        """Let a call through to the file, or raise."""
        if not name.startswith(self.folder):
            return
        self.calls += 1
        if self._fault is not None and self._fault.strikes(call):
            self.failed += 1
            raise self._fault.error()
        if call == "write":
            self._take_room(name, at + len(data))
        elif call in {"truncate", "delete"}:
            self._sizes[name] = at
        if self._remember and call in {"write", "sync", "truncate", "delete"}:
            self.entries.append(Entry(call, name, at, data))

    def _take_room(self, name: str, size: int) -> None:
        before = self._sizes.get(name, 0)
        if size > before:
            if self.quota is not None and sum(self._sizes.values()) + size - before > self.quota:
                self.failed += 1
                raise apsw.FullError("the quota is used up")
            self._sizes[name] = size

    def power_losses(
        self, moments: list[int], draw: random.Random
    ) -> Iterator[tuple[int, Survival, dict[str, bytes]]]:
        """Yield what each file might hold had the power failed at some moments, earliest first."""
        files: dict[str, _File] = {}
        done = 0
        for moment in sorted(moments):
            for entry in self.entries[done:moment]:
                _take(files, entry)
            done = moment
            survival = draw.choice(SURVIVALS)
            found = {name: file.surviving(survival, draw) for name, file in files.items()}
            kept = {name: content for name, content in found.items() if content is not None}
            yield moment, survival, kept


@contextmanager
def in_place(disk: Disk) -> Iterator[Disk]:
    """Put a disk below every connection that is opened in the block."""
    vfs = _Vfs(disk)
    try:
        yield disk
    finally:
        disk.heal()
        vfs.unregister()


def _take(files: dict[str, _File], entry: Entry) -> None:
    file = files.setdefault(entry.name, _File())
    fresh = entry.call == "sync" and file.is_new
    file.take(entry)
    # The first sync of a new journal is one of the folder too: it settles deletions.
    if fresh and entry.name.endswith(("-wal", "-journal")):
        for other in files.values():
            other.settle_deletion()


class _Fault:
    def __init__(
        self, calls: frozenset[Call], error: Callable[[], Exception], after: int, times: int
    ) -> None:
        self._calls, self._after, self._times = calls, after, times
        self.error = error

    def strikes(self, call: Call) -> bool:
        if call not in self._calls:
            return False
        self._after -= 1
        if self._after >= 0 or not self._times:
            return False
        self._times -= 1
        return True


class _File:
    """A file as the disk has it for certain, and what may have been done to it since."""

    def __init__(self) -> None:
        self._durable: bytearray | None = None
        self._pending: list[Entry] = []

    @property
    def is_new(self) -> bool:
        """Whether it was never synced since it was created, perhaps under an old name."""
        return self._durable is None or any(each.call == "delete" for each in self._pending)

    def take(self, entry: Entry) -> None:
        self._pending.append(entry)
        # A sync brings what came before it to the disk; so does a deletion that asks for one.
        if entry.call == "sync" or (entry.call == "delete" and entry.at):
            self._settle(len(self._pending))

    def settle_deletion(self) -> None:
        """Bring a deletion to the disk, but nothing that was written afterwards."""
        calls = [each.call for each in self._pending]
        if "delete" in calls:
            self._settle(len(calls) - calls[::-1].index("delete"))

    def _settle(self, count: int) -> None:
        for each in self._pending[:count]:
            self._durable = _done(self._durable, each)
        del self._pending[:count]

    def surviving(self, survival: Survival, draw: random.Random) -> bytes | None:
        content = None if self._durable is None else bytearray(self._durable)
        kept = self._pending
        if survival == "nothing":
            kept = []
        elif survival == "prefix":
            kept = kept[: draw.randint(0, len(kept))]
        for entry in kept:
            for piece in _pieces(entry, survival):
                if survival in {"prefix", "everything"} or draw.random() < 0.5:
                    content = _done(content, piece)
                elif entry.call == "delete":
                    # The name still belongs to the old file; what follows went to another.
                    return None if content is None else bytes(content)
        return None if content is None else bytes(content)


def _pieces(entry: Entry, survival: Survival) -> Iterator[Entry]:
    """Yield the parts of a write that reach the disk one by one."""
    size = SECTOR if survival == "sectors" else 4096
    if entry.call != "write" or survival not in {"sectors", "pages"}:
        yield entry
        return
    begin, end = entry.at, entry.at + len(entry.data)
    while begin < end:
        until = min(end, (begin // size + 1) * size)
        yield entry._replace(at=begin, data=entry.data[begin - entry.at : until - entry.at])
        begin = until


def _done(content: bytearray | None, entry: Entry) -> bytearray | None:
    if entry.call == "delete":
        return None
    content = bytearray() if content is None else content
    if entry.call == "truncate":
        del content[entry.at :]
    elif entry.call == "write":
        if len(content) < entry.at:
            content.extend(bytes(entry.at - len(content)))
        content[entry.at : entry.at + len(entry.data)] = entry.data
    return content


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__("faults", _BASE, makedefault=True)

    def xOpen(  # noqa: N802 -- SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._disk.happens("open", path)
        return _VfsFile(self._disk, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._disk.happens("delete", filename, int(syncdir))
        super().xDelete(filename, syncdir)

    def excepthook(self, etype: object, evalue: object, etraceback: object) -> bool:  # noqa: ARG002
        """Say nothing: SQLite hears of the error by its number."""
        return True


class _VfsFile(apsw.VFSFile):
    def __init__(
        self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk, self._path = disk, path
        super().__init__(_BASE, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.happens("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.happens("write", self._path, offset, data)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.happens("sync", self._path)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.happens("truncate", self._path, newsize)
        super().xTruncate(newsize)

    def xFileSize(self) -> int:  # noqa: N802
        self._disk.happens("size", self._path)
        return super().xFileSize()

    def excepthook(self, etype: object, evalue: object, etraceback: object) -> bool:  # noqa: ARG002
        """Say nothing: SQLite hears of the error by its number."""
        return True
