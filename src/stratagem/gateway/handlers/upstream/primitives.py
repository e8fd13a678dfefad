"""The prompts, resources and resource templates that an upstream server lists, sanitized.

They are as untrusted as its tools: a malformed one must not hide the others, and no text may look
different from what it is. What a prompt or a resource *says* is passed on unchanged when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.definitions.sanitize import clean_line, clean_text
from stratagem.gateway.handlers.upstream.upstream_tools import read_icons

__all__ = ["LISTS", "Primitive", "UpstreamPrimitives", "read_primitives"]

Primitive = dict[str, Any]

# By kind: the method that lists them, the field of its answer, and what each is known by.
LISTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "prompts": ("prompts/list", "prompts", "name"),
    "resources": ("resources/list", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}


@dataclass(frozen=True, slots=True)
class UpstreamPrimitives:
    """What one server offers besides tools, as clients are shown it, and notes about its lists."""

    prompts: tuple[Primitive, ...] = ()
    resources: tuple[Primitive, ...] = ()
    templates: tuple[Primitive, ...] = ()
    notes: tuple[str, ...] = ()


def read_primitives(listed: Mapping[str, Sequence[Any]]) -> UpstreamPrimitives:
    """Return the usable ones of what a server listed, by kind, in its order."""
    notes: list[str] = []
    kinds = {kind: _read_list(kind, items, notes) for kind, items in listed.items()}
    return UpstreamPrimitives(**kinds, notes=tuple(notes))


def _read_list(kind: str, items: Sequence[Any], notes: list[str]) -> tuple[Primitive, ...]:
    identifier = LISTS[kind][2]
    found: dict[str, Primitive] = {}
    for at, item in enumerate(items[: limits.UPSTREAM_PRIMITIVES_MAX]):
        primitive = _READERS[kind](item) if isinstance(item, Mapping) else None
        if primitive is None:
            notes.append(f"{kind[:-1]} {at} has no usable {identifier} and is left out")
        elif primitive[identifier] in found:
            notes.append(f"{kind[:-1]} {at} has the {identifier} of another and is left out")
        else:
            found[primitive[identifier]] = primitive
    if len(items) > limits.UPSTREAM_PRIMITIVES_MAX:
        most = limits.UPSTREAM_PRIMITIVES_MAX
        notes.append(f"only the first {most} of {len(items)} {kind} are used")
    return tuple(found.values())


def _prompt(item: Mapping[str, Any]) -> Primitive | None:
    name = _visible_line(item.get("name"), limits.UPSTREAM_NAME_CHARS_MAX)
    if name is None:
        return None
    arguments = item.get("arguments")
    read = [_argument(each) for each in arguments] if isinstance(arguments, list) else []
    kept = [each for each in read if each is not None][: limits.UPSTREAM_ARGS_MAX]
    return {"name": name, **_display_fields(item), **({"arguments": kept} if kept else {})}


def _argument(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, Mapping):
        return None
    name = _visible_line(item.get("name"), limits.UPSTREAM_NAME_CHARS_MAX)
    if name is None:
        return None
    required = {"required": item["required"]} if isinstance(item.get("required"), bool) else {}
    return {"name": name, **_texts(item), **required}


def _resource(item: Mapping[str, Any]) -> Primitive | None:
    uri = _visible_line(item.get("uri"), limits.UPSTREAM_URI_CHARS_MAX)
    if uri is None:
        return None
    size = item.get("size")
    sized = {"size": size} if isinstance(size, int) and size >= 0 else {}
    return {"uri": uri, **_identity(item, uri), **sized}


def _template(item: Mapping[str, Any]) -> Primitive | None:
    template = _visible_line(item.get("uriTemplate"), limits.UPSTREAM_URI_CHARS_MAX)
    return None if template is None else {"uriTemplate": template, **_identity(item, template)}


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Primitive | None]]] = {
    "prompts": _prompt,
    "resources": _resource,
    "templates": _template,
}


def _identity(item: Mapping[str, Any], otherwise: str) -> Primitive:
    given = item.get("name")
    most = limits.UPSTREAM_TITLE_CHARS_MAX
    name = clean_line(given, most) if isinstance(given, str) else ""
    media = _visible_line(item.get("mimeType"), limits.UPSTREAM_NAME_CHARS_MAX)
    return {
        "name": name or clean_line(otherwise, most),
        **({"mimeType": media} if media else {}),
        **_display_fields(item),
    }


def _display_fields(item: Mapping[str, Any]) -> Primitive:
    """Return what clients show of a primitive, or leave to their users."""
    shown: Primitive = _texts(item)
    if icons := read_icons(item.get("icons")):
        shown["icons"] = list(icons)
    for field in ("annotations", "_meta"):
        if isinstance(item.get(field), Mapping) and _is_small(item[field]):
            shown[field] = dict(item[field])
    return shown


def _texts(item: Mapping[str, Any]) -> Primitive:
    title, description = item.get("title"), item.get("description")
    shown = {
        "title": clean_line(title, limits.UPSTREAM_TITLE_CHARS_MAX)
        if isinstance(title, str)
        else "",
        "description": clean_text(description, limits.TOOL_DESCRIPTION_CHARS_MAX)
        if isinstance(description, str)
        else "",
    }
    return {field: text for field, text in shown.items() if text}


def _visible_line(value: Any, chars_max: int) -> str | None:
    """Return a name or address that looks like what it is; None for any other."""
    if not isinstance(value, str) or not value or len(value) > chars_max:
        return None
    return value if clean_line(value, chars_max) == value else None


def _is_small(value: Mapping[str, Any]) -> bool:
    try:
        return len(orjson.dumps(value)) <= limits.UPSTREAM_ICON_CHARS_MAX
    except (TypeError, ValueError, RecursionError):
        return False
