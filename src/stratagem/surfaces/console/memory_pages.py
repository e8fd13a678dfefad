"""Memory: entries with their history, and conversations as they were said."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, Final

import orjson

from stratagem.errors import ResourceNotFound, StratagemError, ValidationFailed
from stratagem.memory.messages import words_of
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute, whole_number
from stratagem.surfaces.console.value_views import looks_like_markdown, read_value
from stratagem.surfaces.console.visits import Visit

__all__ = ["MEMORY_PAGES"]

PINNED: Final = "pinned"
_PAGE_ENTRIES: Final = 40
_TAGS_SHOWN: Final = 30
_VERSIONS_SHOWN: Final = 30
_TURNS: Final = 200
FORMS: Final = ("text", "tree", "markdown", "json")


async def entries(visit: Visit) -> ConsolePage:
    """List entries, with counts by namespace, tag, author, kind and day to narrow them by."""
    query = visit.query
    namespaces = (await visit.read_counts("strata_namespaces"))["results"]
    namespace = query.get("ns") or _largest(namespaces, visit.caller.namespace)
    tags = [tag for tag in query.getlist("tag") if tag]
    since, until = _day(query.get("day"))
    listed = await visit.read(
        "strata_list",
        namespace=namespace,
        prefix=query.get("prefix") or None,
        tags=tags or None,
        order="key" if query.get("order") == "key" else "newest",
        actor=query.get("author") or None,
        kind=query.get("type") or None,
        since=since,
        # Of the present day there is no end yet.
        until=until if until is not None and until < visit.now else None,
        limit=_PAGE_ENTRIES,
        cursor=query.get("cursor") or None,
    )
    tag_counts = await visit.read_counts("strata_tags", namespace=namespace, limit=_TAGS_SHOWN)
    data = {
        "namespace": namespace,
        "namespaces": namespaces,
        "entries": listed["results"],
        "next": listed.get("next"),
        "tags": tags,
        "tag_counts": tag_counts["results"],
        "facets": await visit.read_counts("strata_facets", namespace=namespace),
        "chosen": {name: query.get(name, "") for name in ("author", "type", "day", "prefix")},
        "order": query.get("order", "newest"),
    }
    return ConsolePage("memory.html", f"Memory: {namespace}", data, "memory")


def _largest(namespaces: list[dict[str, Any]], usual: str) -> str:
    holding = [each["name"] for each in namespaces if each["entries"]]
    return usual if usual in holding or not holding else str(holding[0])


def _day(text: str | None) -> tuple[str | None, str | None]:
    """Return the first moment of a day and of the next one; nothing for no day.

    Raises:
        ValidationFailed: It is no day.
    """
    if not text:
        return None, None
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ValidationFailed(
            f"{text!r} is not a day.", field="day", hint="Such as 2026-03-31."
        ) from error
    return f"{day}T00:00:00Z", f"{day + timedelta(days=1)}T00:00:00Z"


async def entry(visit: Visit) -> ConsolePage:
    """Show one entry: its value, where it comes from, and every version of it."""
    key, namespace = _which(visit)
    found = await visit.read("strata_recall", key=key, namespace=namespace)
    past = await visit.read("strata_history", key=key, namespace=namespace, limit=_VERSIONS_SHOWN)
    versions = past.get("results", [])
    if not found["found"] and not versions:
        raise ResourceNotFound(
            f"Nothing is stored under {key!r} in {namespace!r}.",
            hint="It may be on another branch, in another namespace, or not yet at this moment.",
        )
    new, old = _choose_versions(visit, versions)
    data = {
        "key": key,
        "namespace": namespace,
        "entry": found if found["found"] else None,
        "missing": None if found["found"] else found,
        "versions": versions,
        "more_versions": past.get("truncated", False),
        "new": new,
        "old": old,
        "form": _form_of(visit, found),
        "pinned": PINNED in found.get("tags", []),
        "ttl": _seconds_left(visit, found.get("expires")),
    }
    return ConsolePage("entry.html", key, data, "memory")


def _which(visit: Visit) -> tuple[str, str]:
    key = visit.query.get("key")
    if key is None:
        raise ValidationFailed("Which entry?", field="key", hint="Choose one in the list.")
    return key, visit.query.get("ns") or visit.caller.namespace


def _choose_versions(
    visit: Visit, versions: list[dict[str, Any]]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the two versions whose difference is shown: those asked for, or the last two."""
    by_number = {str(each["version"]): place for place, each in enumerate(versions)}
    place = by_number.get(visit.query.get("to", ""), 0)
    before = by_number.get(visit.query.get("from", ""), place + 1)
    new = versions[place] if place < len(versions) else None
    return new, versions[before] if before < len(versions) else None


