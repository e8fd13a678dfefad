"""Events and the chain that binds them.

Each event carries two hashes. The *content hash* covers what a person may ask to have
erased: the names the event is about and its payload, behind a random salt. The *hash*
covers everything else, the content hash, and the hash of the event before it.

Erasing an event removes content and salt and keeps both hashes. The chain still
verifies, and because the salt is gone the content cannot be guessed back from its hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import hashlib
from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "GENESIS",
    "SALT_BYTES",
    "BranchId",
    "Draft",
    "Event",
    "Head",
    "Sequence",
    "Space",
    "content_hash",
    "encode_names",
    "event_hash",
    "link_of",
]

Sequence = NewType("Sequence", int)
BranchId = NewType("BranchId", int)

GENESIS = bytes(32)
SALT_BYTES = 16


class Space(NamedTuple):
    """A kind of record within a namespace."""

    kind: str
    namespace: str


@dataclass(slots=True)
class Draft:
    """An event that a system asks to append; the log gives it its place and time.

    `key` names the record that changes; an event without one is a logged event. `origin` is
    the sequence at which a merged event was first written. `repeats` is an earlier event
    with the same content for the same record, if there is one: its terms and vector can be
    reused. `subject` is the number of that record, where it was looked up.
    """

    kind: str
    content: Mapping[str, Any]
    space: Space | None = None
    key: str | None = None
    origin: int | None = None
    repeats: int | None = None
    subject: int | None = None


@dataclass(slots=True)
class Event:
    """One immutable fact. `payload` and `salt` are None once it was purged."""

    sequence: int
    at: int
    wall: int
    branch: int
    kind: str
    space: Space | None
    key: str | None
    actor: str
    request: str | None
    origin: int | None
    payload: bytes | None
    salt: bytes | None
    content_hash: bytes
    hash: bytes


class Head(NamedTuple):
    """The newest event of a log: where the next one attaches."""

    sequence: int
    at: int
    hash: bytes


def content_hash(salt: bytes, space: Space | None, key: str | None, payload: bytes) -> bytes:
    """Return the hash of an event's content: the names of its subject and its payload."""
    return hashlib.sha256(salt + encode_names(space, key) + payload).digest()


def encode_names(space: Space | None, key: str | None) -> bytes:
    """Return the encoded names of an event's subject, which are hashed before its payload."""
    names = (*space, key) if space else (None, None, key)
    return orjson.dumps(names, option=orjson.OPT_APPEND_NEWLINE)


def event_hash(
    previous: bytes,
    *,
    sequence: int,
    at: int,
    wall: int,
    branch: int,
    kind: str,
    actor: str,
    request: str | None,
    origin: int | None,
    content: bytes,
) -> bytes:
    """Return the hash that binds an event to the one before it."""
    header = orjson.dumps([sequence, at, wall, branch, kind, actor, request, origin])
    return hashlib.sha256(previous + content + header).digest()


def link_of(event: Event, previous: bytes) -> bytes:
    """Return the hash that an event has if it follows the one with the hash `previous`."""
    return event_hash(
        previous,
        sequence=event.sequence,
        at=event.at,
        wall=event.wall,
        branch=event.branch,
        kind=event.kind,
        actor=event.actor,
        request=event.request,
        origin=event.origin,
        content=event.content_hash,
    )
