"""Known fixes from the debugging memory, which learns from the calls that follow."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import orjson
from cachetools import LRUCache, TTLCache

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, StratagemError
from stratagem.gateway import names
from stratagem.gateway.calls.call import Call
from stratagem.gateway.learning.attempts import AttemptKey, attempt_key
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation

__all__ = [
    "Advisor",
    "DebuggingAdvice",
    "FailureHistory",
    "error_shape",
    "error_text",
    "hide_arguments",
]

_HIDDEN: Final = "…"
_TEXT_CHARS: Final = 2_000
_VALUES_MAX: Final = 200
# Shorter ones are as likely to be a word of the message.
_VALUE_CHARS_MIN: Final = 3
_VALUE_CHARS_MAX: Final = 2_000
# The variable parts of an error: numbers, ids, and quoted texts.
_VARYING: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+")
_HOUR: Final = 3600 * 1_000_000


def error_text(message: str, details: Mapping[str, Any]) -> str:
    """Return the words of an error: of a service that failed, what it answered too."""
    body = details.get("body")
    return (f"{message} {body}" if isinstance(body, str) and body else message)[:_TEXT_CHARS]


def hide_arguments(text: str, arguments: Any) -> str:
    """Return the text of an error without the arguments of the call that it came from."""
    for value in sorted(_values(arguments), key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _HIDDEN, text)
    return text


def error_shape(text: str) -> str:
    """Return the shape of an error, without its variable parts."""
    return _VARYING.sub("#", text)


class FailureHistory:
    """The recorded failures of a tool, and the fixes that were given for them."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    def failures(self, branch: str, tool: str, shape: str, *, execution: str) -> int:
        """Return how often a tool failed lately in one way before an execution."""
        found = 0
        for record in self._records(branch, tool, before=execution):
            error = record.get("error")
            if error:
                said = error_text(str(error.get("message")), error)
                found += error_shape(hide_arguments(said, record.get("arguments"))) == shape
        return found

    def fix(self, problem: AttemptKey, *, execution: str) -> dict[str, Any] | None:
        """Return the fix that a caller was given between its last call that worked and this one."""
        if not self._any(problem.branch, names.facet_fix(problem.tool)):
            return None
        for record in self._records(problem.branch, problem.tool, before=execution):
            agent = (record.get("context") or {}).get("agentId")
            if (record.get("caller"), agent) != (problem.actor, problem.agent):
                continue
            if not record.get("error"):
                return None
            if (fix := record["error"].get("knownFix")) is not None:
                return dict(fix)
        return None

    def _any(self, branch: str, facet: str) -> bool:
        """Whether anything has a facet: a quick check, as nearly always nothing has."""
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, branch)
        return bool(reader.catalogue.with_facet(view, facet, limit=1))

    def _records(self, branch: str, tool: str, *, before: str) -> list[Mapping[str, Any]]:
        """Return the executions of a tool before one of them, newest first.

        Several executions are recorded together before anything that follows from the first of them
        is done, so that there may be later ones, which count by themselves.
        """
        records = list(self._newest(branch, tool))
        place = next((n for n, each in enumerate(records) if each["executionId"] == before), -1)
        return records[place + 1 :]

    def _newest(self, branch: str, tool: str) -> Iterator[Mapping[str, Any]]:
        """Yield the executions of a tool, newest first."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, branch)
            newest = reader.catalogue.with_facet(
                view, names.facet_tool(tool), limit=limits.EXECUTIONS_RECALLED_MAX
            )
            hits = reader.log.contents(newest)
        since = view.time - int(limits.FIX_CREDITED_HOURS * _HOUR)
        for sequence in reversed(newest):
            hit = hits.get(sequence)
            if hit is not None and hit.payload and hit.at >= since:
                yield orjson.loads(hit.payload)


def _values(arguments: Any) -> set[str]:
    """Return the texts and numbers of arguments, the first few."""
    found: set[str] = set()
    waiting = [arguments]
    while waiting and len(found) < _VALUES_MAX:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value[:_VALUES_MAX])
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            text = str(value).strip()
            if _VALUE_CHARS_MIN <= len(text) <= _VALUE_CHARS_MAX:
                found.add(text)
    return found


logger = logging.getLogger(__name__)

_KEPT_MAX: Final = 10_000
# Errors caused by the gateway or the caller are no evidence about the tool.
_OWN_REASONS: Final = frozenset({"circuit_open", "cancelled"})
# Another process may have given the fix; so long a success does not ask the records again.
_RECALLED_SECONDS: Final = 60.0


class Advisor(Protocol):
    """The debugging memory, as the gateway asks it. Its answers come from another system."""

    def known_fix(self, text: str, tool: str, branch: str, caller: Caller) -> dict[str, Any] | None:
        """Return the best known fix for an error that a caller may know of."""
        ...

    def record_success(self, fix: Mapping[str, Any], branch: str) -> None:
        """Record that a fix which was recommended led to success."""
        ...

    def draft(self, text: str, tool: str, branch: str) -> str | None:
        """Note an error that keeps coming back and that nobody knows a fix for."""
        ...


class DebuggingAdvice:
    """Asks the debugging memory for fixes, and reports back whether they worked. Never fails."""

    def __init__(
        self,
        advisor: Advisor | None,
        later: Callable[[Callable[[], object]], None],
        failure_history: FailureHistory,
    ) -> None:
        self._advisor = advisor
        self._later = later
        self._failure_history = failure_history
        self.clear()
        self._recalled: TTLCache[AttemptKey, None] = TTLCache(_KEPT_MAX, _RECALLED_SECONDS)
        # Only used where `later` is done, one after the other.
        self._failures: LRUCache[tuple[str, str, str], int] = LRUCache(_KEPT_MAX)
        self._drafted: LRUCache[tuple[str, str, str], None] = LRUCache(_KEPT_MAX)

    def clear(self) -> None:
        """Let go of the fixes that were given."""
        self._fixes: TTLCache[AttemptKey, dict[str, Any]] = TTLCache(
            _KEPT_MAX, limits.FIX_CREDITED_HOURS * 3600
        )

    async def ask(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return the best known fix for a tool's failure."""
        advisor = self._advisor
        if advisor is None or not isinstance(error, ExecutionFailed | ExecutionTimeout):
            return None
        if error.details.get("reason") in _OWN_REASONS:
            return None
        said = error_text(error.message, error.details)
        plain = hide_arguments(said, call.arguments)
        texts = dict.fromkeys((said, plain))
        try:
            # The caller waits for its error.
            async with asyncio.timeout(limits.ADVICE_SECONDS):
                fix = await asyncio.to_thread(_known_fix, advisor, texts, tool.name, call)
        except Exception as fault:  # noqa: BLE001 -- its absence must not hide the error itself
            logger.info("no advice for %s: %s", tool.name, fault)
            return None
        if not call.caller.may("debugging", "write"):
            # The caller may not write outcomes to the debugging memory.
            return fix
        if fix is not None:
            self._fixes[attempt_key(call, tool.name)] = fix
            return fix
        self._count_failure(
            advisor, tool.name, call.branch, plain, str(error.details.get("executionId"))
        )
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

    def credit_fix(self, call: Call, tool: str, execution: str) -> None:
        """Credit the fix that was given, now that a call worked."""
        advisor, problem = self._advisor, attempt_key(call, tool)
        if advisor is None or not call.caller.may("debugging", "write"):
            return
        fix = self._fixes.pop(problem, None)
        if fix is None:
            if problem in self._recalled:
                return
            self._recalled[problem] = None

        def credit() -> None:
            given = fix or self._failure_history.fix(problem, execution=execution)
            if given is not None and given.get("lookupId"):
                advisor.record_success(given, problem.branch)

        self._later(_log_errors(credit))

    def _count_failure(
        self, advisor: Advisor, tool: str, branch: str, text: str, execution: str
    ) -> None:
        """Count a failure; the one that makes it too many is noted as an incident."""
        shape = error_shape(text)
        key = (branch, tool, shape)

        def count() -> None:
            known = self._failures.get(key)
            if known is None:
                known = self._failure_history.failures(branch, tool, shape, execution=execution)
            self._failures[key] = known + 1
            if known + 1 >= limits.FAILURES_NOTED and key not in self._drafted:
                advisor.draft(f"{tool}: {text}", tool, branch)
                self._drafted[key] = None

        self._later(_log_errors(count))


def _known_fix(
    advisor: Advisor, texts: Iterable[str], tool: str, call: Call
) -> dict[str, Any] | None:
    """Return the best known fix for the first of some texts that there is one for."""
    found = (advisor.known_fix(f"{tool}: {text}", tool, call.branch, call.caller) for text in texts)
    return next((fix for fix in found if fix is not None), None)


def _log_errors(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        except Exception as fault:  # noqa: BLE001 -- nobody waits for it, and nothing depends on it
            logger.warning("the debugging memory was not updated: %s", fault)

    return run
