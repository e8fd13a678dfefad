"""How what the gateway can do becomes rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from pydantic import BaseModel

from stratagem.gateway.switchboard import Switchboard
from stratagem.operation import Caller, Operation, PersonNeeded, Right

__all__ = ["Answer", "row", "say_json"]

Answer = dict[str, Any]
Says = Callable[[Mapping[str, Any]], str]
# A class of operations that is bound to a caller, and one of its methods.
System = Callable[[Switchboard, Caller], Any]


def say_json(answer: Mapping[str, Any]) -> str:
    """Say an answer that is short and speaks for itself."""
    return orjson.dumps(answer).decode()


def row(  # noqa: PLR0917 -- a row of a table
    name: str,
    title: str,
    description: str,
    takes: type[BaseModel],
    system: System,
    method: str,
    *,
    gives: dict[str, Any],
    says: Says = say_json,
    toolset: str = "gateway",
    waits: bool = False,
    right: Right | None = None,
    reads: bool = False,
    destructive: bool = False,
    person: PersonNeeded | None = None,
    irreversible: bool = False,
) -> Operation:
    """Return the row of a method. `waits`: it is a coroutine, for waiting is most of its work."""
    return Operation(
        name=name,
        toolset=toolset,
        title=title,
        description=description,
        input_model=takes,
        output_schema=gives,
        run=_at_once(system, method, waits=waits),
        run_async=_awaited(system, method) if waits else None,
        summarise=says,
        read_only=reads,
        destructive=destructive,
        part="switchboard",
        right=right,
        person=person,
        irreversible=irreversible,
    )


def _awaited(
    system: System, method: str
) -> Callable[[Switchboard, BaseModel, Caller], Awaitable[Answer]]:
    async def run(switchboard: Switchboard, given: BaseModel, caller: Caller) -> Answer:
        answer: Answer = await getattr(system(switchboard, caller), method)(given)
        return answer

    return run


def _at_once(
    system: System, method: str, *, waits: bool
) -> Callable[[Switchboard, BaseModel, Caller], Answer]:
    """Return what callers run that have no event loop of their own."""
    awaited = _awaited(system, method)

    def run(switchboard: Switchboard, given: BaseModel, caller: Caller) -> Answer:
        if waits:
            return switchboard.home.run(lambda: _coroutine(awaited(switchboard, given, caller)))
        answer: Answer = getattr(system(switchboard, caller), method)(given)
        return answer

    return run


async def _coroutine(work: Awaitable[Answer]) -> Answer:
    return await work
