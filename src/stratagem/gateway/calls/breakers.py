"""Circuit breakers: a tool that keeps failing is paused for a while.

Closed: calls pass. Open, after so many failures in a row: calls are refused at once. Half-open,
when the time is over: one call is let through; if it succeeds the breaker closes, else it opens
again. An error that is not the tool's fault (`errors.blame_of`) does not count as its failure, nor
does an answer that refuses (`ExecutionFailed.answered`), such as 404 or the `isError` of an MCP
tool. If callers choose the host, as with `api_caller`, each host has a breaker of its own.

Each process counts failures by itself, and refuses calls by its own count. An open breaker is also
noted in the database, where every process and the command line can list it. Resetting a breaker
removes its notes, and a process that finds its own note gone lets calls through again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypedDict

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import ExecutionFailed
from stratagem.gateway import names
from stratagem.gateway.calls.answers import BreakerState, ToolBreaker
from stratagem.gateway.calls.recorder import Recorder
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["BreakerNotes", "Breakers", "State"]

State = Literal["closed", "open", "half-open"]
# Told of each change: the tool, its new state and why.
Listener = Callable[[str, State, str], None]
_CALLER: Final = Caller(actor="gateway")
_SECOND: Final = 1_000_000


@dataclass(slots=True)
class _Breaker:
    state: State = "closed"
    failures: int = 0
    opened_at: float = 0.0
    last_failure: float | None = None
    reason: str = ""
    trial: bool = False


class Breakers:
    """One breaker for each tool. Used from one event loop only."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        failures: int = limits.BREAKER_FAILURES,
        seconds: float | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._clock = clock
        self._failures = failures
        self._seconds = limits.BREAKER_SECONDS if seconds is None else seconds
        self.listener = listener
        self._breakers: dict[str, _Breaker] = {}

    def is_open(self, tool: str) -> bool:
        """Whether the breaker of a tool is open now."""
        breaker = self._breakers.get(tool)
        return breaker is not None and breaker.state != "closed"

    def enter(self, tool: str) -> None:
        """Ask to call a tool.

        Raises:
            ExecutionFailed: The breaker is open, or its one trial is under way.
        """
        breaker = self._breakers.get(tool)
        if breaker is None or breaker.state == "closed":
            return
        left = self._left(breaker)
        if breaker.state == "open" and left <= 0:
            self._change(tool, breaker, "half-open", "the waiting time is over")
        if breaker.state == "half-open" and not breaker.trial:
            breaker.trial = True
            return
        raise ExecutionFailed(
            f"{tool} failed {breaker.failures} times in a row and is paused for now.",
            safe=True,
            reason="circuit_open",
            retry_after=max(1, round(left)),
            last_error=breaker.reason,
            hint="Call again after retry_after seconds or use another tool; once its service "
            "works again, breaker_reset ends the pause.",
        )

    def succeed(self, tool: str) -> None:
        """Note that a call of a tool worked."""
        breaker = self._breakers.pop(tool, None)
        if breaker is not None and breaker.state != "closed":
            self._change(tool, breaker, "closed", "the trial call worked")

    def fail(self, tool: str, reason: str) -> None:
        """Note that a tool failed."""
        breaker = self._breakers.get(tool)
        if breaker is None:
            self._make_room()
            breaker = self._breakers[tool] = _Breaker()
        breaker.failures += 1
        breaker.trial = False
        breaker.reason = reason
        breaker.last_failure = self._clock()
        if breaker.state == "half-open" or (
            breaker.state == "closed" and breaker.failures >= self._failures
        ):
            breaker.opened_at = self._clock()
            self._change(tool, breaker, "open", reason)

    def _make_room(self) -> None:
        """Forget the oldest breaker; one that is open goes last."""
        if len(self._breakers) < limits.BREAKERS_MAX:
            return
        closed = (name for name, each in self._breakers.items() if each.state == "closed")
        del self._breakers[next(closed, next(iter(self._breakers)))]

    def leave(self, tool: str) -> None:
        """Note that a call ended without evidence about the tool."""
        breaker = self._breakers.get(tool)
        if breaker is not None:
            breaker.trial = False

    def age(self, at: float | None) -> float | None:
        """Return how many seconds ago a time of this clock was."""
        return None if at is None else self._clock() - at

    def reset(self, tool: str, reason: str = "reset by hand") -> bool:
        """Close a breaker by hand; return whether it was open."""
        breaker = self._breakers.pop(tool, None)
        if breaker is None or breaker.state == "closed":
            return False
        self._change(tool, breaker, "closed", reason)
        return True

    def list(self) -> list[BreakerState]:
        """Return the breakers that are open or have counted failures."""
        return [
            {
                "toolName": tool,
                "status": breaker.state,
                "failures": breaker.failures,
                "reason": breaker.reason,
                "lastFailure": breaker.last_failure,
                "retryAfter": self._left(breaker) if breaker.state == "open" else None,
            }
            for tool, breaker in sorted(self._breakers.items())
        ]

    def _left(self, breaker: _Breaker) -> float:
        """Return for how many more seconds an open breaker lets no call through."""
        return breaker.opened_at + self._seconds - self._clock()

    def _change(self, tool: str, breaker: _Breaker, state: State, reason: str) -> None:
        breaker.state = state
        if self.listener is not None:
            self.listener(tool, state, reason)


