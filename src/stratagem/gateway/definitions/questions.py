"""Questions of an upstream server to its caller: elicitation and sampling.

Only the client of a call can answer what is asked during it. A surface whose clients can be asked
puts an `Asker` around a call; the connection to the server reads it there. The time that a person
takes to answer does not count as the tool's: every deadline of the call is suspended meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass

__all__ = [
    "Asker",
    "Deadline",
    "Deadlines",
    "LaneSlot",
    "QuestionRefused",
    "answer_questions_with",
    "current_asker",
    "current_deadlines",
    "deadline",
    "note_question",
    "wait_for_person",
]


class LaneSlot(Protocol):
    """What a call occupies while it runs, and others may use while a person thinks."""

    def step_aside(self) -> None:
        """Let others use it."""
        ...

    def come_back(self) -> None:
        """Use it again."""
        ...


@dataclass(slots=True, eq=False)
class Deadline:
    """The time that a call has, and whether anything was asked of its caller meanwhile."""

    scope: asyncio.Timeout
    asked: bool = False
    place: LaneSlot | None = None
    is_over: bool = False


Deadlines = tuple[Deadline, ...]


class QuestionRefused(Exception):
    """A client does not answer a question; the server that asked it is given the error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Asker(Protocol):
    """Asks the client of a call."""

    @property
    def client(self) -> str:
        """What tells clients apart: a question is never put to another than its own."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client says can be asked of it: `elicitation`, `sampling`."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Put a question to the client and return its answer, both as the protocol has them.

        Raises:
            QuestionRefused: The client cannot, or will not, answer.
        """
        ...


_ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)
_DEADLINES: ContextVar[Deadlines] = ContextVar("deadlines", default=())


@contextmanager
def answer_questions_with(asker: Asker | None) -> Iterator[None]:
    """Have the questions of calls within this context answered by a client."""
    before = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(before)


def current_asker() -> Asker | None:
    """Return who can be asked in this context."""
    return _ASKER.get()


@asynccontextmanager
async def deadline(seconds: float) -> AsyncIterator[Deadline]:
    """End what is within by `TimeoutError` after so many seconds, a person's time not counted."""
    async with asyncio.timeout(seconds) as scope:
        own = Deadline(scope)
        before = _DEADLINES.set((*_DEADLINES.get(), own))
        try:
            yield own
        finally:
            own.is_over = True
            _DEADLINES.reset(before)


def current_deadlines() -> Deadlines:
    """Return the deadlines of the call in this context."""
    return _DEADLINES.get()


def note_question(deadlines: Deadlines) -> None:
    """Note that a question was asked: what calls answer now is for their own caller alone.

    A refusal counts too, for another caller might have answered.
    """
    for each in deadlines:
        each.asked = True


@asynccontextmanager
async def wait_for_person(deadlines: Deadlines) -> AsyncIterator[None]:
    """Let deadlines wait while a person thinks, for a bounded time, and others run meanwhile."""
    now = asyncio.get_running_loop().time
    begun = now()
    places = [each.place for each in deadlines if each.place is not None]
    for each in deadlines:
        _postpone(each, limits.QUESTION_SECONDS_MAX)
    for place in places:
        place.step_aside()
    try:
        yield
    finally:
        for place in places:
            place.come_back()
        for each in deadlines:
            _postpone(each, now() - begun - limits.QUESTION_SECONDS_MAX)


def _postpone(each: Deadline, seconds: float) -> None:
    # A call may end before a question that was asked during it.
    when = each.scope.when()
    if when is not None and not each.is_over and not each.scope.expired():
        each.scope.reschedule(when + seconds)