def _form_of(visit: Visit, found: dict[str, Any]) -> str:
    """Return how a value is shown: as asked for, or as it seems to be meant."""
    asked = visit.query.get("form", "")
    if asked in FORMS:
        return asked
    value = found.get("value")
    if isinstance(value, dict | list):
        return "tree"
    return "markdown" if looks_like_markdown(value) else "text"


def _seconds_left(visit: Visit, expires: str | None) -> int | None:
    if expires is None:
        return None
    left = datetime.fromisoformat(expires) - datetime.fromisoformat(visit.now)
    return max(int(left.total_seconds()), 1)


def _place(fields: dict[str, str]) -> dict[str, Any]:
    return {"key": fields.get("key", ""), "namespace": fields.get("ns") or None}


def _address(visit: Visit, fields: dict[str, str]) -> str:
    return visit.url("/memory/entry", ns=fields.get("ns"), key=fields.get("key"))


async def _edit(visit: Visit, fields: dict[str, str]) -> Done:
    try:
        value = read_value(fields.get("value", ""), as_json=fields.get("as") == "json")
    except orjson.JSONDecodeError as error:
        raise ValidationFailed(
            f"This is not JSON: {error}.", field="value", hint="Correct it, or store it as text."
        ) from error
    tags = [tag.strip() for tag in fields.get("tags", "").split(",") if tag.strip()]
    expected = fields.get("version")
    stored = await visit.write(
        "strata_store",
        **_place(fields),
        value=value,
        tags=tags,
        ttl=_duration(fields.get("ttl", "")),
        expected_version=whole_number(expected, field="version") if expected else None,
    )
    undo = {}
    if expected and whole_number(expected, field="version"):
        undo = _undo_restore(fields, expected, stored["version"])
    return Done(
        _address(visit, fields),
        f"Stored {fields.get('key')} as version {stored['version']}.",
        undo,
        _address(visit, fields),
    )


def _duration(text: str) -> str | int | None:
    plain = text.strip()
    return whole_number(plain, field="ttl") if plain.isdecimal() else plain or None


def _undo_restore(fields: dict[str, str], version: str, expected: int) -> dict[str, Any]:
    return {
        "act": "restore",
        "key": fields.get("key", ""),
        "ns": fields.get("ns", ""),
        "version": version,
        "expected": str(expected),
    }


async def _new(visit: Visit, fields: dict[str, str]) -> Done:
    # Zero: there must be nothing yet.
    return await _edit(visit, {**fields, "version": "0"})


async def _forget(visit: Visit, fields: dict[str, str]) -> Done:
    was = await visit.call("strata_recall", **_place(fields), branch=visit.branch)
    await visit.write("strata_forget", **_place(fields))
    undo = _undo_restore(fields, str(was["version"]), 0) if was["found"] else {}
    return Done(
        visit.url("/memory", ns=fields.get("ns")),
        f"Forgot {fields.get('key')}. Past moments still show it.",
        undo,
        _address(visit, fields),
    )


async def _restore(visit: Visit, fields: dict[str, str]) -> Done:
    was = await visit.call(
        "strata_recall", **_place(fields), branch=visit.branch, as_of=f"@{fields['version']}"
    )
    if not was["found"]:
        raise ResourceNotFound("In that version the entry was forgotten.")
    expected = fields.get("expected")
    stored = await visit.write(
        "strata_store",
        **_place(fields),
        value=was["value"],
        tags=was.get("tags", []),
        expected_version=whole_number(expected, field="version") if expected else None,
    )
    said = f"Stored version {fields['version']} again, as version {stored['version']}."
    return Done(_address(visit, fields), said)


async def _pin(visit: Visit, fields: dict[str, str]) -> Done:
    was = await visit.call("strata_recall", **_place(fields), branch=visit.branch)
    if not was["found"]:
        raise ResourceNotFound("The entry no longer exists, so it cannot be pinned.")
    tags = [tag for tag in was.get("tags", []) if tag != PINNED]
    pin = fields.get("act") == "pin"
    await visit.write(
        "strata_store",
        **_place(fields),
        value=was["value"],
        tags=[*tags, PINNED] if pin else tags,
        ttl=_seconds_left(visit, was.get("expires")),
        expected_version=was["version"],
    )
    words = "Pinned: agents see it when a session starts." if pin else "No longer pinned."
    return Done(_address(visit, fields), words)


