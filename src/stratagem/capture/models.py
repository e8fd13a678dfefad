"""What review answers with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult

__all__ = ["CapturedItem", "Decision", "ReviewDecided", "ReviewDecision", "ReviewList"]

Decision = Literal["keep", "pin", "correct", "discard"]


@dataclass(slots=True, repr=False)
class CapturedItem(DisplayableResult):
    """Something that waits for review: a captured event, a draft of an incident, or a branch.

    A draft has the `error`, the `steps` that were taken, and the `command` that failed and then
    succeeded. A branch is one whose git branch is gone: kept, it is merged; discarded, it is
    deleted (and can be restored). `decision` is what was decided about it before, "recorded"
    of a draft whose error has had a fix recorded since that worked.
    """

    id: str
    kind: Literal["captured", "draft", "branch"]
    text: str
    timestamp: str
    version: int
    source: str | None = None
    trust: str | None = None
    session: str | None = None
    event: str | None = None
    command: str | None = None
    error: str | None = None
    steps: list[str] | None = None
    decision: Decision | Literal["recorded"] | None = None


@dataclass(slots=True, repr=False)
class ReviewList(DisplayableResult):
    """A page of captured memory, newest first."""

    results: list[CapturedItem]
    truncated: bool
    next: str | None = None

    def __iter__(self) -> Iterator[CapturedItem]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> CapturedItem:
        return self.results[place]


@dataclass(slots=True, repr=False)
class ReviewDecision(DisplayableResult):
    """What became of one thing: the entry under `key`, or the incident, that it is now."""

    id: str
    decision: Decision
    key: str | None = None
    incident_id: str | None = None
    solution_id: str | None = None


@dataclass(slots=True, repr=False)
class ReviewDecided(DisplayableResult):
    """What became of each thing that was decided about."""

    results: list[ReviewDecision]
