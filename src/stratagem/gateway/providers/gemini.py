"""The format of the Gemini API."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from stratagem.gateway.providers.contract import ProviderCall, ResultOrError
from stratagem.gateway.providers.gemini_schema import gemini_schema
from stratagem.gateway.providers.payloads import (
    build_call,
    check_unique,
    error_payload,
    format_tools,
    is_error,
    parse_arguments,
    payload_error,
    require_object,
    require_objects,
    require_text,
)
from stratagem.gateway.providers.settings import ProviderSettings, read_settings

__all__ = ["Gemini"]


class Gemini:
    """Function declarations, `functionCall` parts and `functionResponse` parts."""

    name = "gemini"

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write tools, all in one entry; see `Format`."""
        declared = format_tools(tools, _format_declaration)
        return [{"functionDeclarations": declared}] if declared else []

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Read an answer, its content, its parts, or one part; see `Format`."""
        return check_unique(_parse_calls(payload, known))

    def results(
        self, outcomes: Sequence[tuple[ProviderCall, ResultOrError]]
    ) -> list[dict[str, Any]]:
        """Return one content with all results, which is how calls made together are answered."""
        parts = [
            {"functionResponse": _format_response(call, outcome)} for call, outcome in outcomes
        ]
        return [{"role": "user", "parts": parts}] if parts else []

    def configure(self, config: Any) -> dict[str, Any]:
        """Check settings; see `Format`."""
        return read_settings(ProviderSettings, config)


def _format_declaration(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = gemini_schema(schema)
    declared = {"name": name, "description": description}
    # An object without properties is refused; a function without parameters has none.
    return declared | ({"parameters": parameters} if parameters.get("properties") else {})


def _parse_calls(payload: Any, known: Collection[str]) -> Iterator[ProviderCall]:
    for field, parts in _find_parts(payload):
        for place, part in require_objects(f"{field}parts", parts):
            if "functionCall" not in part:
                continue
            call = require_object(f"{place}.functionCall", part["functionCall"])
            id_ = call.get("id")
            if id_ is not None:
                id_ = require_text(f"{place}.functionCall.id", id_)
            given = require_object(f"{place}.functionCall.args", call.get("args") or {})
            arguments = parse_arguments(place, given)
            yield build_call(f"{place}.functionCall", id_, call.get("name"), arguments, known)


def _find_parts(payload: Any) -> Iterator[tuple[str, Any]]:
    """Yield lists of parts, whatever part of an answer the payload is."""
    if isinstance(payload, list):
        yield "", payload
        return
    whole = require_object("payload", payload)
    if "candidates" in whole:
        for field, candidate in require_objects("candidates", whole["candidates"]):
            # A candidate that was stopped has no content.
            content = require_object(f"{field}.content", candidate.get("content") or {})
            yield f"{field}.content.", content.get("parts") or []
    elif "parts" in whole:
        yield "", whole["parts"]
    elif whole.keys() & {"functionCall", "text"}:
        yield "", [whole]
    else:
        raise payload_error("payload", "is not an answer, content or part of Gemini")


def _format_response(call: ProviderCall, outcome: ResultOrError) -> dict[str, Any]:
    told = {"error": error_payload(outcome)} if is_error(outcome) else {"output": outcome}
    response: dict[str, Any] = {"name": call.sent_name or call.name, "response": told}
    return response if call.id is None else {"id": call.id} | response
