"""The formats of OpenAI: chat completions, the Responses API, and xAI's likeness of the first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from stratagem.gateway.providers.contract import ProviderCall, ResultOrError
from stratagem.gateway.providers.payloads import (
    build_call,
    check_unique,
    format_tools,
    object_schema,
    parse_arguments,
    payload_error,
    require_object,
    require_objects,
    require_text,
    result_text,
)
from stratagem.gateway.providers.settings import OpenAISettings, ProviderSettings, read_settings

__all__ = ["XAI", "OpenAIChat", "OpenAIResponses"]


class OpenAIChat:
    """Function tools, `tool_calls`, and messages of the role `tool`.

    The older form is taken too: `functions`, one `function_call`, a message of the role `function`.
    """

    name = "openai"
    _settings: type[ProviderSettings] = OpenAISettings
    _takes_older_form = True

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write tools; see `Format`."""
        return [{"type": "function", "function": tool} for tool in self.functions(tools)]

    def functions(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write tools as the older `functions`."""
        return format_tools(tools, _format_function)

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read an answer, its message, a list of tool calls, or one; see `Format`."""
        return check_unique(self._parse_calls(payload, known))

    def results(
        self, outcomes: Sequence[tuple[ProviderCall, ResultOrError]]
    ) -> list[dict[str, Any]]:
        """Return a message for each result."""
        return [self._format_result(call, outcome) for call, outcome in outcomes]

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(self._settings, config)

    def _parse_calls(self, payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
        for field, message in _find_messages(payload):
            listed = message.get("tool_calls")
            for place, part in (
                require_objects(f"{field}tool_calls", listed) if listed is not None else ()
            ):
                yield _parse_tool_call(place, part, known)
            older = message.get("function_call")
            if older is not None and self._takes_older_form:
                place = f"{field}function_call"
                function = require_object(place, older)
                arguments = parse_arguments(f"{place}.arguments", function.get("arguments"))
                yield build_call(place, None, function.get("name"), arguments, known)

    def _format_result(self, call: ProviderCall, outcome: ResultOrError) -> dict[str, Any]:
        text = result_text(outcome)
        if call.id is not None:
            return {"role": "tool", "tool_call_id": call.id, "content": text}
        if not self._takes_older_form:
            raise payload_error("outcomes", "has a call without an id")
        return {"role": "function", "name": call.sent_name or call.name, "content": text}


class XAI(OpenAIChat):
    """As OpenAI's chat, without the older form; arguments may come as an object."""

    name = "xai"
    _settings = ProviderSettings
    _takes_older_form = False


class OpenAIResponses:
    """Function tools, `function_call` items and `function_call_output` items."""

    name = "openai_responses"

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write tools; see `Format`."""
        # Left out, `strict` would be true here, and refuse every schema with an optional property.
        return [
            {"type": "function", "strict": False} | tool
            for tool in format_tools(tools, _format_function)
        ]

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read an answer, its list of items, or one item; see `Format`."""
        return check_unique(_parse_items(payload, known))

    def results(
        self, outcomes: Sequence[tuple[ProviderCall, ResultOrError]]
    ) -> list[dict[str, Any]]:
        """Return an item for each result."""
        return [_format_output(call, outcome) for call, outcome in outcomes]

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(OpenAISettings, config)


def _format_function(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": object_schema(schema)}


def _find_messages(payload: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the messages of a payload, whatever part of an answer it is."""
    if isinstance(payload, list):
        yield "", {"tool_calls": payload}
        return
    whole = require_object("payload", payload)
    if "choices" in whole:
        for field, choice in require_objects("choices", whole["choices"]):
            yield f"{field}.message.", require_object(f"{field}.message", choice.get("message"))
    elif "function" in whole:
        yield "", {"tool_calls": [whole]}
    elif whole.keys() & {"tool_calls", "function_call", "role", "content"}:
        yield "", whole
    else:
        raise payload_error("payload", "is not an answer, message or tool call of chat completions")


def _parse_tool_call(field: str, part: Mapping[str, Any], known: Collection[str]) -> ProviderCall:
    if part.get("type", "function") != "function":
        raise payload_error(
            f"{field}.type", "is not function, and no other kind of call can be made here"
        )
    function = require_object(f"{field}.function", part.get("function"))
    arguments = parse_arguments(f"{field}.function.arguments", function.get("arguments"))
    id_ = require_text(f"{field}.id", part.get("id"))
    return build_call(f"{field}.function", id_, function.get("name"), arguments, known)


def _parse_items(payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
    items = payload
    if isinstance(payload, Mapping):
        items = payload["output"] if isinstance(payload.get("output"), list) else [payload]
    for field, item in require_objects("output", items):
        kind = require_text(f"{field}.type", item.get("type"))
        # Messages, reasoning and the provider's own tools are none of ours.
        if kind == "function_call":
            id_ = require_text(f"{field}.call_id", item.get("call_id"))
            arguments = parse_arguments(f"{field}.arguments", item.get("arguments"))
            yield build_call(field, id_, item.get("name"), arguments, known)


def _format_output(call: ProviderCall, outcome: ResultOrError) -> dict[str, Any]:
    if call.id is None:
        raise payload_error("outcomes", "has a call without an id")
    return {"type": "function_call_output", "call_id": call.id, "output": result_text(outcome)}
