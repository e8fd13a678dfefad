"""Reading an answer without trusting its size.

What arrives and what it unpacks to are both counted while they arrive, so that neither a flood
nor a small file that unpacks to a huge one is ever held in memory. A stream of server-sent events
may go on for ever; there, each line is bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx2

from stratagem import limits
from stratagem.errors import ExecutionFailed

__all__ = ["BoundedStream", "Response", "Unpacking", "unpacking_for"]

_PIECE_BYTES: Final = 256 * 1024
_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, read to its end. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str = field(default="", repr=False)

    @property
    def content_type(self) -> str:
        """Return the media type without its parameters, in small letters, or nothing."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Unpacking:
    """Unpacks gzip or deflate in bounded pieces."""

    def __init__(self, coding: str) -> None:
        self._window = zlib.MAX_WBITS if coding == "deflate" else _GZIP_WINDOW
        self._unpacker = zlib.decompressobj(self._window)
        self._parts = 1
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes unpack to.

        Raises:
            ExecutionFailed: They are not what the answer said they were.
        """
        while data:
            if self._unpacker.eof:
                self._next_part()
            try:
                piece = self._unpack(data)
            except zlib.error:
                raise _broken("cannot be unpacked") from None
            self._begun = True
            if piece:
                yield piece
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data

    def finish(self) -> None:
        """Refuse an answer that was cut off in the middle."""
        if self._begun and not self._unpacker.eof:
            raise _broken("ends in the middle")

    def _unpack(self, data: bytes) -> bytes:
        try:
            return self._unpacker.decompress(data, _PIECE_BYTES)
        except zlib.error:
            # Some servers send deflate without the header that the standard asks for.
            if self._begun or self._window != zlib.MAX_WBITS:
                raise
            self._window = -zlib.MAX_WBITS
            self._unpacker = zlib.decompressobj(self._window)
            return self._unpacker.decompress(data, _PIECE_BYTES)

    def _next_part(self) -> None:
        self._parts += 1
        if self._parts > limits.OUTBOUND_GZIP_PARTS_MAX or self._window != _GZIP_WINDOW:
            raise _broken("goes on after its end")
        self._unpacker = zlib.decompressobj(self._window)


def unpacking_for(coding: str) -> Unpacking | None:
    """Return what unpacks a content coding, or None where there is nothing to unpack.

    Raises:
        ExecutionFailed: Nobody asked for this coding.
    """
    name = coding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name in {"gzip", "x-gzip", "deflate"}:
        return Unpacking(name)
    raise _broken(f"is packed as {name[:40]!r}, which was not asked for")


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer, unpacked and counted.

    `by_line` bounds what lies between two line ends instead of the whole.
    """

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        unpacking: Unpacking | None,
        bytes_max: int,
        *,
        by_line: bool = False,
    ) -> None:
        self._stream = stream
        self._unpacking = unpacking
        self._bytes_max = bytes_max
        self._by_line = by_line
        self._arrived = 0
        self._unpacked = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            if self._unpacking is None:
                self._count(chunk)
                yield chunk
                continue
            self._arrived += len(chunk)
            self._check(0 if self._by_line else self._arrived)
            for piece in self._unpacking.feed(chunk):
                self._count(piece)
                yield piece
        if self._unpacking is not None:
            self._unpacking.finish()

    async def aclose(self) -> None:
        """End the answer, read to its end or not."""
        await self._stream.aclose()

    def _count(self, piece: bytes) -> None:
        if not self._by_line or (first_end := piece.find(b"\n")) < 0:
            self._unpacked += len(piece)
            self._check(self._unpacked)
            return
        # Lines that lie within one piece are no longer than that.
        self._check(self._unpacked + first_end)
        self._unpacked = len(piece) - piece.rfind(b"\n")
        self._check(self._unpacked)

    def _check(self, count: int) -> None:
        if count > self._bytes_max:
            raise too_large(self._bytes_max)


def too_large(bytes_max: int) -> ExecutionFailed:
    """Return the failure of an answer that is larger than it may be."""
    return ExecutionFailed(
        f"The answer is larger than {bytes_max:,} bytes.",
        reason="too_large",
        limit=bytes_max,
        hint="Ask the service for less at once.",
    )


def _broken(why: str) -> ExecutionFailed:
    return ExecutionFailed(f"The answer {why}.", reason="broken_answer")
