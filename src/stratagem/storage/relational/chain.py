"""Whether the events of a log are those that were appended, all of them, in their order."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from stratagem.engine.events import GENESIS, Event, content_hash, link_of
from stratagem.storage.contract import Finding, Progress
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.projector import CONTENT_PURGED

__all__ = ["check", "faults_of"]


def check(log: SqlLog, progress: Progress, expect: tuple[int, str] | None) -> Iterator[Finding]:
    """Recompute the chain from the events themselves; report where it does not hold.

    `expect` is an event, by sequence and hash, that the log has to contain: without it a truncated
    log looks complete.
    """
    total = log.head().sequence
    previous, last = GENESIS, None
    empty: set[int] = set()
    purged: set[int] = set()
    anchored = expect is None
    for event in log.events(0):
        faults = faults_of(event, previous, last)
        yield from faults
        anchored = anchored or (event.sequence, event.hash.hex()) == expect
        if event.payload is None:
            empty.add(event.sequence)
        # A purge that is itself altered does not explain missing content.
        elif event.kind == CONTENT_PURGED and not faults:
            purged |= set(orjson.loads(event.payload)["sequences"])
        previous, last = event.hash, event
        if event.sequence % 10_000 == 0:
            progress(event.sequence, total, "checking the chain")
    for sequence in sorted(empty - purged):
        yield Finding(
            "An event lost its content without a purge.", f"event {sequence}", repairable=False
        )
    if not anchored and expect is not None:
        yield Finding(
            "The log does not hold the expected event: it was cut short or rewritten.",
            f"event {expect[0]}",
            repairable=False,
        )


def faults_of(event: Event, previous: bytes, last: Event | None) -> list[Finding]:
    """Return what is wrong with one event that follows another."""
    try:
        return list(_link(event, previous, last))
    except TypeError:
        # Damage can leave a value of another type where no constraint was asked again.
        return [Finding("An event cannot be read.", f"event {event.sequence}", repairable=False)]


def _link(event: Event, previous: bytes, last: Event | None) -> Iterator[Finding]:
    """Check one event against its own hashes and the event before it."""
    where = f"event {event.sequence}"
    if event.sequence != (last.sequence if last else 0) + 1:
        yield Finding("Events before this one are missing.", where, repairable=False)
    if last is not None and event.at < last.at:
        yield Finding("An event is older than the one before it.", where, repairable=False)
    if event.payload is not None:
        content = content_hash(event.salt or b"", event.space, event.key, event.payload)
        if content != event.content_hash:
            about = f" about {event.key!r}" if event.key is not None else ""
            yield Finding(f"The content of an event{about} was altered.", where, repairable=False)
    if link_of(event, previous) != event.hash:
        yield Finding(
            "An event does not match the hash of the one before it.", where, repairable=False
        )
