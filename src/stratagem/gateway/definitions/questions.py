"""Questions of an upstream server to whoever calls it: elicitation and sampling.

Only the client of a call can answer what is asked during it. A surface whose clients can be asked
puts an `Asker` around a call; the connection to the server takes it from there. The time that a
person takes to answer is none of the tool's: every deadline of the call waits with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from stratagem import limits

__all__ = [
    "Asker",
    "Deadline",
    "Deadlines",
    "QuestionRefused",
    "answer_questions_with",
    "current_asker",
    "current_deadlines",
    "deadline",
    "note_question",
    "wait_for_person",
]


@dataclass(slots=True, eq=False)
class Deadline:
    """The time that a call has, and whether anything was asked of its caller meanwhile."""

    scope: asyncio.Timeout
    asked: bool = False


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
    """Let deadlines wait while a person thinks, for a bounded time."""
    now = asyncio.get_running_loop().time
    begun = now()
    for each in deadlines:
        _postpone(each.scope, limits.QUESTION_SECONDS_MAX)
    try:
        yield
    finally:
        for each in deadlines:
            _postpone(each.scope, now() - begun - limits.QUESTION_SECONDS_MAX)


def _postpone(scope: asyncio.Timeout, seconds: float) -> None:
    when = scope.when()
    if when is not None and not scope.expired():
        scope.reschedule(when + seconds)
