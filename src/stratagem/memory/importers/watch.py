"""When a file or folder changes that another tool writes.

Times and sizes of files are polled, which works on every file system, in containers and over
networks. A change is reported once the files have stayed the same for one interval, so that an
incomplete note is rarely read.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from stratagem import limits
from stratagem.errors import ImportRefused
from stratagem.note_files import is_hidden

__all__ = ["changes"]

_Seen = dict[str, tuple[int, int]]


def changes(path: Path, every: float) -> Iterator[None]:
    """Give control at once, and again after each change; it ends by an interruption alone.

    Raises:
        ImportRefused: There are more files than can be watched.
    """
    told = seen = _look(path)
    yield
    pause = threading.Event()
    while True:
        pause.wait(every)
        now = _look(path)
        if now == seen and now != told:
            told = now
            yield
        seen = now


def _look(path: Path) -> _Seen:
    """Return the time and size of every file, without files that disappear meanwhile."""
    if not path.is_dir():
        found = _state(path)
        return {str(path): found} if found else {}
    seen: _Seen = {}
    for folder, folders, names in os.walk(path, followlinks=False):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in names:
            file = Path(folder, name)
            if found := _state(file):
                seen[str(file)] = found
        if len(seen) > limits.WATCHED_FILES_MAX:
            raise ImportRefused(
                f"{path} has more than {limits.WATCHED_FILES_MAX:,} files.",
                file=str(path),
                hint="Watch a folder of it.",
            )
    return seen


def _state(file: Path) -> tuple[int, int] | None:
    try:
        status = file.lstat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None
