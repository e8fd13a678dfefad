"""The text form of answers, for clients that show their model only text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem.answers import AS_DATA, minute_of
from stratagem.engine.lineage import is_transaction

__all__ = [
    "AS_DATA",
    "USUAL_PLACE",
    "brief",
    "by_actor",
    "part_of",
    "say_exchange",
    "searched_view",
    "since",
    "until",
    "where",
    "with_note",
]

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


def since(answer: Mapping[str, Any]) -> str:
    """Say when something imported was written or said first."""
    return f", occurred {minute_of(answer['occurred'])}" if answer.get("occurred") else ""


def by_actor(answer: Mapping[str, Any]) -> str:
    """Say who wrote something, where it came from and whose memory has it, as far as is known."""
    words = f", by {answer['actor']}" if answer.get("actor") else ""
    if answer.get("trust"):
        words += f", {_say_trust(answer)}"
    # The namespace of the person's own memory says it already.
    told = answer.get("owner") in {None, answer.get("namespace", "").partition("/")[0]}
    return words if told else f"{words}, {answer['owner']} memory"


def _say_trust(answer: Mapping[str, Any]) -> str:
    """Say of something that has a `trust` where it came from."""
    return f"{answer['trust']}: from {answer.get('source', 'elsewhere')}"


def part_of(hit: Mapping[str, Any]) -> str:
    """Say of a hit that is shown by a passage how long the whole is, and where that begins."""
    place = f"; passage_at {hit['passage_at']}" if "passage_at" in hit else ""
    return f"part of {hit['chars']:,} characters{place}"


def say_exchange(hit: Mapping[str, Any]) -> Iterator[str]:
    """Say what a message that was found replies to, and what was replied to it."""
    for relation in ("reply_to", "reply"):
        if other := hit.get(relation):
            shown = other.get("passage", "see its own hit in this list")
            doubt = f" ({_say_trust(other)})" if other.get("trust") else ""
            name = f"@{other['sequence']}"
            rest = f" ({name} has all {other['chars']:,} characters)" if other.get("chars") else ""
            yield f"{relation.replace('_', ' ')} {name}{doubt}: {shown}{rest}"


def searched_view(answer: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the branch and the moment of a search: without them a recall may read another text."""
    branch = answer.get("branch", USUAL_PLACE)
    unusual = None if branch == USUAL_PLACE or is_transaction(branch) else branch
    return {
        "branch": given.get("branch") or unusual,
        "as_of": given.get("as_of"),
        "transaction": given.get("transaction"),
    }


def with_note(lines: list[str], answer: Mapping[str, Any]) -> str:
    """Return lines with the note of an answer below them, and how to go on where there is more."""
    said = [*lines, answer["note"]] if answer.get("note") else lines
    following = answer.get("next")
    if answer.get("truncated") and following and f"cursor={following!r}" not in "".join(said):
        said = [*said, f"There is more: call again with cursor={following!r}."]
    return "\n".join(said)
