"""The events of corrections: subscriptions to them, and what clients can ask for.

Attempts are sent to subscribers of their agent and of all agents; patterns and breakers to every
subscriber. A client without a subscription receives none. Rooms carry this, so that it
holds for the clients of several servers too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import InvalidInput
from stratagem.gateway.registry.tool_sets import refuse_limited
from stratagem.operation import Caller
from stratagem.surfaces.socket.events import SocketEvent

__all__ = ["EVENTS", "Subscriptions", "notifications"]

Answer = dict[str, Any]
_PREFIX: Final = "auto_correction:"
# These belong to no agent, and go to every subscriber.
_COMMON: Final = frozenset(
    {
        "pattern:learned",
        "pattern:evolved",
        "pattern:deprecated",
        "circuit:opened",
        "circuit:half_open",
        "circuit:closed",
    }
)
_OF_AN_AGENT: Final = frozenset({"attempt:started", "attempt:success", "attempt:failed"})
_AGENT_CHARS_MAX: Final = 256
_ROOMS: Final = "corrections"


def _test_results(answer: Mapping[str, Any]) -> Answer:
    """Return the results of tests with their counts at the top, as the document has them."""
    overall = answer["overallResults"]
    counts = {"total": overall["totalTests"], "passed": overall["passed"]}
    return {**answer, **counts, "failed": overall["failed"]}


EVENTS: Final[Mapping[str, SocketEvent]] = {
    "auto_correction:configure": SocketEvent(
        "auto_correction_configure", "auto_correction:configured"
    ),
    "auto_correction:test:run": SocketEvent(
        "auto_correction_test", "auto_correction:test:results", _test_results
    ),
    "auto_correction:status": SocketEvent(
        "auto_correction_status", "auto_correction:status:response"
    ),
    "auto_correction:insights": SocketEvent(
        "auto_correction_insights", "auto_correction:insights:response"
    ),
    "auto_correction:diagnose": SocketEvent("error_diagnose", "auto_correction:diagnosed"),
}


class Rooms(Protocol):
    """What a server has to do for subscriptions."""

    async def enter_room(self, sid: str, room: str) -> None:
        """Put a client into a room."""
        ...

    async def leave_room(self, sid: str, room: str) -> None:
        """Take a client out of a room."""
        ...

    def rooms(self, sid: str) -> list[str]:
        """Return the rooms that a client is in."""
        ...


class _Room(NamedTuple):
    """Subscribers of one agent, or of all agents; JSON keeps the names of rooms distinct."""

    workspace: str | None
    agent: str | None
    metrics: bool

    @property
    def name(self) -> str:
        return orjson.dumps([_ROOMS, *self]).decode()

    @classmethod
    def read(cls, name: str) -> _Room | None:
        """Return the room of a name; None for those that have nothing to do with corrections."""
        if not name.startswith(f'["{_ROOMS}",'):
            return None
        _rooms, *parts = orjson.loads(name)
        return cls(*parts) if len(parts) == len(cls._fields) else None


class Subscriptions:
    """Which clients receive which corrections."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def subscribe(self, client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Subscribe a client to the corrections of an agent; of all, where it names none.

        A client hears with metrics or without, whatever it subscribed to: else it would be told
        twice of an agent whose corrections it hears as one of all.
        """
        caller.require("gateway", "read", "hearing of corrections")
        refuse_limited(caller, "hearing of corrections of all tools")
        agent, metrics = _agent(data), _metrics(data)
        for room in self._subscribed_rooms(client, caller.workspace):
            await self._move(client, room, _Room(room.workspace, room.agent, metrics))
        await self._rooms.enter_room(client, _common(caller.workspace))
        await self._rooms.enter_room(client, _Room(caller.workspace, agent, metrics).name)
        return {"subscribed": True, "agentId": agent, "includeMetrics": metrics}

    async def unsubscribe(self, client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """End a client's subscription to an agent; all of them, where it names none."""
        agent = _agent(data)
        left = self._subscribed_rooms(client, caller.workspace)
        for room in [each for each in left if agent in {None, each.agent}]:
            await self._rooms.leave_room(client, room.name)
            left.remove(room)
        if not left:
            await self._rooms.leave_room(client, _common(caller.workspace))
        return {"subscribed": False, "agentId": agent}

    def _subscribed_rooms(self, client: str, workspace: str | None) -> list[_Room]:
        rooms = (_Room.read(name) for name in self._rooms.rooms(client))
        return [each for each in rooms if each is not None and each.workspace == workspace]

    async def _move(self, client: str, before: _Room, after: _Room) -> None:
        if before != after:
            await self._rooms.leave_room(client, before.name)
            await self._rooms.enter_room(client, after.name)


def notifications(
    workspace: str | None, what: str, data: Mapping[str, Any]
) -> Iterator[tuple[str, Answer, list[str]]]:
    """Yield the events to send when something happens, each with its data and its rooms."""
    if what in _COMMON:
        yield _PREFIX + what, dict(data), [_common(workspace)]
    elif what in _OF_AN_AGENT:
        agents = {None, data.get("agentId")}
        plain = {name: each for name, each in data.items() if name != "metrics"}
        for shown, metrics in ((plain, False), (dict(data), True)):
            rooms = [_Room(workspace, agent, metrics).name for agent in agents]
            yield _PREFIX + what, shown, rooms


def _agent(data: Mapping[str, Any]) -> str | None:
    agent = data.get("agentId")
    if agent is None:
        return None
    if not isinstance(agent, str) or not 0 < len(agent) <= _AGENT_CHARS_MAX:
        raise InvalidInput(
            f"`agentId` must be text of at most {_AGENT_CHARS_MAX} characters.", field="agentId"
        )
    return agent


def _metrics(data: Mapping[str, Any]) -> bool:
    wanted = data.get("includeMetrics", False)
    if not isinstance(wanted, bool):
        raise InvalidInput("`includeMetrics` must be true or false.", field="includeMetrics")
    return wanted


def _common(workspace: str | None) -> str:
    return orjson.dumps([_ROOMS, workspace]).decode()
