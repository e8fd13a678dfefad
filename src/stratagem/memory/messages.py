"""What a logged message says, and who says it.

A message is data with a `role`, as model APIs have it, and its words are in one of a few fields: a
text, or content blocks (`{"type": "text", "text": …}`, or parts with a `text`). It is found, shown
and recognised as an instruction by those words. Calls of tools, their results and thoughts
are not said to anybody: they are only found, as the other fields of a message are. Pictures and
sounds have no words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from stratagem.deferred_patterns import deferred_pattern

__all__ = [
    "ANSWERING",
    "MACHINES",
    "Side",
    "block_words",
    "is_from_user",
    "is_message",
    "rest_of",
    "role_of",
    "side_of",
    "words_of",
]

# Of an exchange: a user, or whoever speaks for one, and the assistant.
Side = Literal["asking", "answering"]

# The fields that a message has its words in, as a text and as blocks.
_WORDS: Final = ("text", "content", "message", "body")
_BLOCKS: Final = ("content", "parts")
# The types of blocks that say something, and of those that have no words. Parts have no type.
# No sets: whatever was logged as a type can be looked for.
_SAYING: Final = (None, "text", "input_text", "output_text")
_WORDLESS: Final = (
    "audio",
    "image",
    "image_url",
    "input_audio",
    "input_image",
    "redacted_thinking",
)
_THOUGHTS: Final = ("reasoning", "redacted_thinking", "thinking")
# The same as fields beside a content.
_THOUGHT_FIELDS: Final = frozenset({"reasoning", "reasoning_content", "thinking"})
_WORDLESS_PARTS: Final = frozenset({"inlineData", "inline_data"})
# What blocks have beside their content.
_MARKS: Final = frozenset(
    {"cache_control", "call_id", "id", "signature", "thoughtSignature", "tool_use_id", "type"}
)
# Who answers. What the read models mean depends on this and on what a message says: they are to be
# rebuilt after a change.
ANSWERING: Final = frozenset({"agent", "ai", "assistant", "bot", "model"})
# Messages of a conversation that neither ask nor answer.
MACHINES: Final = frozenset({"function", "tool"})
# Whose logged messages may have instructions, and the fields that name a speaker as a role does.
_INSTRUCTING: Final = frozenset({"developer", "human", "system", "user"})
_SAID_BY: Final = ("speaker", "author", "type")
# Who else speaks in logs, as names of roles, of fields and of events: `subagent`, `Agent:coder`,
# `tool_output`, `assistant_message`. At most 60 characters.
_MACHINE: Final = deferred_pattern(
    r"(?:ci|critic|ipython|observations?|(?:agent|ai|assistant|bot|function|model|subagent|tool)s?"
    r"(?::.*|[-_./ ]?"
    r"(?:answer|call|event|message|observation|output|reply|response|result|turn)s?)?)"
)
_NAME_CHARS_MAX: Final = 60
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
    return role is not None and (role in _SPEAKERS or _field_of_words(data) is not None)


def is_from_user(label: str, data: Any) -> bool:
    """Whether what was logged under a label may be a user's: nothing says that another said it."""
    role = role_of(data)
    if role is not None:
        return role in _INSTRUCTING and not any(map(_is_machine, _names_in(data)))
    return not (_is_machine(label) or any(map(_is_machine, _names_in(data))))


def _names_in(data: Any) -> list[Any]:
    """Return what the fields say that may name who said something."""
    return [data.get(name) for name in _SAID_BY] if isinstance(data, Mapping) else []


def _is_machine(name: Any) -> bool:
    if not isinstance(name, str) or len(name) > _NAME_CHARS_MAX:
        return False
    return _MACHINE.fullmatch(name.strip().lower()) is not None


def side_of(data: Any) -> Side | None:
    """Return whether a message asks or answers, by its role; None where it does neither."""
    role = role_of(data)
    if role is None or role in _ASIDE:
        return None
    # A call of a tool comes before the answer, as a thought does, and its result is no question.
    if not words_of(data).strip() and _says_nothing(data):
        return None
    return "answering" if role in ANSWERING else "asking"


