"""Erasing content from a log and from everything made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.storage.relational.appending import SqlTransaction
from stratagem.storage.relational.projecting import CONTENT_PURGED

__all__ = ["ERASED_MARK", "erase"]

# No caller's key can hold a control character, so a name that begins with one is never anyone's.
# The first of them all PostgreSQL cannot keep.
ERASED_MARK: Final = "\x01"


def erase(
    transaction: SqlTransaction,
    *,
    space: Space,
    key: str | None,
    sequence: int | None,
    sequences: Sequence[int] = (),
) -> int:
    """Erase a record's events, or some events, and say so in the log; return how many lost theirs.

    The read models have to be made anew afterwards.
    """
    subject = transaction.subjects(space, [key]).get(key) if key is not None else None
    doomed = transaction.doomed(subject, sequence, sequences)
    if not doomed:
        return 0
    default = transaction.branch(DEFAULT_BRANCH)
    assert default is not None
    transaction.append(default, [Draft(CONTENT_PURGED, {"sequences": doomed})])
    transaction.finish(None)
    transaction.erase(doomed)
    if subject is not None:
        transaction.erase_subject(subject, f"{ERASED_MARK}{subject}")
        transaction.post([(transaction.head().sequence, subject, space.kind)])
    return len(doomed)
