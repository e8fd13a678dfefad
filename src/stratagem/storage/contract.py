"""The ports of a store: what each must do, whatever database it stores its events in.

A `Reader` sees one consistent state of the log; a `Transaction` is a reader that can also append.
Both are sets of small ports (`reader.records`, `transaction.outbox`), so that a function can say
which part of a store it depends on. `tests/contracts` holds the suite that each store passes.
Systems are written over these ports and never learn which store is below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.ancestry import Vector
from stratagem.engine.events import Draft, Event, Head, Space
from stratagem.engine.lineage import Branch, Cut, Lineage, View
from stratagem.engine.records import Kinds, Text
from stratagem.storage.catalogue import CatalogueReader
from stratagem.storage.listing import ListingReader
from stratagem.storage.outbox import OutboxReader, OutboxWriter

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "PURGED_AT",
    "Appended",
    "BranchReader",
    "BranchWriter",
    "ChangeReader",
    "Erased",
    "EventContent",
    "Finding",
    "IndexedText",
    "Indexer",
    "LogReader",
    "Progress",
    "Reader",
    "Record",
    "RecordReader",
    "RequestReader",
    "RequestResult",
    "RequestWriter",
    "ScoredPassage",
    "ScoredPassages",
    "ScoredVersion",
    "SearchReader",
    "SettingReader",
    "SettingWriter",
    "Store",
    "StreamEvent",
    "TextTraits",
    "Transaction",
    "VectorComparer",
    "VectorReader",
    "VectorRow",
    "VectorWriter",
    "Version",
    "VersionSpan",
    "WriteCounters",
    "WriteRequest",
]

# The setting with the sequence of the last purge. Caches filled before it may hold a copy of the
# purged content, and are not used any more.
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


class EventContent(NamedTuple):
    """The content of an event, and its subject."""

    sequence: int
    at: int
    kind: str
    space: Space
    key: str | None
    payload: bytes
    actor: str = ""


class ScoredVersion(NamedTuple):
    """A version that a search found, and how well it matched: higher is better."""

    sequence: int
    score: float


# A passage that a search found, by the sequence of its text and its number, and how well it
# matched: higher is better. There are thousands of them, so they are plain tuples.
ScoredPassage = tuple[int, int, float]


class ScoredPassages(NamedTuple):
    """The same in columns: the sequences of texts, the numbers of their passages, and scores."""

    sequences: NDArray[np.int64]
    numbers: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def from_rows(cls, rows: Sequence[ScoredPassage]) -> ScoredPassages:
        """Return the columns of some rows."""
        # As one list of numbers, five times as fast as by rows; whole ones are exact up to 2^53.
        table = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows)).reshape(-1, 3).T
        sequences, numbers = table[:2].astype(np.int64)
        return cls(sequences, numbers, np.ascontiguousarray(table[2]))


# How many characters a text has, and whether it has a facet. None: how long it is says nothing.
TextTraits: TypeAlias = tuple[int | None, bool]


class VectorRow(NamedTuple):
    """A vector, and what a filter needs to know of its version."""

    id: int
    sequence: int
    branch: int
    space: int
    sequence_to: int | None
    vector: bytes
    # How long the vector was, where it was given the length one.
    norm: float


class VersionSpan(NamedTuple):
    """A version, its branch, and the version that superseded it there."""

    sequence: int
    branch: int
    sequence_to: int | None


class Appended(NamedTuple):
    """Where a draft landed, and which visible version it replaced, if any."""

    sequence: int
    at: int
    before: int | None


class IndexedText(NamedTuple):
    """An analysed text: the terms of each field, joined by spaces, and its vector.

    `passages` are the parts of its body, at most `limits.PASSAGES_MAX`; each is found by itself,
    together with title and context.
    """

    title: str
    passages: Sequence[str]
    context: str
    vector: bytes | None


class WriteRequest(NamedTuple):
    """Who writes, and the id under which a repeat of the write is recognised.

    `subjects` are records that the work is expected to write, each with its space and key. A store
    on a server asks for those of all waiting writers at once. The work may write others. `check`
    refuses events that the database is not to hold.
    """

    actor: str
    id: str | None = None
    fingerprint: bytes = b""
    subjects: Sequence[tuple[Space, str]] = ()
    check: Callable[[Sequence[Draft]], None] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something `doctor` found wrong, in words, and whether `--repair` repairs it.

    `part` is what is damaged: the log, what is made from it (read models, indexes), or the file
    that holds both.
    """

    what: str
    where: str
    repairable: bool
    part: Literal["log", "derived", "file"] = "log"


