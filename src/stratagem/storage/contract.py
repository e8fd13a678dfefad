"""What every store must do, whatever it keeps its events in.

`tests/contracts` holds the suite that each implementation passes. A `Reader` sees one
consistent state of the log; a `Transaction` is a reader that can also append. Systems
write functions over these two and never learn which store is below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratagem.engine.ancestry import Vector
from stratagem.engine.events import Draft, Event, Head, Space
from stratagem.engine.lineage import Branch, Cut, Lineage, View
from stratagem.engine.records import Kinds, Text
from stratagem.storage.catalogue import Catalogue
from stratagem.storage.outbox import Outbox, OutboxReader

__all__ = [
    "PURGED_AT",
    "Appended",
    "Document",
    "Erased",
    "Finding",
    "Found",
    "Hit",
    "Indexer",
    "Progress",
    "Reader",
    "Record",
    "Remembered",
    "Request",
    "Store",
    "StreamEvent",
    "Transaction",
    "VectorRow",
    "Version",
]

# The setting that says after which event something was purged last. What was kept in memory before
# may hold a copy of it, and is not used any more.
PURGED_AT = "purged_at"

T = TypeVar("T")

# Called with how much is done, how much there is, and what is being done.
Progress = Callable[[int, int, str], None]


class Version(NamedTuple):
    """A record's value at one point. `payload` is None once it was purged.

    `actor` is the name it was written under.
    """

    sequence: int
    at: int
    kind: str
    payload: bytes | None
    actor: str = ""


class Record(NamedTuple):
    """A subject with its version in some view."""

    subject: int
    space: Space
    key: str
    version: Version


class StreamEvent(NamedTuple):
    """An event that stands for itself."""

    sequence: int
    branch: int
    kind: str
    origin: int | None
    space: Space
    payload: bytes | None


class Hit(NamedTuple):
    """What a search result shows of an event."""

    sequence: int
    at: int
    kind: str
    space: Space
    key: str | None
    payload: bytes
    actor: str = ""


class Found(NamedTuple):
    """A text that matched, and how well: higher is better."""

    sequence: int
    score: float


class VectorRow(NamedTuple):
    """A vector, and what a filter needs to know of its version."""

    id: int
    sequence: int
    branch: int
    space: int
    sequence_to: int | None
    vector: bytes


class Appended(NamedTuple):
    """Where a draft landed, and which visible version it replaced, if any."""

    sequence: int
    at: int
    before: int | None


class Document(NamedTuple):
    """An analysed text: the terms of each field, joined by spaces, and its vector."""

    title: str
    body: str
    context: str
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Request:
    """Who writes, and the id under which a repeat of the write is recognised."""

    actor: str
    id: str | None = None
    fingerprint: bytes = b""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something `doctor` found wrong, in words, and whether `--repair` mends it.

    `part` is what is damaged: the log, what is made from it (read models, indexes), or the file
    that holds both.
    """

    what: str
    where: str
    repairable: bool
    part: Literal["log", "derived", "file"] = "log"


