"""Spans around calls of tools, in the words of OpenTelemetry (`execute_tool`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.gateway.calls.answers import ExecutionRecord
from stratagem.gateway.calls.call import Call
from stratagem.gateway.registry.tools import Tool
from stratagem.redaction import mask
from stratagem.spans import captures_content, fail_span, start_span

__all__ = ["describe", "span_of"]

# What a handler is in the conventions: "extension" calls a service, "function" computes here, and
# "datastore" reads or writes what is stored.
_TYPES: Final = {
    "mcp": "extension",
    "webhook": "extension",
    "openapi": "extension",
    "operation": "datastore",
}


def span_of(call: Call, execution_id: str) -> AbstractContextManager[Any]:
    """Give the span of a call, which is the current one as long as the call takes, or None."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.call.id": execution_id,
    }
    for name, label in (("gen_ai.agent.id", "agentId"), ("gen_ai.conversation.id", "channelId")):
        if isinstance(value := call.context.get(label), str):
            attributes[name] = value
    return start_span("stratagem.gateway", f"execute_tool {call.tool}", attributes)


def describe(span: Any, tool: Tool, record: ExecutionRecord, data: bytes | None) -> None:
    """Record in a span how a call ended.

    Arguments and result only if contents are to be captured.
    """
    if span is None or not span.is_recording():
        return
    span.set_attributes(
        {
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": _TYPES.get(tool.handler.get("type", ""), "function"),
            "gen_ai.tool.description": tool.description[: limits.SPAN_DESCRIPTION_CHARS_MAX],
            "stratagem.execution.id": record["executionId"],
            "stratagem.caller": record["caller"],
            "stratagem.status": record["status"],
            "stratagem.attempts": record["attempts"],
            "stratagem.cached": record["cached"],
        }
    )
    if captures_content():
        said = orjson.dumps(record["arguments"], default=str).decode()
        span.set_attribute("gen_ai.tool.call.arguments", _shorten(said))
        if data is not None:
            span.set_attribute("gen_ai.tool.call.result", _shorten(data.decode()))
    if (error := record.get("error")) is not None:
        fail_span(span, error["code"])


def _shorten(text: str) -> str:
    return mask(text[: limits.SPAN_CONTENT_CHARS_MAX])
