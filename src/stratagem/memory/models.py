"""What memory answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult

__all__ = [
    "Activity",
    "ActivityBucket",
    "BranchGraph",
    "BranchInfo",
    "BranchMerge",
    "Branches",
    "Change",
    "Conflict",
    "Diff",
    "Entry",
    "EntryList",
    "EventList",
    "FacetCount",
    "Facets",
    "Forgotten",
    "History",
    "Hit",
    "Instruction",
    "Logged",
    "LoggedEvent",
    "MergeResult",
    "Miss",
    "NamespaceDeleted",
    "NamespaceInfo",
    "NamespaceList",
    "NamespaceRestored",
    "Purged",
    "Reply",
    "SearchResults",
    "SessionInfo",
    "SessionList",
    "Status",
    "Stored",
    "StoredMany",
    "TagInfo",
    "TagList",
    "TimeRange",
    "VersionInfo",
    "WhyFound",
]

Mode = Literal["hybrid", "lexical"]
# Whose memory has something, where two are read together.
Owner = Literal["project", "personal"]
Lowered = Literal["unanswered", "repeated"]


@dataclass(slots=True, repr=False)
class Stored(DisplayableResult):
    """An entry was written; `branch` is where, unless that is the default one."""

    key: str
    version: int
    timestamp: str
    namespace: str
    status: Literal["created", "updated"]
    expires: str | None = None
    branch: str | None = None


@dataclass(slots=True, repr=False)
class StoredMany(DisplayableResult):
    """Several entries were written at once."""

    results: list[Stored]
    version: int
    timestamp: str


@dataclass(slots=True, repr=False)
class Entry(DisplayableResult):
    """A value under a key, as some view shows it; `actor` is who wrote it.

    `source` says where it came from, where it was not written by a caller; `trust` is "untrusted"
    until a person has looked at it. `owner` says whose memory has it, where two are read together.
    `imported` says what it was in the tool that it was imported from, and `occurred` when it was
    written or said there.
    """

    key: str
    value: Any
    version: int
    timestamp: str
    namespace: str
    tags: list[str]
    expires: str | None = None
    actor: str | None = None
    source: str | None = None
    trust: str | None = None
    owner: Owner | None = None
    imported: dict[str, Any] | None = None
    occurred: str | None = None


@dataclass(slots=True, repr=False)
class EntryList(DisplayableResult):
    """A page of entries. All pages of a list show the state that the first one showed.

    `anchor` says which state that is: the cursors of the list begin with it. Of an empty list,
    `near` are keys that begin nearly so, `elsewhere` namespaces that have such entries, and
    `near_tags` tags in use, those first that are like the ones asked for.
    """

    results: list[Entry]
    truncated: bool
    next: str | None
    anchor: str = ""
    near: list[str] | None = None
    elsewhere: list[str] | None = None
    near_tags: list[str] | None = None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> Entry:
        return self.results[place]


@dataclass(slots=True, repr=False)
class Miss(DisplayableResult):
    """Why nothing was found under a key, and what may have been meant.

    `near` are keys of the same namespace, `elsewhere` namespaces that have the key. `timestamp` is
    when it was forgotten or stored (an erased version, too), or expired, and `before` a moment at
    which it was there. Of a `path` that leads nowhere, `place` is how far it leads, and `there`
    what is there. `id_of` is the kind of record that has the key as its id: a concept or an
    incident, which is no entry. `latest_sequence` is where the log ends, of a key that names an
    event beyond (`@123`). Of one that is a number of the log, `event` is the label of the logged
    event with it, and `version_of` the key of the entry of which it is a version, with
    `version_namespace` if that is in another namespace. `branches` are others that show such a key
    where this one never did: `default`, then the newest.
    """

    key: str
    namespace: str
    reason: Literal["absent", "forgotten", "erased", "expired", "later", "path", "found"]
    near: list[str] | None = None
    elsewhere: list[str] | None = None
    branches: list[str] | None = None
    timestamp: str | None = None
    before: str | None = None
    path: str | None = None
    place: str | None = None
    there: str | None = None
    id_of: Literal["concept", "incident"] | None = None
    latest_sequence: int | None = None
    event: str | None = None
    version_of: str | None = None
    version_namespace: str | None = None


@dataclass(slots=True, repr=False)
class LoggedEvent(DisplayableResult):
    """Something that happened, as it was logged; `actor` is who logged it.

    `source`, `trust`, `owner` and `occurred` are as in an entry.
    """

    sequence: int
    event: str
    data: Any
    timestamp: str
    namespace: str
    tags: list[str]
    session: str | None = None
    actor: str | None = None
    source: str | None = None
    trust: str | None = None
    owner: Owner | None = None
    occurred: str | None = None


@dataclass(slots=True, repr=False)
class EventList(DisplayableResult):
    """A page of logged events, in the order of their sequences.

    Where no event has the label that was asked for, `near` are labels in use, the most alike first;
    where none is of the session, `near_sessions` are sessions of the latest events. Of an empty
    list, `elsewhere` are namespaces that have such events.
    """

    results: list[LoggedEvent]
    truncated: bool
    next: str | None
    near: list[str] | None = None
    near_sessions: list[str] | None = None
    elsewhere: list[str] | None = None

    def __iter__(self) -> Iterator[LoggedEvent]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> LoggedEvent:
        return self.results[place]


@dataclass(slots=True, repr=False)
class NamespaceInfo(DisplayableResult):
    """A namespace, and how much it holds; `latest` is when something was last written there."""

    name: str
    entries: int
    events: int
    latest: str | None = None


@dataclass(slots=True, repr=False)
class NamespaceList(DisplayableResult):
    """The namespaces that hold something. `current` is the caller's."""

    results: list[NamespaceInfo]
    current: str

    def __iter__(self) -> Iterator[NamespaceInfo]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> NamespaceInfo:
        return self.results[place]