def words_of(value: Any) -> str:
    """Return what was said, without the names of fields."""
    # Text first: most values are, and telling a mapping takes ten times as long.
    if isinstance(value, str):
        return value
    name = _field_of_words(value)
    if name is None:
        return ""
    said = value[name]
    return said if isinstance(said, str) else block_words(said)


def rest_of(data: Mapping[str, Any]) -> Any:
    """Return what a message has beside its role and its words, where words may find it."""
    said, held = _field_of_words(data), _field_of_blocks(data)
    known = ("role", said, held)
    rest = {name: value for name, value in data.items() if name not in known}
    if rest.get("type") == "message":
        # The APIs say of every message that it is one.
        del rest["type"]
    if held is None:
        return rest
    blocks = _blocks_in(data[held])
    if said == held:
        blocks = [block for block in blocks if _block_text(block) is None]
    return [rest, *_searchable(blocks)] if blocks else rest


def block_words(content: Any) -> str:
    """Return what the blocks of a message say, a line each."""
    return "\n".join(text for block in _blocks_in(content) if (text := _block_text(block)))


def _field_of_words(value: Any) -> str | None:
    if type(value) is not dict and not isinstance(value, Mapping):
        return None
    for name in _WORDS:
        if isinstance(value.get(name), str):
            return name
    if role_of(value) is None:
        return None
    held = _field_of_blocks(value)
    return held if held is not None and block_words(value[held]) else None


def _field_of_blocks(data: Mapping[str, Any]) -> str | None:
    for name in _BLOCKS:
        if isinstance(data.get(name), (list, dict)):
            return name
    return None


def _blocks_in(content: Any) -> list[Any]:
    """Return the blocks of some content; a single one may stand by itself."""
    return content if isinstance(content, list) else [content]


def _block_text(block: Any) -> str | None:
    """Return the text of a block that says something; None for others."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or block.get("type") not in _SAYING or block.get("thought"):
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _says_nothing(data: Mapping[str, Any]) -> bool:
    """Whether a message without words is for nobody: of tools or of thoughts alone, or empty."""
    if _has_tools(data) or _has_only_thoughts(data):
        return True
    rest = rest_of(data)
    if not isinstance(rest, Mapping):
        return not rest
    # What an API has nothing to say in is null: `"content": null, "refusal": null`.
    return _THOUGHT_FIELDS.issuperset(name for name, value in rest.items() if value is not None)


def _has_only_thoughts(data: Mapping[str, Any]) -> bool:
    """Whether a message without words has thoughts, and no other block but an empty text."""
    held = _field_of_blocks(data)
    blocks = _blocks_in(data[held]) if held is not None else ()
    return bool(blocks) and all(_is_thought(each) or _is_blank(each) for each in blocks)


def _is_blank(block: Any) -> bool:
    text = _block_text(block)
    return text is not None and not text.strip()


def _is_thought(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") in _THOUGHTS or bool(block.get("thought"))


def _has_tools(data: Mapping[str, Any]) -> bool:
    """Whether a message calls tools, or has results of them."""
    if "tool_calls" in data:
        return True
    held = _field_of_blocks(data)
    blocks = _blocks_in(data[held]) if held is not None else ()
    return any(_is_of_tool(block) for block in blocks if isinstance(block, dict))


def _is_of_tool(block: Mapping[str, Any]) -> bool:
    """Whether a block is a call or a result, by its type or its fields, whoever's API it is."""
    names = [block["type"]] if "type" in block else list(block)
    return any("tool" in name or "function" in name for name in names if isinstance(name, str))


def _searchable(blocks: list[Any]) -> list[Any]:
    """Return the content of blocks without their marks, and without those that have no words."""
    return [_without_marks(block) for block in blocks if not _is_wordless(block)]


def _without_marks(block: Any) -> Any:
    text = _block_text(block)
    if text is not None or not isinstance(block, dict):
        return text if text is not None else block
    # The result of a tool may be made of blocks itself.
    kept = {
        name: _searchable(value) if name == "content" and isinstance(value, list) else value
        for name, value in block.items()
        if name not in _MARKS
    }
    return kept["content"] if kept.keys() == {"content"} else kept


def _is_wordless(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") in _WORDLESS or not _WORDLESS_PARTS.isdisjoint(block)
