"""Messages to and from an upstream server, as the plain objects that their JSON is.

It stands where the SDK's dispatcher would: the SDK's session negotiates, subscribes and answers
questions over it. The SDK's own carries each message as a model through two streams and several
tasks, which took longer than the rest of a call through the gateway (ADR 63). Here an answer goes
straight to whoever waits for it. `http.py` and `stdio.py` carry the messages.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

import anyio
import anyio.abc
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    RequestId,
)
from opentelemetry.propagate import inject
from pydantic import ValidationError
from pydantic_core import from_json

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.mcp_messages import AnswerContext
from stratagem.spans import fail_span, start_span

__all__ = [
    "ConnectionLost",
    "Message",
    "MessageDispatcher",
    "PendingRequest",
    "read_message",
]

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Outcome = dict[str, Any] | MCPError

_CANCELLED: Final = "notifications/cancelled"
_PROGRESS: Final = "notifications/progress"
_TRANSPORT: Final = TransportContext(kind="upstream", can_send_request=False)


class ConnectionLost(MCPError):
    """A request will not be answered any more. Servers may send its code too, with other words."""

    def __init__(self, words: str = "Connection closed") -> None:
        super().__init__(CONNECTION_CLOSED, words)


@dataclass(slots=True)
class PendingRequest:
    """A request that waits for its outcome: a result, or the error that stands for it."""

    id: RequestId
    outcome: asyncio.Future[Outcome]
    headers: Mapping[str, str]
    on_progress: ProgressFnT | None = None
    # What carries it, where each request has a task of its own.
    exchange: asyncio.Task[None] | None = None

    def resolve(self, outcome: Outcome) -> None:
        """Give whoever waits the outcome; the first one counts."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


@dataclass(slots=True)
class _Handlers:
    """Whom messages from the server are given to."""

    request: OnRequest
    notification: OnNotify
    intercept: OnNotifyIntercept | None


