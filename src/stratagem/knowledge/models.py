"""What knowledge answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Generic, Literal, TypeVar

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult

__all__ = [
    "Area",
    "Availability",
    "BatchWritten",
    "ConceptAnswer",
    "ConceptEvidence",
    "ConceptGraph",
    "ConceptHit",
    "ConceptInfo",
    "ConceptListed",
    "ConceptRef",
    "ConceptWritten",
    "ConceptsMerged",
    "ContextConcept",
    "EvidenceRecorded",
    "Hierarchy",
    "KnowledgeContext",
    "KnowledgePurged",
    "KnowledgeReview",
    "KnownConcept",
    "KnownMarked",
    "LearningConcept",
    "LearningPath",
    "LearningStep",
    "Path",
    "PathStep",
    "Pong",
    "Prerequisite",
    "Prerequisites",
    "RecentConcept",
    "Related",
    "RelationshipWritten",
    "Results",
    "ReviewItem",
    "Revision",
    "StoreStatistics",
    "Subtopic",
    "Topic",
    "TypeDeclared",
]

T = TypeVar("T")
Direction = Literal["incoming", "outgoing"]
# Set only where the score was computed; a score without it was given by the caller.
Source = Literal["computed"]


@dataclass(slots=True, repr=False)
class BatchWritten(DisplayableResult):
    """Concepts and relationships were written together.

    `duplicates` were there already under the same name, and were left as they are; the
    relationships of the batch lead to them. `known` counts relationships that were there.
    """

    created: list[ConceptRef]
    duplicates: list[ConceptRef]
    related: int
    known: int
    message: str
    success: bool = True


@dataclass(slots=True, repr=False)
class TypeDeclared(DisplayableResult):
    """A type of relationship can be used."""

    relationship_type: str
    message: str
    declared: list[str]
    success: bool = True


@dataclass(slots=True, repr=False)
class ContextConcept(DisplayableResult):
    """A concept that a context tells about."""

    concept_id: str
    name: str
    similarity: float
    certainty_score: float


@dataclass(slots=True, repr=False)
class KnowledgeContext(DisplayableResult):
    """What is known about a question, as text for a prompt, and which concepts it is made of."""

    context: str
    concepts: list[ContextConcept]
    message: str
    left_out: int | None = None
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class Pong(DisplayableResult):
    """The server is there."""

    status: str
    message: str
    server_name: str
    timestamp: str


@dataclass(slots=True, repr=False)
class StoreStatistics(DisplayableResult):
    """Figures of the event store and of the outbox."""

    event_store: dict[str, int]
    outbox: dict[str, int]
    status: Literal["healthy", "degraded", "error"]
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class Availability(DisplayableResult):
    """Which tools can be used, and which services stand behind them."""

    available: list[str]
    unavailable: list[str]
    total_tools: int
    service_status: dict[str, dict[str, bool]]
    implementations: dict[str, str]
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class ConceptRef(DisplayableResult):
    """A concept that is named beside another."""

    concept_id: str
    name: str


@dataclass(slots=True, repr=False)
class ConceptWritten(DisplayableResult):
    """A concept was written. `certainty_score` is set where it was computed.

    `duplicates` are the ids of other concepts of the same name.
    """

    concept_id: str
    message: str
    version: int
    certainty_score: float | None = None
    certainty_source: Source | None = None
    duplicates: list[str] | None = None
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class Revision(DisplayableResult):
    """An explanation, and since when it stood."""

    explanation: str
    timestamp: str


@dataclass(slots=True, repr=False)
class ConceptEvidence(DisplayableResult):
    """Why a certainty is what it is: who found it to hold or not, and what is related to it.

    `confirmed` and `refuted` count sources, the others concepts. `latest` is when a source last
    said anything about it.
    """

    confirmed: int
    refuted: int
    confirming: int
    contradicting: int
    superseding: int
    links: int
    latest: str | None = None


@dataclass(slots=True, repr=False)
class EvidenceRecorded(DisplayableResult):
    """What somebody found out about a concept was recorded; its certainty since then."""

    concept_id: str
    name: str
    certainty_score: float
    confirmed: int
    refuted: int
    message: str
    certainty_source: Source | None = None
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class ReviewItem(DisplayableResult):
    """A concept that wants attention, and why."""

    concept_id: str
    name: str
    why: str


@dataclass(slots=True, repr=False)
class KnowledgeReview(DisplayableResult):
    """What of the knowledge wants attention; `counts` has how many there are of each."""

    contested: list[ReviewItem]
    stale: list[ReviewItem]
    orphaned: list[ReviewItem]
    duplicates: list[list[ConceptRef]]
    counts: dict[str, int]
    message: str
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class ConceptGraph(DisplayableResult):
    """Concepts with their places in a picture, and the relationships between them.

    `layers` are by prerequisites, from left to right; `left_out` counts concepts that there was no
    room for. The links of a concept point to others of the same picture.
    """

    concepts: list[dict[str, Any]]
    links: list[dict[str, Any]]
    areas: list[dict[str, Any]]
    layers: list[dict[str, Any]]
    width: float
    height: float
    left_out: int
    message: str
    root: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class ReplacedVerdict(DisplayableResult):
    """What a source said about one of two merged concepts before it judged the other, later."""

    source: str
    verdict: str
    said_at: str
    now: str
    note: str | None = None


@dataclass(slots=True, repr=False)
class ConceptsMerged(DisplayableResult):
    """One concept now stands for two.

    `skipped` says what could not be carried over, and why; `replaced` what sources that judged
    both had said first: each counts once, by its later word.
    """

    concept_id: str
    merged_id: str
    related: int
    message: str
    skipped: list[str] | None = None
    replaced: list[ReplacedVerdict] | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class KnowledgePurged(DisplayableResult):
    """What was erased for good, or would be: nothing is, unless it was confirmed.

    `records` counts what goes by its kind; `copies` are records of calls that quoted it.
    """

    kind: str
    id: str
    purged: bool
    records: dict[str, int]
    erased: int
    copies: dict[str, int]
    elsewhere: dict[str, int]
    note: str
    success: bool = True


@dataclass(slots=True, repr=False)
class ConceptInfo(DisplayableResult):
    """A concept, as some view shows it."""

    concept_id: str
    name: str
    explanation: str
    area: str | None
    topic: str | None
    subtopic: str | None
    certainty_score: float
    created_at: str
    last_modified: str
    version: int
    certainty_source: Source | None = None
    explanation_history: list[Revision] | None = None
    source: str | None = None
    evidence: ConceptEvidence | None = None
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(slots=True, repr=False)
class ConceptAnswer(DisplayableResult):
    """A concept that was asked for."""

    concept: ConceptInfo
    message: str
    truncated: bool | None = None
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class ConceptHit(DisplayableResult):
    """A concept that a search found.

    `similarity` says how near it is by itself, whatever else was found: the cosine of the model,
    or, without one, the share of the query's words that it has (`similarity_kind`).
    """

    concept_id: str
    name: str
    similarity: float
    area: str | None
    topic: str | None
    certainty_score: float
    certainty_source: Source | None = None
    similarity_kind: Literal["cosine", "words"] = "cosine"
    snippet: str = ""
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(slots=True, repr=False)
class ConceptListed(DisplayableResult):
    """A concept in a list."""

    concept_id: str
    name: str
    area: str | None
    topic: str | None
    subtopic: str | None
    certainty_score: float
    created_at: str
    certainty_source: Source | None = None
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(slots=True, repr=False)
class RecentConcept(DisplayableResult):
    """A concept that was created lately."""

    concept_id: str
    name: str
    area: str | None
    topic: str | None
    created_at: str
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(slots=True, repr=False)
class Related(DisplayableResult):
    """A concept that another is related to."""

    concept_id: str
    name: str
    relationship_type: str
    direction: Direction
    strength: float
    relationship_id: str = ""
    notes: str | None = None
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None
    valid_from: str | None = None
    valid_to: str | None = None


@dataclass(slots=True, repr=False)
class Results(DisplayableResult, Generic[T]):
    """A page of a list; `truncated` where there is more, and `next` is its cursor."""

    results: list[T]
    message: str
    truncated: bool | None = None
    next: str | None = None
    mode: Literal["lexical"] | None = None
    note: str | None = None
    total: int = 0
    success: bool = True

    def __post_init__(self) -> None:
        self.total = len(self.results)

    def __iter__(self) -> Iterator[T]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> T:
        return self.results[place]


@dataclass(slots=True, repr=False)
class RelationshipWritten(DisplayableResult):
    """A relationship was created or deleted."""

    relationship_id: str
    message: str
    success: bool = True


@dataclass(slots=True, repr=False)
class Prerequisite(DisplayableResult):
    """Something to know first.

    `depth` is the length of the shortest way to it, `order` its place in an order in which
    everything comes after what it needs, and `requires` the places of what it needs itself.
    """

    concept_id: str
    name: str
    depth: int
    order: int
    requires: list[int]
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None


@dataclass(slots=True, repr=False)
class Prerequisites(DisplayableResult):
    """What to know first, nearest first; with the `cycle` where a merge made one.

    `left_out` counts those that are not in the answer; `next` is the cursor that goes on with them.
    """

    prerequisites: list[Prerequisite]
    message: str
    truncated: bool | None = None
    next: str | None = None
    left_out: int | None = None
    cycle: list[str] | None = None
    note: str | None = None
    total: int = 0
    success: bool = True

    def __post_init__(self) -> None:
        self.total = len(self.prerequisites)

    def __iter__(self) -> Iterator[Prerequisite]:
        return iter(self.prerequisites)

    def __len__(self) -> int:
        return len(self.prerequisites)

    def __getitem__(self, place: int) -> Prerequisite:
        return self.prerequisites[place]


@dataclass(slots=True, repr=False)
class LearningConcept(DisplayableResult):
    """A concept to learn; `requires` are the places in the order of what it needs itself."""

    concept_id: str
    name: str
    order: int
    requires: list[int]
    certainty_score: float
    certainty_source: Source | None = None
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None


@dataclass(slots=True, repr=False)
class LearningStep(DisplayableResult):
    """Concepts that can be learnt side by side; as certain as the least certain of them."""

    step: int
    certainty: float
    concepts: list[LearningConcept]


@dataclass(slots=True, repr=False)
class LearningPath(DisplayableResult):
    """What to learn for a concept, step by step, without what is known.

    `known` are the concepts on the way that are known already; what these require is not needed.
    """

    target: str
    steps: list[LearningStep]
    message: str
    known: list[str]
    learner: str
    total: int = 0
    total_steps: int = 0
    truncated: bool | None = None
    next: str | None = None
    cycle: list[str] | None = None
    note: str | None = None
    success: bool = True

    def __iter__(self) -> Iterator[LearningStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> LearningStep:
        return self.steps[place]


@dataclass(slots=True, repr=False)
class KnownConcept(DisplayableResult):
    """A concept that a learner knows, and since when."""

    concept_id: str
    name: str
    since: str
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None


@dataclass(slots=True, repr=False)
class KnownMarked(DisplayableResult):
    """Concepts were marked as known, or as not known; `changed` counts those that were not."""

    learner: str
    concepts: list[str]
    known: bool
    changed: int
    message: str
    note: str | None = None
    success: bool = True


@dataclass(slots=True, repr=False)
class PathStep(DisplayableResult):
    """A concept on a path, and how the next one is reached: along a relationship, or against."""

    concept_id: str
    name: str
    relationship_to_next: str | None
    direction_to_next: Direction | None
    superseded_by: list[ConceptRef] | None = None
    contested_by: list[ConceptRef] | None = None


@dataclass(slots=True, repr=False)
class Path(DisplayableResult):
    """A shortest path. `length` counts relationships."""

    path: list[PathStep]
    length: int
    message: str
    success: bool = True


@dataclass(slots=True, repr=False)
class Subtopic(DisplayableResult):
    """A subtopic and how many concepts it has."""

    name: str
    concept_count: int = 0


@dataclass(slots=True, repr=False)
class Topic(DisplayableResult):
    """A topic and how many concepts it has."""

    name: str
    concept_count: int = 0
    subtopics: list[Subtopic] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Area(DisplayableResult):
    """An area and how many concepts it has."""

    name: str
    concept_count: int = 0
    topics: list[Topic] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Hierarchy(DisplayableResult):
    """Everything there is, by area, topic and subtopic."""

    areas: list[Area]
    total_concepts: int
    message: str
    truncated: bool | None = None
    note: str | None = None
    success: bool = True

    def counts(self) -> dict[str, Any]:
        """Return how many concepts each area has."""
        return {area.name: area.concept_count for area in self.areas}
