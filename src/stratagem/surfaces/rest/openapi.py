"""The OpenAPI document, made from the routes and the table of operations."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from stratagem.operation import Operation
from stratagem.operations import find, full_schema, input_schema
from stratagem.surfaces.rest.routes import Route, all_routes, path_parameters, query_parameters
from stratagem.version import VERSION

__all__ = ["document"]

_STATUSES: Final = {
    "400": "The request is not a JSON object, lacks a parameter, or has an invalid value.",
    "401": "A token is needed.",
    "403": "The token does not allow it.",
    "404": "It does not exist.",
    "409": "It conflicts with the stored state.",
    "413": "The body is too large or too deep.",
    "422": "The file cannot be imported.",
    "429": "Too many requests; Retry-After says when.",
    "500": "A defect, or a damaged database.",
    "502": "The tool failed.",
    "503": "A required service is not available.",
    "504": "The tool did not answer in time.",
    "507": "The disk is full.",
}

_ORDER: Final = (
    "memory",
    "debugging",
    "knowledge",
    "knowledge_plus",
    "gateway",
    "registry",
    "admin",
)


@cache
def document() -> dict[str, Any]:
    """Return the document, of OpenAPI 3.1."""
    schemas: dict[str, Any] = {"Error": _error(), "GatewayError": _gateway_error()}
    paths: dict[str, Any] = {}
    for route in sorted(all_routes(), key=_place_of):
        described = _operation(route, find(route.operation))
        paths.setdefault(route.path, {})[route.method.lower()] = described
    paths |= _upkeep()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stratagem",
            "version": VERSION,
            "description": "Memory, debugging, knowledge and the tool gateway.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _place_of(route: Route) -> int:
    """Return where a route is listed: memory first, which most callers come for."""
    toolset = find(route.operation).toolset
    return _ORDER.index(toolset) if toolset in _ORDER else len(_ORDER)


def _operation(route: Route, operation: Operation) -> dict[str, Any]:
    in_path = path_parameters(route)
    described: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{_identifier(route.path)}",
        "summary": operation.title,
        "description": operation.description,
        "tags": [operation.toolset],
        "parameters": _parameters(route, in_path),
        "responses": _responses(route, operation),
    }
    if route.body:
        schema = _body(operation, in_path)
        content: dict[str, Any] = {"schema": schema}
        if operation.example is not None:
            content["example"] = {
                name: value for name, value in operation.example.items() if name not in in_path
            }
        described["requestBody"] = {
            "required": bool(schema.get("required")),
            "content": {"application/json": content},
        }
    return described


def _parameters(route: Route, in_path: list[str]) -> list[dict[str, Any]]:
    properties = input_schema(route.operation)["properties"]
    example = find(route.operation).example or {}
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            **({"example": example[name]} if name in example else {}),
        }
        for name in in_path
    ]
    explained = find(route.operation).parameters["properties"]
    for name in query_parameters(route):
        schema = {field: each for field, each in properties[name].items() if field != "description"}
        words = explained[name].get("description", "")
        parameter = {"name": name, "in": "query", "description": words}
        if schema.get("type") == "object":
            parameter["content"] = {"application/json": {"schema": schema}}
        elif schema.get("type") == "array":
            parameter |= {"schema": schema, "style": "form", "explode": False}
        else:
            parameter["schema"] = schema
        parameters.append(parameter)
    return parameters


def _body(operation: Operation, in_path: list[str]) -> dict[str, Any]:
    schema = full_schema(operation.name)
    properties = {
        name: each for name, each in schema.get("properties", {}).items() if name not in in_path
    }
    required = [name for name in schema.get("required", ()) if name not in in_path]
    body = {"type": "object", "properties": properties, "additionalProperties": False}
    return body | ({"required": required} if required else {})


def _responses(route: Route, operation: Operation) -> dict[str, Any]:
    answer: dict[str, Any] = operation.output_schema
    if route.flat:
        answer = {"type": "object"}
    if route.enveloped:
        answer = {
            "type": "object",
            "properties": {"success": {"const": True}, "data": answer},
            "required": ["success", "data"],
        }
    error = "GatewayError" if route.enveloped else "Error"
    refusal = {"schema": {"$ref": f"#/components/schemas/{error}"}}
    responses = {
        status: {"description": said, "content": {"application/json": refusal}}
        for status, said in _STATUSES.items()
    }
    good = {"description": "Done.", "content": {"application/json": {"schema": answer}}}
    return {str(route.status): good, **responses}


def _error() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "success": {"const": False},
            "code": {"type": "string"},
            "error": {"type": "string"},
            "message": {"type": "string"},
            "details": {"type": "object"},
            "hint": {"type": "string"},
        },
        "required": ["success", "code", "error", "message", "details", "hint"],
    }


def _gateway_error() -> dict[str, Any]:
    inner = {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "details": {"type": "object"},
            "hint": {"type": "string"},
        },
        "required": ["code", "message", "details", "hint"],
    }
    return {
        "type": "object",
        "properties": {
            "success": {"const": False},
            "error": inner,
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": "string"},
        },
        "required": ["success", "error", "code", "message", "hint"],
    }


def _upkeep() -> dict[str, Any]:
    """Return the routes that those who look after a server ask."""
    unready = {"503": {"description": "It cannot."}}
    refusals = {status: {"description": _STATUSES[status]} for status in ("401", "403")}
    return {
        "/health": _get_route("health", "Whether the server is up", "It is."),
        "/ready": _get_route(
            "ready", "Whether the server can read its database", "It can.", unready
        ),
        "/metrics": _get_route(
            "metrics", "Figures for Prometheus", "As text.", refusals, open_=False
        ),
    }


def _get_route(
    name: str, summary: str, good: str, more: dict[str, Any] | None = None, *, open_: bool = True
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": good}, **(more or {})},
    }
    return {"get": described | ({"security": []} if open_ else {})}


def _identifier(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_")
