"""Reading and writing that all formats share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway.providers.contract import Outcome, ProviderCall
from stratagem.gateway.providers.naming import original_name, provider_name

__all__ = [
    "call_of",
    "error_of",
    "is_error",
    "object_at",
    "object_schema",
    "objects_at",
    "read_arguments",
    "result_text",
    "text_at",
    "unique_calls",
    "written_tools",
    "wrong",
]

# None of the providers takes these beside the properties; calls are validated here anyway.
_NOT_AT_TOP: Final = frozenset(
    {"$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum", "const"}
)
_TOP_CONDITIONS: Final = frozenset({"if", "then", "else"})

Writer = Callable[[str, str, Mapping[str, Any]], dict[str, Any]]


def wrong(field: str, what: str, **details: Any) -> ValidationFailed:
    """Return the error for a place in what was given."""
    return ValidationFailed(f"`{field}` {what}.", field=field, **details)


def written_tools(
    tools: Any, write: Writer, *, count_max: int = limits.PROVIDER_TOOLS_MAX
) -> list[dict[str, Any]]:
    """Write each tool by its provider's name, description and input schema."""
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Sequence):
        raise wrong("tools", "is a list of tools")
    if len(tools) > count_max:
        raise wrong(
            "tools",
            f"has {len(tools)} entries, more than the provider takes",
            limit=count_max,
            hint="Name fewer tools in enabledTools.",
        )
    written: dict[str, dict[str, Any]] = {}
    for at, tool in enumerate(tools):
        name, description, schema = _read_tool(at, tool)
        sent = provider_name(name)
        if sent in written:
            raise wrong(f"tools[{at}].name", f"{name!r} is there twice")
        written[sent] = write(sent, description, schema)
    return list(written.values())


def _read_tool(at: int, tool: Any) -> tuple[str, str, Mapping[str, Any]]:
    if not isinstance(tool, Mapping):
        raise wrong(f"tools[{at}]", "is an object with name, description and inputSchema")
    name, description = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not name:
        raise wrong(f"tools[{at}].name", "is a text")
    if description is not None and not isinstance(description, str):
        raise wrong(f"tools[{at}].description", "is a text")
    schema = tool.get("inputSchema")
    if schema is None:
        schema = {}
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise wrong(f"tools[{at}].inputSchema", "is a JSON Schema of an object")
    return name, _cut(description or name), schema


def _cut(text: str) -> str:
    longest = limits.PROVIDER_DESCRIPTION_CHARS_MAX
    return text if len(text) <= longest else text[: longest - 1] + "…"


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments with nothing at its top that providers refuse."""
    left_out = _NOT_AT_TOP | _TOP_CONDITIONS
    kept = {key: value for key, value in schema.items() if key not in left_out}
    return {"type": "object", "properties": {}} | kept


def read_arguments(field: str, value: Any) -> dict[str, Any] | str:
    """Return arguments as an object where they are one; a text that is none stays a text."""
    if value is None or value == "":
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        raise wrong(field, "is an object, or one as text")
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed if isinstance(parsed, dict) else value


def call_of(
    field: str,
    id_: str | None,
    name: Any,
    arguments: dict[str, Any] | str,
    known: Collection[str],
) -> ProviderCall:
    """Return a call by the registered name of its tool."""
    if not isinstance(name, str) or not name:
        raise wrong(f"{field}.name", "is the name of a tool")
    return ProviderCall(id_, original_name(name, known), arguments, name)


def unique_calls(calls: Iterable[ProviderCall]) -> list[ProviderCall]:
    """Return the calls, each with an id of its own."""
    found = list(calls)
    if len(found) > limits.PROVIDER_CALLS_MAX:
        raise wrong("payload", "has too many calls", limit=limits.PROVIDER_CALLS_MAX)
    seen: set[str] = set()
    for call in found:
        if call.id is not None and call.id in seen:
            raise wrong("payload", f"has two calls with the id {call.id!r}")
        if call.id is not None:
            seen.add(call.id)
    return found


def object_at(field: str, value: Any) -> Mapping[str, Any]:
    """Return a value that has to be an object."""
    if not isinstance(value, Mapping):
        raise wrong(field, "is an object")
    return value


def objects_at(field: str, value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects of a list, each with the name of its place."""
    if not isinstance(value, list):
        raise wrong(field, "is a list")
    return [(f"{field}[{at}]", object_at(f"{field}[{at}]", part)) for at, part in enumerate(value)]


def text_at(field: str, value: Any) -> str:
    """Return a value that has to be a text with something in it."""
    if not isinstance(value, str) or not value:
        raise wrong(field, "is a text")
    return value


def is_error(outcome: Outcome) -> bool:
    """Whether a call failed."""
    return isinstance(outcome, BaseException)


def error_of(outcome: Outcome) -> dict[str, Any]:
    """Return what a model is told about a failure."""
    if isinstance(outcome, StratagemError):
        told = {"error": outcome.code, "message": outcome.message}
        return told | ({"hint": outcome.hint} if outcome.hint else {})
    # What an unexpected exception says is meant for nobody outside.
    return {"error": "execution_error", "message": "The tool failed."}


def result_text(outcome: Outcome) -> str:
    """Return an outcome as text: a text as it is, everything else as JSON."""
    if is_error(outcome):
        return orjson.dumps(error_of(outcome)).decode()
    return outcome if isinstance(outcome, str) else orjson.dumps(outcome).decode()
