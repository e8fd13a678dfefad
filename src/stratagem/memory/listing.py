"""Lists of entries, logged events, namespaces and tags, in any view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Final, Literal

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments, values
from stratagem.engine.events import Space
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import OPEN_END, View
from stratagem.engine.records import FACET_MARK
from stratagem.errors import ValidationFailed
from stratagem.memory.entries import check_names, check_tags
from stratagem.memory.kinds import (
    ENTRY,
    EVENT,
    TRUST,
    entries,
    label_facet,
    logged_events,
    origin_time,
    session_facet,
)
from stratagem.memory.misses import near_keys
from stratagem.memory.models import (
    Entry,
    EntryList,
    EventList,
    LoggedEvent,
    NamespaceInfo,
    NamespaceList,
    TagInfo,
    TagList,
)
from stratagem.memory.overviews import kind_of
from stratagem.memory.parameters import Tags
from stratagem.parameters import COUNT_ALIASES, AsOf, BranchName, Cursor, Namespace, Param
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import EventContent, Reader
from stratagem.storage.list_cursors import anchor_view, cursor_at, list_check

__all__ = [
    "AfterSequence",
    "EntryOrder",
    "EventLabel",
    "EventOrder",
    "EventSession",
    "Listings",
    "PageLimit",
    "Prefix",
    "Since",
    "entry_cursor",
    "live_namespaces",
]

# An empty list names so many keys, namespaces or tags instead.
_NAMES_SAID: Final = 5
_TAGS_COMPARED: Final = 500
_EVENTS_COMPARED: Final = 200
# A conversation has many events.
_SESSION_EVENTS_COMPARED: Final = 1_000
_FILTERED_AT_ONCE: Final = 500
_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}")

ValueKind = Literal["text", "number", "boolean", "list", "object", "null"]
Prefix = Annotated[str | None, Param("List keys with this prefix")]
EntryOrder = Annotated[Literal["newest", "key"], Param("By time or by key", quiet=True)]
EventOrder = Annotated[Literal["oldest", "newest"], Param("Which comes first", quiet=True)]
EventLabel = Annotated[str | None, Param("Only events with this label", quiet=True)]
EventSession = Annotated[str | None, Param("Only events of this conversation", quiet=True)]
Since = Annotated[
    str | int | None, Param("Events since then, in the words of `as_of`", quiet=True, time="moment")
]
AfterSequence = Annotated[
    int | None, Param("Events after this sequence; 0: all", ge=0, le=OPEN_END)
]
PageLimit = Annotated[
    int,
    Param("How many per page", quiet=True, ge=1, le=limits.LIST_PAGE_MAX, aliases=COUNT_ALIASES),
]


class Listings(BoundSystem):
    """What there is, for one caller."""

    def list(
        self,
        prefix: Prefix = None,
        *,
        tags: Tags = None,
        namespace: Namespace = None,
        order: EntryOrder = "newest",
        limit: PageLimit = limits.LIST_PAGE_DEFAULT,
        branch: BranchName = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
        actor: Annotated[str | None, Param("Only what this caller wrote")] = None,
        kind: Annotated[ValueKind | None, Param("Only values of this kind")] = None,
        since: Annotated[
            str | int | None, Param("Written since then, in the words of `as_of`", time="moment")
        ] = None,
        until: Annotated[
            str | int | None, Param("Written before then, in the words of `as_of`", time="moment")
        ] = None,
    ) -> EntryList:
        """Return the entries of a namespace, newest first or by key, a page at a time.

        All pages show the state that the first one showed, whatever is written meanwhile. A list
        by author, kind or time looks at so many entries at a time: a page of it may be short, or
        empty, and still have a next one.
        """
        begin = prefix or ""
        values.check_text(begin, field="prefix", chars_max=limits.KEY_CHARS_MAX, empty_ok=True)
        wanted, where = check_tags(tags or ()), self._namespace(namespace)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            check = list_check(view.branch.id, where, begin, wanted, order)
            view, anchor, position = anchor_view(reader, view, cursor, check)
            space = entries(where)
            find = _Finder(reader, view, space, begin, wanted, order)
            between = (self._sequence_before(reader, since), self._sequence_until(reader, until))
            if actor is None and kind is None and between == (0, OPEN_END):
                found = find.page(position, limit + 1)
                contents = reader.log.contents(found[:limit])
                last = found[limit - 1] if len(found) > limit else None
            else:
                found, contents, last = find.filter_page(
                    position, limit, _EntryFilter(actor, kind, between)
                )
            listed = EntryList([], truncated=False, next=None, anchor=anchor.text)
            if not found and cursor is None and wanted:
                listed.near_tags = _tags_in_use(reader, view, space, wanted) or None
            elif not found and cursor is None:
                # Without a beginning nothing is near, and all of the namespace would be read.
                near = near_keys(reader.listing, view, space, begin) if begin else ()
                listed.near = list(near) or None
                others = live_namespaces(reader, view, [ENTRY], prefix=begin, besides=where)
                listed.elsewhere = list(islice(others, _NAMES_SAID)) or None
        listed.results = [_entry(contents[sequence]) for sequence in found[:limit]]
        if last is not None:
            listed.truncated = True
            listed.next = entry_cursor(anchor.text, order, contents[last].key or "", last)
        return listed

    def events(
        self,
        event: EventLabel = None,
        *,
        session: EventSession = None,
        since: Since = None,
        after: AfterSequence = None,
        tags: Tags = None,
        namespace: Namespace = None,
        order: EventOrder = "oldest",
        limit: PageLimit = limits.LIST_PAGE_DEFAULT,
        branch: BranchName = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
    ) -> EventList:
        """Return logged events in the order in which they were logged, a page at a time."""
        where = self._namespace(namespace)
        names = [*_facets(event, session), *check_tags(tags or ())]
        newest_first = order == "newest"
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            least = max(after or 0, self._sequence_before(reader, since))
            position = read_cursor(cursor, start=OPEN_END if newest_first else least)
            found = reader.listing.stream(
                view,
                logged_events(where),
                names=names,
                after=least if newest_first else max(least, position),
                before=position if newest_first else OPEN_END,
                newest_first=newest_first,
                limit=limit + 1,
            )
            contents = reader.log.contents(found[:limit])
            space, missed = logged_events(where), not found and cursor is None
            sessions = _near_sessions(reader, view, space, session) if missed and session else []
            unknown = event is not None and missed and not sessions
            near = _labels_in_use(reader, view, space, str(event)) if unknown else []
            others = live_namespaces(reader, view, [EVENT], names=names, after=least, besides=where)
            elsewhere = list(islice(others, _NAMES_SAID)) if missed else []
        page = [_event(contents[sequence]) for sequence in found[:limit]]
        more = len(found) > limit
        return EventList(
            results=page,
            truncated=more,
            next=str(page[-1].sequence) if more else None,
            near=near or None,
            near_sessions=sessions or None,
            elsewhere=elsewhere or None,
        )

    def namespaces(self, *, branch: BranchName = None, as_of: AsOf = None) -> NamespaceList:
        """Return the namespaces that hold something, with how much, the largest first."""
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            counts = reader.listing.space_counts(view, (ENTRY, EVENT))
            spaces = reader.records.spaces()
            found: dict[str, NamespaceInfo] = {}
            newest: dict[str, int] = {}
            for count in counts:
                space = spaces[count.space]
                info = found.setdefault(space.namespace, NamespaceInfo(space.namespace, 0, 0))
                if space.kind == ENTRY:
                    info.entries = count.live
                else:
                    info.events = count.live
                newest[space.namespace] = max(count.newest, newest.get(space.namespace, 0))
            for name, sequence in newest.items():
                found[name].latest = moments.iso(reader.log.time_of(sequence) or 0)
        ordered = sorted(found.values(), key=lambda each: (-each.entries - each.events, each.name))
        return NamespaceList(ordered, self._caller.namespace)

    def tags(
        self,
        *,
        namespace: Annotated[str | None, Param("Only this one; default: all")] = None,
        limit: PageLimit = limits.LIST_PAGE_DEFAULT,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> TagList:
        """Return the tags of entries and logged events with how many have each, most used first."""
        where = None if namespace is None else self._namespace(namespace)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            spaces = [
                number
                for number, space in reader.records.spaces().items()
                if space.kind in {ENTRY, EVENT} and where in {None, space.namespace}
            ]
            counts = reader.listing.tag_counts(view, spaces, limit=limit + 1)
        shown = [TagInfo(count.tag, count.live) for count in counts[:limit]]
        return TagList(shown, truncated=len(counts) > limit)

    def _namespace(self, namespace: str | None) -> str:
        return check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )

    def _sequence_until(self, reader: Reader, until: str | int | None) -> int:
        """Return the first sequence that is not before a moment."""
        return OPEN_END if until is None else self._sequence_before(reader, until) + 1

    def _sequence_before(self, reader: Reader, since: str | int | None) -> int:
        """Return the last sequence before a moment."""
        if since is None:
            return 0
        moment = self._beginning_of(since, reader.log.head().at)
        if isinstance(moment, moments.AtSequence):
            return moment.sequence - 1
        if isinstance(moment, moments.AtTime):
            return reader.log.sequence_at(moment.at - 1)
        return reader.log.head().sequence

    def _beginning_of(self, since: str | int, latest: int) -> moments.Moment:
        """Return the moment that words for a time stand for: of a day or a month, its beginning.

        A view of a day is one of its end; what has happened since a day begins with it.
        """
        now, zone = self._store.now(), self._views.zone
        begins = f"{since}-01" if _MONTH.fullmatch(str(since).strip()) else since
        # Only words for a day can be followed by a time.
        with suppress(ValidationFailed):
            return moments.parse(
                f"{begins} 00:00", now=now, zone=zone, latest=latest, field="since"
            )
        return moments.parse(since, now=now, zone=zone, latest=latest, field="since")


class _EntryFilter(NamedTuple):
    """Whose entries, of which kind, written between two sequences, both left out."""

    actor: str | None
    kind: str | None
    between: tuple[int, int]

    def takes(self, content: EventContent) -> bool:
        after, before = self.between
        return (
            self.actor in {None, content.actor}
            and after < content.sequence < before
            and self.kind in {None, kind_of(orjson.loads(content.payload)["value"])}
        )


class _Finder(NamedTuple):
    """The entries that a list is about, in its order."""

    reader: Reader
    view: View
    space: Space
    prefix: str
    tags: Sequence[str]
    order: str

    def page(self, position: str, limit: int) -> list[int]:
        """Return the entries after a position of the list."""
        listing = self.reader.listing
        if self.order == "key":
            listed = listing.by_key(
                self.view,
                self.space,
                prefix=self.prefix,
                names=self.tags,
                after=position,
                limit=limit,
            )
            return [each.sequence for each in listed]
        return listing.newest(
            self.view,
            self.space,
            prefix=self.prefix,
            names=self.tags,
            before=read_cursor(position or None, start=OPEN_END),
            limit=limit,
        )

    def filter_page(
        self, position: str, limit: int, wanted: _EntryFilter
    ) -> tuple[list[int], dict[int, EventContent], int | None]:
        """Return the entries that a filter takes, and after which the next page begins, if any."""
        found: list[int] = []
        contents: dict[int, EventContent] = {}
        last: int | None = None
        for _ in range(limits.FILTERED_ENTRIES_MAX // _FILTERED_AT_ONCE):
            chunk = self.page(position, _FILTERED_AT_ONCE)
            contents |= self.reader.log.contents(chunk)
            for sequence in chunk:
                if wanted.takes(contents[sequence]):
                    found.append(sequence)
                if len(found) == limit:
                    return found, contents, sequence
            if len(chunk) < _FILTERED_AT_ONCE:
                return found, contents, None
            last = chunk[-1]
            position = (contents[last].key or "") if self.order == "key" else str(last)
        return found, contents, last


def live_namespaces(
    reader: Reader,
    view: View,
    kinds: Iterable[str] = (ENTRY, EVENT),
    *,
    prefix: str = "",
    names: Sequence[str] = (),
    after: int = 0,
    besides: str | None = None,
) -> Iterator[str]:
    """Yield the namespaces that show something, in their order; cheap however much that is.

    Of entries only those count that begin with a prefix, of events those with some names after a
    sequence. `besides` is a namespace that the caller knows to be empty: finding that out here
    would not be cheap, because everything written later has to be skipped.
    """
    wanted = set(kinds)
    spaces = [
        space
        for space in reader.records.spaces().values()
        if space.kind in wanted and space.namespace != besides
    ]
    shown = ""
    for space in sorted(spaces, key=lambda each: each.namespace):
        if space.namespace == shown:
            continue
        if space.kind == EVENT:
            holds = bool(reader.listing.stream(view, space, names=names, after=after, limit=1))
        else:
            holds = bool(reader.listing.by_key(view, space, prefix=prefix, limit=1))
        if holds:
            shown = space.namespace
            yield shown


def _tags_in_use(reader: Reader, view: View, space: Space, tags: Sequence[str]) -> list[str]:
    """Return some tags of a space, those first that are like the ones that found nothing."""
    numbers = [each for each, of in reader.records.spaces(ENTRY).items() if of == space]
    counts = reader.listing.tag_counts(view, numbers, limit=_TAGS_COMPARED)
    in_use = [each.tag for each in counts]
    alike = [each for tag in tags for each in nearest(tag, in_use, _NAMES_SAID)]
    return list(dict.fromkeys([*alike, *in_use]))[:_NAMES_SAID]


def _labels_in_use(reader: Reader, view: View, space: Space, wanted: str) -> list[str]:
    """Return labels of the latest events, those first that are like the one that found nothing."""
    latest = reader.listing.stream(view, space, newest_first=True, limit=_EVENTS_COMPARED)
    labels = [_event(each).event for each in reader.log.contents(latest).values()]
    alike = [each for each in nearest(wanted, set(labels), _NAMES_SAID) if each != wanted]
    return list(dict.fromkeys([*alike, *labels]))[:_NAMES_SAID]


def _near_sessions(reader: Reader, view: View, space: Space, wanted: str) -> list[str]:
    """Return sessions of the latest events, the most alike first; none if the wanted one is there.

    Other filters of a list may leave out all events of a session that is there.
    """
    names = [*_facets(None, wanted)]
    if reader.listing.stream(view, space, names=names, limit=1):
        return []
    latest = reader.listing.stream(view, space, newest_first=True, limit=_SESSION_EVENTS_COMPARED)
    events = (_event(each) for each in reader.log.contents(latest).values())
    sessions = list(dict.fromkeys(each.session for each in events if each.session is not None))
    return list(dict.fromkeys([*nearest(wanted, sessions, _NAMES_SAID), *sessions]))[:_NAMES_SAID]


def entry_cursor(anchor: str, order: str, key: str, version: int) -> str:
    """Return the cursor of a list of entries after one of them."""
    return cursor_at(anchor, key if order == "key" else version)


def _facets(event: str | None, session: str | None) -> Sequence[str]:
    """Return the facets by which events with a label, or of a session, are found."""
    wanted = []
    # A session says more than a label: it comes first, for events are looked for by it.
    if session is not None:
        values.check_text(session, field="session", chars_max=limits.SESSION_CHARS_MAX)
        wanted.append(FACET_MARK + session_facet(session))
    if event is not None:
        values.check_text(event, field="event", chars_max=limits.EVENT_LABEL_CHARS_MAX)
        wanted.append(FACET_MARK + label_facet(event))
    return wanted


def _entry(content: EventContent) -> Entry:
    stored: dict[str, Any] = orjson.loads(content.payload)
    expires = stored.get("expires_at")
    return Entry(
        key=content.key or "",
        value=stored["value"],
        version=content.sequence,
        timestamp=moments.iso(content.at),
        namespace=content.space.namespace,
        tags=stored.get("tags", []),
        expires=None if expires is None else moments.iso(expires),
        actor=content.actor,
        source=stored.get("source"),
        trust=stored.get(TRUST),
        occurred=origin_time(stored),
    )


def _event(content: EventContent) -> LoggedEvent:
    logged: dict[str, Any] = orjson.loads(content.payload)
    return LoggedEvent(
        sequence=content.sequence,
        event=logged["event"],
        data=logged["data"],
        timestamp=moments.iso(content.at),
        namespace=content.space.namespace,
        tags=logged.get("tags", []),
        session=logged.get("session"),
        actor=content.actor,
        source=logged.get("source"),
        trust=logged.get(TRUST),
        occurred=origin_time(logged),
    )
