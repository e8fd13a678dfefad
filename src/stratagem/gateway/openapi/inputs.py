"""The arguments of a tool, from the parameters and the body of an operation.

If two locations use the same name, the first (path, query, header, cookie, body) keeps it and the
other gets its location as a suffix: `id` and `id_query`. The fields of a body that is an object
become arguments; any other body is one argument, `body`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.openapi.bodies import FORM, MULTIPART, choose_media_type
from stratagem.gateway.openapi.document import Document
from stratagem.gateway.openapi.parameters import DEFAULT_STYLES
from stratagem.gateway.openapi.schemas import SchemaWriter
from stratagem.gateway.outbound.results import is_json

__all__ = ["Inputs", "input_schemas", "inputs_of", "placeholders"]

_PLACES: Final = ("path", "query", "header", "cookie")
_STYLES: Final = {
    "path": {"simple", "label", "matrix"},
    "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
    "header": {"simple"},
    "cookie": {"form"},
}
# The document says itself that these are described elsewhere in it.
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
_ARGUMENT_CHARS_MAX: Final = 64
# The keywords of an object schema whose fields can become arguments.
_SIMPLE_OBJECT: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "examples"}
    | {"default", "deprecated", "minProperties", "maxProperties"}
)


@dataclass(slots=True)
class Inputs:
    """The arguments of an operation: their schema, and where each of them goes."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    parameters: list[dict[str, Any]] = field(default_factory=list)
    body: dict[str, Any] | None = None
    additional: Any = False

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of all arguments."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        schema["additionalProperties"] = self.additional
        return schema | ({"$defs": definitions} if definitions else {})

    def add(self, name: str, place: str, schema: dict[str, Any], *, required: bool) -> str:
        """Add an argument under a name that is free, and return that."""
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:_ARGUMENT_CHARS_MAX] or place
        argument = base
        count = 1
        while argument in self.properties:
            ending = f"_{place}" if count == 1 else f"_{place}_{count}"
            argument = base[: _ARGUMENT_CHARS_MAX - len(ending)] + ending
            count += 1
        self.properties[argument] = schema
        if required:
            self.required.append(argument)
        return argument


def placeholders(path: str) -> list[str]:
    """Return the names in the braces of a path."""
    return re.findall(r"\{([^{}/]+)\}", path)


def inputs_of(
    document: Document,
    path: str,
    item: dict[str, Any],
    operation: dict[str, Any],
    writer: SchemaWriter,
) -> Inputs:
    """Return the arguments of one operation."""
    inputs = Inputs()
    given = _parameters(document, path, item, operation)
    for place in _PLACES:
        for (where, name), parameter in given.items():
            if where == place:
                _add_parameter(inputs, name, place, parameter, writer)
    body, _ = document.follow(operation.get("requestBody"))
    if isinstance(body, dict):
        _add_body(inputs, body, writer)
    return inputs


def input_schemas(
    document: Document, path: str, item: dict[str, Any], operation: dict[str, Any]
) -> list[Any]:
    """Return the schemas of the parameters and the body of an operation, unconverted."""
    holders: list[Any] = list(_parameters(document, path, item, operation).values())
    body, _ = document.follow(operation.get("requestBody"))
    holders.append(body)
    schemas = []
    for holder in holders:
        content = holder.get("content") if isinstance(holder, dict) else None
        kind = choose_media_type(content)
        media = content[kind] if isinstance(content, dict) and kind else holder
        if isinstance(media, dict) and "schema" in media:
            schemas.append(media["schema"])
    return schemas


