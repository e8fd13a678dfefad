"""The running calls: how many of each caller run, and how they end on shutdown.

Each is answered on its own surface, so that a call that is cut off fails like any other: with an
error, which says whether it is safe to repeat it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from itertools import chain, islice
from typing import Any

from stratagem import limits
from stratagem.deferred_modules import asyncio
from stratagem.errors import ShuttingDown
from stratagem.operation import Caller
from stratagem.surfaces.serving.fair_share import FairShare

__all__ = ["ActiveCalls", "not_begun_error"]


class ActiveCalls:
    """See the module. Runs on the server's event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shares = FairShare(monotonic)
        self._under_way: set[asyncio.Timeout] = set()
        self._stopping = False

    def __len__(self) -> int:
        """Return how many are under way."""
        return len(self._under_way)

    @property
    def stopping(self) -> bool:
        """Whether no other call may begin."""
        return self._stopping

    def stop(self) -> None:
        """Let no other call begin."""
        self._stopping = True

    def cut_off(self) -> None:
        """End the calls that are under way: each raises `ShuttingDown` where it is answered."""
        now = asyncio.get_running_loop().time()
        for each in self._under_way:
            each.reschedule(now)

    @asynccontextmanager
    async def track(self, name: str, arguments: Any, caller: Caller) -> AsyncIterator[None]:
        """Wait for the caller's turn, and count a call as under way as long as the context lasts.

        Raises:
            ShuttingDown: The server is stopping, and cannot begin it or wait for its end.
        """
        if self._stopping:
            raise not_begun_error()
        deadline = asyncio.timeout(None)
        self._under_way.add(deadline)
        try:
            async with deadline, self._turn(name, arguments, caller):
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
            raise _cut_off_error(name, arguments) from None
        finally:
            self._under_way.discard(deadline)

    def _turn(self, name: str, arguments: Any, caller: Caller) -> AbstractAsyncContextManager[None]:
        if caller.scopes is None:
            # Without authentication all callers are one.
            return nullcontext()
        return self._shares.turn(caller.actor, computes=_computes(name, arguments))


def not_begun_error() -> ShuttingDown:
    """Return the error of a call that came while the server was stopping."""
    return ShuttingDown(
        "The server is stopping; the call was not started.",
        outcome="not_begun",
        repeat="safe",
        retry_after=1,
    )


def _cut_off_error(name: str, arguments: Any) -> ShuttingDown:
    given = arguments if isinstance(arguments, Mapping) else {}
    outcome, repeat = "unknown", "unsafe"
    hint = "Check first whether it was carried out; with a requestId it could be repeated safely."
    if _only_reads(name, given):
        outcome, repeat, hint = "nothing_to_do", "safe", "Send it again in a moment."
    elif (request := _request_id_of(given)) is not None:
        repeat = "safe_with_request_id"
        hint = f"Send it again with the same requestId ({request}): it is carried out only once."
    return ShuttingDown(
        f"The server is stopping: {name} did not end within {limits.STOPPING_CALL_SECONDS:g} "
        "seconds.",
        outcome=outcome,
        repeat=repeat,
        retry_after=1,
        hint=hint,
    )


def _computes(name: str, arguments: Any) -> bool:
    """Whether a call runs an operation that waits for nothing outside, directly or as a tool."""
    from stratagem.operations import TABLE

    rows = map(TABLE.get, (name, *islice(_tools_in(arguments), limits.BATCH_MAX)))
    return any(row is not None and row.part != "gateway" and not row.run_async for row in rows)


def _tools_in(arguments: Any) -> Iterator[str]:
    """Yield the tools that the arguments of an execution, a batch or a pipeline name."""
    if not isinstance(arguments, Mapping):
        return
    parts = (arguments.get("executions"), arguments.get("steps"))
    for each in (arguments, *chain.from_iterable(x for x in parts if isinstance(x, list))):
        if isinstance(each, Mapping):
            named = (each.get("toolName"), each.get("tool"))
            yield from (tool for tool in named if isinstance(tool, str))


def _only_reads(name: str, arguments: Mapping[str, Any]) -> bool:
    from stratagem.operations import TABLE

    operation = TABLE.get(name)
    return operation is not None and operation.right_for(arguments) == "read"


def _request_id_of(arguments: Mapping[str, Any]) -> str | None:
    """Return the id under which a call is carried out once, as callers of all surfaces name it."""
    context = arguments.get("context")
    of_context = context if isinstance(context, Mapping) else {}
    for place in (arguments, of_context):
        for name in ("requestId", "request_id"):
            if isinstance(found := place.get(name), str):
                return found
    return None
