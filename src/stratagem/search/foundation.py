"""The common base of all systems: the store, its views and the index, and one way to write."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import asyncio, hashlib
from stratagem.engine import values
from stratagem.engine.events import Draft, Space
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import ReadOnly
from stratagem.function_cache import clear_text_caches
from stratagem.operation import Caller
from stratagem.search.collections import CollectionIndex
from stratagem.search.external_services import ExternalServices
from stratagem.search.index import Index
from stratagem.search.record_finders import RecordFinder
from stratagem.search.state_cache import StateCache
from stratagem.storage.contract import Erased, Store, Transaction, WriteRequest
from stratagem.storage.views import Views

__all__ = ["BoundSystem", "Foundation", "PurgeListeners"]

T = TypeVar("T")


@dataclass(slots=True)
class PurgeListeners:
    """Callbacks of components that hold copies, before and after a purge.

    `before`: pending writes are flushed, or a copy would be written after the purge. `after`:
    caches in memory are cleared.
    """

    before: list[Callable[[], object]] = field(default_factory=list)
    after: list[Callable[[], object]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Foundation:
    """The parts that bootstrap chose, shared by all systems of one database."""

    store: Store
    views: Views
    index: Index
    durability: str
    version: str
    redaction: Literal["none", "basic", "strict"] = "basic"
    external: ExternalServices = field(default_factory=ExternalServices)
    cache: StateCache = field(default_factory=StateCache)
    purge_listeners: PurgeListeners = field(default_factory=PurgeListeners)
    # How likely a known problem must be the one at hand for its fix to be recommended.
    relevance_min: float = TRY_MIN
    # By kind of record: what finds it for the one search over all systems.
    finders: Mapping[str, RecordFinder] = field(default_factory=dict)
    # The folder that the operator has named for bundles.
    bundles: Path | None = None
    # The vectors that callers wrote themselves.
    collections: CollectionIndex = field(default_factory=lambda: CollectionIndex(None))
    # Refuses events that this database is not to hold.
    check: Callable[[Sequence[Draft]], None] | None = None

    def __post_init__(self) -> None:
        """Have everything that was computed from contents cleared after a purge."""
        self.purge_listeners.after += self.cache.clear, clear_text_caches

    def purge(
        self, caller: Caller, *, space: Space, key: str | None, sequence: int | None
    ) -> Erased:
        """Erase a record or an event for good, with everything here that quotes it."""
        request = WriteRequest(caller.actor)
        return self._purge(
            caller, lambda: self.store.purge(request, space=space, key=key, sequence=sequence)
        )

    def purge_records(
        self, caller: Caller, records: Sequence[tuple[Space, str]], sequences: Sequence[int]
    ) -> Erased:
        """Erase records and events for good, all at once, with everything here that quotes them."""
        request = WriteRequest(caller.actor)
        return self._purge(caller, lambda: self.store.purge_records(request, records, sequences))

    def _purge(self, caller: Caller, erase: Callable[[], Erased]) -> Erased:
        caller.refuse_in_transaction("A purge")
        return self.erase_with_copies(erase)

    def erase_with_copies(self, erase: Callable[[], T]) -> T:
        """Erase something from the store, and every copy of it that this process holds."""
        for work in self.purge_listeners.before:
            work()
        try:
            return erase()
        finally:
            # Also after an error: it may have been erased before that.
            self.index.forget_texts()
            self.collections.discard()
            for work in self.purge_listeners.after:
                work()

    async def read_async(self, work: Callable[[], T]) -> T:
        """Run a short read of the store without making the event loop wait for a network.

        A file on this machine answers faster than a thread can be asked to; a server may not.
        """
        if self.store.remote:
            return await asyncio.to_thread(work)
        return work()

    def write(
        self,
        caller: Caller,
        work: Callable[[Transaction], T],
        *,
        request_id: str | None = None,
        operation: str = "",
        arguments: Mapping[str, Any] | None = None,
        subjects: Sequence[tuple[Space, str]] = (),
    ) -> T:
        """Run work in a transaction in a caller's name.

        With a request id, `work` must return plain JSON: a repeat with the same operation
        and arguments returns it again and runs nothing. Within a transaction it is recognised only
        there: before the commit there is no result that a repeat elsewhere could return.
        """
        transaction = caller.transaction
        if transaction is not None and transaction.read_only:
            raise ReadOnly(
                "This transaction is read-only.",
                hint="Write outside it, or begin another without read_only.",
            )
        if request_id is None:
            return self.store.write(
                work, WriteRequest(caller.actor, subjects=subjects, check=self.check)
            )
        values.check_text(request_id, field="request_id", chars_max=limits.REQUEST_ID_CHARS_MAX)
        if transaction is not None:
            request_id = f"{transaction.id}/{request_id}"
        fingerprint = hashlib.sha256(_encode_request([operation, arguments or {}])).digest()
        return self.store.write(
            work, WriteRequest(caller.actor, request_id, fingerprint, subjects, self.check)
        )


def _encode_request(request: list[Any]) -> bytes:
    try:
        return orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # An integer of more than 64 bits, which is refused where it is looked at.
        return json.dumps(request, sort_keys=True).encode()


class BoundSystem:
    """A system bound to a caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._foundation = foundation
        self._store = foundation.store
        self._views = foundation.views
        self._caller = caller
