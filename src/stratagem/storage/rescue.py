"""Building a healthy log from the readable events of a damaged one.

Events that can be read keep their sequences, times, names and values. In the place of each one that
is lost stands an event that says so, because sequences have no gaps. From the first loss on the
hashes are new: the hash of an event covers the one before it, which is not there any more. The last
event of the new log lists what was lost, and says where the old chain ended.

The effect of a lost event is undone: if the newest version of a record is lost, the one before it
is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Protocol

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import GENESIS, SALT_BYTES, Event, Space, content_hash, link_of
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.storage.contract import Finding, Progress, Store
from stratagem.storage.log_copy import receive

__all__ = [
    "Loss",
    "Rescue",
    "Salvage",
    "Trace",
    "fill",
    "find_losses",
    "highest_sequence",
    "ranges",
]

_ACTOR: Final = "stratagem"
_LOST: Final = "EventLost"
_RESCUED: Final = "LogRescued"
_PURGED: Final = "ContentPurged"
_BRANCH_CREATED: Final = "BranchCreated"
_PAGE: Final = 1_000
# How many records a finding names.
_NAMES_MAX: Final = 5
# More events than are lost with a few pages.
_GAP_MAX: Final = 10_000
# It hides nothing, because the content of a lost event is unknown.
_SALT: Final = bytes(SALT_BYTES)


class Trace(NamedTuple):
    """The subject of an event, as a read model still has it."""

    subject: int | None
    branch: int
    space: int
    key: str | None


class Salvage(Protocol):
    """What can be read of a damaged log.

    `last` is the highest sequence that is known of, `branches` what a read model says of each
    branch: its name, its parent and where it forked. `branches_used` are the branches of events.
    """

    last: int
    branches: dict[int, tuple[Any, ...]]
    branches_used: set[int]

    def candidates(self, sequence: int) -> Iterator[Event]:
        """Return what may be an event, each one with the content it was written with."""
        ...

    def trace(self, sequence: int) -> Trace | None:
        """Return what is known of an event that cannot be read."""
        ...

    def space(self, number: int) -> Space | None:
        """Return a space by its number."""
        ...


class Loss(NamedTuple):
    """An event that is lost, and the record it was about, where that is known."""

    sequence: int
    space: Space | None
    key: str | None


class Rescue:
    """The events of a new log, made from what can be read of an old one.

    Its report is complete once all events were iterated. An unverified event has its original
    content, but its time, branch and actor do not fit the chain. An emptied one has no content,
    although no known purge removed it.
    """

    def __init__(self, salvage: Salvage) -> None:
        self._salvage = salvage
        self.losses: list[Loss] = []
        self.unverified: list[int] = []
        self._lost: set[int] = set()
        self._branches: set[int] = set()
        self.emptied: set[int] = set()

    @property
    def is_whole(self) -> bool:
        """Whether every event was there, and the chain held."""
        return not (self.losses or self.unverified or self.emptied)

    def events(self, progress: Progress) -> Iterator[Event]:
        """Return the events of the new log, in order."""
        # Two chains: the old one tells which candidates are genuine, and is unknown behind a lost
        # event; the new one is that of the log that is made.
        old: bytes | None = GENESIS
        new, at, total = GENESIS, 0, self._salvage.last
        for sequence in range(1, total + 1):
            found = self._choose(sequence, old)
            old = found.hash if found is not None else None
            event = _link(self._event_for(sequence, found, at), new)
            new, at = event.hash, event.at
            yield event
            if sequence % _PAGE == 0:
                progress(sequence, total, "rescuing events")
        for event in self._notes(total + 1, at + 1, old):
            linked = _link(event, new)
            new = linked.hash
            yield linked

    def _choose(self, sequence: int, old: bytes | None) -> Event | None:
        """Return the event that continues the old chain, or one that at least was written."""
        found = list(self._salvage.candidates(sequence))
        for event in found:
            if old is not None and _link(event, old).hash == event.hash:
                return event
        if not found:
            return None
        if old is not None:
            self.unverified.append(sequence)
        return found[0]

    def _event_for(self, sequence: int, found: Event | None, at: int) -> Event:
        """Return an event as it goes into the new log, or one in its place."""
        # No reader could ever see an event of a branch that nothing created.
        creates = found is not None and found.kind == _BRANCH_CREATED
        if found is None or not (creates or found.branch in self._branches):
            self._lose(sequence)
            event = self._placeholder(sequence, at)
        else:
            # The time of an unverified event may be anything, and a log's time never goes back.
            event = replace(found, at=max(found.at, at))
        if event.kind == _BRANCH_CREATED:
            self._branches.add(sequence)
        if event.payload is None:
            self.emptied.add(sequence)
        elif event.kind == _PURGED:
            event = self._purge(event)
        return event

    def _lose(self, sequence: int) -> None:
        self._lost.add(sequence)
        if sequence in self.unverified:
            self.unverified.remove(sequence)
        trace = self._salvage.trace(sequence)
        space = self._salvage.space(trace.space) if trace is not None else None
        self.losses.append(Loss(sequence, space, trace.key if trace is not None else None))

    def _placeholder(self, sequence: int, at: int) -> Event:
        """Return the placeholder of a lost event.

        For the creation of a branch, another creation.
        """
        if sequence == 1 or sequence in self._salvage.branches_used:
            named = self._salvage.branches.get(sequence)
            name, parent, fork = named[:3] if named else (None, None, None)
            if parent not in self._branches or not isinstance(fork, int):
                parent = fork = None
            name = name or (DEFAULT_BRANCH if sequence == 1 else f"rescued-{sequence}")
            content = {"name": name, "parent": parent, "fork_sequence": fork}
            return _event(sequence, at, sequence, _BRANCH_CREATED, content)
        return _event(sequence, at, 1, _LOST, {})

    def _purge(self, event: Event) -> Event:
        """Return a purge without the lost events: what stands for them is not empty."""
        assert event.payload is not None
        content = orjson.loads(event.payload)
        sequences = [each for each in content["sequences"] if each not in self._lost]
        self.emptied -= set(sequences)
        if sequences == content["sequences"]:
            return event
        payload = orjson.dumps({**content, "sequences": sequences})
        return replace(
            event,
            payload=payload,
            content_hash=content_hash(event.salt or b"", None, None, payload),
        )

    def _notes(self, sequence: int, at: int, old: bytes | None) -> Iterator[Event]:
        """Return the events that say what was lost."""
        if self.emptied:
            # They were purged, and the event that said so is among the lost.
            yield _event(sequence, at, 1, _PURGED, {"sequences": sorted(self.emptied)})
            sequence += 1
        if not self.is_whole:
            content = {
                "lost": ranges(loss.sequence for loss in self.losses),
                "unverified": self.unverified,
                "chain": old.hex() if old else None,
            }
            yield _event(sequence, at, 1, _RESCUED, content)


def fill(target: Store, events: Iterable[Event]) -> None:
    """Write events into a store that is empty, whole transactions at a time."""
    # The events of one transaction have one time, so that no page ends within a transaction.
    page: list[Event] = []
    for _, together in groupby(events, key=attrgetter("at")):
        page += together
        if len(page) >= _PAGE:
            receive(target, page)
            page = []
    if page:
        receive(target, page)


def highest_sequence(known: Iterable[int]) -> int:
    """Return the last sequence of a log; damage may have made a number of any size of one."""
    ordered = sorted(set(known))
    # More than half of a log may not be missing: a number beyond that is damage, not a sequence.
    reach = 2 * len(ordered) + _GAP_MAX
    return max((each for each in ordered if each <= reach), default=0)


def find_losses(salvage: Salvage, progress: Progress) -> Iterator[Finding]:
    """Say which events of a damaged log are lost, and which records they were about."""
    rescue = Rescue(salvage)
    for _ in rescue.events(progress):
        pass
    for where, about in _describe(rescue.losses):
        yield Finding(f"Lost{about}: it cannot be read at all.", where, repairable=False)
    for first, last in ranges(rescue.unverified):
        words = "It does not match the hash of the event before it."
        yield Finding(words, _name_run(first, last), repairable=False)
    for first, last in ranges(sorted(rescue.emptied)):
        words = "An event lost its content without a purge."
        yield Finding(words, _name_run(first, last), repairable=False)


def _describe(losses: list[Loss]) -> Iterator[tuple[str, str]]:
    """Name the lost events, run by run, and some of the records they were about."""
    by_sequence = {loss.sequence: loss for loss in losses}
    for first, last in ranges(by_sequence):
        keys = [by_sequence[at].key for at in range(first, last + 1)]
        named = list(dict.fromkeys(repr(key) for key in keys if key is not None))
        more = f" and {len(named) - _NAMES_MAX} more" if len(named) > _NAMES_MAX else ""
        about = f" about {', '.join(named[:_NAMES_MAX])}{more}" if named else ""
        yield _name_run(first, last), about


def _name_run(first: int, last: int) -> str:
    return f"event {first}" if first == last else f"events {first} to {last}"


def ranges(sequences: Iterable[int]) -> list[tuple[int, int]]:
    """Return sequences as runs, each by its first and last."""
    runs: list[tuple[int, int]] = []
    for sequence in sequences:
        if runs and sequence == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], sequence)
        else:
            runs.append((sequence, sequence))
    return runs


def _event(sequence: int, at: int, branch: int, kind: str, content: dict[str, Any]) -> Event:
    payload = orjson.dumps(content)
    hashed = content_hash(_SALT, None, None, payload)
    return Event(
        sequence, at, at, branch, kind, None, None, _ACTOR, None, None, payload, _SALT, hashed, b""
    )


def _link(event: Event, previous: bytes) -> Event:
    """Return an event with the hash that binds it to another before it."""
    return replace(event, hash=link_of(event, previous))
