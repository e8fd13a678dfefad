"""The formats of OpenAI: chat completions, the Responses API, and xAI's likeness of the first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from stratagem.gateway.providers.contract import Outcome, ProviderCall
from stratagem.gateway.providers.payloads import (
    call_of,
    object_at,
    object_schema,
    objects_at,
    read_arguments,
    result_text,
    text_at,
    unique_calls,
    written_tools,
    wrong,
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
        return written_tools(tools, _function)

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read an answer, its message, a list of tool calls, or one; see `Format`."""
        return unique_calls(self._calls(payload, known))

    def results(self, outcomes: Sequence[tuple[ProviderCall, Outcome]]) -> list[dict[str, Any]]:
        """Return a message for each result."""
        return [self._result(call, outcome) for call, outcome in outcomes]

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(self._settings, config)

    def _calls(self, payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
        for field, message in _messages(payload):
            listed = message.get("tool_calls")
            for place, part in (
                objects_at(f"{field}tool_calls", listed) if listed is not None else ()
            ):
                yield _tool_call(place, part, known)
            older = message.get("function_call")
            if older is not None and self._takes_older_form:
                place = f"{field}function_call"
                function = object_at(place, older)
                arguments = read_arguments(f"{place}.arguments", function.get("arguments"))
                yield call_of(place, None, function.get("name"), arguments, known)

    def _result(self, call: ProviderCall, outcome: Outcome) -> dict[str, Any]:
        text = result_text(outcome)
        if call.id is not None:
            return {"role": "tool", "tool_call_id": call.id, "content": text}
        if not self._takes_older_form:
            raise wrong("outcomes", "has a call without an id")
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
            {"type": "function", "strict": False} | tool for tool in written_tools(tools, _function)
        ]

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read an answer, its list of items, or one item; see `Format`."""
        return unique_calls(_items(payload, known))

    def results(self, outcomes: Sequence[tuple[ProviderCall, Outcome]]) -> list[dict[str, Any]]:
        """Return an item for each result."""
        return [_output(call, outcome) for call, outcome in outcomes]

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(OpenAISettings, config)


def _function(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": object_schema(schema)}


def _messages(payload: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the messages of a payload, whatever part of an answer it is."""
    if isinstance(payload, list):
        yield "", {"tool_calls": payload}
        return
    whole = object_at("payload", payload)
    if "choices" in whole:
        for field, choice in objects_at("choices", whole["choices"]):
            yield f"{field}.message.", object_at(f"{field}.message", choice.get("message"))
    elif "function" in whole:
        yield "", {"tool_calls": [whole]}
    elif whole.keys() & {"tool_calls", "function_call", "role", "content"}:
        yield "", whole
    else:
        raise wrong("payload", "is no answer, message or tool call of chat completions")


def _tool_call(field: str, part: Mapping[str, Any], known: Collection[str]) -> ProviderCall:
    if part.get("type", "function") != "function":
        raise wrong(f"{field}.type", "is not function, and no other kind of call can be made here")
    function = object_at(f"{field}.function", part.get("function"))
    arguments = read_arguments(f"{field}.function.arguments", function.get("arguments"))
    id_ = text_at(f"{field}.id", part.get("id"))
    return call_of(f"{field}.function", id_, function.get("name"), arguments, known)


def _items(payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
    items = payload
    if isinstance(payload, Mapping):
        items = payload["output"] if isinstance(payload.get("output"), list) else [payload]
    for field, item in objects_at("output", items):
        kind = text_at(f"{field}.type", item.get("type"))
        # Messages, reasoning and the provider's own tools are none of ours.
        if kind == "function_call":
            id_ = text_at(f"{field}.call_id", item.get("call_id"))
            arguments = read_arguments(f"{field}.arguments", item.get("arguments"))
            yield call_of(field, id_, item.get("name"), arguments, known)


def _output(call: ProviderCall, outcome: Outcome) -> dict[str, Any]:
    if call.id is None:
        raise wrong("outcomes", "has a call without an id")
    return {"type": "function_call_output", "call_id": call.id, "output": result_text(outcome)}
