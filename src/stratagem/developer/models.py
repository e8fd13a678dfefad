"""What the operations of developer mode answer with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult
from stratagem.memory.models import Entry

__all__ = [
    "BranchCurrent",
    "BranchPresence",
    "BundleInfo",
    "BundleLoaded",
    "CellDeleted",
    "CellList",
    "CellVersion",
    "CellVersions",
    "CellWritten",
    "CollectionDeleted",
    "CollectionInfo",
    "CollectionList",
    "Compacted",
    "DatabaseInfo",
    "DatabasePing",
    "DocumentChanged",
    "DurabilityCounters",
    "EmbeddedText",
    "EmbeddedTexts",
    "EmbeddingStatus",
    "EventCount",
    "Flushed",
    "FoundEntries",
    "Generated",
    "ModelConfiguration",
    "ModelInfo",
    "ModelList",
    "ModelPull",
    "ModelUnloaded",
    "PlaceDeleted",
    "RecordsPurged",
    "RetentionApplied",
    "SpaceCurrent",
    "SpaceDeleted",
    "SpaceInfo",
    "SpaceList",
    "SpacePresence",
    "StateCell",
    "Tokens",
    "TransactionCommitted",
    "TransactionInfo",
    "TransactionRolledBack",
    "TransactionStatus",
    "Untokenized",
    "VectorDeleted",
    "VectorHit",
    "VectorHits",
    "VectorRecord",
    "VectorVersion",
    "VectorVersions",
    "VectorWritten",
    "VectorsWritten",
]

Metric = Literal["cosine", "euclidean", "dot"]
ItemT = TypeVar("ItemT")


class ResultList(DisplayableResult, Generic[ItemT]):
    """A list that can be gone through and counted."""

    __slots__ = ()
    results: list[ItemT]

    def __iter__(self) -> Iterator[ItemT]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> ItemT:
        return self.results[place]


# --- entries as keys with values, and as documents


@dataclass(slots=True, repr=False)
class FoundEntries(ResultList[Entry]):
    """What is stored under several keys; `missing` are those under which nothing is."""

    results: list[Entry]
    missing: list[str]


@dataclass(slots=True, repr=False)
class DocumentChanged(DisplayableResult):
    """A place of a document was changed; `value` is what is there now."""

    key: str
    path: str
    value: Any
    namespace: str
    version: int
    timestamp: str


@dataclass(slots=True, repr=False)
class PlaceDeleted(DisplayableResult):
    """Whether there was something at a place to delete."""

    key: str
    path: str
    deleted: bool
    namespace: str
    version: int | None = None
    timestamp: str | None = None


# --- state cells


@dataclass(slots=True, repr=False)
class StateCell(DisplayableResult):
    """A state cell. `counter` is its version: it grows with every write."""

    cell: str
    value: Any
    counter: int
    version: int
    timestamp: str
    namespace: str
    actor: str | None = None


@dataclass(slots=True, repr=False)
class CellWritten(DisplayableResult):
    """A state cell was written, or by `init` left as it was."""

    cell: str
    counter: int
    version: int
    timestamp: str
    namespace: str
    written: bool = True
    branch: str | None = None


@dataclass(slots=True, repr=False)
class CellDeleted(DisplayableResult):
    """Whether there was a cell to delete."""

    cell: str
    deleted: bool
    namespace: str
    version: int | None = None
    timestamp: str | None = None


@dataclass(slots=True, repr=False)
class CellList(ResultList[StateCell]):
    """State cells by name."""

    results: list[StateCell]
    truncated: bool
    next: str | None


@dataclass(slots=True, repr=False)
class CellVersion(DisplayableResult):
    """One version of a cell; a deleted one has no value.

    `erased`: it had one, which retention has erased; `deleted` is true of it, too.
    """

    value: Any
    counter: int
    version: int
    timestamp: str
    deleted: bool = False
    actor: str | None = None
    erased: bool | None = None


@dataclass(slots=True, repr=False)
class CellVersions(ResultList[CellVersion]):
    """The versions of a cell, newest first."""

    results: list[CellVersion]
    truncated: bool
    next: str | None


# --- logged events


@dataclass(slots=True, repr=False)
class EventCount(DisplayableResult):
    """How many logged events a space shows."""

    count: int
    namespace: str
    event_type: str | None = None


# --- branches and spaces


@dataclass(slots=True, repr=False)
class BranchPresence(DisplayableResult):
    """Whether there is a branch of that name."""

    name: str
    exists: bool


@dataclass(slots=True, repr=False)
class BranchCurrent(DisplayableResult):
    """The caller's current branch."""

    branch: str


