"""Temporary folders, which the next command removes if a process was killed.

A folder has a file in it that its process keeps locked for as long as it lives; the kernel lets go
of the lock when the process ends, however it ends. So a folder of ours whose lock can be taken
has no owner any more. A folder that has no such file, or another than we write, is not
ours and stays.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["remove_abandoned", "scratch_folder"]

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows has no such lock
    fcntl = None

_OWNER: Final = "stratagem-owner"
_SIGNATURE: Final = b"A folder of Stratagem. It goes when its process has ended.\n"


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Give an empty folder until the block ends; remove those that ended processes left beside it.

    Only folders whose names begin with the prefix are looked at.
    """
    beside = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(prefix, beside)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
    owner = _lock_new(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if owner is not None:
            os.close(owner)


def _lock_new(folder: Path) -> int | None:
    """Say that a folder is ours, for as long as this process lives."""
    if fcntl is None:
        return None
    # Under another name until it is locked: no one may find it unlocked.
    fresh = folder / f"{_OWNER}.new"
    owner = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(owner, fcntl.LOCK_EX)
    os.write(owner, _SIGNATURE)
    fresh.rename(folder / _OWNER)
    return owner


def remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove the folders of ours, with names that begin so, whose processes have ended."""
    if fcntl is None or not prefix:
        return
    # An error while cleaning up must not stop the work itself.
    with suppress(OSError):
        for folder in parent.glob(f"{glob.escape(prefix)}*"):
            with suppress(OSError):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder if it is ours and its process has ended."""
    assert fcntl is not None
    if not stat.S_ISDIR(folder.lstat().st_mode) or folder.lstat().st_uid != os.getuid():
        return
    owner = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(owner, len(_SIGNATURE) + 1) == _SIGNATURE:
            shutil.rmtree(folder)
    finally:
        os.close(owner)
