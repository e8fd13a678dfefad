"""How corrections turned out: outcomes in the log, and the health of each pattern."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict, TypeVar

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import Candidate
from stratagem.gateway.learning.lessons import Lessons, belief_of, pattern_id
from stratagem.storage.catalogue import CatalogueReader
from stratagem.storage.contract import Reader, RecordReader

__all__ = [
    "AuditRecord",
    "CorrectionRecord",
    "OutcomeRecord",
    "Outcomes",
    "PatternReliability",
    "RefusalRecord",
    "count_new_lessons",
    "lower_confidence",
    "read_outcomes",
    "read_reliability",
    "tools_with_failures",
]

_PAGE: Final = 1_000


class CorrectionRecord(TypedDict):
    """What the log says of every correction, without any values of the caller's."""

    tool: str
    category: str
    errorTypes: list[str]
    caller: str
    agentId: str | None
    channelId: str | None
    requestId: str | None


class AuditFault(TypedDict):
    """What was wrong with an argument."""

    type: str
    path: str


class AuditStep(TypedDict):
    """A change that a correction made."""

    path: str
    pattern: str
    reasoning: str


class AuditRecord(TypedDict):
    """What the caller wrote, what was wrong with it, and each step of the correction."""

    given: Any
    faults: list[AuditFault]
    steps: list[AuditStep]


class OutcomeRecord(CorrectionRecord):
    """A correction that a call ran with, and how that call ended."""

    pattern: str
    patterns: list[str]
    strategy: str
    strategies: list[str]
    confidence: float
    risk: str
    confirmed: bool
    attempt: int
    executionId: str
    duration: float
    took: float
    at: int
    error: str | None


class RefusalRecord(CorrectionRecord):
    """A call that was not corrected unasked."""

    offered: int
    strategies: list[str]
    withheld: str | None
    took: float
    at: int


_RecordT = TypeVar("_RecordT", OutcomeRecord, RefusalRecord)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Corrections whose calls worked, those whose calls failed, and calls not corrected at all."""

    start: int
    end: int
    held: list[OutcomeRecord]
    fell: list[OutcomeRecord]
    refused: list[RefusalRecord]
    truncated: bool = False

    @property
    def applied(self) -> list[OutcomeRecord]:
        """All corrections that a call ran with."""
        return [*self.held, *self.fell]

    def between(self, start: int, end: int) -> Outcomes:
        """Return the outcomes of a part of the time."""

        def within(rows: list[_RecordT]) -> list[_RecordT]:
            return [row for row in rows if start <= row["at"] <= end]

        return Outcomes(start, end, within(self.held), within(self.fell), within(self.refused))

    def of_tools(self, is_shown: Callable[[str], bool]) -> Outcomes:
        """Return the outcomes of some tools."""

        def select(rows: list[_RecordT]) -> list[_RecordT]:
            return [row for row in rows if is_shown(row["tool"])]

        held, fell, refused = select(self.held), select(self.fell), select(self.refused)
        return Outcomes(self.start, self.end, held, fell, refused, self.truncated)


def read_outcomes(reader: Reader, view: View, start: int) -> Outcomes:
    """Read what a view shows of the corrections since a time."""
    after = reader.log.sequence_at(start)
    spaces = (names.CORRECTIONS_OK, names.CORRECTIONS_FAILED, names.CORRECTIONS_REFUSED)
    # Only those that are kept are read as JSON, which takes longest.
    found = [
        deque(_payloads(reader.records, view, space, after), maxlen=limits.CORRECTIONS_READ_MAX)
        for space in spaces
    ]
    # What a merge brought over is written later than it happened.
    held, fell, refused = (
        [row for row in map(orjson.loads, each) if row["at"] >= start] for each in found
    )
    truncated = any(len(each) == limits.CORRECTIONS_READ_MAX for each in found)
    return Outcomes(start, view.time, held, fell, refused, truncated)


def count_new_lessons(reader: Reader, view: View, start: int) -> int:
    """Return how many lessons were first taught since a time."""
    since: Counter[tuple[str, str, str, str, str]] = Counter()
    for row in map(
        orjson.loads,
        _payloads(reader.records, view, names.LESSONS_FOR, reader.log.sequence_at(start)),
    ):
        since[row["tool"], row["kind"], row["path"], row["form"], row["meaning"]] += 1
    if not since:
        return 0
    return sum(
        since[tool, lesson.kind.value, lesson.path, lesson.form, lesson.meaning] == count.held > 0
        for tool, lesson, count in Lessons.read(reader.catalogue, view).totals()
    )


def _payloads(records: RecordReader, view: View, space: Space, after: int) -> Iterator[bytes]:
    while True:
        page = records.stream(view.lineage, space, after=after, limit=_PAGE)
        for version in page:
            if version.payload is not None:
                yield version.payload
        if len(page) < _PAGE:
            return
        after = page[-1].sequence


# One failure may have another cause; so many in the newest outcomes do not.
_FAILURES_MIN: Final = 3
_HALF: Final = 0.5
# A pattern is trusted as if so many had held: the first failure does not stop it, two in a row do.
_TRUST: Final = 12


class PatternReliability(NamedTuple):
    """The newest outcomes of a pattern at a tool."""

    held: int = 0
    fell: int = 0

    @property
    def share(self) -> float:
        """The factor for a confidence; above 0, as a tool may fail for other reasons."""
        return (_TRUST + self.held) / (_TRUST + self.held + self.fell)

    @property
    def deprecated(self) -> bool:
        """Whether the pattern has stopped working."""
        return self.fell >= _FAILURES_MIN and belief_of(self.held, self.fell).mean < _HALF


def read_reliability(reader: Reader, view: View, tool: str, pattern: str) -> PatternReliability:
    """Read the newest outcomes of a pattern at a tool, as a view shows them."""
    facet = names.facet_correction(tool, pattern)
    newest = reader.catalogue.with_facet(view, facet, limit=limits.CORRECTION_OUTCOMES_RECENT)
    since = view.time - limits.CORRECTION_OUTCOMES_DAYS * 24 * 3600 * 1_000_000
    hits = [hit for hit in reader.log.contents(newest).values() if hit.at >= since]
    held = [hit.kind == names.CORRECTION_HELD for hit in hits]
    return PatternReliability(sum(held), len(held) - sum(held))


def tools_with_failures(catalogue: CatalogueReader, view: View) -> frozenset[str]:
    """Return the tools that ever had a correction fail: only these need a closer look."""
    groups = catalogue.group_counts(view.lineage, names.CORRECTION_FAILED)
    return frozenset(group.partition(names.PART)[0] for group in groups)


def lower_confidence(
    candidate: Candidate, reliability: Callable[[str], PatternReliability]
) -> tuple[Candidate, list[str]]:
    """Return a candidate, less confident for failures of its patterns, and the deprecated ones."""
    found: Mapping[str, PatternReliability] = {
        pattern: reliability(pattern) for pattern in map(pattern_id, candidate.changes)
    }
    deprecated = [pattern for pattern, each in found.items() if each.deprecated]
    if all(each.share == 1 for each in found.values()):
        return candidate, deprecated
    changes = tuple(
        replace(
            change,
            confidence=change.confidence * found[pattern_id(change)].share,
            certain=change.certain and not found[pattern_id(change)].deprecated,
        )
        for change in candidate.changes
    )
    least = min(each.share for each in found.values())
    return replace(candidate, changes=changes, confidence=candidate.confidence * least), deprecated
