"""Standing instructions and preferences: what a user wants from now on.

"Always show the units when I ask for a measure", "I prefer trains to planes", "call me Jo". Queries
rarely contain their words, because they apply to everything that follows. So they are recognised
when they are written, ranked higher than other texts, and listed separately.

They are recognised by how English says such things, in the first lines of what was said by
anybody but an assistant. What is missed is found like any other text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from stratagem.deferred_patterns import deferred_pattern
from stratagem.function_cache import cache_texts

__all__ = [
    "STANDING",
    "Side",
    "find_standing",
    "is_by_machine",
    "is_standing",
    "role_of",
    "side_of",
    "words_of",
]

# Of an exchange: a user, or whoever speaks for one, and the assistant.
Side = Literal["asking", "answering"]

# The facet that standing instructions and preferences are found by.
STANDING: Final = "standing"

# The fields that a message has its words in.
_WORDS: Final = ("text", "content", "message", "body")
# A text that goes on for longer is a document, and speaks to everybody.
_CHARS_MAX: Final = 2_000
# Longer texts are rarer, and much to keep.
_CACHED_CHARS_MAX: Final = 400
# Whose texts are no instructions. What is recognised is stored as a facet: to change this, or the
# pattern, is to change what the read models mean, which are then to be rebuilt.
_ASSISTANTS: Final = frozenset({"assistant", "ai", "bot", "model"})
_ANSWERING: Final = _ASSISTANTS | {"agent"}
# Messages of a conversation that neither ask nor answer.
_MACHINES: Final = frozenset({"function", "tool"})
_ASIDE: Final = _MACHINES | {"developer", "system"}

# What an assistant is told to do; "always here to help" is no instruction.
_DEEDS: Final = (
    "add|address|answer|apply|ask|assume|avoid|be|begin|book|call|check|cite|combine|commit|confirm|"
    "convert|create|delete|deploy|do|double-check|emphasi[sz]e|end|ensure|explain|focus|follow|"
    "format|give|highlight|include|keep|let|list|log|maintain|make|mark|mention|merge|name|offer|"
    "order|output|prefer|present|prioriti[sz]e|provide|push|put|quote|read|recommend|refer|remember|"
    "remind|reply|report|respond|return|round|run|save|say|schedule|send|set|show|sign|sort|speak|"
    "start|state|store|structure|suggest|summari[sz]e|tell|test|translate|treat|update|use|verify|"
    "write"
)
# At most 2,000 characters: the number of places to begin at is bounded.
_INSTRUCTION: Final = (
    r"(?:please |and |so |also,? |but )?"
    rf"(?:(?:please )?(?:always|never) (?:{_DEEDS})\b|from now on\b|going forward,|"
    r"whenever i (?:ask|say|want|need)\b|"
    rf"(?:do not|don['’]t) ever (?:{_DEEDS})\b|"
    r"call me [a-z]|address me as\b|remember that i\b|keep in mind that i\b|"
    r"(?:i want you to|you should|you must|make sure (?:to|you)) (?:always|never)\b)"
)
_PREFERENCE: Final = (
    r"\b(?:i|we)(?: (?:really|much|usually|generally|strongly|always|still|would))? prefer\b"
    r"|\bi['’]d (?:much )?(?:prefer|rather)\b"
    r"|\b(?:i|we) (?:hate|dislike|can['’]t stand|cannot stand) (?:it when|when|being)\b"
    r"|\bi (?:don['’]t|do not) (?:like it when|want you to)\b"
    r"|\buser (?:prefers|likes|dislikes|hates|wants|(?:does not|doesn['’]t) (?:like|want))\b"
    r"|\bmy (?:stated )?preference\b"
)
_STANDING: Final = deferred_pattern(
    rf"(?:^|[.!?;:\n]\s?){_INSTRUCTION}|{_PREFERENCE}", re.IGNORECASE
)
# One of these is in whatever the pattern finds. Looking for them takes a tenth of the time, and
# most texts have none.
_SIGNS: Final = (
    "always", "never", "from now on", "going forward,", "whenever i ", " ever ", "call me ",
    "address me as", "remember that i", "keep in mind that i", "prefer", "rather", "hate",
    "dislike", "stand ", "like it when", "want you to", "user likes", "user wants", "user does",
)  # fmt: skip
_SENTENCE_ENDS: Final = deferred_pattern(r"[.!?](?=\s|$)|\n")


def is_standing(text: str, role: str | None = None) -> bool:
    """Whether a text says what its author wants from now on."""
    find = _find_short_standing if len(text) <= _CACHED_CHARS_MAX else find_standing
    return find(text, role) is not None


def find_standing(text: str, role: str | None = None) -> str | None:
    """Return the sentence that says what its author wants from now on; None if none does."""
    if role in _ASSISTANTS or len(text) > _CHARS_MAX:
        return None
    found = _STANDING.search(text) if _may_be_standing(text) else None
    if found is None:
        return None
    begin = max(
        (end.end() for end in _SENTENCE_ENDS.finditer(text, 0, found.start() + 1)), default=0
    )
    end = _SENTENCE_ENDS.search(text, max(found.end() - 1, begin))
    return text[begin : end.end() if end else len(text)].strip()


# What was written on a branch, or in a transaction, is written again when it is merged.
_find_short_standing = cache_texts(4_096)(find_standing)


def _may_be_standing(text: str) -> bool:
    """Whether a text has any of the words that every standing instruction or preference has."""
    if not text.isascii():
        # The pattern knows more pairs of small and capital letters than `lower` does.
        return True
    small = text.lower()
    for sign in _SIGNS:  # noqa: SIM110 -- a generator takes twice as long, for every text written
        if sign in small:
            return True
    return False


def side_of(data: Any) -> Side | None:
    """Return whether a message asks or answers, by its role; None where it does neither."""
    role = role_of(data)
    if role is None or role in _ASIDE:
        return None
    if role not in _ANSWERING:
        return "asking"
    # A call of a tool comes before the answer.
    return None if "tool_calls" in data and not words_of(data) else "answering"


def is_by_machine(data: Any) -> bool:
    """Whether a message was not said by a person, nor by whoever set the assistant up."""
    role = role_of(data)
    return role in _ANSWERING or role in _MACHINES


def words_of(value: Any) -> str:
    """Return what was said, without the names of fields."""
    # Text first: most values are, and telling a mapping takes ten times as long.
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return next((text for name in _WORDS if isinstance(text := value.get(name), str)), "")
    return ""


def role_of(data: Any) -> str | None:
    """Return who said a message, as its `role` says in small letters."""
    if isinstance(data, str):
        return None
    role = data.get("role") if isinstance(data, Mapping) else None
    return role.strip().lower() if isinstance(role, str) else None
