"""Reading a log in PostgreSQL: the shared readers, ranking by BM25, and pgvector."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, cast

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Head, Space
from stratagem.engine.lineage import View
from stratagem.engine.records import FACET_MARK, Kinds
from stratagem.storage.contract import (
    ScoredPassage,
    ScoredPassages,
    ScoredVersion,
    TextTraits,
    VectorRow,
)
from stratagem.storage.postgres.connection import PostgresCursor
from stratagem.storage.postgres.rows import StoredVector, encode_numbers
from stratagem.storage.postgres.statements import SQL, STATEMENTS, statement
from stratagem.storage.postgres.terms import term_query
from stratagem.storage.relational.cache import NameCache
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.reader import SqlReader
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.search import PASSAGE_ROW, TRAITS_ROW, SqlSearch, query_terms
from stratagem.storage.relational.session import Parameter, Queries, Shape, SqlSession
from stratagem.storage.relational.settings import SqlSettings
from stratagem.storage.relational.vectors import SqlVectors

__all__ = [
    "VECTOR_INDEX",
    "FacetCache",
    "PostgresSearch",
    "PostgresVectorComparer",
    "WorkspaceSession",
    "make_queries",
    "make_reader",
    "make_snapshot_reader",
    "read_vectors",
]

# The versions with a facet, by the facet and how many were asked for, in the last state that was
# looked at: the hash of its newest event, and the generation, which a repair counts up.
FacetCache = dict[tuple[str, int], tuple[object, list[int]]]

_FACETS_MAX = 16
_COSINE_ROW = Shape[tuple[int, float]]()
_COMPARED_ROW = Shape[tuple[int, float, int]]()

# How near a vector is by each metric: higher is nearer.
_SCORES = {
    "cosine": "1 - (x.vector <=> $7::vector)",
    "euclidean": "-(x.vector <-> $7::vector)",
    "dot": "-(x.vector <#> $7::vector)",
}
# The kinds of row: the similarity of a named text, one of the nearest texts, or the number
# compared.
_KNOWN, _NEAREST, _LOOKED_FOR = 0, 1, 2
# How many times the wanted number are looked for before it is known which of them a view shows.
_COMPARED_FIRST = 5
# The setting that says for how many dimensions the workspace has an index of its own.
VECTOR_INDEX = "vector_index"
_STATE_SETTINGS = ("embedder", VECTOR_INDEX, "vector_generation")


class WorkspaceSession(SqlSession, Protocol):
    """A session whose statements are all about one workspace."""

    workspace: int

    def execute(
        self, sql: str, parameters: Sequence[Parameter] = ..., /, *, binary: bool = ...
    ) -> PostgresCursor:
        """Run one statement; its values come in the server's own form where `binary`."""
        ...


def make_queries(session: WorkspaceSession) -> Queries:
    """Return the statements of this store over a session."""
    return Queries(session, STATEMENTS, array=_array)


def make_reader(session: WorkspaceSession, kinds: Kinds, cache: NameCache) -> SqlReader:
    """Return a reader over a session."""
    queries = make_queries(session)
    return SqlReader(
        queries,
        kinds,
        cache,
        search=PostgresSearch(queries, session.workspace),
        vectors=PostgresVectors(queries, session),
        vector_comparer=PostgresVectorComparer(queries, SqlSettings(queries), session.workspace),
    )


def make_snapshot_reader(
    session: WorkspaceSession, kinds: Kinds, cache: NameCache, facets: FacetCache
) -> SqlReader:
    """Return a reader over a session whose transaction sees one state and only reads."""
    queries = make_queries(session)
    state = _SnapshotState(queries)
    settings = _SnapshotSettings(queries, state)
    reader = SqlReader(
        queries,
        kinds,
        cache,
        search=_SnapshotSearch(queries, session.workspace, state, facets),
        vectors=_SnapshotVectors(queries, session, state),
        vector_comparer=PostgresVectorComparer(queries, settings, session.workspace),
        records=_SnapshotRecords(queries, kinds, cache, state),
    )
    reader.settings = settings
    reader.log = _SnapshotLog(queries, state)
    return reader


def _array(items: Sequence[int] | Sequence[str]) -> Parameter:
    # What an empty one holds is not known here; the driver leaves that to the statement.
    if items and isinstance(items[0], int):
        return encode_numbers(cast("Sequence[int]", items))
    return [*items]