class Remembered(NamedTuple):
    """The result of a request, as it is kept to recognise a repeat of it."""

    actor: str
    request: str
    fingerprint: bytes
    result: bytes | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What a purge has erased, and what it left.

    `events` lost their content because they are what was named. `copies` counts the records, by
    kind, that lost theirs because they quoted it, `results` the kept answers to requests that did.
    `elsewhere` counts, by kind, the records of callers' own that hold the same text: they are
    left. `pending`: somebody was reading meanwhile, so that the file still holds the bytes.
    """

    events: int = 0
    copies: Mapping[str, int] = field(default_factory=dict)
    results: int = 0
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    pending: bool = False


class Indexer(Protocol):
    """Turns texts into documents; the search layer has the one implementation."""

    @property
    def context_window(self) -> int:
        """How many preceding messages of a session are indexed with a text."""
        ...

    @property
    def embedder_name(self) -> str | None:
        """The embedder that vectors are made with; those of any other are not kept."""
        ...

    def documents(
        self, texts: Sequence[tuple[Text, Sequence[str]]], *, embed: bool
    ) -> list[Document]:
        """Return the documents of texts, each given with its context, nearest first.

        A document without a vector waits for one: embedding is off, or not ready yet.
        """
        ...


class Reader(Catalogue, OutboxReader, Protocol):
    """One consistent state of the log."""

    @property
    def kinds(self) -> Kinds:
        """The kinds of record this database holds."""
        ...

    def head(self) -> Head:
        """Return the newest event's place, time and hash."""
        ...

    def branch(self, name: str) -> Branch | None:
        """Return the live branch of that name."""
        ...

    def branch_by_id(self, branch: int) -> Branch:
        """Return a branch, deleted or not."""
        ...

    def deleted_branch(self, name: str) -> Branch | None:
        """Return the branch of that name that was deleted last."""
        ...

    def branches(self) -> list[Branch]:
        """Return all branches, oldest first, deleted ones too."""
        ...

    def branch_count(self) -> int:
        """Return how many branches are live."""
        ...

    def lineage(self, branch: Branch, limit: int = ...) -> Lineage:
        """Return what a view of a branch reads, nearest first."""
        ...

    def sequence_at(self, at: int) -> int:
        """Return the last sequence at or before a recorded time; 0 when there is none."""
        ...

    def end_of(self, sequence: int) -> int | None:
        """Return the last sequence of the transaction that wrote an event."""
        ...

    def time_of(self, sequence: int) -> int | None:
        """Return the recorded time of an event."""
        ...

    def wall_of(self, sequence: int) -> int | None:
        """Return what the clock said when an event was written."""
        ...

    def sequence_ahead(self, wall: int) -> int | None:
        """Return the last event up to a time of the clock, among those recorded later than that.

        There are none where the log's recorded time never ran ahead of the clock.
        """
        ...

    def hash_of(self, sequence: int) -> bytes | None:
        """Return the hash of an event."""
        ...

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        """Return the newest version of a record, or None where it is absent or deleted."""
        ...

    def current_many(self, lineage: Lineage, subjects: Sequence[int]) -> dict[int, Record]:
        """Return the records of some subjects, leaving out those that are absent or deleted."""
        ...

    def names(self, subjects: Sequence[int]) -> dict[int, tuple[Space, str]]:
        """Return the space and key of some subjects."""
        ...

    def history(
        self, lineage: Lineage, space: Space, key: str, *, before: int, limit: int
    ) -> list[Version]:
        """Return a record's versions, deletions too, newest first, older than `before`."""
        ...

    def records(
        self, lineage: Lineage, space: Space, *, after: str = "", limit: int = 1000
    ) -> tuple[list[tuple[str, Version]], str | None]:
        """Return a page of a space's records by key, and where the next page begins."""
        ...

    def stream(
        self, lineage: Lineage, space: Space, *, after: int = 0, limit: int = 1000
    ) -> list[Version]:
        """Return a page of a space's events that stand for themselves, oldest first."""
        ...

    def spaces(self, kind: str | None = None) -> dict[int, Space]:
        """Return the spaces in use, by number."""
        ...

    def span(self, lineage: Lineage) -> tuple[Cut, Cut] | None:
        """Return sequence and time of the first and last event that a view shows."""
        ...

    def tally(self, view: View, kind: str) -> int:
        """Return how many live records of a kind a view shows."""
        ...

    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int,
    ) -> list[Found]:
        """Return the best texts for a match expression, among those a view shows."""
        ...

    def visible_among(self, view: View, sequences: Sequence[int]) -> set[int]:
        """Return which of some versions a view shows."""
        ...

    def tagged(self, tags: Sequence[str]) -> NDArray[np.int64]:
        """Return the versions that carry every one of some tags."""
        ...

    def faceted(self, view: View, facet: str, *, limit: int = -1, before: int = ...) -> list[int]:
        """Return the versions with a facet that a view shows, oldest first; the newest `limit`.

        Only those older than the sequence `before`, where it is given.
        """
        ...

    def term_documents(self, term: str) -> int:
        """Return in how many texts a term occurs."""
        ...

    def text_count(self) -> int:
        """Return about how many texts the index holds."""
        ...

    def hits(self, sequences: Sequence[int]) -> dict[int, Hit]:
        """Return what a search result shows of some events.

        Raises:
            DatabaseCorrupt: One of them is not there, or is not what was written.
        """
        ...

    def changed_subjects(self, cut: Cut, after: int) -> list[int]:
        """Return the subjects a branch changed after a sequence, up to its cut."""
        ...

    def changed_stream(self, cut: Cut, after: int) -> list[StreamEvent]:
        """Return the events standing for themselves that a branch gained after a sequence."""
        ...

    def branch_of(self, sequence: int) -> int:
        """Return the branch an event was written to."""
        ...

    def known_versions(self, subjects: Sequence[int], vector: Vector) -> dict[int, list[Cut]]:
        """Return each subject's newest version on each branch that a vector knows."""
        ...

    def payloads(self, sequences: Sequence[int]) -> dict[int, Version]:
        """Return the versions at some sequences.

        Raises:
            DatabaseCorrupt: One of them is not there, or is not what was written.
        """
        ...

    def knowledge(self, branch: int, sequence: int) -> Vector:
        """Return what a branch knew at a sequence."""
        ...

    def vectors_after(self, last: int, limit: int) -> list[VectorRow]:
        """Return vectors in the order of their commits, after one of them."""
        ...

    def superseded_after(self, sequence: int) -> list[tuple[int, int]]:
        """Return the versions superseded after a sequence, and by which."""
        ...

    def unembedded(self, limit: int) -> list[int]:
        """Return texts that wait for a vector, newest first."""
        ...

    def unembedded_count(self) -> int:
        """Return how many texts wait for a vector."""
        ...

    def vector_count(self) -> int:
        """Return how many vectors are kept."""
        ...

    def vector_last(self) -> int | None:
        """Return the number of the newest vector."""
        ...

    def requests(self, after: tuple[str, str], limit: int) -> list[Remembered]:
        """Return remembered requests by actor and id, after one of them."""
        ...

    def setting(self, name: str) -> Any:
        """Return a setting of the database, or None."""
        ...


