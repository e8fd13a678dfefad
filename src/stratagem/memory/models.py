"""What memory answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from stratagem.display import DisplayableResult

__all__ = [
    "BranchInfo",
    "Branches",
    "Change",
    "Conflict",
    "Diff",
    "Entry",
    "Forgotten",
    "History",
    "Hit",
    "Logged",
    "MergeResult",
    "Purged",
    "SearchResults",
    "Status",
    "Stored",
    "StoredMany",
    "TimeRange",
    "VersionInfo",
]

Mode = Literal["hybrid", "lexical"]


@dataclass(slots=True, repr=False)
class Stored(DisplayableResult):
    """An entry was written."""

    key: str
    version: int
    timestamp: str
    namespace: str
    status: Literal["created", "updated"]


@dataclass(slots=True, repr=False)
class StoredMany(DisplayableResult):
    """Several entries were written at once."""

    results: list[Stored]
    version: int
    timestamp: str


@dataclass(slots=True, repr=False)
class Entry(DisplayableResult):
    """A value under a key, as some view shows it; `actor` is who wrote it."""

    key: str
    value: Any
    version: int
    timestamp: str
    namespace: str
    tags: list[str]
    expires: str | None = None
    actor: str | None = None


@dataclass(slots=True, repr=False)
class Hit(DisplayableResult):
    """Something a search found. Entries have a key, logged events a sequence and a label."""

    kind: Literal["entry", "event"]
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


@dataclass(slots=True, repr=False)
class SearchResults(DisplayableResult):
    """What a search found, best first. `mode` says whether meaning was searched, or words only."""

    results: list[Hit]
    truncated: bool
    next: str | None
    mode: Mode
    note: str | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> Hit:
        return self.results[place]


@dataclass(slots=True, repr=False)
class Forgotten(DisplayableResult):
    """Whether anything was there to forget."""

    deleted: bool
    keys: list[str] = field(default_factory=list)
    version: int | None = None
    timestamp: str | None = None


@dataclass(slots=True, repr=False)
class Purged(DisplayableResult):
    """Something was erased for good.

    `copies` counts the records of calls, by kind, that quoted it and lost their content with it;
    `elsewhere` those of callers' own that hold the same text and were left. `pending`: somebody was
    reading, so that the file still holds the bytes.
    """

    erased: int
    copies: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)
    pending: bool = False
    note: str = ""


@dataclass(slots=True, repr=False)
class Logged(DisplayableResult):
    """An event was appended."""

    sequence: int
    timestamp: str


@dataclass(slots=True, repr=False)
class VersionInfo(DisplayableResult):
    """One version of an entry; a forgotten one has no value."""

    value: Any
    version: int
    timestamp: str
    tags: list[str]
    deleted: bool = False
    actor: str | None = None


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


@dataclass(slots=True, repr=False)
class BranchInfo(DisplayableResult):
    """A branch."""

    name: str
    current: bool
    created: str
    parent: str | None = None
    forked_at: int | None = None
    deleted: bool | None = None


@dataclass(slots=True, repr=False)
class Branches(DisplayableResult):
    """All branches that are not deleted."""

    results: list[BranchInfo]
    current: str

    def __iter__(self) -> Iterator[BranchInfo]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(slots=True, repr=False)
class Change(DisplayableResult):
    """An entry that differs: added, removed or changed."""

    key: str
    namespace: str
    change: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None


@dataclass(slots=True, repr=False)
class Diff(DisplayableResult):
    """What another branch has that differs from this one."""

    branch: str
    compare: str
    added: int
    removed: int
    changed: int
    results: list[Change]


@dataclass(slots=True, repr=False)
class Conflict(DisplayableResult):
    """A place that both branches changed. `id` is what a decision is given for."""

    id: str
    key: str
    namespace: str
    path: str
    base: Any = None
    ours: Any = None
    theirs: Any = None


@dataclass(slots=True, repr=False)
class MergeResult(DisplayableResult):
    """What a merge did, or would do."""

    source: str
    target: str
    merged: int
    events: int
    resolved: int
    preview: bool
    results: list[Change]
    conflicts: list[Conflict]
    version: int | None = None
