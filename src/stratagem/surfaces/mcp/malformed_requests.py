r"""Answers to requests that the protocol's parser cannot read.

Half of a surrogate pair (`"\ud83d"`) and deep nesting are JSON, but the protocol's parser takes
neither, so that it cannot tell whose request it was: the client would wait for ever. Here such a
message is parsed leniently, only to find its id and the fault. It is never executed. Deeply nested
parts are removed before parsing, so no depth can break the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCResponse
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.errors import TABLE, StratagemError, ValidationFailed
from stratagem.surfaces.mcp.operation_tools import error_text
from stratagem.surfaces.mcp.tools import error_result
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = ["answer_malformed"]

# Deep enough to be refused wherever it lies, far below what the reader could take.
_DEPTH_READ: Final = 2 * limits.VALUE_DEPTH_MAX
# In a text without escapes.
_TOKEN: Final = re.compile(r'"[^"]*+(?P<end>"?)|[\[\]{}]')
_DIGITS_READ: Final = 100
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"

Answer = JSONRPCResponse | JSONRPCError


class _MalformedRequest(NamedTuple):
    id: int | str
    method: object
    params: object


def answer_malformed(data: bytes, fault: StratagemError | None = None) -> Answer | None:
    """Return the answer to a request that could not be read, or None where none was asked.

    `fault` says why, where that is known.
    """
    request = _read(data)
    if request is None:
        return None
    fault = fault or _fault(request)
    if fault is None:
        error = ErrorData(code=INVALID_REQUEST, message="This is not a JSON-RPC request.")
        return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
    if request.method == "tools/call":
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=_result(request, fault))
    error = ErrorData(
        code=TABLE[fault.code].json_rpc_code,
        message=error_text(fault),
        data=escape_surrogates({"error": fault.code, **fault.details, "hint": fault.hint}),
    )
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)


def _result(request: _MalformedRequest, fault: StratagemError) -> dict[str, Any]:
    result = error_result(fault).model_dump(by_alias=True, mode="json", exclude_none=True)
    meta = _member(request.params, "_meta")
    if _member(meta, _VERSION) not in MODERN_PROTOCOL_VERSIONS:
        del result["resultType"]
    return result


def _read(data: bytes) -> _MalformedRequest | None:
    """Return what can be known of a request, or None if it is none."""
    try:
        message = json.loads(_prune(data.decode("utf-8")), parse_int=_integer)
    except ValueError:
        return None
    identity, method = _member(message, "id"), _member(message, "method")
    if method is None or not _is_id(identity):
        return None
    return _MalformedRequest(identity, method, message.get("params"))


def _integer(digits: str) -> int:
    # Python refuses to read very long ones; what is left is still too large.
    return int(digits[:_DIGITS_READ])


def _is_id(identity: object) -> bool:
    if isinstance(identity, str):
        # Under one that cannot be written nothing can be answered.
        return bool(escape_surrogates(identity) == identity)
    return isinstance(identity, int) and not isinstance(identity, bool)


def _prune(text: str) -> str:
    """Return JSON without what lies too deep.

    Raises:
        ValueError: Its brackets or its quotes do not match.
    """
    kept, depth, begin = [], 0, 0
    # Pairs of backslashes first: what is then left before a quote escapes it.
    unescaped = text.replace("\\\\", "..").replace('\\"', "..")
    for token in _TOKEN.finditer(unescaped):
        mark = token[0]
        if token["end"] == "":
            raise ValueError("a text does not end")
        if mark in "[{":
            depth += 1
            if depth == _DEPTH_READ + 1:
                kept.append(text[begin : token.start()])
        elif mark in "]}":
            depth -= 1
            if depth == _DEPTH_READ:
                kept.append("null")
                begin = token.end()
    if depth:
        raise ValueError("its brackets do not match")
    return "".join([*kept, text[begin:]])


def _fault(request: _MalformedRequest) -> ValidationFailed | None:
    for field, value in _fields(request):
        try:
            values.encode(value, field=field, bytes_max=limits.REQUEST_BYTES_MAX)
        except ValidationFailed as error:
            return error
    return None


def _fields(request: _MalformedRequest) -> Iterator[tuple[str, object]]:
    """Yield what was given by its name, what the caller knows best first."""
    arguments = _member(request.params, "arguments")
    for holder in (arguments, request.params):
        if isinstance(holder, dict):
            yield from ((escape_surrogates(name), value) for name, value in holder.items())
    yield "params", request.params
    yield "method", request.method


def _member(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else None