class PostgresSearch(SqlSearch):
    """Full-text search by an inverted index, ranked by BM25 in SQL."""

    __slots__ = ("_workspace",)

    def __init__(self, queries: Queries, workspace: int) -> None:
        super().__init__(queries)
        self._workspace = workspace

    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int | None,
    ) -> list[ScoredPassage]:
        terms = query_terms(expression)
        if not terms:
            return []
        sql = _ranking_statement(
            "matches", len(view.lineage), len(terms), spaces=spaces is not None, tags=bool(tags)
        )
        parameters = (
            view.time,
            limit,
            *_filters(spaces, tags),
            term_query(self._workspace, terms),
            *map(float, weights),
            *view.lineage.numbers,
            *terms,
        )
        return self._queries.tuples_of(PASSAGE_ROW, sql, parameters)

    def passages(
        self,
        expression: str,
        *,
        weights: tuple[float, float, float],
        limit: int | None,
        expected: int = 0,  # noqa: ARG002 -- the server ranks by itself
    ) -> ScoredPassages:
        terms = query_terms(expression)
        if not terms:
            return ScoredPassages.from_rows(())
        sql = _ranking_statement("passages", 0, len(terms), spaces=False, tags=False)
        asked = term_query(self._workspace, terms)
        parameters = (0, limit, *_filters(None, ()), asked, *map(float, weights), *terms)
        rows = self._queries.tuples_of(PASSAGE_ROW, sql, parameters)
        return ScoredPassages.from_rows(rows)

    def shown_traits(
        self,
        view: View,
        sequences: Sequence[int],
        facet: str,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
    ) -> dict[int, TextTraits]:
        given = (view.time, encode_numbers(sequences), *_filters(spaces, tags), FACET_MARK + facet)
        sql = statement(
            "shown_traits",
            len(view.lineage),
            len(given) + 1,
            spaces=spaces is not None,
            tags=bool(tags),
        )
        rows = self._queries.tuples_of(TRAITS_ROW, sql, (*given, *view.lineage.numbers))
        return {sequence: (chars, bool(there)) for sequence, chars, there in rows}

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        return {
            term: self._queries.number("term_documents", term_query(self._workspace, [term]))
            for term in terms
        }

    def text_count(self) -> int:
        return self._queries.number("text_totals")


class PostgresVectors(SqlVectors):
    """Vectors in columns of pgvector."""

    __slots__ = ("_session",)

    def __init__(self, queries: Queries, session: WorkspaceSession) -> None:
        super().__init__(queries)
        self._session = session

    def after(self, last: int, limit: int) -> list[VectorRow]:
        return read_vectors(self._session, last, limit)


def read_vectors(session: WorkspaceSession, last: int, limit: int) -> list[VectorRow]:
    """Return the vectors of a workspace after one, as this machine has them."""
    cursor = session.execute(SQL["vectors_after"], (last, limit), binary=True)
    rows = cast("list[tuple[int, int, int, int, int | None, bytes]]", cursor.fetchall())
    return [VectorRow(*row[:5], _from_pgvector(row[5]), 1.0) for row in rows]


class _StateRow(NamedTuple):
    """What nearly every search asks of a workspace."""

    settings: Mapping[str, str | int | None] | None
    spaces: Sequence[tuple[int, str, str]] | None
    texts: int | None
    unembedded: int
    vector_last: int | None
    any_expires: bool
    sequence: int
    at: int
    hash: bytes


