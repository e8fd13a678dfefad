"""The record of every execution, written together with others, a moment after the call.

A call does not wait for its record. Arguments and results are masked by the rules of
`redaction` before anything is written; a large result is kept apart, under the execution's id.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.events import Draft
from stratagem.errors import BranchNotFound, StratagemError
from stratagem.gateway import names
from stratagem.gateway.calls.answers import ExecutionRecord, RecordedError
from stratagem.operation import Caller
from stratagem.redaction import mask, mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction
from stratagem.storage.views import find_branch

__all__ = ["PendingEvents", "PendingExecution", "Recorder"]

logger = logging.getLogger(__name__)

_ARGUMENT_BYTES_MAX: Final = 64 * 1024
# How often a batch is tried before it is given up, when the store is away.
_TRIES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class PendingEvents:
    """Events that follow from an execution, to be written with it."""

    branch: str
    drafts: Sequence[Draft]


@dataclass(frozen=True, slots=True)
class PendingExecution:
    """An execution to be recorded. `result` is None if it failed."""

    branch: str
    content: ExecutionRecord
    worked: bool
    result: bytes | None = None


# An execution, other events, a function to call, or an event to set when everything before is
# written.
QueueItem = PendingExecution | PendingEvents | Callable[[], object] | threading.Event


class Recorder:
    """Writes executions in the background, in the order in which they ended."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self._queue: queue.Queue[QueueItem | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        # Set while somebody waits until everything is written.
        self._hurry = threading.Event()
        self.lost = 0

    def add(self, entry: PendingExecution) -> None:
        """Have an execution recorded soon."""
        if self._foundation.store.read_only:
            return
        self._start()
        self._queue.put(entry)

    def write(self, branch: str, drafts: Sequence[Draft]) -> None:
        """Have events written soon, with the executions before them."""
        if not self._foundation.store.read_only:
            self._start()
            self._queue.put(PendingEvents(branch, drafts))

    def do(self, work: Callable[[], object]) -> None:
        """Have something done soon, after what was added before it."""
        if not self._foundation.store.read_only:
            self._start()
            self._queue.put(work)
            self._hurry.set()

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until everything that was added is written."""
        if self._thread is not None:
            written = threading.Event()
            self._queue.put(written)
            self._hurry.set()
            written.wait(seconds)

    def close(self) -> None:
        """Write what is left, and stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._hurry.set()
            self._thread.join(timeout=10)

    def _start(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="stratagem-recorder", daemon=True
                    )
                    self._thread.start()

    def _run(self) -> None:
        going = True
        while going:
            batch, later, going = self._gather()
            self._write(batch)
            for each in later:
                self._finish(each)

    def _finish(self, item: Callable[[], object] | threading.Event) -> None:
        if isinstance(item, threading.Event):
            item.set()
            return
        try:
            item()
        except StratagemError as error:
            logger.warning("a follow-up of an execution failed: %s", error)
        except Exception:  # a defect in one of them must not end the recording of all calls
            logger.exception("a follow-up of an execution failed")

    def _gather(
        self,
    ) -> tuple[
        list[PendingExecution | PendingEvents], list[Callable[[], object] | threading.Event], bool
    ]:
        """Return what has come within a moment of the first, and whether more may come."""
        batch: list[PendingExecution | PendingEvents] = []
        waiting: list[Callable[[], object] | threading.Event] = []
        item = self._queue.get()
        # Waking up for each of them would slow down the loop that the calls run on.
        self._hurry.wait(limits.RECORD_SECONDS / 2)
        self._hurry.clear()
        while item is not None:
            if isinstance(item, PendingExecution | PendingEvents):
                batch.append(item)
            else:
                waiting.append(item)
            if len(batch) >= limits.RECORDS_TOGETHER_MAX:
                return batch, waiting, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, waiting, True
        return batch, waiting, False

    def _write(self, batch: Sequence[PendingExecution | PendingEvents]) -> None:
        for branch in dict.fromkeys(entry.branch for entry in batch):
            own = [entry for entry in batch if entry.branch == branch]
            for attempt in range(_TRIES_MAX):
                try:
                    self._append(branch, own)
                    break
                except BranchNotFound:
                    # Deleted since: nobody can look at it any more.
                    break
                except StratagemError as error:
                    if not error.retryable or attempt == _TRIES_MAX - 1:
                        self.lost += len(own)
                        logger.warning("%d executions were not recorded: %s", len(own), error)
                        break
                    threading.Event().wait(0.2 * 2**attempt)
                except Exception:  # as above: what cannot be written is given up
                    self.lost += len(own)
                    logger.exception("%d executions were not recorded", len(own))
                    break

    def _append(self, branch: str, entries: Sequence[PendingExecution | PendingEvents]) -> None:
        level = self._foundation.redaction
        drafts = [draft for entry in entries for draft in self._drafts_of(entry, level)]

        def work(transaction: Transaction) -> None:
            transaction.append(find_branch(transaction.branches, branch), drafts)

        self._foundation.write(Caller(actor="gateway"), work)

    def _drafts_of(self, entry: PendingExecution | PendingEvents, level: Any) -> list[Draft]:
        """Return the events of an entry; one that cannot be written takes no other with it."""
        try:
            drafts = _drafts(entry, level)
            for draft in drafts:
                orjson.dumps(draft.content)
        except (TypeError, ValueError, RecursionError):
            self.lost += 1
            logger.exception("An execution was not recorded: it holds something that is not JSON")
            return []
        return drafts


