"""From what an upstream tool answered to its result, in which nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import ExecutionFailed
from stratagem.gateway.definitions.contract import ContentResult
from stratagem.gateway.handlers.upstream.upstream_tools import clean_text

__all__ = ["read_result"]

_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


def read_result(answer: Any, *, server: str, tool: str) -> ContentResult:
    """Return the result of a call.

    Raises:
        ExecutionFailed: The tool says that it failed, or the answer is none.
    """
    where: dict[str, Any] = {"server": server, "tool": tool}
    if not isinstance(answer, Mapping):
        raise ExecutionFailed(f"{server} answered something that is no result.", **where)
    if answer.get("resultType", "complete") == "input_required" or "inputRequests" in answer:
        raise ExecutionFailed(
            f"{tool} of {server} asks its user for more, and nobody is there to answer.", **where
        )
    blocks = _blocks(answer.get("content"))
    if answer.get("isError") is True:
        said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        message = clean_text(said, limits.UPSTREAM_ERROR_CHARS_MAX)
        # That it answers at all shows that the server works: the file may be missing, say.
        raise ExecutionFailed(
            message or f"{tool} of {server} failed and did not say why.",
            answered=True,
            mcp=_sent(blocks, answer),
            **where,
        )
    meta = _meta(answer)
    if answer.get("structuredContent") is not None:
        return ContentResult(answer["structuredContent"], blocks, is_structured=True, meta=meta)
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        parsed = _json_or_none(blocks[0]["text"])
        if parsed is not None:
            return ContentResult(parsed[0], blocks, meta=meta)
    return ContentResult({"content": blocks}, blocks, meta=meta)


def _sent(blocks: list[dict[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a failed call was answered with, for those who can show more than text."""
    sent: dict[str, Any] = {"content": blocks}
    if answer.get("structuredContent") is not None:
        sent["structuredContent"] = answer["structuredContent"]
    if meta := _meta(answer):
        sent["_meta"] = meta
    return sent


def _meta(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a server says beside its answer, but for its own name: the next says its own."""
    given = answer.get("_meta")
    if not isinstance(given, Mapping):
        return None
    return {name: value for name, value in given.items() if name != _SERVER_INFO} or None


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return content in plain JSON: blocks with a type."""
    if not isinstance(content, list):
        return []
    return [_block(part) for part in content]


def _block(part: Any) -> dict[str, Any]:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return {"type": "unknown", "value": part}
    block = dict(part)
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        return {"type": "unknown", "value": part}
    return block


def _json_or_none(text: str) -> tuple[Any] | None:
    """Return the JSON that a text is, in a tuple; None where it is only text.

    A number or word is taken for JSON only if nothing is lost: "1.10" may be a version.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, (dict, list)) or orjson.dumps(value).decode() == text.strip():
        return (value,)
    return None
