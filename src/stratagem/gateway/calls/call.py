"""A call of a tool: what was asked for, by whom, and how it is to be run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.calls.answers import CallAnswer, CallMetadata, McpContent
from stratagem.gateway.calls.concurrency import Priority
from stratagem.gateway.definitions.contract import ProgressReport
from stratagem.gateway.inputs import ContextInput, ExecuteInput
from stratagem.operation import MADE_UP, Caller

__all__ = [
    "BegunElsewhereError",
    "Call",
    "Execute",
    "FinishedCall",
    "call_of",
    "report_progress_to",
    "request_ids_of",
]


class BegunElsewhereError(Exception):
    """Another process runs the same call, so this process does not record it."""

    def __init__(self, execution_id: str) -> None:
        super().__init__(execution_id)
        self.execution_id = execution_id


def _ignore(_fraction: float | None, _message: str | None) -> None:
    """Nobody watches."""


_WATCHER: ContextVar[ProgressReport] = ContextVar("watcher", default=_ignore)


@contextmanager
def report_progress_to(report: ProgressReport) -> Iterator[None]:
    """Send the progress of calls within this context to `report`, unless they name another."""
    before = _WATCHER.set(report)
    try:
        yield
    finally:
        _WATCHER.reset(before)


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `depth` counts how many calls it is inside of, as a step of a pipeline is.

    `begin` is told the execution's id before the tool is run, and may refuse that
    (`BegunElsewhereError`). `parent` is the batch or pipeline that it is a part of; `request_ids`
    are the ids that its caller knows it by. `detached`: nobody waits for it.
    """

    tool: str
    arguments: Mapping[str, Any] | str
    caller: Caller
    branch: str
    seconds: float | None = None
    retries: int | None = None
    skip_cache: bool = False
    priority: Priority = "normal"
    correct: bool = True
    context: Mapping[str, Any] = field(default_factory=dict)
    permissions: Mapping[str, Any] | None = None
    correction_id: str | None = None
    confirm: bool = False
    progress: ProgressReport = _ignore
    depth: int = 0
    execution_id: str | None = None
    request_key: str | None = None
    begin: Callable[[str], Awaitable[None]] | None = None
    parent: str | None = None
    request_ids: tuple[str, ...] = ()
    detached: bool = False


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call that worked."""

    execution_id: str
    result: Any
    metadata: CallMetadata
    mcp: McpContent | None = None

    def answer(self) -> CallAnswer:
        """Return the documented form."""
        answer: CallAnswer = {
            "executionId": self.execution_id,
            "result": self.result,
            "metadata": self.metadata,
        }
        if self.mcp is not None:
            answer["mcp"] = self.mcp
        return answer


# The path of a call, from its entry on the home loop.
Execute = Callable[[Call], Coroutine[Any, Any, FinishedCall]]


def request_ids_of(request_id: str | None, context: ContextInput | None) -> tuple[str, ...]:
    """Return the ids by which a caller knows its work; one that its client made up is none."""
    given = (request_id, context.request_id if context else None)
    return tuple(each for each in given if each and not each.startswith(MADE_UP))


def call_of(given: ExecuteInput, caller: Caller, progress: ProgressReport | None = None) -> Call:
    """Return the call that somebody asks for."""
    options, context = given.options, given.context
    return Call(
        tool=given.tool_name,
        arguments=given.arguments,
        caller=caller,
        branch=given.branch or caller.branch,
        seconds=options.timeout / 1000 if options and options.timeout else None,
        retries=options.retries if options else None,
        skip_cache=options.skip_cache if options else False,
        priority=options.priority if options else "normal",
        correct=options.auto_correct if options else True,
        context=context.labels() if context else {},
        permissions=given.sandbox.permissions if given.sandbox else None,
        correction_id=given.correction_id,
        confirm=given.confirm,
        progress=progress or _WATCHER.get(),
        request_ids=request_ids_of(given.request_id, context),
        detached=given.async_,
    )
