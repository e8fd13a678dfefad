"""Logged events by their sequences: what `strata_log` appends, for programs."""

from __future__ import annotations

from typing import Annotated, Any

from stratagem import limits
from stratagem.developer.models import EventCount
from stratagem.developer.parameters import ListLimit, SpaceName
from stratagem.engine.lineage import OPEN_END
from stratagem.engine.values import check_text
from stratagem.memory.kinds import EVENT
from stratagem.memory.models import EventList, Logged, LoggedEvent
from stratagem.memory.parameters import Session, Tags
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.parameters import AsOf, BranchName, Cursor, Param, RequestId
from stratagem.search.foundation import Foundation

__all__ = ["EventStream"]

_TYPE_ALIASES = ("event", "type", "label")
_Label = Annotated[str | None, Param("Only events of this type", quiet=True, aliases=_TYPE_ALIASES)]
# All events of a space are counted without reading them; those of one type are gone through.
_AT_ONCE = limits.LIST_PAGE_MAX


class EventStream:
    """Logged events, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._memory = Memory(foundation, caller)
        self._foundation = foundation
        self._caller = caller

    def append(
        self,
        event_type: Annotated[str, Param("Such as user_action", aliases=_TYPE_ALIASES)],
        payload: Annotated[Any, Param("Any JSON", aliases=("data",))],
        *,
        tags: Tags = None,
        session: Session = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Logged:
        """Append an event: something that happened and will not change."""
        _check_type(event_type)
        return self._memory.log(
            event_type,
            payload,
            tags=tags,
            session=session,
            namespace=namespace,
            branch=branch,
            request_id=request_id,
        )

    def get(
        self,
        sequence: Annotated[int, Param("Its sequence", quiet=True, ge=1, le=OPEN_END)],
        *,
        as_of: AsOf = None,
        branch: BranchName = None,
    ) -> LoggedEvent | None:
        """Return the event with a sequence; None where no event has it."""
        memory = self._memory
        found = memory.recall(f"@{sequence}", as_of=as_of, branch=branch)
        if found is None or found.version != sequence:
            return None
        page = memory.events(
            after=sequence - 1, limit=1, namespace=found.namespace, as_of=as_of, branch=branch
        )
        return next((each for each in page if each.sequence == sequence), None)

    def list(
        self,
        event_type: _Label = None,
        *,
        after_sequence: Annotated[
            int | None, Param("Only events after this one", ge=0, le=OPEN_END, aliases=("after",))
        ] = None,
        limit: ListLimit = limits.LIST_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> EventList:
        """Return events in the order in which they were logged, a page at a time."""
        if event_type is not None:
            _check_type(event_type)
        return self._memory.events(
            event_type,
            after=after_sequence,
            limit=limit,
            cursor=cursor,
            as_of=as_of,
            namespace=namespace,
            branch=branch,
        )

    def len(
        self,
        event_type: _Label = None,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> EventCount:
        """Return how many events there are."""
        where = namespace or self._caller.namespace
        if event_type is None:
            return EventCount(self._count_all(where, branch, as_of), where)
        _check_type(event_type)
        count, after = 0, 0
        while page := self._memory.events(
            event_type, after=after, limit=_AT_ONCE, as_of=as_of, namespace=where, branch=branch
        ).results:
            count += len(page)
            after = page[-1].sequence
        return EventCount(count, where, event_type)

    def _count_all(self, namespace: str, branch: str | None, as_of: str | int | None) -> int:
        foundation = self._foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, branch or self._caller.branch, as_of)
            numbers = {
                number
                for number, space in reader.records.spaces(EVENT).items()
                if space.namespace == namespace
            }
            counts = reader.listing.space_counts(view, (EVENT,))
        return sum(each.live for each in counts if each.space in numbers)


def _check_type(event_type: str) -> None:
    check_text(event_type, field="event_type", chars_max=limits.EVENT_LABEL_CHARS_MAX)
