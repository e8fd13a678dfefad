"""The format of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from stratagem import limits
from stratagem.gateway.providers.contract import ProviderCall, ResultOrError
from stratagem.gateway.providers.payloads import (
    build_call,
    check_unique,
    format_tools,
    is_error,
    object_schema,
    parse_arguments,
    payload_error,
    require_object,
    require_objects,
    require_text,
    result_text,
)
from stratagem.gateway.providers.settings import AnthropicSettings, read_settings

__all__ = ["Anthropic"]


class Anthropic:
    """Tools, `tool_use` blocks and `tool_result` blocks."""

    name = "anthropic"

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write tools; see `Format`."""
        return format_tools(tools, _format_tool, count_max=limits.PROVIDER_TOOLS_ANTHROPIC_MAX)

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read the blocks of a message, of their list, or one block; see `Format`."""
        return check_unique(_parse_calls(payload, known))

    def results(
        self, outcomes: Sequence[tuple[ProviderCall, ResultOrError]]
    ) -> list[dict[str, Any]]:
        """Return one message with all results, which is how calls made together are answered."""
        blocks = [_format_result(call, outcome) for call, outcome in outcomes]
        return [{"role": "user", "content": blocks}] if blocks else []

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(AnthropicSettings, config)


def _format_tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": object_schema(schema)}


def _parse_calls(payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
    blocks = payload
    if isinstance(payload, Mapping):
        blocks = payload.get("content") if "content" in payload else [payload]
        if isinstance(blocks, str):
            return
    for field, block in require_objects("content", blocks):
        kind = require_text(f"{field}.type", block.get("type"))
        # Text, thoughts and the provider's own tools are none of ours.
        if kind == "tool_use":
            given = require_object(f"{field}.input", block.get("input", {}))
            id_ = require_text(f"{field}.id", block.get("id"))
            arguments = parse_arguments(f"{field}.input", given)
            yield build_call(field, id_, block.get("name"), arguments, known)


def _format_result(call: ProviderCall, outcome: ResultOrError) -> dict[str, Any]:
    if call.id is None:
        raise payload_error("outcomes", "has a call without an id")
    block = {"type": "tool_result", "tool_use_id": call.id, "content": result_text(outcome)}
    return block | ({"is_error": True} if is_error(outcome) else {})
