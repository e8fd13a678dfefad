"""Work in progress: calls, batches and pipelines that run, so that they can be found and stopped.

Work of this process is tracked in memory. Work that takes longer than a moment is also noted in the
database, so that other processes (another worker, the command line) can list it and request its
cancellation; the process that runs it polls for such requests. Work whose process was silent for
long, or no longer knows it, is lost. A pipeline is noted with its first event, so that an
interrupted one can be found and resumed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.errors import ExecutionFailed
from stratagem.gateway import names
from stratagem.gateway.calls.answers import WorkEntry, WorkKind, WorkNote, WorkOutcome, WorkState
from stratagem.gateway.calls.call import Call
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.definitions.contract import ProgressReport
from stratagem.operation import Caller
from stratagem.redaction import mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction
from stratagem.storage.views import find_branch

__all__ = [
    "ProgressOfParts",
    "WorkInProgress",
    "WorkItem",
    "cancellation_error",
    "ending_note",
    "item_of",
    "report_start_to",
]

logger = logging.getLogger(__name__)
_BRANCH: Final = "default"
_MICROSECONDS: Final = 1_000_000
# Called with the id of each piece of work that a caller begins.
StartReport = Callable[["WorkItem"], None]
_STARTS: ContextVar[StartReport | None] = ContextVar("starts", default=None)


@contextmanager
def report_start_to(report: StartReport) -> Iterator[None]:
    """Tell `report` of work as it begins within this context; not of its parts."""
    before = _STARTS.set(report)
    try:
        yield
    finally:
        _STARTS.reset(before)


@dataclass(slots=True)
class WorkItem:
    """One piece of work. `request_ids` are the ids that its caller knows it by.

    `parent` is the work that it is a part of. `detached`: its caller does not wait for it.
    `keeps_note`: whoever runs it ends its note in a transaction of its own.
    """

    id: str
    kind: WorkKind
    name: str
    caller: Caller
    started_at: int
    request_ids: tuple[str, ...] = ()
    parent: str | None = None
    detached: bool = False
    keeps_note: bool = False
    task: asyncio.Task[Any] | None = None
    cancelled: bool = False
    noted_at: int | None = None
    percentage: float | None = None
    message: str | None = None

    def was_cancelled(self) -> bool:
        """Whether a cancellation that arrived was meant for this work alone.

        The task then continues: the work that this is a part of was not cancelled.
        """
        assert self.task is not None
        return self.cancelled and not self.task.uncancel()


def item_of(call: Call, kind: WorkKind, id_: str, now: int) -> WorkItem:
    """Return a call, or what it stands for, as work."""
    return WorkItem(
        id_, kind, call.tool, call.caller, now, call.request_ids, call.parent, call.detached
    )


def cancellation_error(what: str, execution_id: str) -> ExecutionFailed:
    """Return the error of work that somebody has cancelled."""
    return ExecutionFailed(
        f"{what} was cancelled.",
        answered=True,
        reason="cancelled",
        executionId=execution_id,
        hint="It was cancelled on request; call it again if it is still needed.",
    )


@dataclass(slots=True)
class WorkInProgress:
    """The work of this process, and the notes of all processes.

    Runs on the home loop, except for the notes.
    """

    foundation: Foundation
    recorder: Recorder
    process: str
    _items: dict[str, WorkItem] = field(default_factory=dict)
    _watcher: asyncio.Task[None] | None = None
    _detached: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def active(self) -> list[str]:
        """The ids of what runs here."""
        return list(self._items)

    @contextmanager
    def track(self, item: WorkItem) -> Iterator[WorkItem]:
        """Keep work findable as long as the context lasts; it runs in the current task."""
        item = self._items.setdefault(item.id, item)
        item.task = asyncio.current_task()
        report = _STARTS.get()
        if report is not None and item.parent is None:
            report(item)
        if self._watcher is None:
            self._watcher = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield item
        finally:
            self._items.pop(item.id, None)
            if item.noted_at is not None and not item.keeps_note:
                self.recorder.write(_BRANCH, [ending_note(item.id)])

    async def detach(self, item: WorkItem, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Begin work that nobody waits for; when this returns, every process can find it."""
        self._items[item.id] = item
        if not self.foundation.store.read_only:
            await asyncio.to_thread(self._write, [self.note(item)])

        async def run() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 -- what became of it is recorded
                logger.info("%s, which was started detached, failed: %s", item.id, error)
            finally:
                if self._items.pop(item.id, None) is not None and item.noted_at is not None:
                    # It came to nothing that was tracked.
                    self.recorder.write(_BRANCH, [ending_note(item.id)])

        task = asyncio.get_running_loop().create_task(run())
        item.task = task
        # The loop itself keeps only a weak hold of a task.
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)

    async def outlive_client(self, item: WorkItem) -> None:
        """Have work go on when its client waits no longer; then every process can find it."""
        item.detached = True
        if item.noted_at is None:
            await asyncio.to_thread(self._write, [self.note(item)])

    def keep_ended_task(self, item: WorkItem, ended: Mapping[str, Any]) -> None:
        """Keep how a task of an MCP client has ended, in the protocol's own form, masked."""
        kept = mask_json(dict(ended), self.foundation.redaction)
        content = {"executionId": item.id, "caller": item.caller.actor, "outcome": kept}
        self._write([Draft(names.RESULT_KEPT, content, names.RESULTS, names.task_key(item.id))])

    def keep_outcome(self, item: WorkItem, branch: str, outcome: WorkOutcome) -> None:
        """Store the outcome of detached work without a record of its own, masked like a record."""
        said = mask_json({"answer": outcome.get("answer")}, self.foundation.redaction)
        kept = {**outcome, **said} if "answer" in outcome else {**outcome}
        content = {"executionId": item.id, "caller": item.caller.actor, "outcome": kept}
        self.recorder.write(branch, [Draft(names.RESULT_KEPT, content, names.RESULTS, item.id)])

    def note(self, item: WorkItem) -> Draft:
        """Return the event by which other processes know of work."""
        item.noted_at = now = self.foundation.store.now()
        content: WorkNote = {
            "executionId": item.id,
            "kind": item.kind,
            "name": item.name,
            "caller": item.caller.actor,
            "startedAt": item.started_at,
            "requestIds": list(item.request_ids),
            "parent": item.parent,
            "detached": item.detached,
            "process": self.process,
            "seenAt": now,
        }
        return Draft(names.WORK_NOTED, content, names.WORK, item.id)

    async def entries(self, caller: Caller) -> list[WorkEntry]:
        """Return what a caller may see of all that runs, the oldest first."""
        running = [_entry(each, self.foundation.store.now()) for each in self._items.values()]
        noted = await asyncio.to_thread(self._read_notes)
        elsewhere = [
            self._entry_of_note(each) for each in noted if each["executionId"] not in self._items
        ]
        visible = [each for each in (*running, *elsewhere) if _may_see(caller, each["caller"])]
        return sorted(visible, key=lambda each: each["startedAt"])[: limits.WORK_LISTED_MAX]

    async def cancel(self, which: str, caller: Caller) -> list[str]:
        """Stop work by its id, or by the caller's own; return what will end."""
        here = [
            each
            for each in self._items.values()
            if not each.cancelled
            and _is_meant(which, each.id, each.request_ids, each.caller.actor, caller)
        ]
        for each in here:
            each.cancelled = each.task is not None and each.task.cancel()
        return [each.id for each in here if each.cancelled] or await asyncio.to_thread(
            self._cancel_elsewhere, which, caller
        )

    def _cancel_elsewhere(self, which: str, caller: Caller) -> list[str]:
        """Ask another process to stop work; forget work that no process goes on with."""
        drafts: list[Draft] = []
        # What has just ended here may not be written yet.
        self.recorder.settle()
        for note in self._read_notes():
            key = note["executionId"]
            ids = tuple(note["requestIds"])
            if key in self._items or not _is_meant(which, key, ids, note["caller"], caller):
                continue
            if self._is_lost(note):
                drafts.append(ending_note(key))
            elif "cancelledBy" not in note:
                asked = note.copy()
                asked["cancelledBy"] = caller.actor
                drafts.append(Draft(names.WORK_CANCELLED, asked, names.WORK, key))
        if drafts:
            self._write(drafts)
        return [str(each.key) for each in drafts]

    async def _watch(self) -> None:
        """Note what takes long, and see whether somebody else has asked for its end."""
        try:
            while self._items:
                await asyncio.sleep(limits.WORK_LOOK_SECONDS)
                if self.foundation.store.read_only:
                    continue
                now = self.foundation.store.now()
                lasting = [
                    each
                    for each in self._items.values()
                    if _is_past(each.started_at, limits.WORK_LOOK_SECONDS, now)
                ]
                if lasting:
                    self._note_lasting(lasting)
                    await self._follow_requests()
        finally:
            self._watcher = None

    def _note_lasting(self, lasting: Sequence[WorkItem]) -> None:
        now = self.foundation.store.now()
        drafts = [
            self.note(each)
            for each in lasting
            if each.noted_at is None or _is_past(each.noted_at, limits.WORK_SEEN_SECONDS, now)
        ]
        if drafts:
            self.recorder.write(_BRANCH, drafts)

    async def _follow_requests(self) -> None:
        for note in await asyncio.to_thread(self._read_notes):
            item = self._items.get(note["executionId"])
            if item is not None and "cancelledBy" in note and not item.cancelled and item.task:
                item.cancelled = item.task.cancel()

    def _read_notes(self) -> list[WorkNote]:
        foundation = self.foundation
        found: list[WorkNote] = []
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, _BRANCH)
            after: str | None = ""
            while after is not None:
                page, after = reader.records.page(view.lineage, names.WORK, after=after)
                found += [orjson.loads(each.payload) for _key, each in page if each.payload]
        return found

    def _write(self, drafts: Sequence[Draft]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.append(find_branch(transaction.branches, _BRANCH), list(drafts))

        self.foundation.write(Caller(actor="gateway"), work)

    def _is_lost(self, note: WorkNote) -> bool:
        """Whether no process goes on with it: its own was silent, or has forgotten it."""
        # Two machines' clocks may differ a little; one that lies far ahead was wrong, and whoever
        # goes on with the work notes it anew when the clock is set back.
        silent = abs(self.foundation.store.now() - note["seenAt"])
        return note["process"] == self.process or silent > limits.WORK_LOST_SECONDS * _MICROSECONDS

    def _entry_of_note(self, note: WorkNote) -> WorkEntry:
        now = self.foundation.store.now()
        state: WorkState = "cancelling" if "cancelledBy" in note else "running"
        if self._is_lost(note):
            state = "lost"
        return {
            "executionId": note["executionId"],
            "kind": note["kind"],
            "name": note["name"],
            "caller": note["caller"],
            "state": state,
            "startedAt": moments.iso(note["startedAt"]),
            "duration": _milliseconds(now - note["startedAt"]),
            "requestId": next(iter(note["requestIds"]), None),
            "parent": note["parent"],
            "detached": note["detached"],
            "percentage": None,
            "message": None,
        }


def ending_note(execution_id: str) -> Draft:
    """Return the event by which other processes know that work has ended."""
    return Draft(names.WORK_ENDED, {"executionId": execution_id}, names.WORK, execution_id)


def _is_past(moment: int, seconds: float, now: int) -> bool:
    """Whether a moment is so long ago; one that lies ahead is, for the clock was set back."""
    return not 0 <= now - moment < seconds * _MICROSECONDS


def _entry(item: WorkItem, now: int) -> WorkEntry:
    return {
        "executionId": item.id,
        "kind": item.kind,
        "name": item.name,
        "caller": item.caller.actor,
        "state": "cancelling" if item.cancelled else "running",
        "startedAt": moments.iso(item.started_at),
        "duration": _milliseconds(now - item.started_at),
        "requestId": next(iter(item.request_ids), None),
        "parent": item.parent,
        "detached": item.detached,
        "percentage": item.percentage,
        "message": item.message,
    }


def _milliseconds(microseconds: int) -> float:
    return round(max(0, microseconds) / 1000, 3)


def _may_see(caller: Caller, actor: str) -> bool:
    return caller.sees_contents_of(actor)


def _is_meant(which: str, id_: str, request_ids: Sequence[str], actor: str, caller: Caller) -> bool:
    """Whether a caller may stop work, and names it: an id of its own means its own work only."""
    if not _may_see(caller, actor):
        return False
    return which == id_ or (which in request_ids and actor == caller.actor)


class ProgressOfParts:
    """Reports how much of the whole is done; each part counts alike."""

    def __init__(self, count: int, item: WorkItem, report: ProgressReport) -> None:
        self._done = [0.0] * count
        self._item = item
        self._report = report

    def part(self, number: int) -> ProgressReport:
        """Return what a part reports its own progress to."""

        def report(fraction: float | None, message: str | None) -> None:
            if fraction is not None:
                self._done[number] = max(self._done[number], fraction)
            self._tell(message)

        return report

    def begin_part(self, number: int, message: str) -> None:
        """Note that a part begins, and that all before it have ended."""
        self._done[:number] = [1.0] * number
        self._tell(message)

    def end_part(self, number: int, message: str) -> None:
        """Note that a part has ended."""
        self._done[number] = 1.0
        self._tell(message)

    def _tell(self, message: str | None) -> None:
        fraction = sum(self._done) / len(self._done)
        self._item.percentage, self._item.message = round(100 * fraction, 1), message
        self._report(fraction, message)
