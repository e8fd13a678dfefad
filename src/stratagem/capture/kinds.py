"""The records of capture: drafts of incidents, and memory branches whose git branch is gone.

A draft is what a session suggests: a command failed, something was done, the command succeeded. It
is no incident: no lookup finds it, and nothing ranks it, until a person has approved it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, RecordKind

__all__ = [
    "DRAFTS",
    "DRAFT_ENDED",
    "DRAFT_KEPT",
    "FACET_DRAFT",
    "FACET_ORPHAN",
    "KINDS",
    "ORPHANS",
    "ORPHAN_FOUND",
    "ORPHAN_SETTLED",
]

DRAFTS: Final = Space("incident_draft", "capture")
DRAFT_KEPT: Final = "IncidentDraftKept"
DRAFT_ENDED: Final = "IncidentDraftEnded"
# The facet of all drafts.
FACET_DRAFT: Final = "incident_draft"
ORPHANS: Final = Space("orphan_branch", "capture")
ORPHAN_FOUND: Final = "OrphanBranchFound"
ORPHAN_SETTLED: Final = "OrphanBranchSettled"
FACET_ORPHAN: Final = "orphan_branch"


def _draft(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(FACET_DRAFT,))


KINDS: Final = (
    RecordKind(
        DRAFTS.kind,
        (
            EventKind(DRAFT_KEPT, _draft),
            EventKind(DRAFT_ENDED, lambda _content, _key: Projection(deleted=True), deletes=True),
        ),
        writes=DRAFT_KEPT,
        deletes=DRAFT_ENDED,
        erasable=("error", "steps"),
    ),
    RecordKind(
        ORPHANS.kind,
        (
            EventKind(ORPHAN_FOUND, lambda _content, _key: Projection(facets=(FACET_ORPHAN,))),
            EventKind(
                ORPHAN_SETTLED, lambda _content, _key: Projection(deleted=True), deletes=True
            ),
        ),
        writes=ORPHAN_FOUND,
        deletes=ORPHAN_SETTLED,
    ),
)
