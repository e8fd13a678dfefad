"""A transport that sends the head of a response together with what comes right after it.

The HTTP server writes the head and the body of a response one after the other. Each write is a
system call, and wakes the client, which cannot do anything with a head alone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

__all__ = ["JoinedResponses"]

_HEAD: Final = b"HTTP/1."


class JoinedResponses:
    """A transport that holds the head of a response back until the loop has gone round once."""

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        """Be the transport in everything else."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send some bytes; a head waits for the beginning of its body, but for no event."""
        if not self._head and data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        head, self._head = self._head, b""
        self._transport.write(head + data if head else data)

    def close(self) -> None:
        """Close the connection, after what was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")
