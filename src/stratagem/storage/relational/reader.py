"""A reader over one connection: the small readers of the contract, put together."""

from __future__ import annotations

from stratagem.engine.records import Kinds
from stratagem.storage.contract import VectorComparer
from stratagem.storage.relational.branches import SqlBranches
from stratagem.storage.relational.cache import NameCache
from stratagem.storage.relational.catalogue import SqlCatalogue
from stratagem.storage.relational.changes import SqlChanges
from stratagem.storage.relational.listing import SqlListing
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.outbox import SqlOutbox
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.requests import SqlRequests
from stratagem.storage.relational.search import SqlSearch
from stratagem.storage.relational.session import Queries
from stratagem.storage.relational.settings import SqlSettings
from stratagem.storage.relational.vectors import SqlVectors

__all__ = ["SqlReader"]


class SqlReader:
    """See `stratagem.storage.contract.Reader`; a store gives the parts that are its own."""

    def __init__(
        self,
        queries: Queries,
        kinds: Kinds,
        cache: NameCache,
        *,
        search: SqlSearch,
        vectors: SqlVectors | None = None,
        vector_comparer: VectorComparer | None = None,
        records: SqlRecords | None = None,
    ) -> None:
        self.kinds = kinds
        self.log = SqlLog(queries)
        self.branches = SqlBranches(queries, cache)
        self.records = records or SqlRecords(queries, kinds, cache)
        self.catalogue = SqlCatalogue(queries, self.records)
        self.listing = SqlListing(queries, self.records)
        self.changes = SqlChanges(queries)
        self.search = search
        self.vectors = vectors or SqlVectors(queries)
        self.vector_comparer = vector_comparer
        self.outbox = SqlOutbox(queries)
        self.settings = SqlSettings(queries)
        self.requests = SqlRequests(queries)
