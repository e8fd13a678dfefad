"""Connections to the database file, and the translation of its errors."""

from __future__ import annotations

import errno
import os
import zlib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import apsw
import orjson

from stratagem import limits
from stratagem.errors import (
    DatabaseCorrupt,
    ReadOnly,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    StratagemError,
)

__all__ = [
    "APPLICATION_ID",
    "DAMAGE",
    "MEMORY",
    "Durability",
    "add_functions",
    "checksum",
    "connect",
    "immutable_uri",
    "is_frozen",
    "translate_error",
    "translating_errors",
]

Durability = Literal["full", "fast"]

MEMORY = ":memory:"
# "STRA": tells our files from other people's SQLite databases.
APPLICATION_ID = 0x53545241
# Every text in the file was UTF-8 and every payload JSON when it was written.
DAMAGE = (UnicodeDecodeError, orjson.JSONDecodeError)
_WAL_PAGES_MAX = 4_000
_WAL_BYTES_KEPT = 64 * 1024 * 1024
# For each thread that reads; the operating system caches the file for all of them.
_CACHE_KIB = 8 * 1024


def connect(
    path: str,
    *,
    durability: Durability = "full",
    read_only: bool = False,
    lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
) -> apsw.Connection:
    """Open a connection with the settings every reader and writer shares.

    Nothing is written: the file may turn out to be another program's.
    """
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX
    flags |= (
        apsw.SQLITE_OPEN_READONLY
        if read_only
        else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    )
    connection = apsw.Connection(path, flags=flags, statementcachesize=200)
    connection.set_busy_timeout(int(lock_wait_seconds * 1000))
    # Without it each bound probe of a lineage is prepared anew at every execution.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if not read_only:
        connection.pragma("journal_size_limit", _WAL_BYTES_KEPT)
        connection.wal_autocheckpoint(_WAL_PAGES_MAX)
        connection.pragma("secure_delete", "on")
    connection.pragma("synchronous", "full" if durability == "full" else "normal")
    connection.pragma("cache_size", -_CACHE_KIB)
    connection.pragma("temp_store", "memory")
    add_functions(connection)
    return connection


def is_frozen(path: str) -> bool:
    """Whether a file lies where nothing can be written, as on a read-only medium.

    SQLite wants two files beside one in its write-ahead mode, even to read it. Where they cannot be
    made it has to be told that the file does not change; where they are, another process uses it.

    Raises:
        StorageUnavailable: A part of the database is in a file that cannot be read alone.
    """
    folder = Path(path).parent
    if os.access(folder, os.W_OK) or not os.access(path, os.R_OK):
        return False
    if Path(f"{path}-shm").exists():
        return False
    written = Path(f"{path}-wal")
    if written.exists() and written.stat().st_size:
        raise StorageUnavailable(
            "The last writes are in a file beside the database, and the folder is not writable.",
            hint=f"Copy {Path(path).name} and {written.name} to a writable folder.",
            path=path,
        )
    return True


def immutable_uri(path: str) -> str:
    """Return the address of a file that does not change."""
    return f"file:{quote(path)}?immutable=1"


def add_functions(connection: apsw.Connection) -> None:
    """Give a connection the functions that our statements use."""
    connection.create_scalar_function("checksum", _checksum, 2, deterministic=True)


def checksum(number: int, data: bytes) -> int:
    """Return a checksum of numbered data."""
    return zlib.crc32(data, number & 0xFFFF_FFFF)


def _checksum(*given: Any) -> int | None:
    """Return the same for SQL; None unless the arguments are a number, and text or bytes."""
    number, data = given
    if not isinstance(number, int) or not isinstance(data, str | bytes):
        return None
    return checksum(number, data.encode() if isinstance(data, str) else data)


# A class, for every commit and every snapshot enters it: one that `contextmanager` makes of a
# generator takes three times as long.
class translating_errors:  # noqa: N801 -- it is used like a function
    """Turn the driver's errors into ours, within a `with` block."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        if error is None:
            return
        if isinstance(error, (apsw.Error, *DAMAGE)):
            raise translate_error(error, self._path) from error
        if isinstance(error, OSError):
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise StorageFull("The disk is full.", path=self._path) from error
            raise StorageUnavailable(
                f"The database cannot be used: {error}.", path=self._path
            ) from error


def translate_error(error: Exception, path: str) -> StratagemError:
    """Return our error for one of the driver's."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StorageBusy("Another process has locked the database.", path=path)
    if isinstance(error, apsw.FullError):
        return StorageFull("The disk is full.", path=path)
    if isinstance(error, apsw.ReadOnlyError):
        return ReadOnly(
            "The database file is not writable.",
            hint="To read it as it is, add --read-only. To write, check the permissions of the "
            "file, of its folder and of -wal and -shm beside it.",
            path=path,
        )
    if isinstance(error, apsw.NotADBError):
        return DatabaseCorrupt(
            "The file is not a Stratagem database.",
            path=path,
            hint="Check the path: this is another kind of file. If it was a Stratagem database, "
            "restore a backup.",
        )
    if isinstance(error, (apsw.CorruptError, *DAMAGE)):
        return DatabaseCorrupt(f"The database is damaged: {error}.", path=path)
    return StorageUnavailable(f"The database cannot be used: {error}.", path=path)