class _Note(TypedDict):
    """An open breaker; the times are those of the clock, in microseconds."""

    tool: str
    process: str
    failures: int
    reason: str
    openedAt: int
    opensAt: int


class BreakerNotes:
    """The notes of one process, and those of the others. Runs on the home loop."""

    def __init__(
        self, foundation: Foundation, recorder: Recorder, breakers: Breakers, process: str
    ) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._breakers = breakers
        self._process = process
        # Tools whose breaker is open here, and those whose note is written: only such a note can
        # be missed.
        self._open: set[str] = set()
        self._written: set[str] = set()

    def follow(self, tool: str, state: str) -> None:
        """Note that a breaker has opened, or that it is closed again."""
        if state == "open":
            note = self._note(tool)
            self._open.add(tool)
            self._recorder.do(lambda: self._write(note))
        elif state == "closed" and tool in self._open:
            self._open.discard(tool)
            self._written.discard(tool)
            # In the order of the opening, which may not be written yet.
            self._recorder.do(lambda: self._remove([self._key(tool)]))

    async def apply_reset(self, tool: str) -> None:
        """Close a breaker that somebody has reset in another process."""
        if tool in self._written and not await self._foundation.read_async(
            lambda: self._has_note(tool)
        ):
            self._written.discard(tool)
            self._breakers.reset(tool, "reset by another process")

    def reset(self, tool: str) -> bool:
        """Remove the notes of all processes about a tool; return whether there were any."""
        doomed = [
            self._key(tool, each["process"]) for each in self._notes() if each["tool"] == tool
        ]
        if doomed:
            self._remove(doomed)
        return bool(doomed)

    def others(self) -> list[ToolBreaker]:
        """Return the breakers that other processes have lately opened."""
        now = self._foundation.store.now()
        return [
            {
                "toolName": each["tool"],
                "status": "open",
                "failures": each["failures"],
                "reason": each["reason"],
                "lastFailure": moments.iso(each["openedAt"]),
                "retryAfter": max(0, round((each["opensAt"] - now) / _SECOND)),
            }
            for each in self._notes()
            if each["process"] != self._process
            # A process that was killed leaves its notes behind.
            and now - each["openedAt"] < limits.BREAKER_NOTE_SECONDS * _SECOND
        ]

    def _note(self, tool: str) -> _Note:
        (breaker,) = (each for each in self._breakers.list() if each["toolName"] == tool)
        now = self._foundation.store.now()
        return {
            "tool": tool,
            "process": self._process,
            "failures": breaker["failures"],
            "reason": breaker["reason"],
            "openedAt": now,
            "opensAt": now + int((breaker["retryAfter"] or 0) * _SECOND),
        }

    def _write(self, note: _Note) -> None:
        tool = note["tool"]

        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            draft = Draft(names.BREAKER_OPENED, note, names.BREAKERS, self._key(tool))
            transaction.append(view.branch, [draft])

        self._foundation.write(_CALLER, work)
        if tool in self._open:
            self._written.add(tool)

    def _remove(self, keys: list[str]) -> None:
        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            live = [
                key
                for key in keys
                if transaction.records.current(view.lineage, names.BREAKERS, key) is not None
            ]
            drafts = [Draft(names.BREAKER_CLOSED, {}, names.BREAKERS, key) for key in live]
            transaction.append(view.branch, drafts)

        self._foundation.write(_CALLER, work)

    def _has_note(self, tool: str) -> bool:
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        return reader.records.current(view.lineage, names.BREAKERS, self._key(tool)) is not None

    def _notes(self) -> list[_Note]:
        with self._foundation.store.snapshot() as reader:
            return _read_notes(self._foundation, reader)

    def _key(self, tool: str, process: str | None = None) -> str:
        return names.PART.join((tool, process or self._process))


def _read_notes(foundation: Foundation, reader: Reader) -> list[_Note]:
    lineage = foundation.views.view(reader, DEFAULT_BRANCH).lineage
    page, _next = reader.records.page(lineage, names.BREAKERS, limit=limits.BREAKERS_MAX)
    return [orjson.loads(version.payload) for _key, version in page if version.payload is not None]
