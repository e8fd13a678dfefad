"""Where entries and logged events can be imported from.

A source gives its records one by one, each checked as a write would check it, and can be
read again: an import reads it once to find every fault, and once more to write. What cannot
be taken is refused with the file, the line and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused, StratagemError
from stratagem.memory.entries import check_names, check_tags
from stratagem.memory.kinds import ENTRY_STORED, EVENT_LOGGED, TRUST, entries, logged_events

__all__ = [
    "FORMATS",
    "ORIGIN_FIELDS",
    "Format",
    "InvalidRecord",
    "JsonLine",
    "Position",
    "Source",
    "bounded_tags",
    "entry_draft",
    "event_draft",
    "field_of",
    "read_lines",
    "read_whole",
    "refuse_with_location",
]

Format = Literal[
    "stratagem",
    "mcp-memory",
    "markdown",
    "claude-memory",
    "codex-memory",
    "gemini-memory",
    "basic-memory",
    "mem0",
    "mcp-memory-service",
    "chroma",
    "chatgpt",
    "claude-export",
]
FORMATS: tuple[Format, ...] = get_args(Format)

# The fields that say where a record came from, and how far it is trusted.
ORIGIN_FIELDS: tuple[str, ...] = ("source", TRUST)

# Called with how much of the source was read, and how much there is.
Position = Callable[[int, int], None]

# A value's JSON, with every character escaped in the longest way.
_LINE_BYTES_MAX = 8 * limits.VALUE_BYTES_MAX
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Source(Protocol):
    """Records that can be imported, readable more than once."""

    @property
    def format(self) -> Format:
        """The form it is in."""
        ...

    def drafts(self, position: Position) -> Iterator[Draft]:
        """Return every record as the event that writes it.

        Raises:
            ImportRefused: A record cannot be taken, or the source is damaged.
        """
        ...


class JsonLine(NamedTuple):
    """A line of a file, its place, and the JSON object it holds."""

    number: int
    record: dict[str, Any]
    data: bytes


class InvalidRecord(Exception):
    """What is wrong with a record; `refuse_with_location` adds the file and the line."""


@contextmanager
def refuse_with_location(path: Path, line: int | None) -> Iterator[None]:
    """Turn errors about a record into `ImportRefused` with its file and line."""
    try:
        yield
    except ImportRefused:
        raise
    except (StratagemError, InvalidRecord) as error:
        reason = error.message if isinstance(error, StratagemError) else str(error)
        place = f"{path}, line {line}" if line else str(path)
        details: dict[str, Any] = {"file": str(path), "reason": reason}
        if line:
            details["line"] = line
        raise ImportRefused.at(place, error, **details) from error


def read_lines(path: Path, position: Position) -> Iterator[JsonLine]:
    """Return each line of a file as the JSON object it must be.

    Raises:
        ImportRefused: One is not, or the file cannot be read.
    """
    number, read = 0, 0
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            while data := file.readline(_LINE_BYTES_MAX):
                number, read = number + 1, read + len(data)
                if data.strip():
                    yield JsonLine(number, _object(path, number, data), data)
                if number % 1_000 == 0:
                    position(read, size)
    except OSError as error:
        raise ImportRefused(
            f"{path} cannot be read: {error.strerror}.", file=str(path), hint="Check the path."
        ) from error
    if not read:
        raise ImportRefused(f"{path} is empty.", file=str(path))


def read_whole(path: Path) -> bytes:
    """Read a file that is one document.

    Raises:
        ImportRefused: It cannot be read, or is too large.
    """
    try:
        if path.stat().st_size > limits.IMPORT_BYTES_MAX:
            megabytes = limits.IMPORT_BYTES_MAX // 1024**2
            raise ImportRefused(f"{path} is larger than {megabytes} MB.", file=str(path))
        return path.read_bytes()
    except OSError as error:
        raise ImportRefused(
            f"{path} cannot be read: {error.strerror}.", file=str(path), hint="Check the path."
        ) from error


def entry_draft(
    key: object,
    value: Any,
    namespace: object,
    *,
    tags: Any = None,
    session: object = None,
    index: object = None,
    expires: object = None,
    origin: Mapping[str, Any] | None = None,
) -> Draft:
    """Return the event that stores an entry, checked as a store would check it.

    `origin` says what it was in another tool; it is kept with the entry.
    """
    name = check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
    values.encode(value)
    content = {"value": value, **_common_fields(tags, session)}
    if index is False:
        content["index"] = False
    if expires is not None:
        content["expires_at"] = _microseconds(expires)
    if origin is not None:
        values.encode(dict(origin), field="imported")
        content |= {"source": "import", "imported": dict(origin)}
    return Draft(ENTRY_STORED, content, entries(_check_namespace(namespace)), name)


def event_draft(record: Mapping[str, Any], namespace: object, source: str | None = None) -> Draft:
    """Return the event that logs an event of another log, checked as a log would check it.

    It keeps the time and sequence it first had: by these it is known when it comes again. `source`
    says that it came from another tool.
    """
    data = field_of(record, "data")
    values.encode(data, field="data")
    event = values.check_text(
        record.get("event"), field="event", chars_max=limits.EVENT_LABEL_CHARS_MAX
    )
    content = {
        "event": event,
        "data": data,
        **_common_fields(record.get("tags"), record.get("session")),
    }
    _microseconds(record.get("timestamp"))
    content["imported"] = {
        "timestamp": record["timestamp"],
        "sequence": _check_sequence(record.get("sequence")),
    }
    if source is not None:
        content["source"] = source
    return Draft(EVENT_LOGGED, content, logged_events(_check_namespace(namespace)))


def bounded_tags(tags: Iterable[str]) -> list[str]:
    """Return those tags of another tool that are short enough, each once, as many as fit."""
    short = [tag for tag in dict.fromkeys(tags) if 0 < len(tag) <= limits.TAG_CHARS_MAX]
    return short[: limits.TAGS_MAX]


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """Return a field that a record must have."""
    if name not in record:
        raise InvalidRecord(f"it has no {name}")
    return record[name]


def _object(path: Path, number: int, data: bytes) -> dict[str, Any]:
    with refuse_with_location(path, number):
        if len(data) >= _LINE_BYTES_MAX:
            raise InvalidRecord(f"it is longer than {_LINE_BYTES_MAX:,} bytes")
        try:
            record = values.read_record(data)
        except orjson.JSONDecodeError as error:
            raise InvalidRecord(f"it is not complete JSON ({error.msg})") from error
        if not isinstance(record, dict):
            raise InvalidRecord("it is not a JSON object")
    return record


def _common_fields(tags: Any, session: object) -> dict[str, Any]:
    """Return the fields that entries and events share, as a write stores them."""
    if tags is not None and not isinstance(tags, list):
        raise InvalidRecord("its tags are not a list")
    shared: dict[str, Any] = {}
    if unique := check_tags(tags or ()):
        shared["tags"] = unique
    if session is not None:
        shared["session"] = values.check_text(
            session, field="session", chars_max=limits.SESSION_CHARS_MAX
        )
    return shared


def _check_namespace(namespace: object) -> str:
    return check_names(namespace, field="namespace", chars_max=limits.NAMESPACE_CHARS_MAX)


def _check_sequence(sequence: object) -> int:
    if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 1:
        raise InvalidRecord(f"its sequence is {sequence!r}")
    return sequence


def _microseconds(text: object) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError) as error:
        raise InvalidRecord(f"{text!r} is not a time in ISO 8601 with an offset") from error
