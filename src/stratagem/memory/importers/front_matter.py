"""The front matter of Markdown files that tools write: a few fields in YAML, then the text."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple

__all__ = ["NotePage", "read_page", "time_of"]

# At most one match at the beginning; the closing line is the first of its kind.
_FRONT_MATTER: Final = re.compile(
    r"\A---[ \t]*+\r?\n(.*?)^---[ \t]*+(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_CHARS_MAX: Final = 20_000


class NotePage(NamedTuple):
    """The fields of a page, and its text without them."""

    fields: dict[str, Any]
    text: str

    def texts(self, name: str) -> list[str]:
        """Return a field as a list of texts, however it was written."""
        value = self.fields.get(name)
        if isinstance(value, str):
            value = value.split(",")
        parts = value if isinstance(value, list) else [] if value is None else [value]
        plain = [str(part).strip().lstrip("#") for part in parts if isinstance(part, str | int)]
        return [part for part in plain if part]

    def text_of(self, name: str) -> str:
        """Return a field as one text; empty where it is none."""
        value = self.fields.get(name)
        return str(value).strip() if isinstance(value, str | int | float | date) else ""


def read_page(text: str) -> NotePage:
    """Part a text from its front matter; what is no front matter stays in the text."""
    found = _FRONT_MATTER.match(text)
    if found is None or len(found[1]) > _CHARS_MAX:
        return NotePage({}, text)
    import yaml

    try:
        fields = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return NotePage({}, text)
    if not isinstance(fields, dict):
        return NotePage({}, text)
    named = {str(name).lower(): value for name, value in fields.items()}
    return NotePage(named, text[found.end() :].strip("\r\n"))


def time_of(value: Any) -> str | None:
    """Return a time of another tool in ISO 8601, with an offset; None where it is none.

    Numbers are seconds since 1970. A time without an offset is taken for UTC.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC).isoformat()
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