@dataclass(slots=True, repr=False)
class NamespaceDeleted(DisplayableResult):
    """The entries of a namespace were forgotten together.

    `before` is the moment just before, for `as_of` and for restoring the namespace. `events` is how
    many logged events stay: what has happened cannot be forgotten. Where there were no entries,
    `near` are namespaces of similar names that have some.
    """

    namespace: str
    deleted: int
    events: int
    before: str | None = None
    version: int | None = None
    timestamp: str | None = None
    near: list[str] | None = None


@dataclass(slots=True, repr=False)
class NamespaceRestored(DisplayableResult):
    """The entries that a namespace had at a moment, and has no more, were stored again.

    `kept` is how many were left as they are, because something is stored under their keys now.
    Where there were none, `near` are namespaces of similar names that had some.
    """

    namespace: str
    restored: int
    kept: int
    version: int | None = None
    timestamp: str | None = None
    near: list[str] | None = None


@dataclass(slots=True, repr=False)
class TagInfo(DisplayableResult):
    """A tag, and how many entries and logged events have it."""

    tag: str
    count: int


@dataclass(slots=True, repr=False)
class TagList(DisplayableResult):
    """The tags in use, the most frequent first."""

    results: list[TagInfo]
    truncated: bool = False

    def __iter__(self) -> Iterator[TagInfo]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> TagInfo:
        return self.results[place]


@dataclass(slots=True, repr=False)
class Hit(DisplayableResult):
    """Something a search found. Entries have a key, logged events a sequence and a label.

    `score` says how well it matches by itself, from 0 to 1. `passage` is the part of a long value
    that matches best; `passage_at` is where it begins, which a recall (`get_concept` of a concept)
    takes as its `cursor`, and `chars` how long the whole is. A message of a user has its `reply`,
    one of an assistant what it is a `reply_to`. A concept or an incident has its id as `key`, and a
    `name`. `source`, `trust`, `owner` and `occurred` are as in an entry. `lowered` says why a
    message of a user comes after all other hits: it only asks and nobody answered, or it was said
    again in the same words. `why` is there where a search was asked to explain itself.
    """

    kind: Literal["entry", "event", "concept", "incident"]
    value: Any
    score: float
    snippet: str
    namespace: str
    version: int
    timestamp: str
    tags: list[str]
    key: str | None = None
    event: str | None = None
    sequence: int | None = None
    session: str | None = None
    actor: str | None = None
    passage: str | None = None
    passage_at: int | None = None
    chars: int | None = None
    expires: str | None = None
    reply: Reply | None = None
    reply_to: Reply | None = None
    name: str | None = None
    contested_by: list[str] | None = None
    source: str | None = None
    trust: str | None = None
    owner: Owner | None = None
    occurred: str | None = None
    lowered: Lowered | None = None
    why: WhyFound | None = None


@dataclass(slots=True, repr=False)
class WhyFound(DisplayableResult):
    """Why a search found something: its words, its meaning, or both.

    `matched` are the words of the query, as stems, that it has, and `unmatched` those it has not.
    `words` is how much of the query those words cover, each by how rare it is; `meaning` how alike
    the two are by meaning. Both are from 0 to 1, and the score is made of them: one is enough.
    """

    words: float
    meaning: float
    matched: list[str]
    unmatched: list[str]


