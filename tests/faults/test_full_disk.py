"""A disk that is really full.

The child mounts a small file system of its own, which nobody else sees and which goes with it.
Where that is not allowed it lets the kernel limit the size of its files instead: the write
fails then too, only with another number.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import stratagem
from stratagem.errors import StorageFull, StorageUnavailable, StratagemError
from tests.faults.processes import Voice, child
from tests.faults.workload import Ledger, Worker, step_until_error, verify

SIZE = 4 * 1024 * 1024
NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
RECURSIVE, PRIVATE = 0x4000, 1 << 18


class Room(NamedTuple):
    """A place with little room, and a way to have more."""

    expected: type[StratagemError]
    enlarge: Callable[[], None]


def little_room(folder: Path, size: int = SIZE) -> Room:
    system, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    apart = NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USER
    place = os.fsencode(folder)
    mounted = (
        system.unshare(apart) == 0
        and (user == 0 or keep_ids(user, group))
        and system.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None) == 0
        and system.mount(b"none", place, b"tmpfs", 0, b"size=%d" % size) == 0
    )
    if mounted:
        remount = 32

        def enlarge() -> None:
            done = system.mount(b"none", place, b"tmpfs", remount, b"size=%d" % (8 * size))
            assert done == 0, os.strerror(ctypes.get_errno())

        return Room(StorageFull, enlarge)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    return Room(StorageUnavailable, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))


def keep_ids(user: int, group: int) -> bool:
    """Make the ids of before valid in a new user namespace: without them no file can be made."""
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


def fill(tell: Voice, folder: str, durability: str) -> None:
    """Write until there is no room, read, get more room, write on, and check everything."""
    room, path, ledger = little_room(Path(folder)), Path(folder) / "full.db", Ledger()
    with stratagem.open(str(path), durability=durability, embedder="none") as db:  # type: ignore[arg-type]
        worker = Worker(db, "w", 1, ledger.note)
        for _ in range(5):
            error = step_until_error(worker, 100_000)
            assert isinstance(error, room.expected), error
        full_at = len(ledger.acknowledged)
        db.memory.search("river")
        db.memory.status()
        # What deletes needs room as well: it is refused, and does no harm.
        with pytest.raises(room.expected):
            db.runtime.foundation.store.rebuild(lambda *_: None)
        room.enlarge()
        assert step_until_error(worker, 50) is None
    verify(path, ledger)
    tell((room.expected.code, full_at, len(ledger.acknowledged)))


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_a_full_disk_refuses_loses_nothing_and_goes_on_when_there_is_room(
    tmp_path: Path, durability: str
) -> None:
    with child(fill, str(tmp_path), durability) as process:
        _, full_at, written = process.hear()
        process.join()

    assert written > full_at > 20
