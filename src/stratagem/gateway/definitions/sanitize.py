"""Remove invisible and bidirectional characters from the texts of tool definitions.

The definition of a tool is read by people who approve it, and by models that follow it. Characters
that only one of them sees, or that change the direction of text, are removed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from stratagem import limits

__all__ = ["clean_definition", "clean_line", "clean_text", "cleaned_schema", "reveal", "reveal_all"]

_KEPT_CONTROLS: Final = frozenset("\n\t")
# Control, format (zero width, direction, tags), private use, surrogates, unassigned.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
# Filled letters and blanks that are shown as nothing, though they count as letters or marks.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0"
)
# In a schema, texts for people; everything else there has a meaning of its own.
_PROSE: Final = frozenset({"description", "title", "$comment"})
# Schemas that hold schemas by name, where "description" may be the name of a property.
_BY_NAME: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_DATA: Final = frozenset({"const", "default", "enum", "examples", "example"})
_TEXTS: Final = ("title", "description", "longDescription")
_SCHEMAS: Final = ("inputSchema", "outputSchema")


def clean_definition(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool whose texts hide nothing; what has a meaning stays."""
    shown = {
        name: "".join(filter(_is_seen, content[name]))
        for name in _TEXTS
        if isinstance(content.get(name), str)
    }
    schemas = {
        name: cleaned_schema(content[name])
        for name in _SCHEMAS
        if isinstance(content.get(name), Mapping)
    }
    return {**content, **shown, **schemas}


def clean_text(text: str, chars_max: int) -> str:
    """Return a text without invisible characters, cut to a length."""
    # Cut first: a text of megabytes is not worth looking at.
    kept = "".join(char for char in text[: chars_max * 2] if _is_seen(char))
    kept = unicodedata.normalize("NFC", kept).strip()
    return kept if len(kept) <= chars_max else kept[: chars_max - 1].rstrip() + "…"


def clean_line(text: str, chars_max: int) -> str:
    """Return a text as `clean_text` does, on one line."""
    return " ".join(clean_text(text, chars_max).split())


def cleaned_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose texts for people are clean; what has a meaning is left as it is."""
    return {key: _cleaned_part(key, value) for key, value in schema.items()}


def reveal(text: str) -> str:
    """Return a text whose unseen characters are spelled out, for people who judge it."""
    return "".join(
        char
        if _is_seen(char)
        else f"⟨U+{ord(char):04X} {unicodedata.name(char, 'without a name')}⟩"
        for char in text
    )


def reveal_all(value: Any) -> Any:
    """Return JSON with every text and name in it as `reveal` shows it."""
    if isinstance(value, str):
        return reveal(value)
    if isinstance(value, Mapping):
        return {reveal(str(name)): reveal_all(each) for name, each in value.items()}
    return [reveal_all(each) for each in value] if isinstance(value, list) else value


def _cleaned_part(key: str, value: Any) -> Any:
    if key in _DATA:
        return value
    if key in _PROSE and isinstance(value, str):
        return clean_text(value, limits.TOOL_DESCRIPTION_CHARS_MAX)
    if key in _BY_NAME and isinstance(value, Mapping):
        return {name: _cleaned_value(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_cleaned_value(part) for part in value]
    return _cleaned_value(value)


def _cleaned_value(value: Any) -> Any:
    return cleaned_schema(value) if isinstance(value, Mapping) else value


def _is_seen(char: str) -> bool:
    if char in _KEPT_CONTROLS or (char.isascii() and char.isprintable()):
        return True
    return char not in _BLANK and not _is_variation(char) and _category(char) not in _UNSEEN


def _is_variation(char: str) -> bool:
    # They can carry a hidden message, one byte each, behind any letter.
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _category(char: str) -> str:
    return unicodedata.category(char)
