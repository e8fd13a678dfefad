"""REST: one endpoint for each route, all of them the same few lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route as Path
from starlette.routing import Router
from starlette.types import ASGIApp

from stratagem.errors import OperationNotFound, StratagemError
from stratagem.operation import Caller
from stratagem.operations import TABLE
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.rest.answers import answered, refused
from stratagem.surfaces.rest.arguments import arguments_of
from stratagem.surfaces.rest.openapi import document
from stratagem.surfaces.rest.routes import Route, every

__all__ = ["application"]

Endpoint = Callable[[Request], Awaitable[Response]]
# Tells who sent a request.
CallerOf = Callable[[Request], Caller]


def application(settings: ServerSettings, database: Database) -> ASGIApp:
    """Return the routes as an ASGI application."""
    caller_of = _local_caller(settings)
    paths = [
        Path("/health", _health, methods=["GET"]),
        Path("/api/openapi.json", _openapi, methods=["GET"]),
        Path("/api/docs", _docs, methods=["GET"]),
        *(
            Path(route.path, _endpoint(route, database, caller_of), methods=[route.method])
            for route in every()
        ),
    ]
    return Router(paths, default=_Missing(paths))


def _endpoint(route: Route, database: Database, caller_of: CallerOf) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            arguments = await arguments_of(request, route)
            answer = await database.call_async(route.operation, arguments, caller_of(request))
            data = _shaped(route, arguments, answer)
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return refused(error, enveloped=route.enveloped)
        return answered(data, enveloped=route.enveloped, status=route.status)

    return endpoint


def _shaped(route: Route, arguments: dict[str, Any], answer: dict[str, Any]) -> Any:
    """Return the answer of a meta tool as the document has it: the tool's own."""
    called = TABLE.get(arguments["toolName"]) if route.flat else None
    return answer if called is None or called.toolset != "gateway" else answer["result"]


def _local_caller(settings: ServerSettings) -> CallerOf:
    def caller_of(_request: Request) -> Caller:
        return Caller(
            "rest",
            settings.namespace,
            settings.branch,
            can_switch=False,
            local=False,
            read_only=settings.read_only,
        )

    return caller_of


class _Missing:
    """Answers what no route takes."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        error: StratagemError = OperationNotFound(
            f"There is nothing at {scope['path']}.", hint="GET /api/openapi.json lists every route."
        )
        response = refused(error, enveloped=True)
        await response(scope, receive, send)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _openapi(_request: Request) -> Response:
    return JSONResponse(document())


async def _docs(_request: Request) -> Response:
    page = resources.files(__package__) / "docs.html"
    return HTMLResponse(page.read_text("utf-8"))
