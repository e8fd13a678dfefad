"""Rows for one statement, sent as arrays: one for each column, in the server's own form.

A statement that takes rows has `unnest($2::bigint[], …) AS rows` in it, and so runs once for any
number of them. Run once for each row it would cost client and server many times as much.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Final

from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper

from stratagem.storage.relational.session import Parameter

__all__ = [
    "VECTOR",
    "EncodedArray",
    "EncodedArrayDumper",
    "StoredVector",
    "column_types",
    "encode_numbers",
    "encode_rows",
    "encode_vector",
]

VECTOR: Final = "vector"
_ROWS: Final = re.compile(r"unnest\(([^()]*+)\) (?:WITH ORDINALITY )?AS rows\b")
_COLUMN: Final = re.compile(r"\$\d+::(\w+)\[\]")
# The numbers of the built-in types, which never change; that of pgvector's is the database's own.
_TYPE_NUMBERS: Final = {"bigint": 20, "text": 25, "bytea": 17, "boolean": 16, "float8": 701}
_NULL: Final = struct.pack(">i", -1)
_encode_length = struct.Struct(">i").pack
_encode_number = struct.Struct(">iq").pack
_encode_truth = struct.Struct(">i?").pack
_encode_float = struct.Struct(">id").pack
# One dimension, nulls may occur, the type, how many, and that they are counted from 1.
_encode_header = struct.Struct(">iiIii").pack


class StoredVector(bytes):
    """A vector as this machine keeps it in memory: 32-bit numbers, one after the other."""


class EncodedArray(bytes):
    """An array in the server's own form."""


class EncodedArrayDumper(Dumper):
    """Sends an array that is encoded already; the statement says of what type it is."""

    format = pq.Format.BINARY

    def dump(self, obj: EncodedArray) -> Buffer:
        return obj


@cache
def column_types(sql: str) -> tuple[str, ...]:
    """Return the types of the rows that a statement takes; none where it takes single values."""
    found = _ROWS.search(sql)
    return tuple(_COLUMN.findall(found[1])) if found else ()


def encode_rows(
    types: tuple[str, ...], rows: Iterable[Sequence[Parameter]], type_numbers: Mapping[str, int]
) -> list[EncodedArray]:
    """Return an array for each column of some rows.

    `type_numbers` has the numbers of types that are not built in.
    """
    return [
        _encode_array(_TYPE_NUMBERS.get(kind) or type_numbers[kind], _ENCODERS[kind](column))
        for kind, column in zip(types, zip(*rows, strict=True), strict=True)
    ]


def encode_numbers(items: Sequence[int]) -> EncodedArray:
    """Return an array of numbers; the driver takes several times as long for a list of them."""
    return _encode_array(_TYPE_NUMBERS["bigint"], _encode_numbers(items))


def encode_vector(vector: bytes) -> bytes:
    """Return a vector in pgvector's own form: the count, and numbers with the high byte first."""
    count = len(vector) // 4
    return struct.pack(f">HH{count}f", count, 0, *struct.unpack(f"={count}f", vector))


def _encode_array(type_number: int, values: Sequence[bytes]) -> EncodedArray:
    return EncodedArray(_encode_header(1, 1, type_number, len(values), 1) + b"".join(values))


def _encode_numbers(column: Sequence[Any]) -> list[bytes]:
    if None not in column:
        return [*map(_encode_number, repeat(8), column)]
    return [_NULL if value is None else _encode_number(8, value) for value in column]


def _encode_bytes(column: Sequence[Any]) -> list[bytes]:
    return [_NULL if value is None else _encode_length(len(value)) + value for value in column]


def _encode_texts(column: Sequence[Any]) -> list[bytes]:
    return _encode_bytes([value if value is None else value.encode() for value in column])


def _encode_truths(column: Sequence[Any]) -> list[bytes]:
    return [*map(_encode_truth, repeat(1), column)]


def _encode_floats(column: Sequence[Any]) -> list[bytes]:
    return [*map(_encode_float, repeat(8), column)]


def _encode_vectors(column: Sequence[Any]) -> list[bytes]:
    return _encode_bytes([*map(encode_vector, column)])


_ENCODERS: Final[dict[str, Callable[[Sequence[Any]], list[bytes]]]] = {
    "bigint": _encode_numbers,
    "text": _encode_texts,
    "bytea": _encode_bytes,
    "boolean": _encode_truths,
    "float8": _encode_floats,
    VECTOR: _encode_vectors,
}
