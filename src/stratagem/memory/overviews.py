"""Overviews for people: when things were written, by whom, and in which conversations.

Sequences are dense and follow time, so how much was written in a stretch of time is the difference
of two sequences, whatever the log holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.deferred_modules import defer
from stratagem.engine import moments, values
from stratagem.engine.lineage import OPEN_END, View
from stratagem.memory.kinds import ENTRY, EVENT, TRUST, UNTRUSTED
from stratagem.memory.messages import words_of
from stratagem.memory.models import (
    Activity,
    ActivityBucket,
    FacetCount,
    Facets,
    SessionInfo,
    SessionList,
)
from stratagem.parameters import AsOf, BranchName, Cursor, Param
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import EventContent, Reader

if TYPE_CHECKING:
    from stratagem.search import snippets
else:
    snippets = defer("stratagem.search.snippets")

__all__ = ["Overviews", "kind_of"]

Buckets = Annotated[
    int, Param("Into how many equal intervals", ge=1, le=limits.ACTIVITY_BUCKETS_MAX)
]
OneNamespace = Annotated[str | None, Param("Only this one; default: all")]
_TITLE_CHARS: Final = 100


class Overviews(BoundSystem):
    """Counts of what there is, for one caller."""

    def activity(self, *, buckets: Buckets = limits.ACTIVITY_BUCKETS_DEFAULT) -> Activity:
        """Return how much was written when, on all branches, since the log began."""
        with self._store.snapshot() as reader:
            head = reader.log.head()
            first = reader.log.time_of(1)
            if first is None:
                return Activity([], 0, 0)
            results = list(_buckets(reader, first, head.at, buckets))
        return Activity(
            results, head.sequence, head.sequence, moments.iso(first), moments.iso(head.at)
        )

    def sessions(
        self,
        *,
        namespace: OneNamespace = None,
        branch: BranchName = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
    ) -> SessionList:
        """Return the conversations among the latest logged events, the latest first."""
        before = read_cursor(cursor, start=OPEN_END)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            events = _latest(
                reader, view, EVENT, namespace, before=before, limit=limits.SESSIONS_EVENTS_MAX
            )
        more = len(events) > limits.SESSIONS_EVENTS_MAX
        events = events[: limits.SESSIONS_EVENTS_MAX]
        found: dict[tuple[str, str], SessionInfo] = {}
        for event in events:
            _count_turn(found, event)
        last = str(events[-1].sequence) if more else None
        return SessionList(list(found.values()), len(events), truncated=more, next=last)

    def facets(
        self, *, namespace: OneNamespace = None, branch: BranchName = None, as_of: AsOf = None
    ) -> Facets:
        """Return by whom, of which kind and on which day entries were written."""
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            most = limits.FACETS_ENTRIES_MAX
            found = _latest(reader, view, ENTRY, namespace, before=OPEN_END, limit=most)
        shown = found[:most]
        return Facets(
            _counts(each.actor for each in shown),
            _counts(kind_of(orjson.loads(each.payload)["value"]) for each in shown),
            _counts(moments.iso(each.at)[:10] for each in shown),
            len(shown),
            truncated=len(found) > most,
        )


def kind_of(value: Any) -> str:
    """Return what kind of value something is, in a word."""
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "object"
        case _:
            return "null"


def _buckets(reader: Reader, first: int, last: int, count: int) -> Iterator[ActivityBucket]:
    width = max((last - first + count) // count, 1)
    before = 0
    for place in range(count):
        start = first + place * width
        upto = reader.log.sequence_at(min(start + width - 1, last))
        yield ActivityBucket(moments.iso(start), upto - before, upto)
        before = upto


def _latest(
    reader: Reader, view: View, kind: str, namespace: str | None, *, before: int, limit: int
) -> list[EventContent]:
    """Return the newest records of a kind in some namespaces, one more than the limit if any."""
    found: list[int] = []
    for space in reader.records.spaces(kind).values():
        if namespace not in {None, space.namespace}:
            continue
        if kind == EVENT:
            found += reader.listing.stream(
                view, space, before=before, newest_first=True, limit=limit + 1
            )
        else:
            found += reader.listing.newest(view, space, before=before, limit=limit + 1)
    wanted = sorted(found, reverse=True)[: limit + 1]
    contents = reader.log.contents(wanted)
    return [contents[sequence] for sequence in wanted]


def _count_turn(found: dict[tuple[str, str], SessionInfo], event: EventContent) -> None:
    """Add an event to its conversation; events come newest first."""
    logged = orjson.loads(event.payload)
    session = logged.get("session")
    if session is None:
        return
    at, namespace = moments.iso(event.at), event.space.namespace
    info = found.setdefault((namespace, session), SessionInfo(session, namespace, 0, at, at, []))
    info.events += 1
    info.first = at
    if event.actor not in info.actors:
        info.actors.append(event.actor)
    if logged.get(TRUST) == UNTRUSTED:
        # Whoever wrote it may have written an instruction, and a title stands alone.
        return
    said = words_of(logged["data"]) or values.text_of(logged["data"])
    info.title = snippets.snippet(said, (), chars_max=_TITLE_CHARS)


def _counts(names: Iterable[str]) -> list[FacetCount]:
    return [FacetCount(name, count) for name, count in Counter(names).most_common(50)]
