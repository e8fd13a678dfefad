"""The trace that a request belongs to (W3C Trace Context), taken from its headers.

Whatever the request causes then belongs to it too: spans, where the process makes any, and requests
to upstream servers and services, which are sent the trace whether it does or not.
"""

from __future__ import annotations

from typing import Final

from opentelemetry import context, propagate, trace
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["TraceContext"]

_HEADER: Final = b"traceparent"


class TraceContext:
    """Makes the trace of a request the current one for as long as it takes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = scope.get("headers", ()) if scope["type"] == "http" else ()
        # Where the process is instrumented it has a span of its own within the trace already.
        traced = trace.get_current_span().get_span_context().is_valid
        if traced or not any(name == _HEADER for name, _value in headers):
            await self._app(scope, receive, send)
            return
        token = context.attach(propagate.extract(dict(Headers(scope=scope))))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)
