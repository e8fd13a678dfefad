"""How operations of the gateway become rows of the table that every surface is made from."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

import orjson

from stratagem.gateway.parts import GatewayParts
from stratagem.operation import Caller, CommandHint, Operation, PersonNeeded, Right, SdkMethod
from stratagem.parameters import Input

__all__ = ["Answer", "row", "say_json"]

Answer = dict[str, Any]
ServiceT = TypeVar("ServiceT")
GivenT = TypeVar("GivenT", bound=Input)
# A `TypedDict`: what summarises an answer is checked against what the method returns.
AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


def say_json(answer: Mapping[str, Any]) -> str:
    """Say an answer that is short and speaks for itself."""
    return orjson.dumps(answer).decode()


def row(  # noqa: PLR0917 -- a row of a table
    name: str,
    title: str,
    description: str,
    takes: type[GivenT],
    service: Callable[[GatewayParts, Caller], ServiceT],
    method: Callable[[ServiceT, GivenT], AnswerT | Awaitable[AnswerT]],
    *,
    says: Callable[[AnswerT], str] = say_json,
    answer_fields: tuple[str, ...] | None = None,
    toolset: str = "gateway",
    right: Right | None = None,
    reads: bool = False,
    destructive: bool = False,
    person: PersonNeeded[GivenT] | None = None,
    irreversible: bool = False,
    calls_tools: bool = False,
    confidential: bool = False,
    sdk: SdkMethod | None = None,
    commands: tuple[CommandHint, ...] = (),
    example: Mapping[str, Any] | None = None,
) -> Operation:
    """Return the row of a method; a coroutine function runs on the event loop.

    `answer_fields`: of a long answer, what the list of tools says of it.
    """
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
        answer_fields=answer_fields,
        run=run,
        run_async=run_async if waits else None,
        summarise=cast("Callable[[Answer], str]", says),
        read_only=reads,
        destructive=destructive,
        part="gateway",
        right=right,
        person=person,
        irreversible=irreversible,
        calls_tools=calls_tools,
        confidential=confidential,
        sdk=sdk,
        commands=commands,
        example=example,
    )
