"""A reader over one connection: the small readers of the contract, put together."""

from __future__ import annotations

from dataclasses import dataclass

from stratagem.engine.records import Kinds
from stratagem.storage.contract import VectorComparer
from stratagem.storage.relational.branches import SqlBranches
from stratagem.storage.relational.cache import NameCache
from stratagem.storage.relational.catalogue import SqlCatalogue
from stratagem.storage.relational.changes import SqlChanges
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.outbox import SqlOutbox
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.requests import SqlRequests
from stratagem.storage.relational.search import SqlSearch
from stratagem.storage.relational.session import Queries
from stratagem.storage.relational.settings import SqlSettings
from stratagem.storage.relational.vectors import SqlVectors

__all__ = ["SqlReader"]


@dataclass(slots=True)
class SqlReader:
    """See `stratagem.storage.contract.Reader`."""

    kinds: Kinds
    log: SqlLog
    branches: SqlBranches
    records: SqlRecords
    catalogue: SqlCatalogue
    changes: SqlChanges
    search: SqlSearch
    vectors: SqlVectors
    vector_comparer: VectorComparer | None
    outbox: SqlOutbox
    settings: SqlSettings
    requests: SqlRequests

    @classmethod
    def over(
        cls,
        queries: Queries,
        kinds: Kinds,
        cache: NameCache,
        *,
        search: SqlSearch,
        vectors: SqlVectors | None = None,
        vector_comparer: VectorComparer | None = None,
        records: SqlRecords | None = None,
    ) -> SqlReader:
        """Return a reader that runs these queries; a store gives the parts that are its own."""
        records = records or SqlRecords(queries, kinds, cache)
        return cls(
            kinds=kinds,
            log=SqlLog(queries),
            branches=SqlBranches(queries, cache),
            records=records,
            catalogue=SqlCatalogue(queries, records),
            changes=SqlChanges(queries),
            search=search,
            vectors=vectors or SqlVectors(queries),
            vector_comparer=vector_comparer,
            outbox=SqlOutbox(queries),
            settings=SqlSettings(queries),
            requests=SqlRequests(queries),
        )
