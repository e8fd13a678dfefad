"""Answers to a method that a path does not take."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from stratagem.errors import MethodNotAllowed
from stratagem.surfaces.serving.responses import error_response, is_of_gateway

__all__ = ["wrong_methods"]


class _WrongMethod:
    """Answers a path that is there, asked for in a way that is not."""

    def __init__(self, allowed: set[str]) -> None:
        self._allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = MethodNotAllowed(
            f"{scope['method']} is not allowed for {scope['path']}.",
            field="method",
            allowed=self._allowed,
            hint=f"Use {self._allowed}.",
        )
        response = error_response(error, enveloped=is_of_gateway(scope["path"]))
        response.headers["allow"] = self._allowed
        await response(scope, receive, send)


def wrong_methods(routes: Iterable[Route]) -> list[Route]:
    """Return what takes the methods of each path that no route takes."""
    allowed: dict[str, set[str]] = {}
    for route in routes:
        allowed.setdefault(route.path, set()).update(route.methods or ())
    return [Route(path, _WrongMethod(methods)) for path, methods in allowed.items()]
