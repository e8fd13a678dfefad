"""The database itself: whether it answers, what it holds, flushing and compacting it."""

from __future__ import annotations

from stratagem.developer.kinds import CELL, COLLECTION, VECTOR
from stratagem.developer.models import (
    Compacted,
    DatabaseInfo,
    DatabasePing,
    DurabilityCounters,
    Flushed,
)
from stratagem.developer.parameters import SpaceName
from stratagem.memory.models import TimeRange
from stratagem.memory.service import Memory
from stratagem.parameters import AsOf, BranchName
from stratagem.search.foundation import BoundSystem

__all__ = ["DatabaseTools"]


class DatabaseTools(BoundSystem):
    """The database, for one caller."""

    def ping(self) -> DatabasePing:
        """Return that the database answers, and its version."""
        self._store.reader().log.head()
        return DatabasePing(pong=True, version=self._foundation.version)

    def info(self, *, as_of: AsOf = None, branch: BranchName = None) -> DatabaseInfo:
        """Return what the database is, and how much a branch of it shows."""
        status = Memory(self._foundation, self._caller).status()
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            counts = {
                kind: reader.records.count(view, kind)
                for kind in ("entry", "event", CELL, COLLECTION, VECTOR)
            }
            transactions = len(reader.branches.transactions())
        return DatabaseInfo(
            version=status.version,
            database=status.database,
            branch=branch or str(status.branch),
            namespace=status.namespace,
            branches=status.branches,
            keys=counts["entry"],
            events=counts["event"],
            cells=counts[CELL],
            collections=counts[COLLECTION],
            vectors=counts[VECTOR],
            head=status.head,
            bytes=self._store.size(),
            durability=status.durability,
            embedder=status.embedder,
            read_only=status.read_only,
            open_transactions=transactions,
        )

    def flush(self) -> Flushed:
        """Write everything that was acknowledged to the disk."""
        self._caller.refuse_in_transaction("Flushing the database")
        self._store.flush()
        return Flushed(flushed=True, head=self._head())

    def compact(self) -> Compacted:
        """Give space that is not used any more back; nothing that can be seen changes."""
        self._caller.refuse_in_transaction("Compacting the database")
        before = self._store.size()
        is_done = self._store.compact()
        after = self._store.size()
        freed = max(before - after, 0) if before is not None and after is not None else None
        note = None
        if self._store.remote:
            note = "PostgreSQL reuses the space; VACUUM FULL returns it to the disk."
        elif not is_done:
            note = "Somebody was reading the file meanwhile: compact it again to clear the rest."
        return Compacted(before, after, freed, note)

    def time_range(
        self, *, namespace: SpaceName = None, as_of: AsOf = None, branch: BranchName = None
    ) -> TimeRange:
        """Return the moments for which a branch has something to show."""
        memory = Memory(self._foundation, self._caller)
        return memory.time_range(namespace=namespace, as_of=as_of, branch=branch)

    def durability_counters(self) -> DurabilityCounters:
        """Return what this process has written since it opened the database."""
        counted = self._store.counters()
        with self._store.snapshot() as reader:
            head = reader.log.head()
        return DurabilityCounters(
            durability=self._foundation.durability,
            writes=counted.writes,
            commits=counted.commits,
            failed=counted.failed,
            events=head.sequence,
            head=self._head(),
        )

    def _head(self) -> str:
        head = self._store.reader().log.head()
        return f"{head.sequence}:{head.hash.hex()}"
