"""Answers of upstream MCP servers, passed on as they were sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from stratagem.errors import StratagemError
from stratagem.surfaces.mcp.error_lines import correction_lines, error_detail_lines
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = ["forward_answer", "forward_error", "without_content"]


def forward_answer(answer: Mapping[str, Any]) -> CallToolResult | None:
    """Return what an upstream server answered; None for tools of any other kind.

    What was corrected about the call is told in a text of its own, behind the server's.
    """
    sent = answer.get("mcp")
    if sent is None:
        return None
    result = answer["result"]
    content = sent["content"] if "content" in sent else result["content"]
    structured = result if sent["structured"] else None
    return _result(content, structured, sent.get("_meta"), correction_lines(answer["metadata"]))


def forward_error(error: StratagemError) -> CallToolResult | None:
    """Return what an upstream server says of a call that failed; None for any other error."""
    sent = error.details.get("mcp")
    if not isinstance(sent, Mapping) or not sent["content"]:
        return None
    return _result(
        sent["content"],
        sent.get("structuredContent"),
        sent.get("_meta"),
        error_detail_lines(error.details),
        is_error=True,
    )


def without_content(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without the blocks that stand beside it: to repeat them costs tokens."""
    kept = {name: value for name, value in answer.items() if name != "mcp"}
    if "content" not in answer["mcp"]:
        kept["result"] = None
    return kept


def _result(
    content: Sequence[Mapping[str, Any]],
    structured: Any,
    meta: Mapping[str, Any] | None,
    lines: Sequence[str],
    *,
    is_error: bool = False,
) -> CallToolResult | None:
    sent = {
        "content": content,
        "structuredContent": structured,
        "_meta": meta,
        "isError": is_error,
    }
    try:
        result = CallToolResult.model_validate(escape_surrogates(sent))
    except ValidationError:
        # A kind of block that the protocol does not have: it is shown as JSON.
        return None
    result.content.extend(TextContent(text=escape_surrogates(line)) for line in lines)
    return result
