"""Answers to requests that do not complete: incomplete bodies, and a server that stops.

A request holds one of the server's places from its head on, and a body may arrive slowly. It has a
time limit, which grows with the received part; only a limited number of bodies may be awaited. A
request that takes too long is answered with 408 and its connection closed; the application sees a
disconnected client.

When the server stops, incomplete requests and waiting streams are ended at once. Running calls end
by themselves (`ActiveCalls`); everything that is open after that is ended here.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem import limits
from stratagem.errors import RequestTimedOut, StratagemError
from stratagem.surfaces.serving.calls import not_begun_error
from stratagem.surfaces.serving.request_scope import is_of_sockets
from stratagem.surfaces.serving.responses import error_response

__all__ = ["Deadlines"]

# Enough to send a few hundred bytes to those who take them.
_END_SECONDS: Final = 0.3
_GONE: Final[Message] = {"type": "http.disconnect"}


class Deadlines:
    """See the module. Runs on the server's event loop."""

    def __init__(self) -> None:
        self._open: dict[_OpenRequest, None] = {}
        # The oldest come first.
        self._awaited: dict[_OpenRequest, None] = {}
        self._stopping = False

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return an application whose requests have their times."""

        async def with_deadlines(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await self._answer(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return with_deadlines

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        request = _OpenRequest(self, scope, receive, send)
        if self._stopping:
            await request.end(not_begun_error())
            return
        self._open[request] = None
        try:
            await app(scope, request.receive, request.send)
        except asyncio.CancelledError:
            if not request.ended:
                raise
        finally:
            self._open.pop(request, None)
            self._awaited.pop(request, None)

    @property
    def busy(self) -> bool:
        """Whether there are requests that will be answered soon."""
        return any(not each.is_stream for each in self._open)

    async def stop(self) -> None:
        """Answer no other request, nor wait for bodies and on streams that may last for ever."""
        self._stopping = True
        for request in list(self._awaited):
            request.hurry()
        await self._end([each for each in self._open if each.is_stream and each.started])

    async def cut_off(self) -> None:
        """End what is open still."""
        await self._end(list(self._open))

    async def _end(self, requests: list[_OpenRequest]) -> None:
        """End requests together; a client that takes no answer is not waited for."""
        ending = [asyncio.ensure_future(each.end(not_begun_error())) for each in requests]
        if ending:
            _, left = await asyncio.wait(ending, timeout=_END_SECONDS)
            for each in left:
                each.cancel()

    def await_body(self, request: _OpenRequest) -> None:
        """Count a request among those whose body has not come, and end the oldest if need be."""
        self._awaited[request] = None
        if len(self._awaited) > limits.BODIES_AWAITED_MAX:
            oldest = next(iter(self._awaited))
            del self._awaited[oldest]
            oldest.hurry()

    def take_body(self, request: _OpenRequest) -> None:
        """Count a request no longer among those whose body has not come."""
        self._awaited.pop(request, None)

    @property
    def too_late(self) -> StratagemError:
        """The error of a request whose body is no longer waited for."""
        if self._stopping:
            return not_begun_error()
        return RequestTimedOut(
            "The body of the request did not arrive in time.",
            seconds=limits.BODY_SECONDS,
            bytes_per_second=limits.BODY_BYTES_PER_SECOND,
        )


class _OpenRequest:
    """One request, between uvicorn and the application."""

    def __init__(self, owner: Deadlines, scope: Scope, receive: Receive, send: Send) -> None:
        self._owner = owner
        self._scope = scope
        self._receive = receive
        self._send = send
        self._task = asyncio.current_task()
        self._begun = asyncio.get_running_loop().time()
        self._bytes = 0
        self._body_came = _has_no_body(scope)
        self._waiting: asyncio.Timeout | None = None
        self.started = False
        self.ended = False

    @property
    def is_stream(self) -> bool:
        """Whether it is answered when there is news, or for as long as the client listens."""
        waits = self.started or is_of_sockets(self._scope)
        return bool(waits and self._scope["method"] == "GET")

    async def receive(self) -> Message:
        """Return what comes next of the request, if it comes in time."""
        if self.ended:
            return _GONE
        if self._body_came:
            return await self._receive()
        self._owner.await_body(self)
        until = self._begun + limits.BODY_SECONDS + self._bytes / limits.BODY_BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(until) as self._waiting:
                message = await self._receive()
        except TimeoutError:
            await self.end(self._owner.too_late, cancel=False)
            return _GONE
        finally:
            self._waiting = None
        self._bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            self._body_came = True
            self._owner.take_body(self)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, unless the request was answered here."""
        if self.ended:
            return
        self.started = True
        await self._send(message)

    def hurry(self) -> None:
        """Wait for the body no longer."""
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def end(self, error: StratagemError, *, cancel: bool = True) -> None:
        """Answer with an error, or end an answer that has begun; then end whatever works on it."""
        if self.ended:
            return
        self.ended = True
        if self.started:
            # An answer whose length was announced cannot be ended early; its connection is closed.
            with suppress(RuntimeError):
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            enveloped = self._scope["path"].startswith("/api/mcp")
            response = error_response(error, enveloped=enveloped)
            response.headers["connection"] = "close"
            await response(self._scope, self._receive, self._send)
        if cancel and self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()


def _has_no_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
