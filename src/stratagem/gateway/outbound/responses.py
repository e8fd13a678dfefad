"""Response bodies, decompressed and bounded while they are read.

Both the received and the decompressed bytes are counted as they arrive, so that neither a huge
body nor a decompression bomb is ever held in memory. A stream of server-sent events may be
endless; there, each line is bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import field
from typing import Final

import httpx2

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed

__all__ = ["BoundedStream", "Decompressor", "Response", "decompressor_for"]

_PIECE_BYTES: Final = 256 * 1024
_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str = field(default="", repr=False)

    @property
    def content_type(self) -> str:
        """Return the media type without its parameters, in lower case; empty if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Decompressor:
    """Decompresses gzip or deflate in bounded pieces."""

    def __init__(self, coding: str) -> None:
        self._window = zlib.MAX_WBITS if coding == "deflate" else _GZIP_WINDOW
        self._decompressobj = zlib.decompressobj(self._window)
        self._parts = 1
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed form of the next bytes.

        Raises:
            ExecutionFailed: They are not in the declared content coding.
        """
        while data:
            if self._decompressobj.eof:
                self._next_part()
            try:
                piece = self._decompress(data)
            except zlib.error:
                raise _broken_response("cannot be decompressed") from None
            self._begun = True
            if piece:
                yield piece
            data = self._decompressobj.unconsumed_tail or self._decompressobj.unused_data

    def finish(self) -> None:
        """Raise ExecutionFailed if the body was cut off in the middle."""
        if self._begun and not self._decompressobj.eof:
            raise _broken_response("ends in the middle")

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._decompressobj.decompress(data, _PIECE_BYTES)
        except zlib.error:
            # Some servers send deflate without the header that the standard asks for.
            if self._begun or self._window != zlib.MAX_WBITS:
                raise
            self._window = -zlib.MAX_WBITS
            self._decompressobj = zlib.decompressobj(self._window)
            return self._decompressobj.decompress(data, _PIECE_BYTES)

    def _next_part(self) -> None:
        self._parts += 1
        if self._parts > limits.OUTBOUND_GZIP_PARTS_MAX or self._window != _GZIP_WINDOW:
            raise _broken_response("goes on after its end")
        self._decompressobj = zlib.decompressobj(self._window)


def decompressor_for(coding: str) -> Decompressor | None:
    """Return a decompressor for a content coding, or None if the body is not compressed.

    Raises:
        ExecutionFailed: The request did not accept this coding.
    """
    name = coding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name in {"gzip", "x-gzip", "deflate"}:
        return Decompressor(name)
    raise _broken_response(f"has the encoding {name[:40]!r}, which was not requested")


class BoundedStream(httpx2.AsyncByteStream):
    """The body of a response, decompressed and bounded.

    `by_line` bounds each line instead of the whole body.
    """

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        decompressor: Decompressor | None,
        bytes_max: int,
        *,
        by_line: bool = False,
    ) -> None:
        self._stream = stream
        self._decompressor = decompressor
        self._bytes_max = bytes_max
        self._by_line = by_line
        self._arrived = 0
        self._decompressed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            if self._decompressor is None:
                self._count(chunk)
                yield chunk
                continue
            self._arrived += len(chunk)
            self._check(0 if self._by_line else self._arrived)
            for piece in self._decompressor.feed(chunk):
                self._count(piece)
                yield piece
        if self._decompressor is not None:
            self._decompressor.finish()

    async def aclose(self) -> None:
        """Close the response, whether or not it was read to its end."""
        await self._stream.aclose()

    def _count(self, piece: bytes) -> None:
        if not self._by_line or (first_end := piece.find(b"\n")) < 0:
            self._decompressed += len(piece)
            self._check(self._decompressed)
            return
        # Complete lines inside one piece are shorter than the piece, which is bounded itself.
        self._check(self._decompressed + first_end)
        self._decompressed = len(piece) - piece.rfind(b"\n")
        self._check(self._decompressed)

    def _check(self, count: int) -> None:
        if count > self._bytes_max:
            raise too_large(self._bytes_max)


def too_large(bytes_max: int) -> ExecutionFailed:
    """Return the error for a response that exceeds its limit."""
    return ExecutionFailed(
        f"The answer is larger than {bytes_max:,} bytes.",
        answered=True,
        reason="too_large",
        limit=bytes_max,
        hint="Ask the service for less at once.",
    )


def _broken_response(why: str) -> ExecutionFailed:
    return ExecutionFailed(f"The answer {why}.", reason="broken_answer")
