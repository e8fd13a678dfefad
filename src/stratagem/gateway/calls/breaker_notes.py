"""Breakers of other processes: each notes its open ones in the database, where all can see them.

A process counts failures by itself, and refuses by what it counted. That a breaker is open stands
in a note, which every process and the command line lists. Whoever resets a breaker removes its
notes, and a process that finds its own note gone lets calls through again.
"""

from __future__ import annotations

from typing import Final, TypedDict

import orjson

from stratagem import limits
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.gateway import names
from stratagem.gateway.calls.answers import ToolBreaker
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.recorder import Recorder
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["BreakerNotes"]

_CALLER: Final = Caller(actor="gateway")
_SECOND: Final = 1_000_000


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
