"""Calls that take long, as tasks (the extension `io.modelcontextprotocol/tasks`, SEP-2663).

A client of 2026 that has the extension gets a handle for a call that has not ended after a moment,
and asks for its result (`tasks/get`), answers its questions (`tasks/update`) or cancels it
(`tasks/cancel`). The handle is the id of the call in the gateway, so that the command line and the
other surfaces find and end it too. While a call runs here its state is known in memory; how it
ended is kept in the database, where every process of a server, and the next one, finds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.errors import ExecutionFailed, ExecutionNotFound, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp.callers import Callers
from stratagem.surfaces.mcp.suspended_call import SuspendedCall
from stratagem.surfaces.mcp.tools import error_result
from stratagem.surfaces.serving.database import Database

if TYPE_CHECKING:
    from stratagem.gateway.calls.answers import WorkEntry, WorkList
    from stratagem.gateway.calls.work import WorkItem
    from stratagem.gateway.parts import GatewayParts

__all__ = ["EXTENSION", "ClientTasks"]

logger = logging.getLogger(__name__)

EXTENSION: Final = "io.modelcontextprotocol/tasks"
Context = ServerRequestContext[Any, Any]
_MILLISECONDS: Final = 1000
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class TaskParams(types.RequestParams):
    """Which task is meant."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Answers to questions of a task."""

    input_responses: types.InputResponses | None = None


@dataclass(slots=True)
class _RunningTask:
    call: SuspendedCall
    item: WorkItem
    gateway: GatewayParts
    # Set when what came of it is kept, and found there.
    kept: asyncio.Event = field(default_factory=asyncio.Event)

    def describe(self, status: str, message: str | None = None) -> dict[str, Any]:
        """Return the task in the form of the protocol."""
        now = self.gateway.foundation.store.now()
        return _task(self.item.id, moments.iso(self.item.started_at), now, status, message)

    def state(self) -> dict[str, Any]:
        """Return what is known of a task that has not ended."""
        shown = self.describe("working", self.item.message)
        questions = self.call.take()
        if questions:
            asked = {key: _dump(each) for key, each in questions.items()}
            shown |= {"status": "input_required", "inputRequests": asked}
        return shown


