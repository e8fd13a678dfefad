"""What all transactions of one commit share: the parts that write, over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from stratagem.engine.records import Kinds
from stratagem.storage.contract import IndexedText, Indexer, VectorComparer
from stratagem.storage.relational.branches import SqlBranches
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.catalogue import SqlCatalogue
from stratagem.storage.relational.changes import SqlChanges
from stratagem.storage.relational.interner import Interner
from stratagem.storage.relational.listing import SqlListing
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.outbox import SqlOutboxWriter
from stratagem.storage.relational.records import SqlWriterRecords
from stratagem.storage.relational.requests import SqlRequestWriter
from stratagem.storage.relational.search import SqlSearch
from stratagem.storage.relational.session import Queries
from stratagem.storage.relational.settings import SqlSettingWriter
from stratagem.storage.relational.text_backlog import TextBacklog
from stratagem.storage.relational.vectors import SqlVectorWriter

if TYPE_CHECKING:
    from stratagem.storage.relational.store import Adapters

__all__ = ["DocumentWriter", "SqlWriter"]


class DocumentWriter(Protocol):
    """Writes indexed texts, in the form that the database searches."""

    def add_texts(self, documents: Sequence[tuple[int, IndexedText]]) -> None:
        """Put analysed texts, by sequence, into the full-text index."""
        ...

    def add_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Store the vectors of some texts, by sequence."""
        ...

    def copy_vectors(self, pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
        """Copy vectors from other texts with the same content; return the texts that have one now.

        Each text is given with the other. A vector is not copied between events of different kinds,
        whose texts may differ.
        """
        ...

    def add_own_vectors(self, vectors: Sequence[tuple[int, str]]) -> None:
        """Store vectors that callers wrote, by sequence, where the database compares them."""
        ...


class SqlWriter:
    """The parts that write; a store gives those that are its own.

    They live as long as the write lock is held, and so does what is in their `cache`.
    """

    def __init__(
        self,
        queries: Queries,
        kinds: Kinds,
        cache: WriterCache,
        *,
        adapters: Adapters,
        indexer: Indexer | None,
        documents: DocumentWriter,
        search: SqlSearch,
        settings: SqlSettingWriter,
        backlog: TextBacklog | None = None,
        vectors: SqlVectorWriter | None = None,
        vector_comparer: VectorComparer | None = None,
    ) -> None:
        self.queries = queries
        self.cache = cache
        self.adapters = adapters
        self.indexer = indexer
        self.documents = documents
        # Where the store indexes several commits at once.
        self.backlog = backlog
        self.kinds = kinds
        self.log = SqlLog(queries)
        self.branches = SqlBranches(queries, cache)
        self.records = SqlWriterRecords(queries, kinds, cache)
        self.interner = Interner(queries, cache, self.records)
        self.catalogue = SqlCatalogue(queries, self.records)
        self.listing = SqlListing(queries, self.records)
        self.changes = SqlChanges(queries)
        self.search = search
        self.vectors = vectors or SqlVectorWriter(queries, settings)
        self.vector_comparer = vector_comparer
        self.outbox = SqlOutboxWriter(queries, cache)
        self.settings = settings
        self.requests = SqlRequestWriter(queries)
