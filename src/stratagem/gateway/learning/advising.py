"""The loop to the debugging memory: a failure is looked up, and what helped is told back.

The best known fix goes to the caller with the error. When a later call of the same caller works,
the fix is credited with it. A failure that keeps coming back and that nobody knows a fix for
becomes a draft incident, once, without the arguments it came of. What this process does not
remember of earlier calls it reads from their records.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, StratagemError
from stratagem.gateway.calls.call import Call
from stratagem.gateway.learning.attempts import Problem, problem_of
from stratagem.gateway.learning.recalling import (
    Recollection,
    said_by,
    shape_of,
    without_values,
)
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller

__all__ = ["Advice", "Advisor"]

logger = logging.getLogger(__name__)

_KEPT_MAX: Final = 10_000
_TEXT_CHARS: Final = 2_000
# What the gateway itself, or its caller, did to the call says nothing about the tool.
_OWN_REASONS: Final = frozenset({"circuit_open", "cancelled"})
# Another process may have given the fix; so long a success does not ask the records again.
_RECALLED_SECONDS: Final = 60.0


class Advisor(Protocol):
    """The debugging memory, as the gateway asks it. Its answers come from another system."""

    def known_fix(self, text: str, tool: str, branch: str, caller: Caller) -> dict[str, Any] | None:
        """Return the best known fix for an error that a caller may know of."""
        ...

    def worked(self, fix: Mapping[str, Any], branch: str) -> None:
        """Record that a fix which was recommended led to success."""
        ...

    def draft(self, text: str, tool: str, branch: str) -> str | None:
        """Note an error that keeps coming back and that nobody knows a fix for."""
        ...


class Advice:
    """Asks the advisor, and tells it what became of its advice. Never fails."""

    def __init__(
        self,
        advisor: Advisor | None,
        later: Callable[[Callable[[], object]], None],
        recollection: Recollection,
    ) -> None:
        self._advisor = advisor
        self._later = later
        self._recollection = recollection
        self._fixes: OrderedDict[Problem, tuple[float, dict[str, Any]]] = OrderedDict()
        self._recalled: OrderedDict[Problem, float] = OrderedDict()
        # Only used where `later` is done, one after the other.
        self._failures: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self._drafted: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    async def ask(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return the best known fix for a tool's failure."""
        advisor = self._advisor
        if advisor is None or not isinstance(error, ExecutionFailed | ExecutionTimeout):
            return None
        if error.details.get("reason") in _OWN_REASONS:
            return None
        said = said_by(error.message, error.details)
        plain = without_values(said, call.arguments)
        texts = dict.fromkeys((said, plain))
        try:
            # The caller waits for its error.
            async with asyncio.timeout(limits.ADVICE_SECONDS):
                fix = await asyncio.to_thread(_known_fix, advisor, texts, tool.name, call)
        except Exception as fault:  # noqa: BLE001 -- its absence must not hide the error itself
            logger.info("no advice for %s: %s", tool.name, fault)
            return None
        if not call.caller.may("debugging", "write"):
            # What its calls come to is not its to write there.
            return fix
        if fix is not None:
            _keep(self._fixes, problem_of(call, tool.name), (time.monotonic(), fix))
            return fix
        self._note(advisor, tool.name, call.branch, plain, str(error.details.get("executionId")))
        return None

    def look_up(self, text: str, tool: str, branch: str, caller: Caller) -> dict[str, Any] | None:
        """Return the best known fix for an error, when somebody asks; nothing is noted by it."""
        if self._advisor is None:
            return None
        try:
            return self._advisor.known_fix(text[:_TEXT_CHARS], tool, branch, caller)
        except Exception as fault:  # noqa: BLE001 -- an answer without it is still an answer
            logger.info("no advice for %s: %s", tool, fault)
            return None

    def settled(self, call: Call, tool: str, execution: str) -> None:
        """Credit the fix that was given, now that a call worked."""
        advisor, problem, now = self._advisor, problem_of(call, tool), time.monotonic()
        if advisor is None or not call.caller.may("debugging", "write"):
            return
        given_at, fix = self._fixes.pop(problem, (now, None))
        if fix is None:
            if now < self._recalled.get(problem, now):
                return
            _keep(self._recalled, problem, now + _RECALLED_SECONDS)
        elif now - given_at > limits.FIX_CREDITED_HOURS * 3600:
            return

        def credit() -> None:
            given = fix or self._recollection.fix(problem, but=execution)
            if given is not None and given.get("lookupId"):
                advisor.worked(given, problem.branch)

        self._later(_quietly(credit))

    def _note(self, advisor: Advisor, tool: str, branch: str, text: str, execution: str) -> None:
        """Count a failure; the one that makes it too many is noted as an incident."""
        shape = shape_of(text)
        key = (branch, tool, shape)

        def count() -> None:
            known = self._failures.get(key)
            if known is None:
                known = self._recollection.failures(branch, tool, shape, but=execution)
            _keep(self._failures, key, known + 1)
            if known + 1 >= limits.FAILURES_NOTED and key not in self._drafted:
                advisor.draft(f"{tool}: {text}", tool, branch)
                _keep(self._drafted, key, None)

        self._later(_quietly(count))


def _known_fix(
    advisor: Advisor, texts: Iterable[str], tool: str, call: Call
) -> dict[str, Any] | None:
    """Return the best known fix for the first of some texts that there is one for."""
    found = (advisor.known_fix(f"{tool}: {text}", tool, call.branch, call.caller) for text in texts)
    return next((fix for fix in found if fix is not None), None)


def _quietly(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        except Exception as fault:  # noqa: BLE001 -- nobody waits for it, and nothing depends on it
            logger.warning("the debugging memory was not told: %s", fault)

    return run


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _KEPT_MAX:
        kept.popitem(last=False)
