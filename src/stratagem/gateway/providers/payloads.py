"""Parsing and formatting of payloads that all formats share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway.providers.contract import ProviderCall, ResultOrError
from stratagem.gateway.providers.provider_names import original_name, provider_name

__all__ = [
    "build_call",
    "check_unique",
    "error_payload",
    "format_tools",
    "is_error",
    "object_schema",
    "parse_arguments",
    "payload_error",
    "require_object",
    "require_objects",
    "require_text",
    "result_text",
]

# No provider accepts these at the top level; calls are validated by the gateway anyway.
_NOT_AT_TOP: Final = frozenset(
    {"$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum", "const"}
)
_TOP_CONDITIONS: Final = frozenset({"if", "then", "else"})

# What a model can read of the corrections of a call that was refused.
_OFFERS_SENT: Final = 3
_MEANT: Final = "If one of the corrections is what you meant, call again with its arguments."

Writer = Callable[[str, str, Mapping[str, Any]], dict[str, Any]]


def payload_error(field: str, what: str, **details: Any) -> ValidationFailed:
    """Return the error for a field of the input."""
    return ValidationFailed(f"`{field}` {what}.", field=field, **details)


def format_tools(
    tools: Any, write: Writer, *, count_max: int = limits.PROVIDER_TOOLS_MAX
) -> list[dict[str, Any]]:
    """Write each tool by its provider's name, description and input schema."""
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Sequence):
        raise payload_error("tools", "is a list of tools")
    if len(tools) > count_max:
        raise payload_error(
            "tools",
            f"has {len(tools)} entries, more than the provider takes",
            limit=count_max,
            hint="Choose the ones you need: in tools, or permanently in enabledTools.",
        )
    written: dict[str, dict[str, Any]] = {}
    for at, tool in enumerate(tools):
        name, description, schema = _read_tool(at, tool)
        sent = provider_name(name)
        if sent in written:
            raise payload_error(f"tools[{at}].name", f"{name!r} is there twice")
        written[sent] = write(sent, description, schema)
    return list(written.values())


def _read_tool(at: int, tool: Any) -> tuple[str, str, Mapping[str, Any]]:
    if not isinstance(tool, Mapping):
        raise payload_error(f"tools[{at}]", "is an object with name, description and inputSchema")
    name, description = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not name:
        raise payload_error(f"tools[{at}].name", "is a text")
    if description is not None and not isinstance(description, str):
        raise payload_error(f"tools[{at}].description", "is a text")
    schema = tool.get("inputSchema")
    if schema is None:
        schema = {}
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise payload_error(f"tools[{at}].inputSchema", "is a JSON Schema of an object")
    return name, _truncate(description or name), schema


def _truncate(text: str) -> str:
    longest = limits.PROVIDER_DESCRIPTION_CHARS_MAX
    return text if len(text) <= longest else text[: longest - 1] + "…"


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments without the top-level keywords that providers refuse."""
    left_out = _NOT_AT_TOP | _TOP_CONDITIONS
    kept = {key: value for key, value in schema.items() if key not in left_out}
    return {"type": "object", "properties": {}} | kept


def parse_arguments(field: str, value: Any) -> dict[str, Any] | str:
    """Return arguments as an object; a text that is not a JSON object is returned unchanged."""
    if value is None or value == "":
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        raise payload_error(field, "is an object, or one as text")
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed if isinstance(parsed, dict) else value


def build_call(
    field: str,
    id_: str | None,
    name: Any,
    arguments: dict[str, Any] | str,
    known: Collection[str],
) -> ProviderCall:
    """Return a call by the registered name of its tool."""
    if not isinstance(name, str) or not name:
        raise payload_error(f"{field}.name", "is the name of a tool")
    return ProviderCall(id_, original_name(name, known), arguments, name)


def check_unique(calls: Iterable[ProviderCall]) -> list[ProviderCall]:
    """Return the calls as a list; raise if there are too many, or two share an id."""
    found = list(calls)
    if len(found) > limits.PROVIDER_CALLS_MAX:
        raise payload_error("payload", "has too many calls", limit=limits.PROVIDER_CALLS_MAX)
    seen: set[str] = set()
    for call in found:
        if call.id is not None and call.id in seen:
            raise payload_error("payload", f"has two calls with the id {call.id!r}")
        if call.id is not None:
            seen.add(call.id)
    return found


def require_object(field: str, value: Any) -> Mapping[str, Any]:
    """Return a value, which must be an object."""
    if not isinstance(value, Mapping):
        raise payload_error(field, "is an object")
    return value


def require_objects(field: str, value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the elements of a list, which must be objects, each with its field name."""
    if not isinstance(value, list):
        raise payload_error(field, "is a list")
    return [
        (f"{field}[{at}]", require_object(f"{field}[{at}]", part)) for at, part in enumerate(value)
    ]


def require_text(field: str, value: Any) -> str:
    """Return a value, which must be a non-empty text."""
    if not isinstance(value, str) or not value:
        raise payload_error(field, "is a text")
    return value


def _arguments_offered(offer: Any) -> dict[str, Any]:
    """Return what a model needs of an offered correction."""
    known = offer if isinstance(offer, Mapping) else {}
    return {"arguments": known.get("correctedParameters"), "reasoning": known.get("reasoning")}


def is_error(outcome: ResultOrError) -> bool:
    """Whether a call failed."""
    return isinstance(outcome, BaseException)


def error_payload(outcome: ResultOrError) -> dict[str, Any]:
    """Return a failure as it is sent to the model."""
    if isinstance(outcome, StratagemError):
        told: dict[str, Any] = {"error": outcome.code, "message": outcome.message}
        hint = outcome.hint
        offered = outcome.details.get("corrections")
        if isinstance(offered, list) and offered:
            # A provider's call has arguments and nothing else: no id of a correction can be sent.
            hint = _MEANT
            told["corrections"] = [_arguments_offered(each) for each in offered[:_OFFERS_SENT]]
        return told | ({"hint": hint} if hint else {})
    # The message of an unexpected exception may contain internals, so it is not sent.
    return {"error": "execution_error", "message": "The tool failed."}


def result_text(outcome: ResultOrError) -> str:
    """Return a result or error as text: a text unchanged, everything else as JSON."""
    if is_error(outcome):
        return orjson.dumps(error_payload(outcome)).decode()
    return outcome if isinstance(outcome, str) else orjson.dumps(outcome).decode()
