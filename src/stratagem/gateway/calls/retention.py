"""Retention: old executions lose their arguments and results.

The content of their events is erased by the store's purge: arguments, results and messages are gone
from the log, from every branch and every past moment. The hash chain stays intact.

The log is scanned once: the position of the last scan is stored as a setting of the database. A
pass erases a bounded number of records, because erasing rebuilds the read models.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Literal

from stratagem import limits
from stratagem.engine.events import Event, Space
from stratagem.engine.lineage import DEFAULT_BRANCH, View
from stratagem.errors import ReadOnly, ToolNotFound, ValidationFailed
from stratagem.function_cache import clear_text_caches
from stratagem.gateway import inputs, names
from stratagem.gateway.calls.answers import ErasedExecutions, PurgedToolRecord
from stratagem.gateway.calls.recorder import Recorder
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Erased, Reader, Transaction, WriteRequest

__all__ = ["Retention", "erase_old"]

_FORGOTTEN: Final = frozenset(
    {
        names.EXECUTION_SUCCEEDED,
        names.EXECUTION_FAILED_EVENT,
        names.RESULT_KEPT,
        # Minutes after it was begun it is worth nothing.
        names.SIGN_IN_BEGUN,
    }
)
_LOOKED_TO: Final = "executions_erased_to"


class Retention:
    """Retention for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller, *, recorder: Recorder) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._caller = caller

    def erase(self, given: inputs.RetentionInput) -> ErasedExecutions:
        """Erase the arguments and results of old executions."""
        self._recorder.settle()
        return erase_old(self._foundation, self._caller, days=given.days, preview=given.preview)

    def purge(self, given: inputs.ToolPurgeInput) -> PurgedToolRecord:
        """Erase a tool with all its versions, or the record of one call."""
        self._recorder.settle()
        with self._foundation.store.snapshot() as reader:
            kind, records, sequences = _find_records(reader, given.record_id)
        counts = {"tool": len(records)} if kind == "tool" else {"execution": len(sequences)}
        erased = Erased()
        note = "Nothing was erased: confirm it with confirm=true. It cannot be undone."
        if given.confirm:
            erased = self._foundation.purge_records(self._caller, records, sequences)
            note = erased.note
            if kind == "tool":
                note += (
                    " Records of its calls stay: erase them with executions_erase, or "
                    "each by its id."
                )
        return {
            "kind": kind,
            "id": given.record_id,
            "purged": given.confirm,
            "records": counts,
            "erased": erased.events,
            "copies": dict(erased.copies),
            "note": note,
        }


def _find_records(
    reader: Reader, given: str
) -> tuple[Literal["tool", "execution"], list[tuple[Space, str]], list[int]]:
    """Return what an id stands for on any branch: records, and events that have no key.

    Raises:
        ToolNotFound: It is neither a tool nor an execution, of now or of the past.
    """
    views = [
        View(branch, reader.branches.lineage(branch), reader.log.head().at)
        for branch in (*reader.branches.all(), *reader.branches.transactions())
    ]
    if reader.records.subjects(names.TOOLS, [given]):
        return "tool", [(names.TOOLS, given)], []
    tools = _with_facet(reader, views, names.facet_id(names.TOOL, given))
    keys = {str(each.key) for each in reader.log.contents(tools).values()}
    if keys:
        return "tool", [(names.TOOLS, key) for key in sorted(keys)], []
    executions = _with_facet(reader, views, names.facet_execution(given))
    if executions:
        kept = reader.records.subjects(names.RESULTS, [given])
        return "execution", [(names.RESULTS, key) for key in kept], executions
    raise ToolNotFound(
        f"There is no tool and no execution {given!r} on any branch.",
        field="record_id",
        hint="tools_list shows the tools, tool_executions the calls.",
    )


def _with_facet(reader: Reader, views: list[View], facet: str) -> list[int]:
    return sorted({each for view in views for each in reader.catalogue.with_facet(view, facet)})


def erase_old(
    foundation: Foundation,
    caller: Caller,
    *,
    days: float = limits.EXECUTION_DAYS_KEPT,
    most: int = limits.EXECUTIONS_ERASED_MAX,
    preview: bool = False,
) -> ErasedExecutions:
    """Erase the content of executions older than some days, at most so many of them.

    With `preview` nothing is erased: the answer says how many would be.

    Raises:
        ReadOnly: The database was opened for reading only.
        ValidationFailed: The number of days makes no sense.
    """
    if not 0 <= days <= limits.EXECUTION_DAYS_KEPT_MAX:
        raise ValidationFailed(
            f"Executions are kept between 0 and {limits.EXECUTION_DAYS_KEPT_MAX:,} days.",
            field="days",
            limit=limits.EXECUTION_DAYS_KEPT_MAX,
        )
    if foundation.store.read_only:
        raise ReadOnly("The database was opened for reading only.")
    now = foundation.store.now()
    until = now - timedelta(days=days) // timedelta(microseconds=1)
    after = int(foundation.store.reader().settings.number(_LOOKED_TO) or 0)
    doomed: list[int] = []
    looked_to, more = after, False
    for event in _older(foundation, after, until, now):
        if event.payload is not None and _is_forgotten(foundation, event):
            if len(doomed) == most:
                more = True
                break
            doomed.append(event.sequence)
        looked_to = event.sequence
    if preview:
        return {"erased": 0, "found": len(doomed), "days": days, "more": more, "preview": True}
    erased = _erase(foundation, caller, doomed)
    if looked_to > after:
        foundation.write(caller, lambda transaction: _note(transaction, looked_to))
    return {"erased": erased, "days": days, "more": more}


def _is_forgotten(foundation: Foundation, event: Event) -> bool:
    """Whether an old event loses its content: a call's, or credentials that others replaced."""
    if event.kind != names.CREDENTIAL_SET:
        return event.kind in _FORGOTTEN
    assert event.key is not None
    reader = foundation.store.reader()
    view = foundation.views.view(reader, DEFAULT_BRANCH)
    current = reader.records.current(view.lineage, names.CREDENTIALS, event.key)
    return current is None or current.sequence != event.sequence


def _older(foundation: Foundation, after: int, until: int, now: int) -> Iterator[Event]:
    """Return the events before a moment of the clock; later ones are not even read.

    An event of a clock that ran ahead counts as old as the next event with a right clock.
    """
    undated: list[Event] = []
    for event in foundation.store.log(after):
        if event.wall > now:
            undated.append(event)
        elif event.wall >= until:
            return
        else:
            yield from undated
            undated.clear()
            yield event


def _erase(foundation: Foundation, caller: Caller, doomed: list[int]) -> int:
    if not doomed:
        return 0
    erased = foundation.store.purge(
        WriteRequest(caller.actor),
        space=names.EXECUTIONS_OK,
        key=None,
        sequence=None,
        sequences=doomed,
    )
    clear_text_caches()
    return erased.events


def _note(transaction: Transaction, sequence: int) -> None:
    transaction.settings.set(_LOOKED_TO, sequence)
