"""A network stream that sends a request in one piece.

The library writes the head of a request and its body one after the other. Each write is a system
call, and wakes the other side, which cannot do anything with a head alone. Here they wait for each
other: what was written is sent when an answer is read, or when it is much.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Final

import httpcore2

__all__ = ["JoinedWrites"]

# More than this is sent at once: joining it would cost a copy and gain nothing.
_PENDING_BYTES_MAX: Final = 64 * 1024


class JoinedWrites(httpcore2.AsyncNetworkStream):
    """Holds small writes back until the next read."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._pending = b""
        self._seconds: float | None = None

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
    ) -> bytes:
        """Send what was held back, and read."""
        if self._pending:
            # As the library does: who closed before it read all may have answered all the same.
            with suppress(httpcore2.WriteError):
                await self._flush()
        return await self._stream.read(max_bytes, timeout)

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
    ) -> None:
        """Hold a small write back; send a large one with what was held back before."""
        self._pending += buffer
        self._seconds = timeout
        if len(self._pending) > _PENDING_BYTES_MAX:
            await self._flush()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection with TLS in it."""
        await self._flush()
        return JoinedWrites(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the library knows of the connection."""
        return self._stream.get_extra_info(info)

    async def _flush(self) -> None:
        pending, self._pending = self._pending, b""
        if pending:
            await self._stream.write(pending, self._seconds)
