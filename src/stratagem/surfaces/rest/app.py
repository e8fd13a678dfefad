"""REST: one endpoint for each route, all of them the same few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from functools import cache
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as Path
from starlette.routing import Router
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.errors import RouteNotFound, StratagemError
from stratagem.operation import Caller
from stratagem.operations import TABLE
from stratagem.surfaces.admission.authenticator import Authenticator
from stratagem.surfaces.rest.arguments import arguments_of
from stratagem.surfaces.rest.client_headers import answer_budget, note_place, with_client_settings
from stratagem.surfaces.rest.departures import run_for_client
from stratagem.surfaces.rest.hook_events import ROUTE as HOOKS_ROUTE
from stratagem.surfaces.rest.hook_events import hook_endpoint
from stratagem.surfaces.rest.openapi import document
from stratagem.surfaces.rest.pages import docs, missing_page
from stratagem.surfaces.rest.readiness import Readiness
from stratagem.surfaces.rest.routes import Route, all_routes
from stratagem.surfaces.rest.sign_in import sign_in_routes
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.surfaces.serving.methods import wrong_methods
from stratagem.surfaces.serving.request_scope import PRINCIPAL
from stratagem.surfaces.serving.responses import (
    error_response,
    is_of_gateway,
    success_response,
    with_gateway_codes,
)

__all__ = ["application"]

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
# Nearer than the usual: paths have most of their letters in common, and comparing takes its time.
_SIMILARITY_MIN: Final = 0.8
# Tells who sent a request.
CallerOf = Callable[[Request], Caller]


def application(database: Database, authenticator: Authenticator) -> ASGIApp:
    """Return the routes as an ASGI application."""
    caller_of, large_bodies = _caller_of(authenticator), authenticator.quotas.large_bodies
    paths = [
        Path("/health", _health, methods=["GET"]),
        Path("/ready", Readiness(database).answer, methods=["GET"]),
        Path("/metrics", _metrics(database), methods=["GET"]),
        Path("/api/openapi.json", _openapi, methods=["GET"]),
        Path("/api/docs", docs, methods=["GET"]),
        *sign_in_routes(database),
        Path(HOOKS_ROUTE, hook_endpoint(database, caller_of), methods=["POST"]),
        *(
            Path(
                route.path,
                _endpoint(route, database, caller_of, large_bodies),
                methods=[route.method],
            )
            for route in all_routes()
        ),
    ]
    return Router([*paths, *wrong_methods(paths)], default=_NotFound())


def _endpoint(
    route: Route, database: Database, caller_of: CallerOf, large_bodies: LargeBodyQueue
) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            arguments = await arguments_of(request, route, large_bodies)
            caller = with_client_settings(caller_of(request), request)
            namespace = caller.namespace
            with answer_budget(request):
                answer = await run_for_client(
                    request,
                    route.operation,
                    arguments,
                    database.call_async(route.operation, arguments, caller),
                )
            data = _unwrap(route, arguments, answer)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return error_response(error, enveloped=route.enveloped)
        response = success_response(data, enveloped=route.enveloped, status=route.status)
        return note_place(response, caller, request, namespace)

    return endpoint


def _unwrap(route: Route, arguments: dict[str, Any], answer: dict[str, Any]) -> Any:
    """Return the answer of a meta tool as the document has it: the tool's own."""
    if route.enveloped and route.operation == "tools_pipeline":
        return with_gateway_codes(answer)
    called = TABLE.get(arguments["toolName"]) if route.flat and "running" not in answer else None
    return answer if called is None or called.toolset != "gateway" else answer["result"]


def _caller_of(authenticator: Authenticator) -> CallerOf:
    def caller_of(request: Request) -> Caller:
        return authenticator.caller(request.scope[PRINCIPAL], "rest")

    return caller_of


class _NotFound:
    """Answers what no route takes."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        # Away from the event loop: it compares the path with hundreds of others.
        near = await asyncio.to_thread(_similar_paths, path[: limits.KEY_CHARS_MAX])
        error = RouteNotFound(
            f"There is nothing at {path}.",
            similar=near,
            hint=f"Did you mean {' or '.join(near)}? GET /api/openapi.json lists every route."
            if near
            else None,
        )
        page = missing_page(scope, error.message, HTTPStatus.NOT_FOUND)
        response = page or error_response(error, enveloped=is_of_gateway(path))
        await response(scope, receive, send)


def _similar_paths(path: str) -> list[str]:
    return get_close_matches(path, _all_paths(), n=3, cutoff=_SIMILARITY_MIN)


@cache
def _all_paths() -> list[str]:
    return sorted({route.path for route in all_routes()})


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _metrics(database: Database) -> Endpoint:
    async def metrics(_request: Request) -> Response:
        try:
            runtime = await asyncio.to_thread(database.runtime)
            gateway = await asyncio.to_thread(lambda: runtime.gateway)
            gateway.home.adopt()
            page = await gateway.home.join(lambda: _call(gateway.metrics_page))
        except StratagemError as error:
            return error_response(error, enveloped=True)
        return Response(page.content, headers={"content-type": page.content_type})

    return metrics


async def _call(work: Callable[[], T]) -> T:
    return work()


async def _openapi(_request: Request) -> Response:
    return JSONResponse(document())
