"""REST: one endpoint for each route, all of them the same few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as Path
from starlette.routing import Router
from starlette.types import ASGIApp

from stratagem.errors import OperationNotFound, StratagemError
from stratagem.operation import Caller
from stratagem.operations import TABLE
from stratagem.surfaces.admission.authenticator import Admission
from stratagem.surfaces.rest.arguments import arguments_of
from stratagem.surfaces.rest.client_headers import answering, as_asked, note_branch
from stratagem.surfaces.rest.openapi import document
from stratagem.surfaces.rest.pages import docs, landing
from stratagem.surfaces.rest.readiness import Readiness
from stratagem.surfaces.rest.routes import Route, every
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.large_bodies import Turns
from stratagem.surfaces.serving.request_scope import ADMITTED
from stratagem.surfaces.serving.responses import answered, refused

__all__ = ["application"]

Endpoint = Callable[[Request], Awaitable[Response]]
# Tells who sent a request.
CallerOf = Callable[[Request], Caller]


def application(database: Database, admission: Admission) -> ASGIApp:
    """Return the routes as an ASGI application."""
    caller_of, turns = _caller_of(admission), admission.measures.large
    paths = [
        Path("/health", _health, methods=["GET"]),
        Path("/ready", Readiness(database).answer, methods=["GET"]),
        Path("/metrics", _metrics(database), methods=["GET"]),
        Path("/api/openapi.json", _openapi, methods=["GET"]),
        Path("/api/docs", docs, methods=["GET"]),
        Path("/", landing, methods=["GET"]),
        *(
            Path(route.path, _endpoint(route, database, caller_of, turns), methods=[route.method])
            for route in every()
        ),
    ]
    return Router([*paths, *_wrong_methods(paths)], default=_Missing())


def _endpoint(route: Route, database: Database, caller_of: CallerOf, turns: Turns) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            arguments = await arguments_of(request, route, turns)
            caller = as_asked(caller_of(request), request)
            with answering(request):
                answer = await database.call_async(route.operation, arguments, caller)
            data = _shaped(route, arguments, answer)
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return refused(error, enveloped=route.enveloped)
        response = answered(data, enveloped=route.enveloped, status=route.status)
        return note_branch(response, caller, request)

    return endpoint


def _shaped(route: Route, arguments: dict[str, Any], answer: dict[str, Any]) -> Any:
    """Return the answer of a meta tool as the document has it: the tool's own."""
    called = TABLE.get(arguments["toolName"]) if route.flat else None
    return answer if called is None or called.toolset != "gateway" else answer["result"]


def _caller_of(admission: Admission) -> CallerOf:
    def caller_of(request: Request) -> Caller:
        return admission.caller(request.scope[ADMITTED], "rest")

    return caller_of


class _Missing:
    """Answers what no route takes."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        error: StratagemError = OperationNotFound(
            f"There is nothing at {scope['path']}.", hint="GET /api/openapi.json lists every route."
        )
        response = refused(error, enveloped=True)
        await response(scope, receive, send)


class _WrongMethod:
    """Answers a path that is there, asked for in a way that is not."""

    def __init__(self, allowed: set[str]) -> None:
        self._allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        error = OperationNotFound(
            f"{scope['method']} is not how {scope['path']} is asked.",
            allowed=self._allowed,
            hint=f"Use {self._allowed}.",
        )
        response = refused(error, enveloped=True, status=405)
        response.headers["allow"] = self._allowed
        await response(scope, receive, send)


def _wrong_methods(paths: list[Path]) -> list[Path]:
    """Return what takes the methods of each path that no route takes."""
    allowed: dict[str, set[str]] = {}
    for path in paths:
        allowed.setdefault(path.path, set()).update(path.methods or ())
    return [Path(path, _WrongMethod(methods)) for path, methods in allowed.items()]


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _metrics(database: Database) -> Endpoint:
    async def metrics(_request: Request) -> Response:
        from stratagem.gateway.calls.metrics import CONTENT_TYPE

        try:
            runtime = await asyncio.to_thread(database.runtime)
            gateway = await asyncio.to_thread(lambda: runtime.gateway)
            gateway.home.adopt()
            text = await gateway.home.join(lambda: _soon(gateway.metrics_page))
        except StratagemError as error:
            return refused(error, enveloped=True)
        return Response(text, media_type=CONTENT_TYPE)

    return metrics


async def _soon(work: Callable[..., str], *given: Any) -> str:
    return work(*given)


async def _openapi(_request: Request) -> Response:
    return JSONResponse(document())
