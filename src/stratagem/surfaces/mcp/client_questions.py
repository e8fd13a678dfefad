"""Questions of upstream servers, put to the client whose call they are asked in.

A client of the handshake era is sent a request of its own. One of 2026 is answered with the
questions, and sends its call again with the answers: meanwhile the call waits here, under an id
that only this client knows. Of a call that takes long it may be given a handle (`tasks.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, Final, TypeVar, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from stratagem import limits
from stratagem.gateway.definitions.questions import QuestionRefused, answer_questions_with
from stratagem.operation import Caller
from stratagem.surfaces.mcp.callers import SESSION_HEADER
from stratagem.surfaces.mcp.suspended_call import INPUT_REQUESTS, SuspendedCall
from stratagem.surfaces.mcp.tasks import ClientTasks
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["ClientQuestions"]

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

# The one client of a process.
_PROCESS: Final = "process"


class ClientQuestions:
    """Runs work during which its client can be asked."""

    def __init__(self, settings: ServerSettings, tasks: ClientTasks) -> None:
        # The next request of a client without a session may meet another process.
        self._keeps_calls = not settings.several_processes
        self._tasks = tasks
        self._suspended: dict[str, SuspendedCall] = {}

    async def run(
        self,
        context: Context,
        params: types.InputResponseRequestParams,
        caller: Caller,
        work: Callable[[], Coroutine[Any, Any, T]],
    ) -> T | types.InputRequiredResult:
        """Run work to its end, or to the questions that its client has to answer first.

        Raises:
            MCPError: The call that is to go on does not wait any more.
        """
        capabilities = _capabilities(context)
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            with answer_questions_with(_SessionAsker(context, capabilities)):
                return await work()
        if params.request_state is not None:
            return cast("T", await self._resume(params, caller))
        asked = capabilities if self._keeps_calls else {}
        may_be_task = isinstance(params, types.CallToolRequestParams) and self._tasks.is_wanted(
            context
        )
        if not asked and not may_be_task:
            return await work()
        call = SuspendedCall(asked, _owner(caller), may_be_task=may_be_task)
        self._begin(call, work)
        return cast("T", await self._wait(call))

    def _begin(self, call: SuspendedCall, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        from stratagem.gateway.calls.work import report_start_to

        with ExitStack() as stack:
            if call.capabilities:
                stack.enter_context(answer_questions_with(call))
            if call.may_be_task:
                stack.enter_context(report_start_to(call.begin))
            call.task = asyncio.create_task(work())

    async def _resume(self, params: types.InputResponseRequestParams, caller: Caller) -> Any:
        call = self._suspended.get(params.request_state or "")
        if call is None or call.owner != _owner(caller):
            words = "The question that this answers is not open any more; call again without it."
            raise MCPError(types.INVALID_PARAMS, words)
        del self._suspended[params.request_state or ""]
        call.answer(params.input_responses or {})
        return await self._wait(call)

    async def _wait(self, call: SuspendedCall) -> Any:
        """Wait until a call has ended or asks something, or for the moment that makes it a task."""
        assert call.task is not None
        asks = asyncio.create_task(call.asks.wait())
        seconds = limits.TASK_AFTER_SECONDS if call.may_be_task else None
        try:
            while True:
                done, _ = await asyncio.wait(
                    {call.task, asks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    break
                if (task := await self._tasks.create(call)) is not None:
                    return task
        except asyncio.CancelledError:
            call.task.cancel()
            raise
        finally:
            asks.cancel()
        if call.task.done():
            return call.task.result()
        if len(self._suspended) >= limits.QUESTIONS_OPEN_MAX:
            call.task.cancel()
            words = "Too many calls wait for answers; try again later."
            raise MCPError(types.INTERNAL_ERROR, words, {"limit": limits.QUESTIONS_OPEN_MAX})
        state = secrets.token_urlsafe(24)
        self._suspended[state] = call
        loop = asyncio.get_running_loop()
        loop.call_later(limits.QUESTION_SECONDS_MAX, self._expire, state)
        return types.InputRequiredResult(input_requests=call.take(), request_state=state)

    def _expire(self, state: str) -> None:
        call = self._suspended.pop(state, None)
        if call is not None and call.task is not None:
            call.task.cancel()


class _SessionAsker:
    """Asks a client of the handshake era, by a request of ours within its own."""

    def __init__(self, context: Context, capabilities: Mapping[str, Any]) -> None:
        self.capabilities = capabilities
        request = context.request
        session = request.headers.get(SESSION_HEADER) if request is not None else _PROCESS
        # Without a session nothing tells clients apart but the request itself.
        self.client = session or secrets.token_urlsafe(12)
        self._context = context
        self._loop = asyncio.get_running_loop()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send the client a question and return what it answers."""
        if asyncio.get_running_loop() is self._loop:
            return await self._ask(method, params)
        there = asyncio.run_coroutine_threadsafe(self._ask(method, params), self._loop)
        return await asyncio.wrap_future(there)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        session, request_id = self._context.session, self._context.request_id
        try:
            question = INPUT_REQUESTS.validate_python({"it": {"method": method, "params": params}})
            answer = await session.send_request(
                question["it"],
                types.ElicitResult
                if method.startswith("elicitation")
                else types.CreateMessageResult,
                metadata=ServerMessageMetadata(related_request_id=request_id),
            )
        except NoBackChannelError:
            raise QuestionRefused(types.METHOD_NOT_FOUND, "The client cannot be asked.") from None
        except MCPError as error:
            raise QuestionRefused(error.error.code, error.error.message, error.error.data) from None
        except ValidationError:
            words = "The question or its answer does not follow the protocol."
            raise QuestionRefused(types.INVALID_PARAMS, words) from None
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _capabilities(context: Context) -> dict[str, Any]:
    """Return what a client says it can be asked, as far as it is passed on."""
    declared = context.session.client_capabilities
    if declared is None:
        return {}
    said = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {name: said[name] for name in ("elicitation", "sampling") if name in said}


def _owner(caller: Caller) -> tuple[str | None, str]:
    return caller.workspace, caller.actor
