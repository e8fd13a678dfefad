"""How what the gateway can do becomes rows of the table that every surface is made from."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

import orjson

from stratagem.gateway.parts import GatewayParts
from stratagem.operation import Caller, Operation, PersonNeeded, Right, SdkMethod
from stratagem.parameters import Input

__all__ = ["Answer", "row", "say_json"]

Answer = dict[str, Any]
Says = Callable[[Mapping[str, Any]], str]
ServiceT = TypeVar("ServiceT")
GivenT = TypeVar("GivenT", bound=Input)


def say_json(answer: Mapping[str, Any]) -> str:
    """Say an answer that is short and speaks for itself."""
    return orjson.dumps(answer).decode()


def row(  # noqa: PLR0917 -- a row of a table
    name: str,
    title: str,
    description: str,
    takes: type[GivenT],
    service: Callable[[GatewayParts, Caller], ServiceT],
    method: Callable[[ServiceT, GivenT], Answer | Awaitable[Answer]],
    *,
    gives: dict[str, Any],
    says: Says = say_json,
    toolset: str = "gateway",
    right: Right | None = None,
    reads: bool = False,
    destructive: bool = False,
    person: PersonNeeded[GivenT] | None = None,
    irreversible: bool = False,
    sdk: SdkMethod | None = None,
) -> Operation:
    """Return the row of a method; a coroutine runs on the event loop."""
    waits = inspect.iscoroutinefunction(method)

    def run(parts: GatewayParts, given: GivenT, caller: Caller) -> Answer:
        """Run the method for callers that have no event loop of their own."""
        if waits:
            return parts.home.run(lambda: run_async(parts, given, caller))
        return cast("Answer", method(service(parts, caller), given))

    async def run_async(parts: GatewayParts, given: GivenT, caller: Caller) -> Answer:
        answer = method(service(parts, caller), given)
        return await cast("Awaitable[Answer]", answer)

    return Operation(
        name=name,
        toolset=toolset,
        title=title,
        description=description,
        method=method,
        takes=takes,
        gives=gives,
        run=run,
        run_async=run_async if waits else None,
        summarise=says,
        read_only=reads,
        destructive=destructive,
        part="gateway",
        right=right,
        person=person,
        irreversible=irreversible,
        sdk=sdk,
    )