@dataclass(slots=True, repr=False)
class SpaceInfo(DisplayableResult):
    """A space (namespace) and how much it holds."""

    name: str
    current: bool
    entries: int = 0
    events: int = 0
    cells: int = 0
    collections: int = 0


@dataclass(slots=True, repr=False)
class SpaceList(ResultList[SpaceInfo]):
    """The spaces that were created or hold something."""

    results: list[SpaceInfo]
    current: str


@dataclass(slots=True, repr=False)
class SpacePresence(DisplayableResult):
    """Whether a space was created or holds something."""

    name: str
    exists: bool


@dataclass(slots=True, repr=False)
class SpaceDeleted(DisplayableResult):
    """A space was deleted, with how much of what it held.

    `events` is how many logged events stay: what has happened cannot be forgotten.
    """

    name: str
    deleted: bool
    entries: int = 0
    cells: int = 0
    collections: int = 0
    vectors: int = 0
    events: int = 0
    before: str | None = None


@dataclass(slots=True, repr=False)
class SpaceCurrent(DisplayableResult):
    """The caller's current space."""

    namespace: str


# --- transactions


@dataclass(slots=True, repr=False)
class TransactionInfo(DisplayableResult):
    """An open transaction: pass its id as `transaction`. It ends by itself at `ends`."""

    transaction: str
    branch: str
    read_only: bool
    ends: str


@dataclass(slots=True, repr=False)
class TransactionCommitted(DisplayableResult):
    """What a transaction has written; without a `version` that was nothing."""

    transaction: str
    records: int
    events: int
    timestamp: str
    version: int | None = None


@dataclass(slots=True, repr=False)
class TransactionRolledBack(DisplayableResult):
    """Whether a transaction was open; nothing of it is stored."""

    transaction: str
    rolled_back: bool


@dataclass(slots=True, repr=False)
class TransactionStatus(DisplayableResult):
    """Whether a transaction is open."""

    transaction: str
    active: bool


# --- bundles


@dataclass(slots=True, repr=False)
class BundleInfo(DisplayableResult):
    """A bundle: a branch in one file of the folder for bundles."""

    name: str
    valid: bool
    branch: str
    entries: int
    events: int
    records: int
    bytes: int
    sha256: str | None = None
    problem: str | None = None


@dataclass(slots=True, repr=False)
class BundleLoaded(DisplayableResult):
    """What an import of a bundle did, or would do."""

    name: str
    branch: str
    preview: bool
    created: int
    updated: int
    unchanged: int
    logged: int
    known: int


# --- vectors


@dataclass(slots=True, repr=False)
class CollectionInfo(DisplayableResult):
    """A collection of vectors."""

    name: str
    dimension: int
    metric: Metric
    namespace: str
    count: int | None = None
    created: str | None = None


@dataclass(slots=True, repr=False)
class CollectionList(ResultList[CollectionInfo]):
    """The collections of a space, by name."""

    results: list[CollectionInfo]


@dataclass(slots=True, repr=False)
class CollectionDeleted(DisplayableResult):
    """Whether there was a collection to delete, and how many vectors went with it."""

    name: str
    deleted: bool
    vectors: int = 0


@dataclass(slots=True, repr=False)
class VectorRecord(DisplayableResult):
    """A vector of a collection."""

    key: str
    vector: list[float]
    metadata: dict[str, Any]
    version: int
    timestamp: str
    collection: str
    namespace: str


@dataclass(slots=True, repr=False)
class VectorWritten(DisplayableResult):
    """A vector was written."""

    key: str
    version: int
    timestamp: str
    status: Literal["created", "updated"]


@dataclass(slots=True, repr=False)
class VectorsWritten(DisplayableResult):
    """Several vectors were written at once."""

    count: int
    created: int
    updated: int
    version: int
    timestamp: str


@dataclass(slots=True, repr=False)
class VectorDeleted(DisplayableResult):
    """Whether there was a vector to delete."""

    key: str
    deleted: bool
    version: int | None = None
    timestamp: str | None = None


@dataclass(slots=True, repr=False)
class VectorHit(DisplayableResult):
    """A vector that a search found.

    `score`: the cosine, the inner product, or for the euclidean metric minus the distance: the
    higher, the nearer.
    """

    key: str
    score: float
    metadata: dict[str, Any]
    version: int
    distance: float | None = None
    vector: list[float] | None = None


@dataclass(slots=True, repr=False)
class VectorHits(ResultList[VectorHit]):
    """The vectors nearest to a query, nearest first."""

    results: list[VectorHit]
    metric: Metric


