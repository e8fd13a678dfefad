"""Whether what was read from the log is what was written into it.

Every event carries a hash of its content and of the names it is about. Whoever reads a value checks
it: a hash of a small value takes a microsecond, and nobody is ever given a value that was altered
behind our back. A value that passes is the JSON that was written, so it can be decoded and has all
its fields.

Sequence, time, branch and actor are covered by the chain of hashes, which only `doctor` recomputes:
one event alone cannot be checked against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stratagem.engine.events import Space, content_hash
from stratagem.errors import DatabaseCorrupt

__all__ = ["altered", "missing", "verify"]


def verify(row: Sequence[Any], space: Space | None, key: str | None) -> None:
    """Check a row of the log: sequence, time, kind, payload, actor, salt, content hash.

    Raises:
        DatabaseCorrupt: It is not what was written.
    """
    sequence, at, kind, payload, actor, salt, content = row
    if payload is None:
        # A purge takes both away.
        genuine = salt is None
    else:
        try:
            genuine = content_hash(salt, space, key, payload) == content
        except TypeError:
            # Damage can leave a value of another type where no constraint is asked again.
            genuine = False
    typed = at.__class__ is int and kind.__class__ is actor.__class__ is str
    if not (genuine and typed):
        raise altered(sequence)


def altered(sequence: int) -> DatabaseCorrupt:
    """Return the error for an event that is not what was written."""
    return DatabaseCorrupt(f"The content of event {sequence} was altered.", sequence=sequence)


def missing(sequence: int) -> DatabaseCorrupt:
    """Return the error for an event that something refers to and nobody finds."""
    return DatabaseCorrupt(f"The log has no event {sequence}.", sequence=sequence)