class MessageDispatcher(Dispatcher[TransportContext]):
    """Requests with their answers, and what the server sends of its own accord."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._pending: dict[RequestId, PendingRequest] = {}
        self._incoming: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._handlers: _Handlers | None = None
        self._is_closed = False
        # The error for requests that still wait for an answer when the connection ends.
        self._end: MCPError = ConnectionLost()

    @abstractmethod
    async def _receive_all(self) -> None:
        """Receive messages until no more can come."""

    @abstractmethod
    async def _send_request(self, message: Message, pending: PendingRequest) -> None:
        """Send a request on its way.

        Raises:
            MCPError: It cannot be sent.
        """

    @abstractmethod
    async def _send(self, message: Message) -> None:
        """Send a notification or an answer of ours; one that cannot be sent is dropped."""

    @abstractmethod
    def _abandon(self, pending: PendingRequest, reason: str, *, notify: bool) -> None:
        """Stop waiting for a request, and have the server told so where it may be."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Receive messages until the connection ends; see `Dispatcher`."""
        self._handlers = _Handlers(on_request, on_notify, on_notify_intercept)
        task_status.started()
        try:
            await self._receive_all()
        finally:
            self._is_closed = True
            for pending in self._pending.values():
                pending.resolve(self._end)
            for task in self._tasks:
                task.cancel()
            with anyio.move_on_after(limits.UPSTREAM_END_SECONDS, shield=True):
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result; see `Dispatcher`.

        Raises:
            MCPError: The server answered with an error, or not at all.
        """
        if self._is_closed:
            raise self._end
        opts = opts or {}
        pending = self._begin(opts)
        seconds, notify = opts.get("timeout"), opts.get("cancel_on_abandon", True)
        try:
            with _client_span(method, params, pending.id) as span:
                message = _request(method, params, pending)
                async with asyncio.timeout(seconds):
                    await self._send_request(message, pending)
                    outcome = await pending.outcome
                if isinstance(outcome, MCPError):
                    fail_span(span, str(outcome.code))
        except TimeoutError:
            self._abandon(pending, f"timed out after {seconds}s", notify=notify)
            raise MCPError(REQUEST_TIMEOUT, f"Request {method!r} timed out") from None
        except asyncio.CancelledError:
            self._abandon(pending, "caller cancelled", notify=notify)
            raise
        finally:
            del self._pending[coerce_request_id(pending.id)]
        if isinstance(outcome, MCPError):
            raise outcome
        return outcome

    def _begin(self, opts: CallOptions) -> PendingRequest:
        request_id: RequestId | None = opts.get("request_id")
        if request_id is None:
            request_id = next(each for each in self._ids if each not in self._pending)
        elif coerce_request_id(request_id) in self._pending:
            raise ValueError(f"request id {request_id!r} is already in flight")
        pending = PendingRequest(
            request_id,
            asyncio.get_running_loop().create_future(),
            opts.get("headers") or {},
            opts.get("on_progress"),
        )
        self._pending[coerce_request_id(request_id)] = pending
        return pending

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification, if the connection still stands; see `Dispatcher`."""
        del opts
        if not self._is_closed:
            await self._send(_notification(method, params))

    def _cancellation(self, pending: PendingRequest, reason: str) -> Message:
        return _notification(_CANCELLED, {"requestId": pending.id, "reason": reason})

    def _accept(self, message: Message, answered: PendingRequest | None = None) -> bool:
        """Take a message; return whether it is an answer.

        An answer is taken for that of `answered`, where given: then it came as the response to it.

        Raises:
            ValueError: It is no message.
        """
        method = message.get("method")
        if method is None:
            outcome = _outcome(message)
            request_id = as_request_id(message.get("id"))
            if answered is None and request_id is not None:
                answered = self._pending.get(coerce_request_id(request_id))
            if answered is not None:
                answered.resolve(outcome)
            return True
        params = message.get("params")
        if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
            raise ValueError("a message whose method or parameters are none")
        if "id" not in message:
            self._take_notification(method, params)
        elif (request_id := as_request_id(message["id"])) is not None:
            task = self._spawn(self._answer(request_id, method, params))
            key = coerce_request_id(request_id)
            self._incoming[key] = task
            task.add_done_callback(lambda _task: self._incoming.pop(key, None))
        else:
            raise ValueError("a request whose id is none")
        return False

    def _take_notification(self, method: str, params: Mapping[str, Any] | None) -> None:
        assert self._handlers is not None
        if method == _CANCELLED:
            request_id = as_request_id((params or {}).get("requestId"))
            if request_id is not None:
                task = self._incoming.get(coerce_request_id(request_id))
                if task is not None:
                    task.cancel()
        elif method == _PROGRESS:
            self._report_progress(params or {})
        # In the order of arrival, so that what a subscription brings is not overtaken by its end.
        if not run_notify_intercept(self._handlers.intercept, method, params):
            self._spawn(_contain(self._handlers.notification(self._context(), method, params)))

    def _report_progress(self, params: Mapping[str, Any]) -> None:
        token, done = as_request_id(params.get("progressToken")), _number(params.get("progress"))
        pending = self._pending.get(coerce_request_id(token)) if token is not None else None
        if pending is None or pending.on_progress is None or done is None:
            return
        message = params.get("message")
        words = message if isinstance(message, str) else None
        self._spawn(_contain(pending.on_progress(done, _number(params.get("total")), words)))

    async def _answer(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None
    ) -> None:
        """Have a request of the server answered, and send the answer."""
        assert self._handlers is not None
        answer: Message = {"jsonrpc": "2.0", "id": request_id}
        try:
            context = self._context(request_id)
            answer["result"] = await self._handlers.request(context, method, params)
        except MCPError as error:
            answer["error"] = error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
        except ValidationError:
            answer["error"] = {"code": INVALID_PARAMS, "message": "Invalid request parameters"}
        except Exception:  # whatever it was, the server is owed an answer
            logger.exception("a request of an upstream server was not answered: %s", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": "Internal error"}
        await self._send(answer)

    def _context(self, request_id: RequestId | None = None) -> _Incoming:
        return _Incoming(_TRANSPORT, request_id, dispatcher=self)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(slots=True, kw_only=True)
class _Incoming(AnswerContext):
    """A message of the server, for the SDK's session; what that notifies is sent as usual."""

    dispatcher: MessageDispatcher

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification to the server."""
        await self.dispatcher.notify(method, params, opts)


def read_message(data: bytes | str) -> Message:
    """Return the message that a JSON text is.

    Raises:
        ValueError: It is no JSON, or no message.
    """
    message = from_json(data)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ValueError("not a message of JSON-RPC 2.0")
    return message


def _outcome(message: Message) -> Outcome:
    """Return what an answer says.

    Raises:
        ValueError: It says nothing.
    """
    if isinstance(result := message.get("result"), dict):
        return result
    error = message.get("error")
    if isinstance(error, dict):
        code, words = error.get("code"), error.get("message")
        if isinstance(code, int) and isinstance(words, str):
            return MCPError(code, words, error.get("data"))
    raise ValueError("an answer with neither a result nor an error")


def _request(method: str, params: Mapping[str, Any] | None, pending: PendingRequest) -> Message:
    sent = dict(params or {})
    meta = dict(sent.pop("_meta", None) or {})
    if pending.on_progress is not None:
        meta["progressToken"] = pending.id
    inject(meta)
    if meta:
        sent["_meta"] = meta
    message: Message = {"jsonrpc": "2.0", "id": pending.id, "method": method}
    if sent:
        message["params"] = sent
    return message


def _notification(method: str, params: Mapping[str, Any] | None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = dict(params)
    return message


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


async def _contain(work: Any) -> None:
    """Run what a message is given to; its failure concerns no other message."""
    try:
        await work
    except Exception:  # as the docstring says
        logger.exception("a message of an upstream server was not taken")


def _client_span(
    method: str, params: Mapping[str, Any] | None, request_id: RequestId
) -> AbstractContextManager[Any]:
    name = (params or {}).get("name")
    title = f"MCP send {method} {name}" if isinstance(name, str) else f"MCP send {method}"
    attributes = {"mcp.method.name": method, "jsonrpc.request.id": str(request_id)}
    return start_span("stratagem.gateway.upstream", title, attributes, kind="CLIENT")