class _SnapshotState:
    """The state that a snapshot sees, read by one statement when any of it is first asked for."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        # The row, once it was read; a caller that needs only one field of it may read that alone
        # before.
        self.known: _StateRow | None = None

    @property
    def row(self) -> _StateRow:
        """What was read."""
        if self.known is None:
            self.known = self._queries.row_as(_StateRow, "snapshot_state")
            assert self.known is not None, "a log has a first event"
        return self.known


class _SnapshotLog(SqlLog):
    """The log that a snapshot sees."""

    __slots__ = ("_state",)

    def __init__(self, queries: Queries, state: _SnapshotState) -> None:
        super().__init__(queries)
        self._state = state

    def head(self) -> Head:
        row = self._state.known
        return super().head() if row is None else Head(row.sequence, row.at, row.hash)


class _SnapshotSettings(SqlSettings):
    """The settings that a snapshot sees."""

    __slots__ = ("_state",)

    def __init__(self, queries: Queries, state: _SnapshotState) -> None:
        super().__init__(queries)
        self._state = state

    def _read(self, name: str) -> str | int | None:
        if name in _STATE_SETTINGS:
            return (self._state.row.settings or {}).get(name)
        return super()._read(name)


class _SnapshotSearch(PostgresSearch):
    """The full-text index as a snapshot sees it."""

    __slots__ = ("_facets", "_state")

    def __init__(
        self, queries: Queries, workspace: int, state: _SnapshotState, facets: FacetCache
    ) -> None:
        super().__init__(queries, workspace)
        self._state = state
        self._facets = facets

    def text_count(self) -> int:
        return self._state.row.texts or 0

    def versions_with_facet(self, facet: str, limit: int) -> list[int]:
        row = self._state.known
        if row is None:
            return super().versions_with_facet(facet, limit)
        state = (row.hash, (row.settings or {}).get("vector_generation"))
        known = self._facets.get((facet, limit))
        if known is None or known[0] != state:
            known = (state, super().versions_with_facet(facet, limit))
            if len(self._facets) >= _FACETS_MAX:
                self._facets.clear()
            self._facets[facet, limit] = known
        return known[1]


class _SnapshotVectors(PostgresVectors):
    """The vectors that a snapshot sees."""

    __slots__ = ("_state",)

    def __init__(self, queries: Queries, session: WorkspaceSession, state: _SnapshotState) -> None:
        super().__init__(queries, session)
        self._state = state

    def pending_count(self) -> int:
        return self._state.row.unembedded

    def last(self) -> int | None:
        return self._state.row.vector_last


class _SnapshotRecords(SqlRecords):
    """The records that a snapshot sees."""

    __slots__ = ("_state",)

    def __init__(
        self, queries: Queries, kinds: Kinds, cache: NameCache, state: _SnapshotState
    ) -> None:
        super().__init__(queries, kinds, cache)
        self._state = state

    def spaces(self, kind: str | None = None) -> dict[int, Space]:
        return {
            number: Space(of, namespace)
            for number, of, namespace in self._state.row.spaces or ()
            if kind is None or of == kind
        }

    def any_expires(self) -> bool:
        row = self._state.known
        return super().any_expires() if row is None else row.any_expires


class PostgresVectorComparer:
    """See `stratagem.storage.contract.VectorComparer`: pgvector compares."""

    def __init__(self, queries: Queries, settings: SqlSettings, workspace: int) -> None:
        self._queries = queries
        self._settings = settings
        self._workspace = workspace

    def nearest(
        self,
        view: View,
        query: bytes,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> list[ScoredVersion]:
        filters = {"spaces": spaces is not None, "tags": bool(tags)}
        vector = StoredVector(query)
        given = (view.time, depth, *_filters(spaces, tags), vector)
        parameters = (*given, *view.lineage.numbers)
        dimensions = len(vector) // 4
        if self._settings.number(VECTOR_INDEX) == dimensions:
            sql = statement("nearest_indexed", len(view.lineage), len(given) + 1, **filters)
            sql = sql.replace("{workspace}", str(self._workspace))
            sql = sql.replace("{dimensions}", str(dimensions))
            found = self._queries.rows_of(ScoredVersion, sql, parameters)
            if len(found) >= depth:
                return found
            # The filters leave little: the index gave up looking for it, and comparing is quick.
        sql = statement("nearest_exact", len(view.lineage), len(given) + 1, **filters)
        return self._queries.rows_of(ScoredVersion, sql, parameters)

    def compare(
        self,
        view: View,
        query: bytes,
        known: Sequence[int],
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> tuple[list[ScoredVersion], dict[int, float]]:
        vector = StoredVector(query)
        if self._settings.number(VECTOR_INDEX) == len(vector) // 4:
            near = self.nearest(view, query, spaces=spaces, tags=tags, depth=depth)
            return near, self.cosines(known, query)
        if spaces is None and not tags:
            compared = self._compare_first(view, vector, known, depth)
            if compared is not None:
                return compared
        given = (view.time, depth, *_filters(spaces, tags), vector, encode_numbers(known))
        filters = {"spaces": spaces is not None, "tags": bool(tags)}
        sql = statement("compared_exact", len(view.lineage), len(given) + 1, **filters)
        rows = self._queries.tuples_of(_COMPARED_ROW, sql, (*given, *view.lineage.numbers))
        return _rank_nearest(rows), _cosines_of_named(rows)

    def _compare_first(
        self, view: View, vector: StoredVector, known: Sequence[int], depth: int
    ) -> tuple[list[ScoredVersion], dict[int, float]] | None:
        """Return the same for all spaces; None where a view hides too many of the nearest."""
        given = (view.time, depth, vector, encode_numbers(known))
        sql = statement("compared_first", len(view.lineage), len(given) + 1)
        rows = self._queries.tuples_of(_COMPARED_ROW, sql, (*given, *view.lineage.numbers))
        nearest = _rank_nearest(rows)
        looked_for = next(at for at, _, role in rows if role == _LOOKED_FOR)
        if len(nearest) < depth and looked_for == _COMPARED_FIRST * depth:
            return None
        return nearest, _cosines_of_named(rows)

    def nearest_own(
        self,
        view: View,
        query: bytes,
        *,
        space: int,
        metric: str,
        among: Sequence[int] | None,
        depth: int,
    ) -> list[ScoredVersion]:
        given = (
            view.time,
            depth,
            *_filters([space], ()),
            StoredVector(query),
            encode_numbers(among or ()),
        )
        sql = statement("nearest_own", len(view.lineage), len(given) + 1, spaces=True, tags=False)
        # Vectors of a collection that had the name before may have another length.
        sql = sql.replace("{dimension}", str(len(query) // 4))
        sql = sql.replace("{score}", _SCORES[metric])
        sql = sql.replace("{among}", "" if among is None else "AND x.seq = ANY ($8::bigint[])")
        if among is None:
            # Every parameter has to occur in the statement.
            sql = sql.replace("LIMIT $3", "LIMIT $3 + 0 * cardinality($8::bigint[])")
        return self._queries.rows_of(ScoredVersion, sql, (*given, *view.lineage.numbers))

    def cosines(self, sequences: Sequence[int], query: bytes) -> dict[int, float]:
        rows = self._queries.rows(
            _COSINE_ROW, "cosines", encode_numbers(sequences), StoredVector(query)
        )
        return dict(rows)


def _rank_nearest(rows: Sequence[tuple[int, float, int]]) -> list[ScoredVersion]:
    """Return the nearest of what was compared, nearest first."""
    nearest = [ScoredVersion(at, cosine) for at, cosine, role in rows if role == _NEAREST]
    return sorted(nearest, key=lambda each: (-each.score, -each.sequence))


def _cosines_of_named(rows: Sequence[tuple[int, float, int]]) -> dict[int, float]:
    """Return how near the texts are that were known before."""
    return {at: cosine for at, cosine, role in rows if role == _KNOWN}


def _from_pgvector(sent: bytes) -> StoredVector:
    """Return a vector as this machine has it, from the form that pgvector sends it in."""
    numbers = array("f", sent[4:])
    if sys.byteorder == "little":
        numbers.byteswap()
    return StoredVector(numbers.tobytes())


@cache
def _ranking_statement(name: str, depth: int, terms: int, *, spaces: bool, tags: bool) -> str:
    """Return the statement of a name that ranks texts by some number of terms."""
    sql = statement(name, depth, 10, spaces=spaces, tags=tags)
    first = 10 + 2 * depth
    numbers = range(terms)
    frequencies = (
        SQL["term_frequency"].format(number=at, term=STATEMENTS.parameter(first + at))
        for at in numbers
    )
    rarities = (SQL["term_rarity"].format(number=at) for at in numbers)
    scores = (
        SQL["term_score"].format(number=at, weight=SQL["term_weight"].format(number=at))
        for at in numbers
    )
    sql = sql.replace("{frequencies}", ", ".join(frequencies))
    sql = sql.replace("{rarities}", ", ".join(rarities))
    return sql.replace("{score}", " + ".join(scores))


def _filters(spaces: Sequence[int] | None, tags: Sequence[str]) -> tuple[Parameter, Parameter, int]:
    """Return the parameters of the filters; a number where there is none, which has a type."""
    wanted = sorted(set(tags))
    return (0 if spaces is None else encode_numbers(spaces), wanted or 0, len(wanted))
