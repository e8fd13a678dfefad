"""From the parts of a request to the arguments of an operation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.requests import Request

from stratagem.engine import values
from stratagem.errors import InvalidInput, ValidationFailed
from stratagem.operations import input_schema
from stratagem.surfaces.rest.routes import Route, query_parameters
from stratagem.surfaces.serving.json_bodies import read_json
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue

__all__ = ["arguments_of"]

# No more digits: `int` raises on thousands of them.
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_TRUE: Final = {"true": True, "1": True, "false": False, "0": False}


async def arguments_of(
    request: Request, route: Route, large_bodies: LargeBodyQueue
) -> dict[str, Any]:
    """Return the arguments that a request gives.

    Raises:
        InvalidInput: The body is not a JSON object.
        ValidationFailed: The query has a parameter that the route does not take.
    """
    arguments: dict[str, Any] = {}
    if route.body:
        body = await read_json(request, large_bodies)
        if not isinstance(body, Mapping):
            raise InvalidInput(f"The body is a JSON object, not {type(body).__name__}.")
        arguments |= body
    given = _query(request, route)
    if not route.body and route.method == "DELETE":
        given |= await _optional_body(request, large_bodies)
    arguments |= given
    # The path comes last: nobody reaches another tool than the address says.
    return arguments | request.path_params


async def _optional_body(request: Request, large_bodies: LargeBodyQueue) -> dict[str, Any]:
    """Return what the body of a DELETE says, which many clients send in place of a query.

    To leave it out would delete more than was asked for.
    """
    body = await read_json(request, large_bodies)
    if not isinstance(body, Mapping):
        raise InvalidInput(f"The body is a JSON object, not {type(body).__name__}.")
    for name in body:
        if name in request.path_params or name in request.query_params:
            raise ValidationFailed(
                f"`{name}` is given both in the body and in the address.",
                field=str(name),
                hint="Give it once.",
            )
    return dict(body)


def _query(request: Request, route: Route) -> dict[str, Any]:
    properties = input_schema(route.operation)["properties"]
    taken = query_parameters(route)
    found: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name not in taken:
            known = ", ".join(taken) or "none"
            raise ValidationFailed(
                f"There is no query parameter `{name}`.", field=name, hint=f"There are: {known}."
            )
        found[name] = _read(text, properties.get(name, {}), name)
    return found


def _read(text: str, schema: Mapping[str, Any], name: str) -> Any:
    """Read the text of a parameter as what it is for; what does not fit is refused later."""
    kind = schema.get("type")
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number":
        return _number(text)
    if kind == "array":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "boolean":
        return _TRUE.get(text.casefold(), text)
    if kind == "object":
        try:
            return values.read(text.encode("utf-8", "surrogatepass"))
        except orjson.JSONDecodeError as error:
            raise ValidationFailed(f"`{name}` is a JSON object: {error}.", field=name) from error
    return text


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
