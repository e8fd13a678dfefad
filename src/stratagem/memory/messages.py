"""What a logged message says, and who says it.

A message is data with a `role`, as model APIs have it, and its words in one of a few fields. It is
found, shown and recognised as an instruction by those words alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

__all__ = [
    "ANSWERING",
    "MACHINES",
    "Side",
    "field_of_words",
    "is_message",
    "role_of",
    "side_of",
    "words_of",
]

# Of an exchange: a user, or whoever speaks for one, and the assistant.
Side = Literal["asking", "answering"]

# The fields that a message has its words in.
_WORDS: Final = ("text", "content", "message", "body")
# Who answers. What the read models mean depends on this and on what a message says: they are to be
# rebuilt after a change.
ANSWERING: Final = frozenset({"agent", "ai", "assistant", "bot", "model"})
# Messages of a conversation that neither ask nor answer.
MACHINES: Final = frozenset({"function", "tool"})
_ASIDE: Final = MACHINES | {"developer", "system"}
# Who takes part in conversations; data with another role may be about a person ("admin").
_SPEAKERS: Final = ANSWERING | _ASIDE | {"human", "user"}


def role_of(data: Any) -> str | None:
    """Return who said a message, as its `role` says in small letters."""
    if isinstance(data, str):
        return None
    role = data.get("role") if type(data) is dict or isinstance(data, Mapping) else None
    return role.strip().lower() if isinstance(role, str) else None


def is_message(data: Any) -> bool:
    """Whether data was said by somebody: it has a role, and words or the role of a speaker."""
    role = role_of(data)
    return role is not None and (role in _SPEAKERS or field_of_words(data) is not None)


def side_of(data: Any) -> Side | None:
    """Return whether a message asks or answers, by its role; None where it does neither."""
    role = role_of(data)
    if role is None or role in _ASIDE:
        return None
    if role not in ANSWERING:
        return "asking"
    # A call of a tool comes before the answer.
    return None if "tool_calls" in data and not words_of(data) else "answering"


def words_of(value: Any) -> str:
    """Return what was said, without the names of fields."""
    # Text first: most values are, and telling a mapping takes ten times as long.
    if isinstance(value, str):
        return value
    name = field_of_words(value)
    return value[name] if name is not None else ""


def field_of_words(value: Any) -> str | None:
    """Return the field of a message that has its words; None where it has none."""
    if type(value) is not dict and not isinstance(value, Mapping):
        return None
    return next((name for name in _WORDS if isinstance(value.get(name), str)), None)