def _drafts(entry: PendingExecution | PendingEvents, level: Any) -> list[Draft]:
    if isinstance(entry, PendingEvents):
        return [_mask_audit(draft, level) for draft in entry.drafts]
    content = entry.content.copy()
    # Bounded first: what is not kept need not be masked.
    content["arguments"] = mask_json(_bound_arguments(content.get("arguments")), level)
    if "originalArguments" in content:
        given = _bound_arguments(content["originalArguments"])
        content["originalArguments"] = mask_json(given, level)
    if correction := content.get("correction"):
        kept_correction = correction.copy()
        # The arguments are there already, and masked.
        kept_correction.pop("correctedParameters", None)
        kept_correction.pop("debug", None)
        content["correction"] = kept_correction
    if error := content.get("error"):
        content["error"] = _mask_error(error, level)
    kind, space = (
        (names.EXECUTION_SUCCEEDED, names.EXECUTIONS_OK)
        if entry.worked
        else (names.EXECUTION_FAILED_EVENT, names.EXECUTIONS_FAILED)
    )
    drafts = []
    if entry.result is not None:
        result = mask_json(orjson.loads(entry.result), level)
        if len(entry.result) <= limits.RESULT_INLINE_BYTES:
            content["result"] = result
        else:
            execution_id = content["executionId"]
            content["resultRef"] = execution_id
            kept = {"executionId": execution_id, "result": result}
            drafts.append(Draft(names.RESULT_KEPT, kept, names.RESULTS, execution_id))
    return [*drafts, Draft(kind, content, space)]


def _mask_error(error: RecordedError, level: Any) -> RecordedError:
    masked = error.copy()
    if "message" in error:
        masked["message"] = mask(error["message"], level)
    if "body" in error:
        masked["body"] = mask(error["body"], level)
    return masked


def _mask_audit(draft: Draft, level: Any) -> Draft:
    """Return an event with the input in its audit masked."""
    audit = draft.content.get("audit")
    if audit is None:
        return draft
    masked = {**audit, "given": mask_json(audit["given"], level)}
    return replace(draft, content={**draft.content, "audit": masked})


def _bound_arguments(arguments: Any) -> Any:
    """Return arguments to be stored: only the types of large ones."""
    if len(orjson.dumps(arguments)) <= _ARGUMENT_BYTES_MAX:
        return arguments
    if isinstance(arguments, Mapping):
        return {name: f"[{type(each).__name__}]" for name, each in list(arguments.items())[:100]}
    return f"[{type(arguments).__name__}]"
