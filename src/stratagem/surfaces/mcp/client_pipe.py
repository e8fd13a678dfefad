"""The pipe to one client: messages on stdin and stdout, one to a line.

Nothing but the protocol may be on stdout, so the descriptor is moved aside and whatever else
prints lands on stderr.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from stratagem import limits

__all__ = ["LAST_ANSWER_SECONDS", "UNANSWERED_MAX", "ClientPipe"]

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
CHUNK_BYTES: Final = 64 * 1024
# With more unanswered requests than this, reading pauses.
UNANSWERED_MAX: Final = 4 * limits.CALLS_AT_ONCE_MAX
# How long to wait for an answer after the client has closed stdin.
LAST_ANSWER_SECONDS: Final = 5.0


class ClientPipe:
    """Both directions. Any thread may write; one at a time may read."""

    def __init__(self) -> None:
        self._reads = _take_over(STDIN)
        self._writes = _take_over(STDOUT)
        self._writing = threading.Lock()
        self.lines: Final = self._read_lines()

    def write(self, message: bytes) -> None:
        """Write a message.

        Raises:
            OSError: The client no longer reads.
        """
        rest = memoryview(message + b"\n")
        with self._writing:
            while rest:
                rest = rest[os.write(self._writes, rest) :]

    def _read_lines(self) -> Iterator[bytes | None]:
        """Yield what is read line by line; None for a line that is too long."""
        parts: list[bytes] = []
        size = 0
        with suppress(OSError):
            while chunk := os.read(self._reads, CHUNK_BYTES):
                *ended, rest = chunk.split(b"\n")
                for end in ended:
                    fits = size + len(end) <= limits.REQUEST_BYTES_MAX
                    yield b"".join([*parts, end]) if fits else None
                    parts, size = [], 0
                size += len(rest)
                # A line that is too long is counted on, not kept.
                parts = [*parts, rest] if size <= limits.REQUEST_BYTES_MAX else []
        if size:
            yield b"".join(parts) if size <= limits.REQUEST_BYTES_MAX else None


def _take_over(descriptor: int) -> int:
    """Return the client's end of a standard stream, and put something harmless in its place."""
    private = os.dup(descriptor)
    if descriptor == STDOUT:
        sys.stdout.flush()
        os.dup2(STDERR, STDOUT)
    else:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    return private
