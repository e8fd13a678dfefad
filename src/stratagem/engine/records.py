"""The description that a system gives the engine of its kinds of record.

The log stores payloads without interpreting them. For each event kind a system supplies one pure
function from payload to `Projection`: what the event does to its record, and what the index should
know of it. Appending and rebuilding both go through that function, which is why a rebuilt read
model is identical to the one that grew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft, Space

__all__ = [
    "FACET_MARK",
    "EventKind",
    "Kinds",
    "Link",
    "Projection",
    "Projector",
    "RecordKind",
    "Text",
]

# A facet is kept as a tag that begins with a character no caller's tag can have.
FACET_MARK = "\x01"


class Text(NamedTuple):
    """The searchable text of an event.

    Words of `aside` count less than those of the body. `titled`: the title by itself says
    what the text is about, so that its meaning counts as much as that of the whole. `parted`: a
    long body is indexed by passage, because a query usually matches only a part of it.
    """

    title: str
    body: str
    aside: str = ""
    titled: bool = False
    parted: bool = True


class Link(NamedTuple):
    """A directed link between two records of one space, which a third record states.

    Only records that are older than the one that links them can be linked.
    """

    space: Space
    source: str
    target: str
    label: str
    weight: float


class Projection(NamedTuple):
    """What an event means to the read models.

    `facets` are names by which a system finds the record, such as its owner. They are stored like
    tags, but no caller can write one. Records are listed in the order of their `numbers`, and
    counted by their `group` where their kind is a grouped one.
    """

    deleted: bool = False
    expires_at: int | None = None
    tags: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()
    session: str | None = None
    text: Text | None = None
    links: tuple[Link, ...] = ()
    numbers: tuple[tuple[str, float], ...] = ()
    group: str | None = None
    # A vector that callers wrote themselves: 32-bit numbers in base64.
    vector: str | None = None


# Takes a payload, and the key of the record it belongs to.
Projector = Callable[[Mapping[str, Any], str | None], Projection]


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event and the function that projects it.

    `gives_context`: later messages of the same session are indexed with its text. Only
    events that can never be forgotten may give context, or what was forgotten would
    still be found through its neighbours.
    """

    name: str
    project: Projector
    deletes: bool = False
    gives_context: bool = False


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A kind of record: the events that write and delete it, and how two sides merge.

    `set_fields` are the payload fields whose value is a set of strings. A kind without
    `writes` is a stream: its events stand for themselves, and a merge carries them over.
    For `yielding` fields a merge takes the target's value if both sides changed them. If both sides
    changed a record, a `lasting` field that either of them has is kept, so that no merge removes a
    mark. `expiry` is the field with the time at which a record expires: of two conflicting versions
    the one that expires later is taken.

    `erasable`: the payload fields with content that callers wrote; when a record is purged, copies
    of them are searched for in the `quoting` fields of other kinds, which hold arguments and
    results of calls. A record that quotes purged content loses its own content, and stored results
    of requests that name the record by its `named_by` field are erased too.

    `owned_by`: the payload field with the owner of a record; a merge never replaces a record of one
    owner by that of another. A merge changes the existing values of `guarded` fields only if a
    person merges.

    `toolset`: the toolset whose read right is needed for records of the kind; None stands for that
    of the record's namespace. `portable`: exports of a branch contain such records unchanged.

    A `derived` kind follows from other records: a merge leaves it out, and `settle` brings it
    up to date; it is called with the transaction, the branch and what the merge wrote to it.

    For descriptions of changes: `about` is the field with the key of the record whose name stands
    for this one, and the space of that record; `times` are fields in microseconds, which are shown,
    and accepted in a decision, as ISO 8601. `notice` describes in sentences the effects of a merge
    that neither side wrote; it is called with a reader, the view of the target and what is to be
    written.
    """

    name: str
    events: tuple[EventKind, ...]
    writes: str | None = None
    deletes: str | None = None
    set_fields: frozenset[str] = field(default_factory=frozenset)
    validate: Callable[[Mapping[str, Any]], None] | None = None
    yielding: frozenset[str] = field(default_factory=frozenset)
    lasting: frozenset[str] = field(default_factory=frozenset)
    expiry: str | None = None
    grouped: bool = False
    derived: bool = False
    erasable: tuple[str, ...] = ()
    quoting: tuple[str, ...] = ()
    named_by: str | None = None
    owned_by: str | None = None
    guarded: tuple[str, ...] = ()
    toolset: str | None = None
    portable: bool = False
    settle: Callable[[Any, Any, Sequence[Draft]], None] | None = None
    about: tuple[str, Space] | None = None
    times: frozenset[str] = field(default_factory=frozenset)
    notice: Callable[[Any, Any, Sequence[Draft]], list[str]] | None = None


class Kinds:
    """Every kind of record and event that a database may hold.

    `later` load the kinds of further systems. They are called in order when a name is not known
    yet: a program that only works with entries never loads those of other systems.
    """

    def __init__(
        self, kinds: Iterable[RecordKind], *later: Callable[[], Iterable[RecordKind]]
    ) -> None:
        self._records: dict[str, RecordKind] = {}
        self._events: dict[str, EventKind] = {}
        self._later = later
        self._add(kinds)

    def _add(self, kinds: Iterable[RecordKind]) -> None:
        for kind in kinds:
            self._records[kind.name] = kind
            self._events |= {event.name: event for event in kind.events}

    def _load_next(self) -> bool:
        """Load the kinds of one more system; False where there are none left.

        Twice by two threads does no harm.
        """
        if not self._later:
            return False
        load = self._later[0]
        self._add(load())
        self._later = tuple(each for each in self._later if each is not load)
        return True

    @cached_property
    def records(self) -> Mapping[str, RecordKind]:
        """All kinds of record, by their names."""
        while self._load_next():
            pass
        return self._records

    @cached_property
    def giving_context(self) -> tuple[str, ...]:
        """The kinds of record whose texts give later ones of their session context."""
        return tuple(
            kind.name
            for kind in self.records.values()
            if any(event.gives_context for event in kind.events)
        )

    @cached_property
    def deletions(self) -> frozenset[str]:
        """The kinds of event that delete a record."""
        return frozenset(
            event.name for kind in self.records.values() for event in kind.events if event.deletes
        )

    @cached_property
    def quoting(self) -> Mapping[str, RecordKind]:
        """The kinds of record that quote others, by their kinds of event."""
        return {
            event.name: kind
            for kind in self.records.values()
            if kind.quoting
            for event in kind.events
        }

    def find_record(self, name: str) -> RecordKind | None:
        """Return a kind of record by its name; None for one that is no longer known."""
        while name not in self._records and self._load_next():
            pass
        return self._records.get(name)

    def find_event(self, name: str) -> EventKind | None:
        """Return a kind of event by its name; None for one that is no longer known."""
        while name not in self._events and self._load_next():
            pass
        return self._events.get(name)

    def record(self, name: str) -> RecordKind:
        """Return a kind of record that there is, by its name."""
        kind = self.find_record(name)
        assert kind is not None, f"there is no kind of record {name}"
        return kind

    def is_deletion(self, event_kind: str) -> bool:
        """Whether an event of this kind deletes its record."""
        kind = self.find_event(event_kind)
        return kind is not None and kind.deletes

    def project(
        self, event_kind: str, content: Mapping[str, Any], key: str | None = None
    ) -> Projection:
        """Return the projection of an event; that of an unknown kind is empty."""
        kind = self._events.get(event_kind) or self.find_event(event_kind)
        return kind.project(content, key) if kind else Projection()