@dataclass(slots=True, repr=False)
class Reply(DisplayableResult):
    """The other message of an exchange, by what of it matches best, or by its beginning.

    An answer to a model leaves the `passage` out where it shows the message as a hit of its own.
    `chars` is how long the message is, as a recall counts, where the passage is only a part.
    `source` and `trust` are as in an entry.
    """

    sequence: int
    passage: str | None = None
    source: str | None = None
    trust: str | None = None
    chars: int | None = None


@dataclass(slots=True, repr=False)
class SearchResults(DisplayableResult):
    """What a search found, best first. `mode` says whether meaning was searched, or words only.

    `branch` is the one that was searched, `namespace` the caller's. `ended_at` is how many hits
    there are, where the cursor was past the last of them.
    """

    results: list[Hit]
    truncated: bool
    next: str | None
    mode: Mode
    branch: str = ""
    namespace: str = ""
    note: str | None = None
    ended_at: int | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> Hit:
        return self.results[place]


@dataclass(slots=True, repr=False)
class Forgotten(DisplayableResult):
    """Whether anything was there to forget; `missing` are keys under which nothing was.

    `misses` say what may have been meant by the first of these, where that can be told.
    """

    deleted: bool
    keys: list[str] = field(default_factory=list)
    missing: list[str] | None = None
    misses: list[Miss] | None = None
    version: int | None = None
    timestamp: str | None = None
    branch: str | None = None


@dataclass(slots=True, repr=False)
class Purged(DisplayableResult):
    """Something was erased for good.

    `copies` counts the records of calls, by kind, that quoted it and lost their content with it;
    `elsewhere` those of callers' own that hold the same text and were left. `pending`: somebody was
    reading, or the disk is full, so that the file still holds the bytes.
    """

    erased: int
    copies: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)
    pending: bool = False
    note: str = ""


@dataclass(slots=True, repr=False)
class Logged(DisplayableResult):
    """An event was appended; `branch` is where, unless that is the default one."""

    sequence: int
    timestamp: str
    branch: str | None = None


@dataclass(slots=True, repr=False)
class VersionInfo(DisplayableResult):
    """One version of an entry; a forgotten one has no value.

    `erased`: it had one, which retention has erased; `deleted` is true of it, too. `source` and
    `trust` are as in an entry.
    """

    value: Any
    version: int
    timestamp: str
    tags: list[str]
    deleted: bool = False
    expires: str | None = None
    actor: str | None = None
    erased: bool | None = None
    source: str | None = None
    trust: str | None = None


@dataclass(slots=True, repr=False)
class History(DisplayableResult):
    """The versions of an entry, newest first."""

    results: list[VersionInfo]
    truncated: bool
    next: str | None

    def __iter__(self) -> Iterator[VersionInfo]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> VersionInfo:
        return self.results[place]


@dataclass(slots=True, repr=False)
class TimeRange(DisplayableResult):
    """The moments for which a branch has something to show."""

    oldest: str | None
    latest: str | None
    branch: str
    oldest_sequence: int | None = None
    latest_sequence: int | None = None


@dataclass(slots=True, repr=False)
class Instruction(DisplayableResult):
    """A standing instruction or preference; it stands in an entry or in a logged event.

    `owner` is there where it is the person's own, beside those of a project.
    """

    text: str
    version: int
    timestamp: str
    key: str | None = None
    sequence: int | None = None
    actor: str | None = None
    owner: Owner | None = None


@dataclass(slots=True, repr=False)
class Status(DisplayableResult):
    """The state of the database as this client sees it."""

    version: str
    branch: str
    namespace: str
    auto_embed: bool
    branches: int
    keys: int
    events: int
    namespaces: list[str]
    head: str
    database: str
    embedder: str
    unembedded: int
    durability: str
    read_only: bool
    clock_ahead_seconds: float | None = None
    clock_ahead_since: int | None = None
    clock_warning: str | None = None
    note: str | None = None
    instructions: list[Instruction] = field(default_factory=list)
    instructions_more: bool | None = None


@dataclass(slots=True, repr=False)
class BranchInfo(DisplayableResult):
    """A branch; `note` says what else was done with it."""

    name: str
    current: bool
    created: str
    parent: str | None = None
    forked_at: int | None = None
    deleted: bool | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class Branches(DisplayableResult):
    """All branches that are not deleted."""

    results: list[BranchInfo]
    current: str

    def __iter__(self) -> Iterator[BranchInfo]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> BranchInfo:
        return self.results[place]


