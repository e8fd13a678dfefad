"""The text form of answers, for clients that show their model only text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem.answers import AS_DATA

__all__ = ["AS_DATA", "USUAL_PLACE", "brief", "by_actor", "until", "where", "with_note"]

# The branch and the namespace that nearly everything is in.
USUAL_PLACE: Final = "default"


def brief(value: Any, chars_max: int = 2_000) -> str:
    """Return a value in so many characters."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= chars_max else text[:chars_max] + "…"


def where(answer: Mapping[str, Any]) -> str:
    """Say where something is, unless that is where nearly everything is."""
    places = ((name, answer.get(name)) for name in ("branch", "namespace"))
    return "".join(
        f", {name} {place!r}" for name, place in places if place not in {None, USUAL_PLACE}
    )


def until(answer: Mapping[str, Any]) -> str:
    """Say when something expires."""
    return f", expires {answer['expires']}" if answer.get("expires") else ""


def by_actor(answer: Mapping[str, Any]) -> str:
    """Say who wrote something, where it came from and whose memory has it, as far as is known."""
    words = f", by {answer['actor']}" if answer.get("actor") else ""
    if answer.get("trust"):
        words += f", {answer['trust']}: from {answer.get('source', 'elsewhere')}"
    return f"{words}, {answer['owner']} memory" if answer.get("owner") else words


def with_note(lines: list[str], answer: Mapping[str, Any]) -> str:
    """Return lines with the note of an answer below them, and how to go on where there is more."""
    said = [*lines, answer["note"]] if answer.get("note") else lines
    following = answer.get("next")
    if answer.get("truncated") and following and f"cursor={following!r}" not in "".join(said):
        said = [*said, f"There is more: call again with cursor={following!r}."]
    return "\n".join(said)
