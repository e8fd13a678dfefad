"""Copying a log from one store into another, of the same kind or not.

Events go over as they are, whole transactions at a time, so that a copy that was interrupted goes
on where it ended. Results of requests and vectors follow; read models grow as the events arrive.
At the end the target is examined: its chain has to end in the source's own hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Event, Head
from stratagem.errors import DatabaseCorrupt, ImportRefused
from stratagem.storage.contract import Progress, RequestResult, Store
from stratagem.storage.copy_mark import COPYING as _COPYING
from stratagem.storage.copy_mark import CopyMark, set_mark

__all__ = ["Copied", "add_results", "add_vectors", "copy", "is_empty", "receive"]

_PAGE: Final = 1_000


class Copied(NamedTuple):
    """What a copy moved, and where both logs now end."""

    events: int
    requests: int
    vectors: int
    head: Head


def is_empty(store: Store) -> bool:
    """Whether nothing was written to a store but the event that every log begins with."""
    return store.reader().log.head().sequence <= 1


def copy(source: Store, target: Store, progress: Progress, mark: CopyMark | None = None) -> Copied:
    """Copy a log into an empty store, or go on with a copy that was begun.

    The target is marked before anything arrives; the caller removes the mark once all that
    belongs together is copied.

    Raises:
        ImportRefused: The target holds another log.
        DatabaseCorrupt: The copy is not what the source is.
    """
    # All of one moment: a result that is remembered without its events would answer for a write
    # that the copy does not have.
    with source.snapshot() as reader:
        head = reader.log.head()
        begin = _begin(source, target)
        if mark is not None:
            set_mark(target, mark)
        for batch in _transactions(source.log(begin), head.sequence):
            receive(target, batch)
            progress(batch[-1].sequence, head.sequence, "copying events")
        requests = _requests(source, target, progress)
        vectors = _vectors(source, target, progress)
    findings = target.examine(progress, (head.sequence, head.hash.hex()))
    if findings:
        raise DatabaseCorrupt(
            f"The copy differs from the source: {findings[0].what}",
            where=findings[0].where,
            hint="Check the source with `stratagem doctor`, then copy it into an empty target.",
        )
    return Copied(head.sequence - begin, requests, vectors, head)


def _begin(source: Store, target: Store) -> int:
    """Return the sequence that a copy begins after."""
    there = target.reader().log.head()
    if source.reader().log.hash_of(there.sequence) == there.hash:
        return there.sequence
    if there.sequence <= 1:
        return 0
    raise ImportRefused(
        "The target holds another log.",
        hint="Choose an empty target, or one that an earlier copy of this source began. "
        "--discard removes what an interrupted copy of another source left in it.",
        path=target.location,
    )


def _transactions(events: Iterable[Event], upto: int) -> Iterator[list[Event]]:
    """Split a log into pages that end at the end of a transaction."""
    page: list[Event] = []
    for event in events:
        if event.sequence > upto:
            break
        if len(page) >= _PAGE and event.at != page[-1].at:
            yield page
            page = []
        page.append(event)
    if page:
        yield page


def _requests(source: Store, target: Store, progress: Progress) -> int:
    """Copy the remembered requests that the target does not know yet."""
    after, seen, done = ("", ""), 0, 0
    while page := source.reader().requests.after(after, _PAGE):
        known = {
            (each.actor, each.request) for each in target.reader().requests.after(after, _PAGE)
        }
        fresh = [each for each in page if (each.actor, each.request) not in known]
        if fresh:
            add_results(target, fresh)
        after, seen, done = (page[-1].actor, page[-1].request), seen + len(page), done + len(fresh)
        progress(seen, seen, "copying remembered requests")
    return done


def _vectors(source: Store, target: Store, progress: Progress) -> int:
    """Copy the vectors, which cost more to make than all the rest."""
    embedder = source.reader().settings.text("embedder")
    if embedder is None:
        return 0
    if target.reader().settings.text("embedder") != embedder:
        target.write(lambda transaction: transaction.vectors.change_embedder(embedder), _COPYING)
    before, total = target.reader().vectors.count(), source.reader().vectors.count()
    if before == total:
        return 0
    last, done = 0, 0
    while page := source.reader().vectors.after(last, _PAGE):
        vectors = {row.sequence: row.vector for row in page}
        add_vectors(target, vectors)
        last, done = page[-1].id, done + len(page)
        progress(done, total, "copying vectors")
    return target.reader().vectors.count() - before


def receive(target: Store, events: Sequence[Event]) -> None:
    """Write whole transactions of another log into a store."""
    target.write(lambda transaction: transaction.receive(events), _COPYING)


def add_results(target: Store, results: Sequence[RequestResult]) -> None:
    """Write results of another log's requests into a store."""
    target.write(lambda transaction: transaction.requests.add(results), _COPYING)


def add_vectors(target: Store, vectors: Mapping[int, bytes]) -> None:
    """Write vectors of another log's texts into a store."""
    target.write(lambda transaction: transaction.vectors.add(vectors), _COPYING)