class RequestResult(NamedTuple):
    """The result of a request, stored to answer a repeat of it. It is JSON; None once purged.

    `first` and `last` are the sequences that the request wrote.
    """

    actor: str
    request: str
    fingerprint: bytes
    result: bytes | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What a purge has erased, and what it left.

    `events` is the number of named events that lost their content. `copies` counts the records, by
    kind, that lost theirs because they quoted it, `results` the stored results of requests that
    did. `elsewhere` counts, by kind, the records written by callers that contain the same text:
    they are kept. `pending`: somebody was reading meanwhile, or the disk is full, so the file still
    holds the bytes.
    """

    events: int = 0
    copies: Mapping[str, int] = field(default_factory=dict)
    results: int = 0
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    pending: bool = False

    @property
    def note(self) -> str:
        """What is left, in words."""
        note = "Backups and exports made earlier are not changed."
        if self.pending:
            note += (
                " The file still holds what was erased, because somebody was reading it or the "
                "disk is full: strata_db_compact clears it afterwards."
            )
        return note


class WriteCounters(NamedTuple):
    """What a process has written: pieces of work, commits for them, and how many failed."""

    writes: int
    commits: int
    failed: int


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
    ) -> list[IndexedText]:
        """Return the documents of texts, each given with its context, nearest first.

        A document without a vector waits for one: embedding is off, or not ready yet.
        """
        ...


class LogReader(Protocol):
    """The events of the log: which there are, when each was written, and what it says."""

    def head(self) -> Head:
        """Return the newest event's sequence, time and hash."""
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
        """Return the clock time at which an event was written."""
        ...

    def sequence_ahead(self, wall: int) -> int | None:
        """Return the last event up to a clock time, among those recorded later than that.

        There are none unless the recorded time of the log ran ahead of the clock.
        """
        ...

    def hash_of(self, sequence: int) -> bytes | None:
        """Return the hash of an event."""
        ...

    def branch_of(self, sequence: int) -> int:
        """Return the branch an event was written to."""
        ...

    def span(self, lineage: Lineage, spaces: Sequence[int] | None = None) -> tuple[Cut, Cut] | None:
        """Return sequence and time of the first and last event of a view, in some spaces or all."""
        ...

    def versions(self, sequences: Sequence[int]) -> dict[int, Version]:
        """Return the versions at some sequences.

        Raises:
            DatabaseCorrupt: One of them is missing, or is not what was written.
        """
        ...

    def payloads(self, names: Mapping[int, tuple[Space, str]]) -> dict[int, bytes | None]:
        """Return the payloads at some sequences, given with their subjects; None for a purged one.

        Raises:
            DatabaseCorrupt: One of them is missing, or is not what was written.
        """
        ...

    def contents(self, sequences: Sequence[int]) -> dict[int, EventContent]:
        """Return the contents of some events with their subjects.

        Raises:
            DatabaseCorrupt: One of them is missing, or is not what was written.
        """
        ...


