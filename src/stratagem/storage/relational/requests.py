"""Results of requests, and the checksum that each is stored with.

They are no part of the hash chain. So the fingerprint of a request's arguments is followed by a
checksum of the whole row: a repeated request is never answered with a result that was altered.
Rows of older versions have none, and those of purged results have no fingerprint either.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from stratagem.errors import DatabaseCorrupt, RequestReused
from stratagem.storage.contract import RequestResult, WriteRequest
from stratagem.storage.relational.session import Queries, Shape

__all__ = ["SqlRequestWriter", "SqlRequests", "is_genuine", "is_repeat", "seal"]

_RESULT_ROW = Shape[tuple[bytes, bytes | None, int, int]]()

_PAGE: Final = 1_000

_CHECKSUM_BYTES: Final = 4
# A SHA-256 with a checksum behind it.
_SEALED_BYTES: Final = 32 + _CHECKSUM_BYTES


class SqlRequests:
    """See `stratagem.storage.contract.RequestReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def after(self, key: tuple[str, str], limit: int) -> list[RequestResult]:
        return self._queries.rows_as(RequestResult, "requests_after", *key, limit)

    def all(self) -> Iterator[RequestResult]:
        """Return every result, in pages."""
        key = ("", "")
        while page := self.after(key, _PAGE):
            yield from page
            key = (page[-1].actor, page[-1].request)


class SqlRequestWriter(SqlRequests):
    """See `stratagem.storage.contract.RequestWriter`."""

    __slots__ = ()

    def add(self, results: Sequence[RequestResult]) -> None:
        if results:
            self._queries.run_many("keep_request", results)

    def record(self, result: RequestResult) -> None:
        """Store the result of a request that was just run."""
        self._queries.run("insert_request", *seal(result))

    def erase(self, actor: str, request: str) -> None:
        """Remove the result of a request; a repeat is still recognised."""
        self._queries.run("erase_request", actor, request)

    def result_of(self, request: WriteRequest) -> bytes | None:
        """Return the result of an earlier request with this id, as JSON, or None.

        Raises:
            RequestReused: The id was used with other arguments, or its result was purged.
        """
        if request.id is None:
            return None
        row = self._queries.row(_RESULT_ROW, "request", request.actor, request.id)
        if row is None:
            return None
        earlier = RequestResult(request.actor, request.id, *row)
        if earlier.result is None:
            raise RequestReused(
                "This request was answered before, but its result has been purged since.",
                field="request_id",
                request_id=request.id,
            )
        if not is_repeat(earlier, request.fingerprint):
            raise RequestReused(
                "This request id was used before, with other arguments.",
                field="request_id",
                request_id=request.id,
            )
        return earlier.result


def seal(result: RequestResult) -> RequestResult:
    """Return a result as it is stored: with a checksum behind its fingerprint."""
    return result._replace(fingerprint=result.fingerprint + _checksum(result))


def is_repeat(stored: RequestResult, fingerprint: bytes) -> bool:
    """Whether a request has the arguments of an earlier one.

    Raises:
        DatabaseCorrupt: What is stored of that one was altered.
    """
    if stored.fingerprint == fingerprint:
        return True
    if not is_genuine(stored):
        raise DatabaseCorrupt("The stored result of a request was altered.")
    return stored.fingerprint[:-_CHECKSUM_BYTES] == fingerprint


def is_genuine(stored: RequestResult) -> bool:
    """Whether a result is what was stored, as far as that can be checked."""
    if len(stored.fingerprint) != _SEALED_BYTES:
        return True
    fingerprint = stored.fingerprint[:-_CHECKSUM_BYTES]
    if stored.result is None:
        return False
    return seal(stored._replace(fingerprint=fingerprint)).fingerprint == stored.fingerprint


def _checksum(result: RequestResult) -> bytes:
    names = f"{result.actor}\n{result.request}\n{result.first}\n{result.last}\n"
    start = zlib.crc32(names.encode() + result.fingerprint)
    return zlib.crc32(result.result or b"", start).to_bytes(_CHECKSUM_BYTES, "big")