@dataclass(slots=True, repr=False)
class Change(DisplayableResult):
    """A record that was added, removed or changed.

    In a diff `side` says which branch changed it since the common base: "theirs" is the compared
    one, "ours" the other, and `before` and `after` are the values before and after that change. If
    "both" changed it, `before` is ours and `after` theirs, and `changed_by` says which branch
    changed each place that differs: "$" is the value of an entry, "$.a" a field of that or of
    another record, "tags" and "expires" stand beside the value.

    `differs` names what differs where there is something before and after: "value", "tags",
    "expires". `expires_before` and `expires_after` are there where that differs, or where something
    was added or removed that expires; a side that never expires has none. A record that is no entry
    has a `kind`, and a `title` to be called by.
    """

    key: str
    namespace: str
    change: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None
    side: Literal["ours", "theirs", "both"] | None = None
    changed_by: dict[str, Literal["ours", "theirs", "both"]] | None = None
    differs: list[str] | None = None
    expires_before: str | None = None
    expires_after: str | None = None
    tags_before: list[str] | None = None
    tags_after: list[str] | None = None
    kind: str | None = None
    title: str | None = None


@dataclass(slots=True, repr=False)
class Diff(DisplayableResult):
    """How another branch differs from this one.

    `added`, `removed` and `changed` count the changes of the other branch since the common base,
    which a merge would bring; `ours` counts those of this branch alone, and `both` the records that
    both changed. `events` counts the logged events that a merge would bring, `ours_events` those
    that only this one has. `note` says that one of them did not exist yet at that moment.
    """

    branch: str
    compare: str
    added: int
    removed: int
    changed: int
    ours: int
    both: int
    events: int
    ours_events: int
    results: list[Change]
    note: str | None = None


@dataclass(slots=True, repr=False)
class Conflict(DisplayableResult):
    """A place that both branches changed. `id` is what a decision is given for.

    A decision for the key, or for the id without its place, is one for all places of the record.
    A record that is no entry has a `kind`, and a `title` to be called by.
    """

    id: str
    key: str
    namespace: str
    path: str
    base: Any = None
    ours: Any = None
    theirs: Any = None
    kind: str | None = None
    title: str | None = None


@dataclass(slots=True, repr=False)
class MergeResult(DisplayableResult):
    """What a merge did, or would do.

    `notices` describe effects of the merge that neither branch has by itself, and what to do about
    them.
    """

    source: str
    target: str
    merged: int
    events: int
    resolved: int
    preview: bool
    results: list[Change]
    conflicts: list[Conflict]
    version: int | None = None
    notices: list[str] | None = None


@dataclass(slots=True, repr=False)
class ActivityBucket(DisplayableResult):
    """How many events were written from `start` up to the next bucket.

    `version` is the last of them, or the last one before.
    """

    start: str
    events: int
    version: int


@dataclass(slots=True, repr=False)
class Activity(DisplayableResult):
    """How much was written when, on all branches, in buckets of equal length.

    `events` counts those of the whole log, up to its `head`.
    """

    results: list[ActivityBucket]
    events: int
    head: int
    oldest: str | None = None
    latest: str | None = None


@dataclass(slots=True, repr=False)
class SessionInfo(DisplayableResult):
    """A conversation: how many events it has, among those that were looked at, and from when.

    `title` is the beginning of what was said first, as far as was looked back. What is not trusted
    gives none: the title is empty where nothing else was said.
    """

    session: str
    namespace: str
    events: int
    first: str
    latest: str
    actors: list[str]
    title: str = ""


@dataclass(slots=True, repr=False)
class SessionList(DisplayableResult):
    """The conversations among the latest logged events, the latest first.

    `events` is how many events were looked at; `truncated`: there are older ones, before the
    sequence `next`.
    """

    results: list[SessionInfo]
    events: int
    truncated: bool = False
    next: str | None = None


@dataclass(slots=True, repr=False)
class FacetCount(DisplayableResult):
    """A value of a facet, and how many entries have it."""

    name: str
    count: int


@dataclass(slots=True, repr=False)
class Facets(DisplayableResult):
    """By whom, of which kind and on which day entries were written, the most frequent first.

    `entries` is how many were counted: the newest, where `truncated`.
    """

    authors: list[FacetCount]
    kinds: list[FacetCount]
    days: list[FacetCount]
    entries: int
    truncated: bool = False


@dataclass(slots=True, repr=False)
class BranchMerge(DisplayableResult):
    """That one branch was merged into another, at a sequence."""

    source: str
    target: str
    sequence: int
    timestamp: str
    actor: str = ""


@dataclass(slots=True, repr=False)
class BranchGraph(DisplayableResult):
    """How the branches came from each other, deleted ones too, and the latest merges of them.

    `head` is the end of the log, which every branch that is live reaches to.
    """

    results: list[BranchInfo]
    merges: list[BranchMerge]
    head: int
    current: str
