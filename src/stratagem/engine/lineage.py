"""Which events a branch can see.

A branch owns only what was appended to it. Everything older is borrowed from its
parent, up to the sequence at which the two parted. Reading a branch is a walk up its
ancestors, each one cut off where its child began, and all of them where the view ends.

Two rules make the walk safe:

* A fork position never moves, so a lineage can be kept for as long as the process lives.
* Sequences number the whole log, not one branch, so any two can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import chain
from typing import Self

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ValidationFailed

__all__ = [
    "DEFAULT_BRANCH",
    "OPEN_END",
    "TRANSACTION_MARK",
    "Branch",
    "CurrentBranch",
    "Cut",
    "Lineage",
    "View",
    "is_transaction",
    "trace",
]

DEFAULT_BRANCH = "default"
# Later than any sequence: the limit of a view of the present.
OPEN_END = 2**63 - 1
# The prefix of the names of transactions' branches: a character that no caller's name can have.
TRANSACTION_MARK = "\x02"


@dataclass(frozen=True, slots=True)
class Branch:
    """A named line of events. `id` is the sequence of the event that created it."""

    id: int
    name: str
    parent: int | None
    fork_sequence: int | None
    deleted_sequence: int | None = None


class CurrentBranch(str):  # noqa: SLOT000 -- the id is kept in the instance
    """The name of the branch that a client works on, and which branch of that name it is.

    A name can be reused once its branch is deleted, and a client that works on the deleted branch
    must not silently continue on the new one.
    """

    id: int

    def __new__(cls, name: str, id: int) -> Self:  # noqa: A002 -- what it is called
        """Return the name of a branch, bound to it."""
        bound = super().__new__(cls, name)
        bound.id = id
        return bound


def is_transaction(branch: str) -> bool:
    """Whether a name is that of a transaction's branch, which is hidden from everybody else."""
    return branch.startswith(TRANSACTION_MARK)


class Cut(NamedTuple):
    """One branch of a lineage, and the last of its sequences that may be seen."""

    branch: int
    limit: int


class Lineage(tuple[Cut, ...]):  # noqa: SLOT001 -- `numbers` is kept in the instance
    """The cuts that a view reads, nearest first."""

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The cuts as a flat sequence of numbers, as a store takes them.

        Cached, because every read needs it.
        """
        return tuple(chain.from_iterable(self))


class View(NamedTuple):
    """A branch at a moment.

    `time` is the clock time of that moment, and decides what has expired.
    """

    branch: Branch
    lineage: Lineage
    time: int

    @property
    def limit(self) -> int:
        """The last sequence this view may see."""
        return self.lineage[0].limit


def trace(branch: Branch, parent_of: Callable[[int], Branch], limit: int = OPEN_END) -> Lineage:
    """Return the cuts that a view of a branch reads, nearest first."""
    cuts = [Cut(branch.id, limit)]
    while branch.parent is not None:
        assert branch.fork_sequence is not None
        limit = min(limit, branch.fork_sequence)
        branch = parent_of(branch.parent)
        cuts.append(Cut(branch.id, limit))
    if len(cuts) > limits.LINEAGE_DEPTH_MAX:
        raise ValidationFailed(
            f"A branch may descend from at most {limits.LINEAGE_DEPTH_MAX - 1} others.",
            field="branch",
            limit=limits.LINEAGE_DEPTH_MAX,
            hint="Merge the branch into an earlier one and fork from there.",
        )
    return Lineage(cuts)