@dataclass(slots=True, repr=False)
class VectorVersion(DisplayableResult):
    """One version of a vector; a deleted one has neither numbers nor metadata.

    `erased`: it had them, and retention has erased them; `deleted` is true of it, too.
    """

    version: int
    timestamp: str
    deleted: bool = False
    vector: list[float] | None = None
    metadata: dict[str, Any] | None = None
    actor: str | None = None
    erased: bool | None = None


@dataclass(slots=True, repr=False)
class VectorVersions(ResultList[VectorVersion]):
    """The versions of a vector, newest first."""

    results: list[VectorVersion]
    truncated: bool
    next: str | None


@dataclass(slots=True, repr=False)
class RecordsPurged(DisplayableResult):
    """A record was erased for good, with every version on any branch."""

    erased: int
    note: str


# --- the database itself


@dataclass(slots=True, repr=False)
class RetentionApplied(DisplayableResult):
    """Superseded versions that were erased, or that would be (`preview`).

    `bytes` is how much content they held; `by_kind` counts them. `more`: there are further ones.
    """

    preview: bool
    versions: int
    bytes: int
    by_kind: dict[str, int]
    kept_for_branches: int
    more: bool
    file_bytes_freed: int | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class DatabasePing(DisplayableResult):
    """The database answers."""

    pong: bool
    version: str


@dataclass(slots=True, repr=False)
class DatabaseInfo(DisplayableResult):
    """What the database is and holds, on the caller's branch."""

    version: str
    database: str
    branch: str
    namespace: str
    branches: int
    keys: int
    events: int
    cells: int
    collections: int
    vectors: int
    head: str
    bytes: int | None
    durability: str
    embedder: str
    read_only: bool
    open_transactions: int


@dataclass(slots=True, repr=False)
class Flushed(DisplayableResult):
    """Everything acknowledged is on the disk."""

    flushed: bool
    head: str


@dataclass(slots=True, repr=False)
class Compacted(DisplayableResult):
    """How many bytes the database took before and after it was compacted."""

    bytes_before: int | None
    bytes_after: int | None
    freed: int | None
    note: str | None = None


@dataclass(slots=True, repr=False)
class DurabilityCounters(DisplayableResult):
    """What was written since this process opened the database.

    `commits` are waits for the disk: writers that wait at the same time share one.
    """

    durability: str
    writes: int
    commits: int
    failed: int
    events: int
    head: str


# --- embedding and generation


@dataclass(slots=True, repr=False)
class EmbeddedText(DisplayableResult):
    """The vector of a text: of length one, or zeros where the embedder knows none of its words."""

    vector: list[float]
    dimension: int
    model: str


@dataclass(slots=True, repr=False)
class EmbeddedTexts(DisplayableResult):
    """The vectors of several texts, in their order."""

    vectors: list[list[float]]
    dimension: int
    model: str


@dataclass(slots=True, repr=False)
class EmbeddingStatus(DisplayableResult):
    """The embedder in use, and how many texts have a vector or wait for one."""

    enabled: bool
    model: str
    dimension: int | None
    loaded: bool
    embedded: int
    pending: int


@dataclass(slots=True, repr=False)
class ModelConfiguration(DisplayableResult):
    """The model that text is generated with; of the key only where it comes from is known."""

    endpoint: str
    model: str
    api_key: str | None = None
    timeout_ms: int | None = None


@dataclass(slots=True, repr=False)
class Generated(DisplayableResult):
    """What a model wrote."""

    text: str
    model: str
    stop_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(slots=True, repr=False)
class Tokens(DisplayableResult):
    """A text as tokens of the embedder."""

    tokens: list[int]
    pieces: list[str]
    count: int
    model: str


@dataclass(slots=True, repr=False)
class Untokenized(DisplayableResult):
    """Tokens of the embedder as text; what a tokenizer drops (case, spacing) does not come back."""

    text: str
    model: str


@dataclass(slots=True, repr=False)
class ModelUnloaded(DisplayableResult):
    """Nothing has to be unloaded: models that generate run elsewhere."""

    unloaded: bool
    note: str


@dataclass(slots=True, repr=False)
class ModelInfo(DisplayableResult):
    """A model: what it does, and whether it can be used here and now."""

    name: str
    task: Literal["embed", "generate"]
    available: bool
    local: bool
    in_use: bool
    dimension: int | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class ModelList(ResultList[ModelInfo]):
    """The models that are known."""

    results: list[ModelInfo]


@dataclass(slots=True, repr=False)
class ModelPull(DisplayableResult):
    """Nothing is downloaded; `note` says how a local model is named."""

    name: str
    pulled: bool
    available: bool
    note: str