class BranchReader(Protocol):
    """The branches, and what each can see and knows of the others."""

    def by_name(self, name: str) -> Branch | None:
        """Return the live branch of that name."""
        ...

    def by_id(self, branch: int) -> Branch:
        """Return a branch, deleted or not."""
        ...

    def deleted_by_name(self, name: str) -> Branch | None:
        """Return the branch of that name that was deleted last."""
        ...

    def all(self) -> list[Branch]:
        """Return all branches but those of transactions, oldest first, deleted ones too."""
        ...

    def transactions(self) -> list[Branch]:
        """Return the branches of open transactions (`storage.open_transactions`)."""
        ...

    def transaction_versions(self) -> list[tuple[int, int]]:
        """Return the versions written in ended transactions, each with the sequence of that end.

        Such a version is never visible again; a commit writes versions of its own.
        """
        ...

    def live_count(self) -> int:
        """Return how many branches are live, those of transactions left out."""
        ...

    def lineage(self, branch: Branch, limit: int = ...) -> Lineage:
        """Return the lineage of a view of a branch, nearest first."""
        ...

    def knowledge(self, branch: int, sequence: int) -> Vector:
        """Return the knowledge of a branch at a sequence (`engine.ancestry`)."""
        ...

    def merges(self, limit: int) -> list[tuple[int, int]]:
        """Return the target and the sequence of the latest merges, newest first."""
        ...


class BranchWriter(BranchReader, Protocol):
    """The branches of a transaction, which can also change."""

    def create(self, name: str, *, parent: Branch | None, fork_sequence: int) -> Branch:
        """Start a branch: empty, or from a moment of its parent."""
        ...

    def delete(self, branch: Branch) -> None:
        """Hide a branch; its children keep what they borrowed."""
        ...

    def restore(self, branch: Branch) -> None:
        """Bring a deleted branch back."""
        ...

    def record_merge(self, target: Branch, source: Branch, vector: Vector) -> int:
        """Record what the target knows after a merge; return the sequence of that event."""
        ...