class Transaction(Reader, Outbox, Protocol):
    """A state of the log that can still grow; all of it is committed, or none."""

    @property
    def at(self) -> int:
        """The recorded time that every event of this transaction has."""
        ...

    @property
    def wall(self) -> int:
        """What the clock says; whatever is to end at some time is counted from it."""
        ...

    def append(self, branch: Branch, drafts: Sequence[Draft]) -> list[Appended]:
        """Add events to the tip of a branch, and bring every read model up to date."""
        ...

    def create_branch(self, name: str, *, parent: Branch | None, fork_sequence: int) -> Branch:
        """Start a branch: empty, or from a moment of its parent."""
        ...

    def delete_branch(self, branch: Branch) -> None:
        """Hide a branch; its children keep what they borrowed."""
        ...

    def restore_branch(self, branch: Branch) -> None:
        """Bring a deleted branch back."""
        ...

    def record_merge(self, target: Branch, source: Branch, vector: Vector) -> int:
        """Remember what the target knows after a merge."""
        ...

    def add_vectors(self, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors for texts that waited for them."""
        ...

    def change_embedder(self, name: str) -> None:
        """Throw vectors of another embedder away, and queue every text for a new one."""
        ...

    def receive(self, events: Sequence[Event]) -> None:
        """Take over whole transactions of another log; its first event replaces a new log's own.

        Raises:
            ImportRefused: They do not continue this log.
        """
        ...

    def remember(self, requests: Sequence[Remembered]) -> None:
        """Take over results of requests; those that are known are left as they are."""
        ...

    def set_setting(self, name: str, value: Any) -> None:
        """Keep a setting of the database."""
        ...


class Store(Protocol):
    """A database of events.

    `kinds` are the kinds of record it holds, `location` is where it is, for messages and for
    files that belong beside it. `read_only`: writes are refused. `remote`: look-ups go over a
    network, so an event loop must not wait for them.
    """

    kinds: Kinds
    location: str
    read_only: bool
    remote: bool

    def now(self) -> int:
        """Return the time, in microseconds since 1970."""
        ...

    def look_at_clock(self) -> None:
        """Warn in the log of this process where the clock has jumped, as every write does."""
        ...

    def reader(self) -> Reader:
        """Return a reader that sees the newest state with each call; for single look-ups."""
        ...

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Return a reader that keeps seeing one state, for reads that belong together."""
        ...

    def write(self, work: Callable[[Transaction], T], request: Request) -> T:
        """Run work in a transaction, commit it durably, and return its result.

        Concurrent calls may share one commit. A repeated request id returns the first
        result and writes nothing; the work must then return plain JSON.

        Raises:
            RequestReused: The request id was used before with other arguments.
            ReadOnly: The store was opened for reading only.
        """
        ...

    def log(self, after: int = 0) -> Iterator[Event]:
        """Return every event after a sequence, in pages that hold no transaction open."""
        ...

    def rebuild(self, progress: Progress) -> None:
        """Make every read model anew from the log."""
        ...

    def repair(self, progress: Progress) -> None:
        """Make everything that `examine` calls repairable anew, from the log.

        Raises:
            DatabaseCorrupt: The log itself is damaged.
        """
        ...

    def examine(self, progress: Progress, expect: tuple[int, str] | None) -> list[Finding]:
        """Check the chain, the read models and the index against the log."""
        ...

    def purge(
        self,
        request: Request,
        *,
        space: Space,
        key: str | None,
        sequence: int | None,
        sequences: Sequence[int] = (),
    ) -> Erased:
        """Erase a record's or an event's content for good, with what records of calls quote of it.

        `sequences` are many events at once: the read models are made anew only once, and nothing
        else is looked through.
        """
        ...

    def discard(self) -> None:
        """Remove the whole log for good, and close; only an unfinished copy is ever discarded."""
        ...

    def follow(self, heard: Callable[[int], None]) -> Callable[[], None]:
        """Call with the head's sequence after commits of any process; return how to stop.

        Several commits may be told as one. It is called in a thread of the store's own.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
