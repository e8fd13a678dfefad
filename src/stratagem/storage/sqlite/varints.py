"""Whole numbers as SQLite and FTS5 write them.

Seven bits are in a byte, whose top bit says that more follow.
"""

from __future__ import annotations

from typing import Final

__all__ = ["read_varint", "read_varints"]

_BYTES_MAX: Final = 9
_MORE: Final = 0x80


def read_varint(data: bytes, at: int = 0) -> tuple[int, int]:
    """Return the number at a place, and the place after it; IndexError where it is cut off."""
    number = 0
    for count in range(1, _BYTES_MAX + 1):
        byte = data[at]
        at += 1
        # Seven bits of each byte count, but all eight of the ninth.
        if count == _BYTES_MAX:
            return _to_signed(number << 8 | byte), at
        number = number << 7 | byte & 0x7F
        if byte < _MORE:
            break
    return number, at


def read_varints(data: bytes) -> list[int]:
    """Return all numbers of a record; one that its end cuts off is left out."""
    numbers: list[int] = []
    at = 0
    try:
        while at < len(data):
            number, at = read_varint(data, at)
            numbers.append(number)
    except IndexError:
        pass
    return numbers


def _to_signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