class RecordReader(Protocol):
    """Records by space and key, in any view."""

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        """Return the newest version of a record, or None where it is absent or deleted."""
        ...

    def current_many(self, lineage: Lineage, subjects: Sequence[int]) -> dict[int, Record]:
        """Return the records of some subjects, leaving out those that are absent or deleted."""
        ...

    def history(
        self, lineage: Lineage, space: Space, key: str, *, before: int, limit: int
    ) -> list[Version]:
        """Return a record's versions, deletions too, newest first, older than `before`."""
        ...

    def versions_in(
        self, lineage: Lineage, space: Space, *, before: int, limit: int
    ) -> list[tuple[str, Version]]:
        """Return the versions of all records of a space, deleted ones too, each with its key."""
        ...

    def page(
        self, lineage: Lineage, space: Space, *, after: str = "", limit: int = 1000
    ) -> tuple[list[tuple[str, Version]], str | None]:
        """Return a page of a space's records by key, and where the next page begins."""
        ...

    def stream(
        self, lineage: Lineage, space: Space, *, after: int = 0, limit: int = 1000
    ) -> list[Version]:
        """Return a page of a space's events that stand for themselves, oldest first."""
        ...

    def count(self, view: View, kind: str) -> int:
        """Return how many live records of a kind a view shows."""
        ...

    def visible_among(self, view: View, sequences: Sequence[int]) -> set[int]:
        """Return which of some versions a view shows."""
        ...

    def any_expires(self) -> bool:
        """Whether any version has a time at which it expires."""
        ...

    def spaces(self, kind: str | None = None) -> dict[int, Space]:
        """Return the spaces in use, by number."""
        ...

    def subjects(self, space: Space, keys: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the subjects with some keys, leaving out unknown ones."""
        ...

    def names(self, subjects: Sequence[int]) -> dict[int, tuple[Space, str]]:
        """Return the space and key of some subjects."""
        ...

    def keys(self, subjects: Sequence[int]) -> dict[int, str]:
        """Return the keys of some subjects."""
        ...


class VersionOrigin(NamedTuple):
    """Where a version was written, when it expires, and the version that a merge took it from."""

    sequence: int
    branch: int
    expires_at: int | None
    origin: int | None


# Which version of a subject a view shows, before its content is read: its sequence, whether it is a
# deletion and when it expires. All None where the view never had the subject.
ShownVersion: TypeAlias = tuple[int | None, bool | None, int | None]
# A subject, the number of its space, the version that one view shows, and that of another one. They
# come by the hundred thousand, and are left as the store gives them.
ComparedSubject: TypeAlias = tuple[
    int, int, int | None, bool | None, int | None, int | None, bool | None, int | None
]


class ChangeReader(Protocol):
    """What branches changed: the raw material of a diff or a merge."""

    def compared_subjects(self, cut: Cut, after: int, other: Lineage) -> list[ComparedSubject]:
        """Return the subjects a branch changed after a sequence, beside what another view shows."""
        ...

    def shown_versions(
        self, lineage: Lineage, subjects: Sequence[int]
    ) -> dict[int, tuple[int, ShownVersion]]:
        """Return the versions that a view shows of some subjects, each after its space."""
        ...

    def subjects(self, cut: Cut, after: int) -> list[int]:
        """Return the subjects a branch changed after a sequence, up to its cut."""
        ...

    def expired_subjects(self, after: int, upto: int) -> list[int]:
        """Return the subjects of which a version expires after one time and up to another."""
        ...

    def last_expiry(self, time: int) -> int | None:
        """Return when the version that expired last before a time, or at it, did so."""
        ...

    def stream_events(self, cut: Cut, after: int) -> list[StreamEvent]:
        """Return the events standing for themselves that a branch gained after a sequence."""
        ...

    def known_versions(self, subjects: Sequence[int], vector: Vector) -> dict[int, list[Cut]]:
        """Return each subject's newest version on each branch that a vector knows."""
        ...

    def doubtful_versions(
        self, sequences: Sequence[int], known: Vector, covering: Vector
    ) -> set[int]:
        """Return those of some versions that others may supersede.

        They are not within `covering`, or `known` has a later version of their subject.
        """
        ...

    def versions_of(self, subject: int) -> list[VersionOrigin]:
        """Return all versions of a subject, on every branch, oldest first."""
        ...


class SearchReader(Protocol):
    """The full-text index."""

    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int | None,
    ) -> list[ScoredPassage]:
        """Return the best passages for a match expression, best first, among those a view shows.

        Without a limit all of them, in any order.
        """
        ...

    def passages(
        self,
        expression: str,
        *,
        weights: tuple[float, float, float],
        limit: int | None,
        expected: int = 0,
    ) -> ScoredPassages:
        """Return the best passages for a match expression, whichever view shows them, best first.

        Without a limit all of them, in any order. `expected` is at most how many match, as far as
        the caller knows: where they are many, they are not all held in memory.
        """
        ...

    def shown_traits(
        self,
        view: View,
        sequences: Sequence[int],
        facet: str,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
    ) -> dict[int, TextTraits]:
        """Return what is known of those of some texts that a search in a view may find."""
        ...

    def versions_with_facet(self, facet: str, limit: int) -> list[int]:
        """Return versions that have a facet, whichever view shows them; at most `limit`."""
        ...

    def turns(
        self,
        lineage: Lineage,
        space: Space,
        session: str,
        sequence: int,
        *,
        before: int,
        after: int,
    ) -> list[int]:
        """Return the messages of a session nearest to one of them, in order, without it."""
        ...

    def tagged_versions(self, tags: Sequence[str]) -> NDArray[np.int64]:
        """Return the versions that carry every one of some tags."""
        ...

    def numbered_versions(
        self, space: int, name: str, least: float, most: float
    ) -> NDArray[np.int64]:
        """Return the versions of a space one of whose numbers lies between two, both included."""
        ...

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Return in how many passages each of some terms occurs."""
        ...

    def text_count(self) -> int:
        """Return about how many passages the index holds."""
        ...

    def unindexed_count(self) -> int:
        """Return how many texts the last commits have left, which no search finds yet."""
        ...


class VectorReader(Protocol):
    """The vectors of texts, and the queue of texts that wait for one."""

    def after(self, last: int, limit: int) -> list[VectorRow]:
        """Return vectors in the order of their commits, after one of them."""
        ...

    def superseded_after(self, sequence: int) -> list[tuple[int, int]]:
        """Return the versions superseded after a sequence, and by which."""
        ...

    def count(self) -> int:
        """Return how many vectors are stored."""
        ...

    def last(self) -> int | None:
        """Return the number of the newest vector."""
        ...

    def in_space(self, space: int, after: int, limit: int) -> list[VersionSpan]:
        """Return the versions of a space that are no deletions, after a sequence, in order."""
        ...

    def pending(self, limit: int) -> list[int]:
        """Return texts that wait for a vector, newest first."""
        ...

    def pending_count(self) -> int:
        """Return how many texts wait for a vector."""
        ...


class VectorWriter(VectorReader, Protocol):
    """The vectors of a transaction, which can also change."""

    def add(self, vectors: Mapping[int, bytes]) -> None:
        """Store vectors for texts that waited for them."""
        ...

    def change_embedder(self, name: str) -> None:
        """Delete the vectors of another embedder, and queue every text for a new one."""
        ...


class VectorComparer(Protocol):
    """Compares vectors in the store itself, among what a view shows.

    A query's vector has the form of a stored one: 32-bit numbers, one after the other.
    """

    def nearest(
        self,
        view: View,
        query: bytes,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> list[ScoredVersion]:
        """Return the versions that a view shows whose vectors are nearest, nearest first."""
        ...

    def compare(
        self,
        view: View,
        query: bytes,
        known: Sequence[int],
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> tuple[list[ScoredVersion], dict[int, float]]:
        """Return the same, and how near some of the versions are that the view shows."""
        ...

    def nearest_own(
        self,
        view: View,
        query: bytes,
        *,
        space: int,
        metric: str,
        among: Sequence[int] | None,
        depth: int,
    ) -> list[ScoredVersion]:
        """Return the vectors of callers' own in a space that are nearest, nearest first.

        `metric`: "cosine", "euclidean" (the score is minus the distance) or "dot". `among` are the
        only versions that count, where given.
        """
        ...

    def cosines(self, sequences: Sequence[int], query: bytes) -> dict[int, float]:
        """Return how near some versions are, leaving out those that have no vector."""
        ...


class SettingReader(Protocol):
    """The settings of the database."""

    def text(self, name: str) -> str | None:
        """Return a setting that is a text, or None where it is not set."""
        ...

    def number(self, name: str) -> int | None:
        """Return a setting that is a number, or None where it is not set."""
        ...


class SettingWriter(SettingReader, Protocol):
    """The settings of a transaction, which can also change."""

    def set(self, name: str, value: str | int | None) -> None:
        """Store a setting."""
        ...


class RequestReader(Protocol):
    """The results of requests, by which a repeated request is recognised."""

    def after(self, key: tuple[str, str], limit: int) -> list[RequestResult]:
        """Return results by actor and request id, after one of them."""
        ...


class RequestWriter(RequestReader, Protocol):
    """The results of requests, in a transaction."""

    def add(self, results: Sequence[RequestResult]) -> None:
        """Take over results of another log; those that are known already stay as they are."""
        ...


class Reader(Protocol):
    """One consistent state of the log, as a set of small readers over it.

    A function takes the whole reader only where it needs several of them.
    """

    @property
    def kinds(self) -> Kinds:
        """The kinds of record this database holds."""
        ...

    @property
    def log(self) -> LogReader:
        """The events."""
        ...

    @property
    def branches(self) -> BranchReader:
        """The branches."""
        ...

    @property
    def records(self) -> RecordReader:
        """Records by space and key."""
        ...

    @property
    def catalogue(self) -> CatalogueReader:
        """Records by what they are."""
        ...

    @property
    def listing(self) -> ListingReader:
        """Records one after the other."""
        ...

    @property
    def changes(self) -> ChangeReader:
        """What branches changed."""
        ...

    @property
    def search(self) -> SearchReader:
        """The full-text index."""
        ...

    @property
    def vectors(self) -> VectorReader:
        """The vectors of texts."""
        ...

    @property
    def vector_comparer(self) -> VectorComparer | None:
        """Compares vectors in the store; None where it leaves that to its callers."""
        ...

    @property
    def outbox(self) -> OutboxReader:
        """What waits to be delivered to external read models."""
        ...

    @property
    def settings(self) -> SettingReader:
        """The settings of the database."""
        ...

    @property
    def requests(self) -> RequestReader:
        """The results of requests."""
        ...


class Transaction(Reader, Protocol):
    """A state of the log that can still grow; all of it is committed, or none."""

    @property
    def branches(self) -> BranchWriter:
        """The branches."""
        ...

    @property
    def vectors(self) -> VectorWriter:
        """The vectors of texts."""
        ...

    @property
    def outbox(self) -> OutboxWriter:
        """What waits to be delivered to external read models."""
        ...

    @property
    def settings(self) -> SettingWriter:
        """The settings of the database."""
        ...

    @property
    def requests(self) -> RequestWriter:
        """The results of requests."""
        ...

    @property
    def at(self) -> int:
        """The recorded time that every event of this transaction has."""
        ...

    @property
    def wall(self) -> int:
        """The clock time; every expiry is counted from it."""
        ...

    def append(self, branch: Branch, drafts: Sequence[Draft]) -> list[Appended]:
        """Add events to the tip of a branch, and bring every read model up to date."""
        ...

    def index_backlog(self) -> None:
        """Index the texts that earlier commits have left."""
        ...

    def receive(self, events: Sequence[Event]) -> None:
        """Take over whole transactions of another log; its first event replaces a new log's own.

        Raises:
            ImportRefused: They do not continue this log.
        """
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

    def write(self, work: Callable[[Transaction], T], request: WriteRequest) -> T:
        """Run work in a transaction, commit it durably, and return its result.

        Concurrent calls may share one commit. A repeated request id returns the first
        result and writes nothing; the work must then return plain JSON.

        Raises:
            RequestReused: The request id was used before with other arguments.
            ReadOnly: The store was opened for reading only.
        """
        ...

    def index_backlog(self, wait_seconds: float) -> None:
        """Index the texts that the last commits have left, unless others write for too long."""
        ...

    def log(self, after: int = 0) -> Iterator[Event]:
        """Return every event after a sequence, in pages that hold no transaction open."""
        ...

    def rebuild(self, progress: Progress) -> None:
        """Rebuild every read model from the log."""
        ...

    def repair(self, progress: Progress) -> None:
        """Rebuild from the log everything that `examine` calls repairable.

        Raises:
            DatabaseCorrupt: The log itself is damaged.
        """
        ...

    def examine(self, progress: Progress, expect: tuple[int, str] | None) -> list[Finding]:
        """Check the chain, the read models and the index against the log."""
        ...

    def purge(
        self,
        request: WriteRequest,
        *,
        space: Space,
        key: str | None,
        sequence: int | None,
        sequences: Sequence[int] = (),
        copies: bool = True,
    ) -> Erased:
        """Erase a record's or an event's content for good, with what records of calls quote of it.

        `sequences` are many events at once: the read models are rebuilt only once, and no copies
        are searched for. Without `copies`, versions that merges and commits made from them stay.
        """
        ...

    def purge_records(
        self,
        request: WriteRequest,
        records: Sequence[tuple[Space, str]],
        sequences: Sequence[int] = (),
    ) -> Erased:
        """Erase several records, and events that stand for themselves, for good and all at once.

        What records of calls quote of them goes too, as with `purge`.
        """
        ...

    def counters(self) -> WriteCounters:
        """Return what was written by this process since it opened the store."""
        ...

    def size(self) -> int | None:
        """Return how many bytes the store takes on its disk; None where that is not known."""
        ...

    def flush(self) -> None:
        """Bring everything that was acknowledged to its final place on the disk."""
        ...

    def compact(self) -> bool:
        """Return unused space to the file system; say whether all of it, and nothing holds it."""
        ...

    def discard(self) -> None:
        """Remove the whole log for good, and close; only an unfinished copy is ever discarded."""
        ...

    def follow(self, heard: Callable[[int], None]) -> Callable[[], None]:
        """Call with the head's sequence after commits of any process; return how to stop.

        Several commits may be reported as one. It is called in a thread of the store's own.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
