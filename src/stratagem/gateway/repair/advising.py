"""The loop to the debugging memory: a failure is looked up, and what helped is told back.

The best known fix goes to the caller with the error. When a later call of the same caller works,
the fix is credited with it. A failure that keeps coming back and that nobody knows a fix for
becomes a draft incident, once.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, StratagemError
from stratagem.gateway.calls import Call
from stratagem.gateway.repair.attempts import Problem, problem_of
from stratagem.gateway.tools import Tool

__all__ = ["Advice", "Advisor"]

logger = logging.getLogger(__name__)

_KEPT_MAX: Final = 10_000
_TEXT_CHARS: Final = 2_000
# What differs from one occurrence to the next: numbers, ids, and what stands in quotes.
_VARYING: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+")
# What the gateway itself did to the call says nothing about the tool.
_OWN_REASONS: Final = frozenset({"circuit_open"})


class Advisor(Protocol):
    """The debugging memory, as the gateway asks it. Its answers come from another system."""

    def known_fix(self, text: str, tool: str, branch: str) -> dict[str, Any] | None:
        """Return the best known fix for an error, with the lookup it was found by."""
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
        self, advisor: Advisor | None, later: Callable[[Callable[[], object]], None]
    ) -> None:
        self._advisor = advisor
        self._later = later
        self._fixes: OrderedDict[Problem, dict[str, Any]] = OrderedDict()
        self._failures: OrderedDict[tuple[str, str, str], int] = OrderedDict()

    async def ask(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return the best known fix for a tool's failure."""
        advisor = self._advisor
        if advisor is None or not isinstance(error, ExecutionFailed | ExecutionTimeout):
            return None
        if error.details.get("reason") in _OWN_REASONS:
            return None
        text = f"{tool.name}: {error.message}"[:_TEXT_CHARS]
        try:
            fix = await asyncio.to_thread(advisor.known_fix, text, tool.name, call.branch)
        except Exception as fault:  # noqa: BLE001 -- its absence must not hide the error itself
            logger.info("no advice for %s: %s", tool.name, fault)
            return None
        if fix is not None:
            _keep(self._fixes, problem_of(call, tool.name), fix)
            return fix
        self._note(advisor, tool.name, call.branch, text)
        return None

    def look_up(self, text: str, tool: str, branch: str) -> dict[str, Any] | None:
        """Return the best known fix for an error, when somebody asks; nothing is noted by it."""
        if self._advisor is None:
            return None
        try:
            return self._advisor.known_fix(text[:_TEXT_CHARS], tool, branch)
        except Exception as fault:  # noqa: BLE001 -- an answer without it is still an answer
            logger.info("no advice for %s: %s", tool, fault)
            return None

    def settled(self, problem: Problem) -> None:
        """Credit the fix that was given, now that a call worked."""
        fix = self._fixes.pop(problem, None) if self._fixes else None
        advisor = self._advisor
        if fix is not None and advisor is not None:
            self._later(_quietly(lambda: advisor.worked(fix, problem.branch)))

    def _note(self, advisor: Advisor, tool: str, branch: str, text: str) -> None:
        key = (branch, tool, _VARYING.sub("#", text))
        count = self._failures.get(key, 0) + 1
        _keep(self._failures, key, count)
        if count == limits.FAILURES_NOTED:
            self._later(_quietly(lambda: advisor.draft(text, tool, branch)))


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
