"""The tools that an upstream server lists, sanitized before they are shown or registered.

A list is untrusted. A malformed tool must not hide the others, and no text may look different from
what it is: invisible characters, and those that change the direction of writing, are removed from
names and descriptions.

The fingerprint of a tool is computed *as it was sent*, before anything is sanitized or truncated,
so that no change can hide in what is removed here.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.definitions.contract import ListedTool
from stratagem.gateway.definitions.sanitize import clean_line, clean_text, cleaned_schema

__all__ = [
    "UpstreamTools",
    "clean_line",
    "clean_text",
    "fingerprint",
    "fingerprints",
    "read_icons",
    "read_upstream_tools",
]

_FINGERPRINTED: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class UpstreamTools:
    """The tools of one server, and notes about its list."""

    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()


def fingerprint(tool: Mapping[str, Any]) -> str:
    """Return a hash of a tool's description and schemas, as sent by the server."""
    fields = {key: tool[key] for key in _FINGERPRINTED if tool.get(key) is not None}
    canonical = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def fingerprints(listed: Iterable[ListedTool]) -> dict[str, str]:
    """Return the fingerprint of each listed tool by its upstream name."""
    return {tool.handler["tool"]: tool.handler["fingerprint"] for tool in listed}


def read_upstream_tools(server: str, tools: Sequence[Any]) -> UpstreamTools:
    """Return the usable ones of the tools that a server sent, in its order."""
    listed: dict[str, ListedTool] = {}
    names: set[str] = set()
    notes: list[str] = []
    for at, tool in enumerate(tools[: limits.UPSTREAM_TOOLS_MAX]):
        label, found = _read_tool(server, tool, notes)
        if found is None:
            notes.append(f"tool {at} ({label}) is left out")
        elif label in listed or found.name in names:
            notes.append(f"tool {at} ({found.name}) has the name of another and is left out")
        else:
            listed[label] = found
            names.add(found.name)
    if len(tools) > limits.UPSTREAM_TOOLS_MAX:
        notes.append(f"only the first {limits.UPSTREAM_TOOLS_MAX} of {len(tools)} tools are used")
    return UpstreamTools(tuple(listed.values()), tuple(notes))


def _read_tool(server: str, tool: Any, notes: list[str]) -> tuple[str, ListedTool | None]:
    """Return the tool's upstream name and the tool, or a reason and None if it is unusable."""
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return "without a name", None
    raw = tool["name"]
    if not clean_line(raw, 1) or len(raw) > limits.UPSTREAM_NAME_CHARS_MAX:
        return f"{clean_line(raw, 40)!r}: no usable name", None
    name = _tool_name(raw)
    arguments, result = tool.get("inputSchema"), tool.get("outputSchema")
    if arguments is None:
        notes.append(f"{name} has no input schema: any object is accepted")
        arguments = {"type": "object"}
    if fault := _schema_fault(arguments):
        return f"{name}: its input schema {fault}", None
    if result is not None and (fault := _schema_fault(result)):
        notes.append(f"{name}: its output schema {fault}, and is not used")
        result = None
    description = tool.get("description")
    title, annotations = tool.get("title"), tool.get("annotations")
    return raw, ListedTool(
        name=name,
        description=_text_or(description, "", limits.TOOL_DESCRIPTION_CHARS_MAX),
        input_schema=cleaned_schema({"type": "object"} | dict(arguments)),
        handler={"type": "mcp", "server": server, "tool": raw, "fingerprint": fingerprint(tool)},
        output_schema=None if result is None else cleaned_schema(result),
        title=_text_or(title, "", limits.UPSTREAM_TITLE_CHARS_MAX) or None,
        annotations=_annotations(annotations),
        icons=read_icons(tool.get("icons")),
        said=_as_said(tool),
    )


def _as_said(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool says of itself, as it was sent; texts are cut as they are registered."""
    said = {key: tool[key] for key in _FINGERPRINTED if tool.get(key) is not None}
    return {
        key: each[: 2 * limits.TOOL_DESCRIPTION_CHARS_MAX] if isinstance(each, str) else each
        for key, each in said.items()
        if not key.endswith("Schema") or _schema_fault(each) is None
    }


def _tool_name(raw: str) -> str:
    """Return a name that the registry accepts; different names stay different.

    Invalid characters are replaced, and a changed name gets a suffix from the original's hash.
    """
    shown = unicodedata.normalize("NFKC", clean_line(raw, limits.UPSTREAM_NAME_CHARS_MAX))
    name = "".join(char if _is_name_character(char) else "_" for char in shown).strip("_.-")
    if not name[:1].isalpha():
        name = f"tool_{name}"
    return (
        _shorten_name(name, raw)
        if name == raw
        else _shorten_name(f"{name}_{_hash_suffix(raw)}", raw)
    )


def _shorten_name(name: str, original: str) -> str:
    if len(name) <= limits.TOOL_NAME_CHARS_MAX:
        return name
    piece = _hash_suffix(original)
    return f"{name[: limits.TOOL_NAME_CHARS_MAX - len(piece) - 1]}_{piece}"


def _hash_suffix(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _is_name_character(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "_.-")


def _annotations(value: Any) -> dict[str, Any] | None:
    """Return the known annotations of a tool that have the right types."""
    if not isinstance(value, Mapping):
        return None
    kept: dict[str, Any] = {
        key: flag for key, flag in value.items() if isinstance(flag, bool) and key.endswith("Hint")
    }
    if isinstance(value.get("title"), str):
        kept["title"] = clean_line(value["title"], limits.UPSTREAM_TITLE_CHARS_MAX)
    return kept or None


def read_icons(value: Any) -> tuple[dict[str, Any], ...]:
    """Return the icons of a tool that a client may show."""
    if not isinstance(value, list):
        return ()
    kept = [
        {name: icon[name] for name in ("src", "mimeType", "sizes", "theme") if name in icon}
        for icon in value[: limits.UPSTREAM_ICONS_MAX]
        if isinstance(icon, Mapping)
        and isinstance(icon.get("src"), str)
        and icon["src"].startswith(("https://", "data:image/"))
        and len(icon["src"]) <= limits.UPSTREAM_ICON_CHARS_MAX
    ]
    return tuple(kept)


def _schema_fault(schema: Any) -> str | None:
    """Return why a value cannot be the schema of arguments or of a result, or None."""
    if not isinstance(schema, Mapping):
        return "is not an object"
    if schema.get("type", "object") != "object":
        return "does not describe an object"
    try:
        size = len(orjson.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return "is not JSON"
    if size > limits.SCHEMA_BYTES_MAX:
        return f"is larger than {limits.SCHEMA_BYTES_MAX} bytes"
    return "is too deep" if _depth_over(schema, limits.VALUE_DEPTH_MAX) else None


def _depth_over(value: Any, depth: int) -> bool:
    if depth < 0:
        return True
    if isinstance(value, Mapping):
        return any(_depth_over(part, depth - 1) for part in value.values())
    return isinstance(value, list) and any(_depth_over(part, depth - 1) for part in value)


def _text_or(value: Any, otherwise: str, chars_max: int) -> str:
    return clean_text(value, chars_max) if isinstance(value, str) else otherwise
