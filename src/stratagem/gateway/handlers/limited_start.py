"""Lowers the limits of this process, then becomes the given program or runs the given script.

Run by path, apart from the package: `limited_start.py MEMORY SECONDS FILE_BYTES PROGRAM …`.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys

__all__: list[str] = []


def _limit(memory_bytes: int, seconds: int, file_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the time limit outside still holds.
        return
    for which, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        # A limit that is lower already stays.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (value, value))


if __name__ == "__main__":
    _memory, _seconds, _files = (int(each) for each in sys.argv[1:4])
    _limit(_memory, _seconds, _files)
    _program, *_arguments = sys.argv[4:]
    if _program.startswith("python:"):
        sys.argv = [_program.removeprefix("python:"), *_arguments]
        # Parsers of nested things recurse; the limit of memory is the one that counts.
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        os.execv(_program, [_program, *_arguments])  # noqa: S606 -- a path that the caller chose
