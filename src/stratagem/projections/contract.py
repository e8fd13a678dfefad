"""The interface of a read model outside of the database, and the records it is sent.

It is sent the state of a record, not the events that led to it. So a record is sent once however
often it changed, sending it again changes nothing, and as each state carries the sequence of its
event, an older state that arrives late never replaces a newer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.records import Link, Text

__all__ = ["Companion", "Properties", "ReadModel", "RecordState", "StoredItem"]

# What is kept of an item, by name; compared with what should be.
Properties = dict[str, Any]


class RecordState(NamedTuple):
    """A record at the head of `default`. Without content it is gone.

    `subject` is its number in the log, which outlives its key when it is purged. `node` is what a
    record of a companion kind adds to, with that added; None where it is gone.
    """

    subject: int
    key: str
    kind: str
    sequence: int
    content: Mapping[str, Any] | None = None
    text: Text | None = None
    facets: tuple[str, ...] = ()
    link: Link | None = None
    node: RecordState | None = None

    @property
    def is_purged(self) -> bool:
        """Whether it was purged: only such keys begin with an unprintable character."""
        return not self.key[:1].isprintable()


class Companion(NamedTuple):
    """A kind of record that adds to the one of another kind that has the same key.

    The computed certainty of a concept is such a record: it changes by itself, and is shown with
    the concept.
    """

    node: str
    kind: str


class StoredItem(NamedTuple):
    """An item that a read model holds: what it is called there, and which record it is of."""

    id: str
    subject: int


class ReadModel(Protocol):
    """A read model outside of the database.

    Everything but `name`, `kinds`, `fingerprint` and `expected_properties` may raise:

    Raises:
        ServiceUnavailable: It does not answer; whatever was asked may be asked again later.
        StratagemError: It refuses what it was given.
    """

    @property
    def name(self) -> str:
        """What it is called, in commands and in the outbox."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of record it holds, those that others refer to first."""
        ...

    @property
    def companion(self) -> Companion | None:
        """Which of these kinds only adds to the items of another, and is no item itself."""
        ...

    @property
    def fingerprint(self) -> str:
        """What it was made with: where that changes, it has to be made anew."""
        ...

    def probe(self) -> None:
        """Ask whether it is there."""
        ...

    def clear(self) -> None:
        """Remove everything that came from this database, and get ready for more."""
        ...

    def apply(self, items: Sequence[RecordState]) -> None:
        """Bring some items up to date, all of one kind of record, each one at most once."""
        ...

    def expected_properties(self, items: Sequence[RecordState]) -> dict[str, Properties]:
        """Return what it should hold of some items, by what they are called there."""
        ...

    def fetch(self, ids: Sequence[str]) -> dict[str, Properties]:
        """Return what it does hold under some names."""
        ...

    def stored_items(self) -> Iterator[StoredItem]:
        """Return everything it holds of this database."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
