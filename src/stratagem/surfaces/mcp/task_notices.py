"""Tells clients of their tasks, on the stream of a subscription (`notifications/tasks`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from stratagem import limits
from stratagem.surfaces.mcp.tasks import ClientTasks

__all__ = ["following_tasks"]

Context = ServerRequestContext[Any, Any]
# What the extension adds to the kinds of change that a client may ask for.
_FIELD = "taskIds"


class TaskNotificationParams(types.NotificationParams):
    """A task, as `tasks/get` gives it."""

    model_config = ConfigDict(extra="allow")


class TaskNotification(types.Notification[TaskNotificationParams, Literal["notifications/tasks"]]):
    """What became of a task."""

    method: Literal["notifications/tasks"] = "notifications/tasks"


class _AcknowledgingSession:
    """The session of a subscription, whose acknowledgement names the tasks that are told of."""

    def __init__(self, session: ServerSession, tasks: Sequence[str]) -> None:
        self._session = session
        self._tasks = list(tasks)
        self.acknowledged = asyncio.Event()

    async def send_notification(
        self,
        notification: types.ServerNotification,
        related_request_id: types.RequestId | None = None,
    ) -> None:
        """Send a notification; see the SDK."""
        if isinstance(notification, types.SubscriptionsAcknowledgedNotification):
            kinds = notification.params.notifications.model_dump(by_alias=True, exclude_none=True)
            honoured = types.SubscriptionFilter.model_validate({**kinds, _FIELD: self._tasks})
            notification.params.notifications = honoured
            await self._session.send_notification(notification, related_request_id)
            self.acknowledged.set()
        else:
            await self._session.send_notification(notification, related_request_id)


@asynccontextmanager
async def following_tasks(
    context: Context, wanted: types.SubscriptionFilter, tasks: ClientTasks
) -> AsyncIterator[Context]:
    """Tell a client of the tasks that it asks for; give the context of its subscription."""
    asked = (wanted.model_extra or {}).get(_FIELD)
    if not isinstance(asked, list) or not tasks.is_wanted(context):
        yield context
        return
    ids = [str(each) for each in asked[: limits.TASKS_MAX]]
    known = [each for each in dict.fromkeys(ids) if await _is_known(context, each, tasks)]
    # A stream needs no more of its session than this.
    session: Any = _AcknowledgingSession(context.session, known)
    telling = [asyncio.create_task(_tell(context, session, each, tasks)) for each in known]
    try:
        yield replace(context, session=session)
    finally:
        for each in telling:
            each.cancel()
        await asyncio.gather(*telling, return_exceptions=True)


async def _is_known(context: Context, task: str, tasks: ClientTasks) -> bool:
    try:
        await tasks.state(context, task)
    except MCPError:
        return False
    return True


async def _tell(
    context: Context, session: _AcknowledgingSession, task: str, tasks: ClientTasks
) -> None:
    """Send each state of a task, the present one first: it may have ended already."""
    await session.acknowledged.wait()
    about = {SUBSCRIPTION_ID_META_KEY: context.request_id}
    async for state in tasks.follow(context, task):
        params = TaskNotificationParams.model_validate({**state, "_meta": about})
        notification: Any = TaskNotification(params=params)
        await session.send_notification(notification, context.request_id)
