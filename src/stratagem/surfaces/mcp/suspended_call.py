"""A call of a client of 2026 that goes on between the client's requests."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.definitions.questions import QuestionRefused

if TYPE_CHECKING:
    from stratagem.gateway.calls.work import WorkItem

__all__ = ["INPUT_REQUESTS", "SuspendedCall"]

INPUT_REQUESTS: Final[TypeAdapter[dict[str, types.InputRequest]]] = TypeAdapter(
    dict[str, types.InputRequest]
)


@dataclass(slots=True)
class SuspendedCall:
    """A call that goes on while its client waits for no answer; an `Asker` of its client.

    `item` is the work that the call has begun in the gateway. `may_be_task`: its client can be
    given a handle for it.
    """

    capabilities: Mapping[str, Any]
    owner: tuple[str | None, str]
    client: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    asks: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[Any] | None = None
    item: WorkItem | None = None
    may_be_task: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _questions: dict[str, tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = field(
        default_factory=dict
    )
    _count: int = 0

    def begin(self, item: WorkItem) -> None:
        """Hear of the work that the call has begun: of several, the first stands for all."""
        self.item = self.item or item

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Wait for the client's answer: to come with the call sent again, or by its task."""
        if asyncio.get_running_loop() is self._loop:
            return await self._ask(method, params)
        there = asyncio.run_coroutine_threadsafe(self._ask(method, params), self._loop)
        return await asyncio.wrap_future(there)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._count += 1
        answered: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._questions[f"question-{self._count}"] = (
            {"method": method, "params": dict(params)},
            answered,
        )
        self.asks.set()
        return await answered

    def take(self) -> dict[str, types.InputRequest]:
        """Return the questions, as the client is asked them."""
        self.asks.clear()
        asked: dict[str, types.InputRequest] = {}
        for key, (question, answered) in [*self._questions.items()]:
            try:
                asked |= INPUT_REQUESTS.validate_python({key: question})
            except ValidationError:
                del self._questions[key]
                words = "The question does not follow the protocol."
                answered.set_exception(QuestionRefused(types.INVALID_PARAMS, words))
        return asked

    def answer(self, responses: Mapping[str, Any], *, partly: bool = False) -> None:
        """Hand on what the client answered.

        A question without an answer was refused, unless the client answers in parts.
        """
        asked = [key for key in self._questions if not partly or key in responses]
        for key in asked:
            _question, answered = self._questions.pop(key)
            response = responses.get(key)
            if answered.done():
                continue
            if response is None:
                words = "The client did not answer."
                answered.set_exception(QuestionRefused(types.INVALID_REQUEST, words))
            else:
                answered.set_result(
                    response.model_dump(by_alias=True, mode="json", exclude_none=True)
                )
