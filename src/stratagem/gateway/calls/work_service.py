"""Finding and stopping work in progress, for one caller: its own, and an administrator all."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from stratagem.engine.lineage import DEFAULT_BRANCH, View
from stratagem.errors import ExecutionNotFound
from stratagem.gateway import inputs, names
from stratagem.gateway.calls import history
from stratagem.gateway.calls.answers import (
    CancelledWork,
    ExecutionRecord,
    WorkList,
    WorkOutcome,
)
from stratagem.gateway.calls.idempotency import answer_again
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.work import WorkInProgress
from stratagem.gateway.home_loop import HomeLoop
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["WorkService"]


class WorkService:
    """Lists and cancels calls, batches and pipelines."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        work: WorkInProgress,
        recorder: Recorder,
        home: HomeLoop,
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._work = work
        self._recorder = recorder
        self._home = home

    async def find(self, given: inputs.WorkListInput) -> WorkList:
        """Return what is under way, or what came of one piece of work."""
        await asyncio.to_thread(self._recorder.settle)
        every = await self._home.join(lambda: self._work.entries(self._caller))
        which = given.execution_id
        if which is None:
            return {"work": every}
        found = [
            each
            for each in every
            if which in {each["executionId"], each["parent"]}
            or (which == each["requestId"] and each["caller"] == self._caller.actor)
        ]
        if found:
            return {"work": found}
        return {"work": [], "outcome": await asyncio.to_thread(self._outcome, which, given.branch)}

    def ended_task(self, task_id: str) -> dict[str, Any] | None:
        """Return how a task of an MCP client has ended; None if it has not, or is another's."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, DEFAULT_BRANCH)
            kept = _read(reader, view, names.RESULTS, names.task_key(task_id))
        if kept is None or not self._caller.sees_contents_of(kept["caller"]):
            return None
        ended: dict[str, Any] = kept["outcome"]
        return ended

    async def cancel(self, given: inputs.WorkCancelInput) -> CancelledWork:
        """Stop work by its id, or by the caller's own request id."""
        which = given.execution_id
        ended = await self._home.join(lambda: self._work.cancel(which, self._caller))
        return {"executionId": ended[0] if ended else which, "cancelled": bool(ended)}

    def _outcome(self, which: str, branch: str | None) -> WorkOutcome:
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, branch or self._caller.branch)
            kept = _read(reader, view, names.RESULTS, which)
            if kept is not None and "caller" in kept:
                self._require_sight(kept["caller"], which)
                outcome: WorkOutcome = kept["outcome"]
                return outcome
            run = _read(reader, view, names.PIPELINE_RUNS, which)
            if run is not None and "success" in run:
                self._require_sight(run["caller"], which)
                return _outcome_of_run(which, run)
            record = self._find_call(reader, view, which)
        self._require_sight(record["caller"], which)
        return _outcome_of_call(record)

    def _find_call(self, reader: Reader, view: View, which: str) -> ExecutionRecord:
        """Return a call by its id, or the newest of the caller's own by a label of its request."""
        try:
            return history.find(reader, view, which)
        except ExecutionNotFound:
            labelled = reader.catalogue.with_facet(view, names.facet_request(which), limit=20)
            hits = reader.log.contents(labelled)
            for sequence in reversed(labelled):
                record = orjson.loads(hits[sequence].payload) if sequence in hits else {}
                if record.get("caller") == self._caller.actor:
                    return history.find(reader, view, record["executionId"])
            raise

    def _require_sight(self, actor: str, which: str) -> None:
        if not self._caller.sees_contents_of(actor):
            raise ExecutionNotFound(f"There is no execution {which!r}.", field="executionId")


def _read(reader: Reader, view: View, space: Any, key: str) -> dict[str, Any] | None:
    version = reader.records.current(view.lineage, space, key)
    if version is None or version.payload is None:
        return None
    content: dict[str, Any] = orjson.loads(version.payload)
    return content


def _outcome_of_call(record: ExecutionRecord) -> WorkOutcome:
    id_ = record["executionId"]
    if "error" in record:
        return {"executionId": id_, "state": "failed", "error": record["error"]}
    return {"executionId": id_, "state": "finished", "answer": answer_again(record)}


def _outcome_of_run(run_id: str, run: dict[str, Any]) -> WorkOutcome:
    if run["success"]:
        answer = {"runId": run_id, "name": run["name"], "success": True}
        return {"executionId": run_id, "state": "finished", "answer": answer}
    return {"executionId": run_id, "state": "failed", "error": run["error"]}