class ClientTasks:
    """The tasks of all clients of a process. Runs on the event loop."""

    def __init__(self, database: Database, callers: Callers) -> None:
        self._database = database
        self._callers = callers
        self._running: dict[str, _RunningTask] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def serve(self, server: Server[Any]) -> None:
        """Answer the requests of the extension, and say so."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", TaskUpdateParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    def is_wanted(self, context: Context) -> bool:
        """Whether a request may be answered with a task: its client has to have said so."""
        declared = context.session.client_capabilities
        extensions = declared.extensions if declared is not None else None
        return context.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in (
            extensions or {}
        )

    async def create(self, call: SuspendedCall) -> dict[str, Any] | None:
        """Return a handle for a call that goes on; None where it cannot be found again."""
        item = call.item
        if item is None or call.task is None or len(self._running) >= limits.TASKS_MAX:
            return None
        gateway = await self._gateway(item.caller.workspace)
        if gateway.foundation.store.read_only:
            return None
        await gateway.home.join(lambda: gateway.work.outlive_client(item))
        running = self._running[item.id] = _RunningTask(call, item, gateway)
        ending = asyncio.create_task(self._finish(running))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return {**running.describe("working"), "resultType": "task"}

    async def get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Return the state of a task, with its result or its questions."""
        return await self.state(context, params.task_id)

    async def state(self, context: Context, task_id: str) -> dict[str, Any]:
        """Return the state of a task.

        Raises:
            MCPError: There is none, or it is not the caller's.
        """
        caller = self._caller(context)
        running = self._find(task_id, caller)
        if running is not None:
            return running.state()
        return await self._look_up(task_id, caller)

    async def follow(self, context: Context, task_id: str) -> AsyncIterator[dict[str, Any]]:
        """Give the state of a task now, and whenever it is another one, until its end."""
        before: dict[str, Any] | None = None
        while True:
            try:
                state = await self.state(context, task_id)
            except MCPError:
                # Its records were erased meanwhile.
                return
            # When it was looked at is no news.
            news = {name: each for name, each in state.items() if name != "lastUpdatedAt"}
            if news != before:
                yield state
            if state["status"] in _ENDED:
                return
            before = news
            await self._await_change(task_id)

    async def _await_change(self, task_id: str) -> None:
        """Wait until a task may have another state; of one that runs elsewhere, for a moment."""
        running = self._running.get(task_id)
        if running is None:
            await asyncio.sleep(limits.TASK_POLL_SECONDS)
            return
        events = (running.kept, running.call.asks)
        waits = [asyncio.ensure_future(each.wait()) for each in events]
        try:
            await asyncio.wait(
                waits, timeout=limits.TASK_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for each in waits:
                each.cancel()

    async def update(self, context: Context, params: TaskUpdateParams) -> dict[str, Any]:
        """Hand on what a client answers; answers to no open question are ignored."""
        caller = self._caller(context)
        running = self._find(params.task_id, caller)
        if running is not None:
            running.call.answer(params.input_responses or {}, partly=True)
        else:
            # It may have ended meanwhile, but it has to be there.
            await self._look_up(params.task_id, caller)
        return {}

    async def cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Ask for the end of a task, wherever it runs."""
        from stratagem.gateway import inputs, services

        caller = self._caller(context)
        if self._find(params.task_id, caller) is None:
            await self._look_up(params.task_id, caller)
        gateway = await self._gateway(caller.workspace)
        given = inputs.WorkCancelInput(execution_id=params.task_id)
        await services.work(gateway, caller).cancel(given)
        return {}

    def _caller(self, context: Context) -> Caller:
        if not self.is_wanted(context):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            words = f"Declare the extension {EXTENSION} to use tasks."
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, words, needed)
        return self._callers.of(context)

    def _find(self, task_id: str, caller: Caller) -> _RunningTask | None:
        running = self._running.get(task_id)
        if running is None or running.item.caller.workspace != caller.workspace:
            return None
        return running if caller.sees_contents_of(running.item.caller.actor) else None

    async def _finish(self, running: _RunningTask) -> None:
        """Wait for the end of a task, and keep what came of it."""
        item, task = running.item, running.call.task
        assert task is not None
        await asyncio.wait({task})
        ended = running.describe(*_final_status(running))
        if ended["status"] == "completed":
            ended["result"] = _dump(task.result())
        elif ended["status"] == "failed":
            ended["error"] = _protocol_error(task.exception())
        try:
            await asyncio.to_thread(running.gateway.work.keep_ended_task, item, ended)
        except StratagemError as error:
            logger.warning("the result of the task %s was not stored: %s", item.id, error.message)
        finally:
            del self._running[item.id]
            running.kept.set()

    async def _look_up(self, task_id: str, caller: Caller) -> dict[str, Any]:
        """Return the state of a task that does not run here, by what is in the database.

        Raises:
            MCPError: There is none, or it is not the caller's.
        """
        from stratagem.gateway import inputs, services

        gateway = await self._gateway(caller.workspace)
        service = services.work(gateway, caller)
        ended = await asyncio.to_thread(service.ended_task, task_id)
        if ended is not None:
            return ended
        try:
            found = await service.find(inputs.WorkListInput(execution_id=task_id))
        except ExecutionNotFound:
            found = {"work": []}
        if found["work"] and found["work"][0]["executionId"] == task_id:
            return _state_elsewhere(found["work"][0], gateway.foundation.store.now())
        if "outcome" in found:
            return _without_content(task_id, found, gateway.foundation.store.now())
        words = f"There is no task {task_id!r}."
        raise MCPError(types.INVALID_PARAMS, words, {"taskId": task_id})

    async def _gateway(self, workspace: str | None) -> GatewayParts:
        runtime = await asyncio.to_thread(self._database.runtime, workspace)
        gateway = await asyncio.to_thread(lambda: runtime.gateway)
        gateway.home.adopt()
        return gateway


def _final_status(running: _RunningTask) -> tuple[str, str | None]:
    """Return how a task has ended, and what there is to say of it."""
    task = running.call.task
    assert task is not None
    if running.item.cancelled or task.cancelled():
        return "cancelled", "It was cancelled."
    if (error := task.exception()) is not None:
        return "failed", str(error)
    return "completed", None


def _state_elsewhere(entry: WorkEntry, now: int) -> dict[str, Any]:
    id_, created = entry["executionId"], entry["startedAt"]
    if entry["state"] != "lost":
        return _task(id_, created, now, "working")
    words = "The process that ran it has ended."
    error = {"code": types.INTERNAL_ERROR, "message": words}
    return {**_task(id_, created, now, "failed", words), "error": error}


def _without_content(task_id: str, found: WorkList, now: int) -> dict[str, Any]:
    """Return the end of a task whose answer was not kept in the protocol's form."""
    outcome = found["outcome"]
    if "error" in outcome:
        result = error_result(ExecutionFailed(outcome["error"]["message"], executionId=task_id))
    else:
        words = f"It has ended; work_list shows the result of {task_id}."
        structured = {"executionId": task_id, "answer": outcome.get("answer")}
        result = types.CallToolResult(
            content=[types.TextContent(text=words)], structured_content=structured
        )
    return {**_task(task_id, moments.iso(now), now, "completed"), "result": _dump(result)}


def _protocol_error(error: BaseException | None) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return _dump(error.error)
    return {"code": types.INTERNAL_ERROR, "message": "The call failed inside the server."}


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _task(
    id_: str, created: str, now: int, status: str, message: str | None = None
) -> dict[str, Any]:
    said = {"statusMessage": message} if message else {}
    return {
        "taskId": id_,
        "status": status,
        **said,
        "createdAt": created,
        "lastUpdatedAt": moments.iso(now),
        "ttlMs": round(limits.TASK_SECONDS * _MILLISECONDS),
        "pollIntervalMs": round(limits.TASK_POLL_SECONDS * _MILLISECONDS),
    }
