"""What a system tells the engine about its kinds of record.

The log keeps payloads it does not understand. For each event kind a system supplies one
pure function from payload to `Projection`: what the event does to its record, and what
the index should know of it. Appending and rebuilding both go through that function,
which is why a rebuilt read model is identical to the one that grew.
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
    long body is indexed by passage, because what is asked for stands in a part of it.
    """

    title: str
    body: str
    aside: str = ""
    titled: bool = False
    parted: bool = True


class Link(NamedTuple):
    """What a record says about two others of one space: that one leads to the other.

    Only records that are older than the one that links them can be linked.
    """

    space: Space
    source: str
    target: str
    label: str
    weight: float


class Projection(NamedTuple):
    """What an event means to the read models.

    `facets` are names that a system finds the record by, such as whom it belongs to. They
    are kept like tags, but no caller can write one. Records are listed in the order of their
    `numbers`, and counted by their `group` where their kind is a grouped one.
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
    Of `yielding` fields a merge keeps the target's value where both sides changed it. A `lasting`
    field that either side has stays where both changed the record: no merge takes a mark off.
    `expiry` is the field that says when a record expires: of two versions in conflict the later one
    stands.

    `erasable`: the payload fields that hold what callers wrote; when a record is purged, copies of
    them are looked for in the `quoting` fields of other kinds, which hold what calls were made with
    and what they gave. A record that quotes what is purged loses its content with it, and kept
    results that name it by its `named_by` field go too.

    `owned_by`: the payload field that says whose a record is; a merge puts no record of somebody
    else's in the place of another. Of the fields `guarded` a merge changes nothing that was said
    before, unless a person merges.

    `toolset`: whose right to read a record of the kind takes; where it is None, that of the
    namespace of the record. `portable`: the export of a branch holds such records as they are.

    A `derived` kind follows from other records: a merge leaves it out, and `settle` brings it
    up to date; it is called with the transaction, the branch and what the merge wrote to it.

    For whoever reads of a change: `about` is the field with the key of the record that one is
    called by, and the space of that; `times` are fields in microseconds, which are shown, and taken
    in a decision, as ISO 8601. `notice` says in sentences what a merge brings about that neither
    side wrote; it is called with a reader, the view of the target and what is to be written.
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

    `later` load the kinds of further systems. They are called, in their order, when a name is met
    that those before do not have: whoever works with entries needs no other system's.
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
        """Return what an event means; one of a kind no longer known means nothing."""
        kind = self.find_event(event_kind)
        return kind.project(content, key) if kind else Projection()
