"""Remembered results of requests, and the checksum that each is kept with.

They are no part of the chain. So the fingerprint of a request's arguments is followed by a checksum
of the whole row: a result that was altered is never given to whoever repeats the request. Rows of
older versions have none, and those of purged results have no fingerprint either.
"""

from __future__ import annotations

import zlib
from typing import Final

from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Remembered

__all__ = ["is_genuine", "is_repeat", "sealed"]

_CHECKSUM_BYTES: Final = 4
# A SHA-256 with a checksum behind it.
_SEALED_BYTES: Final = 32 + _CHECKSUM_BYTES


def sealed(remembered: Remembered) -> Remembered:
    """Return a result as it is kept."""
    return remembered._replace(fingerprint=remembered.fingerprint + _checksum(remembered))


def is_repeat(kept: Remembered, fingerprint: bytes) -> bool:
    """Whether a request has the arguments of an earlier one.

    Raises:
        DatabaseCorrupt: What is remembered of that one was altered.
    """
    if kept.fingerprint == fingerprint:
        return True
    if not is_genuine(kept):
        raise DatabaseCorrupt("The remembered result of a request was altered.")
    return kept.fingerprint[:-_CHECKSUM_BYTES] == fingerprint


def is_genuine(kept: Remembered) -> bool:
    """Whether a remembered result is what was kept, as far as that can be told."""
    if len(kept.fingerprint) != _SEALED_BYTES:
        return True
    fingerprint = kept.fingerprint[:-_CHECKSUM_BYTES]
    if kept.result is None:
        return False
    return sealed(kept._replace(fingerprint=fingerprint)).fingerprint == kept.fingerprint


def _checksum(remembered: Remembered) -> bytes:
    names = f"{remembered.actor}\n{remembered.request}\n{remembered.first}\n{remembered.last}\n"
    start = zlib.crc32(names.encode() + remembered.fingerprint)
    return zlib.crc32(remembered.result or b"", start).to_bytes(_CHECKSUM_BYTES, "big")