def _parameters(
    document: Document, path: str, item: dict[str, Any], operation: dict[str, Any]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the parameters by place and name; the operation's own go before the path's."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for source in (item, operation):
        listed = source.get("parameters")
        for each in listed if isinstance(listed, list) else ():
            parameter, _ = document.follow(each)
            if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
                continue
            name, place = parameter["name"], parameter.get("in")
            if place in _PLACES and not (place == "header" and name.lower() in _IGNORED_HEADERS):
                found[place, name] = parameter
    named = placeholders(path)
    for name in named:
        # Placeholders of the path that are not declared as parameters still need arguments.
        found.setdefault(("path", name), {"name": name, "schema": {"type": "string"}})
    return {key: each for key, each in found.items() if key[0] != "path" or key[1] in named}


def _add_parameter(
    inputs: Inputs, name: str, place: str, parameter: dict[str, Any], writer: SchemaWriter
) -> None:
    content = parameter.get("content")
    kind = choose_media_type(content)
    holder = content.get(kind) if isinstance(content, dict) and kind else parameter
    schema = writer.write(holder.get("schema") if isinstance(holder, dict) else None)
    # Schemas are shared between tools; what is added here is this parameter's own.
    schema = dict(schema)
    description = parameter.get("description")
    if isinstance(description, str) and description and "description" not in schema:
        schema["description"] = description
    if parameter.get("deprecated") is True:
        schema["deprecated"] = True
    style = parameter.get("style")
    style = style if style in _STYLES[place] else DEFAULT_STYLES[place]
    explode = parameter.get("explode")
    required = place == "path" or parameter.get("required") is True
    record = {
        "argument": inputs.add(name, place, schema, required=required),
        "name": name,
        "in": place,
        "style": style,
        "explode": explode if isinstance(explode, bool) else style == "form",
    }
    if kind:
        record["json"] = True
    if parameter.get("allowReserved") is True:
        record["reserved"] = True
    inputs.parameters.append(record)


def _add_body(inputs: Inputs, body: dict[str, Any], writer: SchemaWriter) -> None:
    content = body.get("content")
    kind = choose_media_type(content)
    if kind is None or not isinstance(content, dict):
        return
    media = content[kind] if isinstance(content[kind], dict) else {}
    plain = kind.partition(";")[0].strip().lower()
    plain = "application/json" if plain in {"*/*", "application/*"} else plain
    required = body.get("required") is True
    schema = writer.write(media.get("schema"))
    by_fields = is_json(plain) or plain in {FORM, MULTIPART}
    fields = _object_fields(schema) if by_fields else None
    if fields is None:
        _add_whole(inputs, body, schema, plain, required=required)
        return
    properties, needed, additional = fields
    records = []
    for name, each in properties.items():
        is_file = plain == MULTIPART and _is_binary(each)
        argument = inputs.add(
            name,
            "body",
            _as_base64(each) if is_file else each,
            required=required and name in needed,
        )
        record = {"argument": argument, "name": name}
        records.append(record | ({"binary": True} if is_file else {}))
    inputs.body = {"contentType": plain, "fields": records, "required": required}
    if additional not in (None, False):
        inputs.additional = additional
        taken = [parameter["argument"] for parameter in inputs.parameters]
        inputs.body |= {"extra": True, "taken": taken}


def _add_whole(
    inputs: Inputs, body: dict[str, Any], schema: dict[str, Any], kind: str, *, required: bool
) -> None:
    is_binary = _is_binary(schema) or kind == "application/octet-stream"
    described = _as_base64(schema) if is_binary else dict(schema)
    if not is_binary and not is_json(kind) and not described:
        described = {"type": "string"}
    if isinstance(body.get("description"), str) and "description" not in described:
        described["description"] = body["description"]
    argument = inputs.add("body", "body", described, required=required)
    inputs.body = {"contentType": kind, "argument": argument}
    if is_binary:
        inputs.body["binary"] = True


def _object_fields(schema: dict[str, Any]) -> tuple[dict[str, Any], set[str], Any] | None:
    """Return the properties, the required names and `additionalProperties` of a plain object."""
    properties: dict[str, Any] = {}
    needed: set[str] = set()
    additional: Any = None
    for part in _object_parts(schema):
        if part.get("type") != "object" or set(part) - _SIMPLE_OBJECT:
            return None
        for name, each in part.get("properties", {}).items():
            if name in properties and properties[name] != each:
                return None
            properties[name] = each
        needed |= set(part.get("required", ()))
        additional = part.get("additionalProperties", additional)
    return (properties, needed, additional) if properties else None


def _object_parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the object schemas that a schema combines by `allOf`."""
    parts = schema.get("allOf")
    if not isinstance(parts, list):
        yield schema
        return
    own = {key: each for key, each in schema.items() if key != "allOf"}
    if set(own) - {"title", "description", "examples", "type"}:
        yield {"type": "object", **own}
    for part in parts:
        yield from _object_parts(part if isinstance(part, dict) else {})


def _is_binary(schema: dict[str, Any]) -> bool:
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        return _is_binary(items)
    return schema.get("type", "string") == "string" and (
        schema.get("format") == "binary"
        or ("contentMediaType" in schema and "contentEncoding" not in schema)
    )


def _as_base64(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {**schema, "items": _as_base64(schema["items"])}
    kept = {key: each for key, each in schema.items() if key in {"title", "description"}}
    return {"type": "string", "contentEncoding": "base64", **kept}
