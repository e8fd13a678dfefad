"""Checking that content read from the log is what was written.

Every event carries a hash of its content and of the names it is about. Each read checks it: a hash
of a small value takes a microsecond, and no caller is ever given a value that was altered outside
of Stratagem. A value that passes is the JSON that was written, so it can be decoded and has all its
fields.

Sequence, time, branch and actor are covered by the chain of hashes, which only `doctor` recomputes:
one event alone cannot be checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from stratagem.deferred_modules import hashlib
from stratagem.engine.events import Space, content_hash
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Version
from stratagem.storage.relational.session import Shape

__all__ = [
    "CONTENT_ROW",
    "PAYLOAD_ROW",
    "ContentRow",
    "altered_event",
    "missing_event",
    "recognise_payloads",
    "verified_version",
    "verify",
    "verify_payloads",
]

# Sequence, time, kind, payload, actor, salt, content hash.
ContentRow = tuple[int, int, str, bytes | None, str, bytes | None, bytes]
CONTENT_ROW = Shape[ContentRow]()

# Sequence, payload, salt, content hash.
PayloadRow = tuple[int, bytes | None, bytes | None, bytes]
PAYLOAD_ROW = Shape[PayloadRow]()

# The sequences that were read, of any database, and Python's hashes of rows that were found
# genuine, each with its names: 64 bits that depend on a secret of the process, so that no content
# can be told from them. Two megabytes at most.
_read_sequences: Final[set[int]] = set()
_genuine_rows: Final[set[int]] = set()
_REMEMBERED_MAX: Final = 16_384

# For a row that is a tuple already: calling the class would unpack it and pack it again.
_new_tuple = tuple.__new__


def verified_version(row: ContentRow, space: Space | None, key: str | None) -> Version:
    """Return a row of the log as a version, once it is found to be what was written."""
    verify(row, space, key)
    return _new_tuple(Version, row[:5])


def verify_payloads(rows: Sequence[PayloadRow], names: Mapping[int, tuple[Space, str]]) -> None:
    """Check rows of the log against their content hashes; their names are given by sequence.

    It does what `verify` does, without a call for each of thousands.
    """
    sha256, dumps, newline = hashlib.sha256, orjson.dumps, orjson.OPT_APPEND_NEWLINE
    for sequence, payload, salt, content in rows:
        (kind, namespace), key = names[sequence]
        try:
            if payload is None or salt is None:
                genuine = payload is salt
            else:
                prefix = dumps((kind, namespace, key), option=newline)
                genuine = sha256(salt + prefix + payload).digest() == content
        except TypeError:
            genuine = False
        if not genuine:
            raise altered_event(sequence)


def recognise_payloads(rows: Sequence[PayloadRow], names: Mapping[int, tuple[Space, str]]) -> None:
    """Do the same, where the same rows are likely to be read again.

    Whoever edits a branch compares it again and again. Rows that were found genuine before are
    recognised by a hash that takes half of the time. It would be lost on rows that are read once,
    so they are remembered by this hash when they are read for the second time.
    """
    sequences = [row[0] for row in rows]
    if 2 * len(_read_sequences.intersection(sequences)) < len(rows):
        verify_payloads(rows, names)
        _remember(_read_sequences, sequences)
        return
    marks = [hash((row, names[row[0]])) for row in rows]
    fresh = [row for row, mark in zip(rows, marks, strict=True) if mark not in _genuine_rows]
    if fresh:
        verify_payloads(fresh, names)
        _remember(_genuine_rows, marks)


def _remember(known: set[int], more: Sequence[int]) -> None:
    if len(known) + len(more) > _REMEMBERED_MAX:
        known.clear()
    known.update(more[:_REMEMBERED_MAX])


def verify(row: ContentRow, space: Space | None, key: str | None) -> None:
    """Check a row of the log against its content hash.

    Raises:
        DatabaseCorrupt: It is not what was written.
    """
    sequence, at, kind, payload, actor, salt, content = row
    if payload is None or salt is None:
        # A purge removes both.
        genuine = payload is salt
    else:
        try:
            genuine = content_hash(salt, space, key, payload) == content
        except TypeError:
            # SQLite stores values of any type in any column, so damage can leave one of another.
            genuine = False
    typed = at.__class__ is int and kind.__class__ is actor.__class__ is str
    if not (genuine and typed):
        raise altered_event(sequence)


def altered_event(sequence: int) -> DatabaseCorrupt:
    """Return the error for an event that is not what was written."""
    return DatabaseCorrupt(f"The content of event {sequence} was altered.", sequence=sequence)


def missing_event(sequence: int) -> DatabaseCorrupt:
    """Return the error for an event that something refers to and is not there."""
    return DatabaseCorrupt(f"The log has no event {sequence}.", sequence=sequence)