async def _purge(visit: Visit, fields: dict[str, str]) -> Done:
    if fields.get("confirm") != fields.get("key"):
        raise ValidationFailed(
            "The text does not match the key, so nothing was erased.",
            field="confirm",
            hint="Type the key exactly to confirm.",
        )
    purged = await visit.write("strata_purge", **_place(fields))
    said = f"Erased {purged['erased']} versions for good. {purged.get('note', '')}"
    return Done(visit.url("/memory", ns=fields.get("ns")), said)


async def sessions(visit: Visit) -> ConsolePage:
    """List conversations, the latest first."""
    found = await visit.read("strata_sessions", cursor=visit.query.get("cursor") or None)
    data = {"sessions": found["results"], "next": found.get("next"), "looked": found["events"]}
    return ConsolePage("sessions.html", "Sessions", data, "sessions")


async def session(visit: Visit) -> ConsolePage:
    """Show a conversation as it was said."""
    name = visit.query.get("id", "")
    namespace = visit.query.get("ns") or visit.caller.namespace
    try:
        found = await visit.read(
            "strata_events",
            session=name,
            namespace=namespace,
            limit=_TURNS,
            cursor=visit.query.get("cursor") or None,
        )
    except StratagemError:
        found = {"results": []}
    if not found["results"]:
        raise ResourceNotFound(f"There is no session {name!r} in {namespace!r}.")
    data = {
        "session": name,
        "namespace": namespace,
        "turns": [_turn(each) for each in found["results"]],
        "next": found.get("next"),
    }
    return ConsolePage("session.html", f"Session {name}", data, "sessions")


async def events(visit: Visit) -> ConsolePage:
    """List logged events, the latest first, whether they belong to a conversation or not."""
    namespaces = (await visit.read_counts("strata_namespaces"))["results"]
    holding = [each for each in namespaces if each["events"]]
    usual = str(holding[0]["name"]) if holding else visit.caller.namespace
    namespace = visit.query.get("ns") or usual
    found = await visit.read(
        "strata_events",
        namespace=namespace,
        event=visit.query.get("label") or None,
        order="newest",
        limit=_PAGE_ENTRIES,
        cursor=visit.query.get("cursor") or None,
    )
    data = {
        "namespace": namespace,
        "namespaces": holding,
        "label": visit.query.get("label", ""),
        "events": found["results"],
        "next": found.get("next"),
    }
    return ConsolePage("events.html", "Logged events", data, "sessions")


async def event(visit: Visit) -> ConsolePage:
    """Show one logged event."""
    sequence = visit.query.get("sequence", "")
    namespace = visit.query.get("ns") or visit.caller.namespace
    if not sequence.isdecimal():
        raise ValidationFailed("Which event?", field="sequence", hint="Choose one in the list.")
    number = whole_number(sequence, field="sequence")
    found = await visit.read(
        "strata_events", namespace=namespace, after=number - 1, order="oldest", limit=1
    )
    shown = next((each for each in found["results"] if each["sequence"] == number), None)
    if shown is None:
        raise ResourceNotFound(f"There is no event @{sequence} in {namespace!r} here.")
    return ConsolePage("event.html", f"Event @{sequence}", {"event": shown}, "sessions")


async def _purge_event(visit: Visit, fields: dict[str, str]) -> Done:
    sequence = fields.get("sequence", "")
    if not sequence or fields.get("confirm") != sequence:
        raise ValidationFailed(
            "The text does not match the number of the event, so nothing was erased.",
            field="confirm",
            hint="Type it exactly to confirm.",
        )
    await visit.write("strata_purge", sequence=whole_number(sequence, field="sequence"))
    return Done(visit.url("/sessions/events", ns=fields.get("ns")), "Erased the event for good.")


def _turn(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a conversation with who speaks, and what is said."""
    data = event["data"]
    role = event["event"]
    if isinstance(data, dict):
        role = str(data.get("role") or data.get("speaker") or event["event"])
    said = data if isinstance(data, str) else words_of(data) or None
    return {**event, "role": role, "said": said}


MEMORY_PAGES: Final = (
    PageRoute("/memory", entries, {"new": _new}),
    PageRoute(
        "/memory/entry",
        entry,
        {
            "edit": _edit,
            "forget": _forget,
            "restore": _restore,
            "pin": _pin,
            "unpin": _pin,
            "purge": _purge,
        },
    ),
    PageRoute("/sessions", sessions),
    PageRoute("/sessions/events", events),
    PageRoute("/sessions/event", event, {"purge": _purge_event}),
    PageRoute("/sessions/transcript", session),
)
