"""How the corrections of a tool by one pattern have been doing lately.

Only the newest outcomes count: a pattern that worked for a year and fails since the tool changed
does not work. Each failure among them lowers the confidence of the pattern; when more of them
failed than held, the pattern is deprecated for the tool: it is still offered, and no longer
applied. Confirmed offers that work bring it back, and so does a week.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from stratagem import limits
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import Candidate
from stratagem.gateway.learning.lessons import belief_of
from stratagem.gateway.learning.teaching import pattern_id
from stratagem.storage.contract import Reader

__all__ = ["Standing", "lowered", "read_standing", "suspects"]

# One failure may have another cause; so many in the newest outcomes do not.
_FAILURES_MIN: Final = 3
_HALF: Final = 0.5
# A pattern is trusted as if so many had held: the first failure does not stop it, two in a row do.
_TRUST: Final = 12


class Standing(NamedTuple):
    """The newest outcomes of a pattern at a tool."""

    held: int = 0
    fell: int = 0

    @property
    def share(self) -> float:
        """What is left of a confidence: a tool may fail for other reasons than a correction."""
        return (_TRUST + self.held) / (_TRUST + self.held + self.fell)

    @property
    def deprecated(self) -> bool:
        """Whether the pattern has stopped working."""
        return self.fell >= _FAILURES_MIN and belief_of(self.held, self.fell).mean < _HALF


def read_standing(reader: Reader, view: View, tool: str, pattern: str) -> Standing:
    """Read the newest outcomes of a pattern at a tool, as a view shows them."""
    facet = names.facet_correction(tool, pattern)
    newest = reader.faceted(view, facet, limit=limits.CORRECTION_OUTCOMES_RECENT)
    since = view.time - limits.CORRECTION_OUTCOMES_DAYS * 24 * 3600 * 1_000_000
    hits = [hit for hit in reader.hits(newest).values() if hit.at >= since]
    held = [hit.kind == names.CORRECTION_HELD for hit in hits]
    return Standing(sum(held), len(held) - sum(held))


def suspects(reader: Reader, view: View) -> frozenset[str]:
    """Return the tools that ever had a correction fail: only these need a closer look."""
    groups = reader.group_tallies(view.lineage, names.CORRECTION_FAILED)
    return frozenset(group.partition(names.PART)[0] for group in groups)


def lowered(
    candidate: Candidate, standing: Callable[[str], Standing]
) -> tuple[Candidate, list[str]]:
    """Return a candidate with what its patterns' failures leave of it, and the deprecated ones."""
    found: Mapping[str, Standing] = {
        pattern: standing(pattern) for pattern in map(pattern_id, candidate.changes)
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
