"""The two kinds of record that memory keeps, and what their events mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.engine import moments, values
from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, RecordKind, Text
from stratagem.function_cache import cache_texts
from stratagem.memory.messages import is_from_user, is_message, rest_of, role_of, words_of
from stratagem.memory.standing import STANDING, is_standing

__all__ = [
    "ENTRY",
    "ENTRY_FORGOTTEN",
    "ENTRY_STORED",
    "EVENT",
    "EVENT_LOGGED",
    "FACET_CAPTURED",
    "FACET_UNTRUSTED",
    "HIDING_DECISIONS",
    "KINDS",
    "PINNED",
    "REVIEWED",
    "REVIEWS",
    "TRUST",
    "UNTRUSTED",
    "Source",
    "capture_facet",
    "entries",
    "event_text",
    "event_title",
    "label_facet",
    "logged_events",
    "origin_moment",
    "origin_time",
    "session_facet",
]

ENTRY: Final = "entry"
EVENT: Final = "event"
ENTRY_STORED: Final = "EntryStored"
ENTRY_FORGOTTEN: Final = "EntryForgotten"
EVENT_LOGGED: Final = "EventLogged"

# Where a record came from, in its field `source`; one that a caller wrote by itself has none.
Source = Literal["user", "assistant", "tool", "web", "import", "remote"]
# The field with the trust of a record, and its value for untrusted ones: searches find these texts,
# but they are never put before a model unasked.
TRUST: Final = "trust"
UNTRUSTED: Final = "untrusted"
FACET_UNTRUSTED: Final = "untrusted"
# What came in by itself has an id in its field `capture`.
FACET_CAPTURED: Final = "captured"
# What was decided about something captured is a record under that id.
REVIEWS: Final = Space("review", "capture")
REVIEWED: Final = "CaptureReviewed"
# Decisions after which no search finds it.
HIDING_DECISIONS: Final = frozenset({"correct", "discard"})
# The tag of entries that every session begins with.
PINNED: Final = "pinned"


@cache_texts(1024)
def entries(namespace: str) -> Space:
    """Return the space of a namespace's entries."""
    return Space(ENTRY, namespace)


def logged_events(namespace: str) -> Space:
    """Return the space of a namespace's logged events."""
    return Space(EVENT, namespace)


def label_facet(label: str) -> str:
    """Return the facet that logged events with a label are found by."""
    return f"label={label}"


def session_facet(session: str) -> str:
    """Return the facet that logged events of a session are found by."""
    return f"session={session}"


def capture_facet(capture: str) -> str:
    """Return the facet that something captured is found by."""
    return f"capture={capture}"


def _project_entry(content: Mapping[str, Any], key: str | None) -> Projection:
    indexed = content.get("index", True)
    value = content["value"]
    return Projection(
        False,  # noqa: FBT003 -- by place: by name they take half as long again
        content.get("expires_at"),
        tuple(content.get("tags", ())),
        (_facets(value) if indexed and _is_trusted(content) else ()) + _origin_facets(content),
        content.get("session") if indexed else None,
        # The key is the entry's title: people search for what they named it.
        Text(key or "", values.text_of(value)) if indexed else None,
    )


def _project_logged_event(content: Mapping[str, Any], _key: str | None) -> Projection:
    data = content["data"]
    session = content.get("session")
    facets = [label_facet(content["event"])]
    if session is not None:
        facets.append(session_facet(session))
    if _is_trusted(content):
        facets += _facets(data, content["event"])
    return Projection(
        tags=tuple(content.get("tags", ())),
        facets=(*facets, *_origin_facets(content)),
        session=session,
        text=Text(event_title(content), event_text(data)),
    )


# The last microsecond of the calendar.
_LAST_MOMENT: Final = 253_402_300_799_999_999


def origin_moment(content: Mapping[str, Any]) -> int | None:
    """Return when something imported was written or said in the tool that it came from.

    None where that is not known; events of which the tool did not know it have 1970.
    """
    origin = content.get("imported")
    if origin is None:
        return None
    try:
        at = moments.from_iso(origin["timestamp"])
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    # What can be written as a time, which the ends of the calendar cannot in another zone.
    return at if 0 < at <= _LAST_MOMENT else None


def origin_time(content: Mapping[str, Any]) -> str | None:
    """Return that moment as answers have it."""
    at = origin_moment(content)
    return None if at is None else moments.iso(at)


def event_title(content: Mapping[str, Any]) -> str:
    """Return what a logged event is found by beside its text: its label.

    A message has none: nearly all of them are labelled `message`, which says nothing about them and
    would match every question with that word.
    """
    return "" if is_message(content["data"]) else content["event"]


def event_text(data: Any) -> str:
    """Return the searchable text of a logged event.

    Of a message it is what was said: who said it and the name of its field are in every message,
    and would match every question about "the user". Other fields of a message follow.
    """
    if not is_message(data):
        return values.text_of(data)
    said = words_of(data)
    rest = rest_of(data)
    more = values.text_of(rest) if rest else ""
    text = f"{said}\n{more}" if said and more else said or more
    return text[: limits.SEARCHED_CHARS_MAX]


def _is_trusted(content: Mapping[str, Any]) -> bool:
    """Whether a text may instruct: only so many are looked through for those that may be shown."""
    return content.get(TRUST) != UNTRUSTED


def _facets(value: Any, label: str | None = None) -> tuple[str, ...]:
    """Return the facets of a value: of an entry's, or of what was logged under a label."""
    is_instruction = (
        is_standing(value)
        if isinstance(value, str)
        else is_standing(words_of(value), role_of(value))
    )
    # Who said it is looked up last: few texts are instructions.
    if is_instruction and (label is None or is_from_user(label, value)):
        return (STANDING,)
    return ()


def _origin_facets(content: Mapping[str, Any]) -> tuple[str, ...]:
    if TRUST not in content and "capture" not in content:
        return ()
    trust = (FACET_UNTRUSTED,) if content.get(TRUST) == UNTRUSTED else ()
    if "capture" in content:
        return (*trust, FACET_CAPTURED, capture_facet(content["capture"]))
    return trust


def _check_merged(content: Mapping[str, Any]) -> None:
    """Refuse a merged value that no store would have taken."""
    values.check(content["value"])


KINDS: Final = (
    RecordKind(
        ENTRY,
        (
            EventKind(ENTRY_STORED, _project_entry),
            EventKind(
                ENTRY_FORGOTTEN, lambda _content, _key: Projection(deleted=True), deletes=True
            ),
        ),
        writes=ENTRY_STORED,
        deletes=ENTRY_FORGOTTEN,
        set_fields=frozenset({"tags"}),
        # Session, source and indexing are never reported as conflicts.
        yielding=frozenset({"session", "index", "source", "imported"}),
        # A merge never raises trust.
        lasting=frozenset({TRUST}),
        expiry="expires_at",
        validate=_check_merged,
        erasable=("value",),
    ),
    RecordKind(
        REVIEWS.kind,
        (EventKind(REVIEWED, lambda _content, _key: Projection()),),
        writes=REVIEWED,
        # Two people who decided about the same thing: the target's decision stands.
        yielding=frozenset({"decision"}),
    ),
    RecordKind(
        EVENT,
        (EventKind(EVENT_LOGGED, _project_logged_event, gives_context=True),),
        erasable=("data",),
    ),
)
