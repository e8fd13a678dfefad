"""Reading a log in SQLite: the shared readers over a connection, FTS5, and the file's format."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar, cast

import apsw
import orjson

from stratagem.engine.events import Space
from stratagem.engine.lineage import Lineage, View
from stratagem.engine.records import FACET_MARK, Kinds
from stratagem.storage.contract import ScoredPassage, ScoredPassages, TextTraits, Version
from stratagem.storage.relational.cache import NameCache
from stratagem.storage.relational.reader import SqlReader
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.search import PASSAGE_ROW, TRAITS_ROW, SqlSearch, query_terms
from stratagem.storage.relational.session import Parameter, Queries, Shape, SqlSession
from stratagem.storage.sqlite.connection import DAMAGE, translate_error
from stratagem.storage.sqlite.format import check_format
from stratagem.storage.sqlite.passage_ranking import (
    MATCHES_MAX,
    IndexTotals,
    LengthCache,
    PassageLengths,
    Postings,
    count_passages,
    find_postings,
    rank_passages,
)
from stratagem.storage.sqlite.statements import SQL, STATEMENTS, statement

__all__ = ["FormatGuard", "SqliteSearch", "lookup_reader", "make_queries", "make_reader"]

Q = TypeVar("Q", bound=Queries)

_FORMATS = Shape[tuple[int, int | None]]()
_SETTING = Shape[tuple[str | int | None]]()
_FREQUENCY_ROW = Shape[tuple[str, int]]()
# State that nearly every read asks for and only a commit changes.
_OF_STATE = frozenset(
    SQL[name]
    for name in (
        "any_expires",
        "branch_by_name",
        "head",
        "newest_text",
        "setting",
        "spaces",
        "text_averages",
        "unembedded_count",
        "unindexed_count",
        "vector_last",
        "versions_with_tag",
    )
)
_ANSWERS_MAX = 1_000
# Characters at which FTS5 would split a term of a query, or which it would fold.
_NOT_ONE_TERM = re.compile(r"[\x00-\x20\"'\\`\x7fA-Z]")


def make_queries(connection: apsw.Connection, faults: tuple[type[Exception], ...] = ()) -> Queries:
    """Return the statements of this store over a connection; `faults` are translated."""
    return _make_queries(_CursorQueries, connection, faults)


def _make_queries(
    kind: type[Q], connection: apsw.Connection, faults: tuple[type[Exception], ...]
) -> Q:
    path = connection.filename
    return kind(
        # One cursor for all statements: a connection makes one for each, which takes as long as a
        # small statement does. The driver's own types name only what SQLite can bind. Lists never
        # get there: `array` makes texts of them.
        cast("SqlSession", connection.cursor()),
        STATEMENTS,
        array=_json_array,
        faults=faults,
        translate=lambda error: translate_error(error, path),
    )


def make_reader(connection: apsw.Connection, kinds: Kinds) -> SqlReader:
    """Return a reader of a transaction, whose errors are translated by who began it."""
    queries = make_queries(connection)
    return SqlReader(queries, kinds, NameCache(), search=SqliteSearch(queries))


def lookup_reader(
    connection: apsw.Connection, kinds: Kinds, cache: NameCache, lengths: LengthCache
) -> tuple[SqlReader, FormatGuard]:
    """Return a reader outside of any transaction, which translates each error by itself."""
    queries = _make_queries(_SnapshotQueries, connection, (apsw.Error, *DAMAGE))
    guard = FormatGuard(connection, queries)
    reader = SqlReader(
        queries,
        kinds,
        cache,
        search=SqliteSearch(queries, lengths),
        records=_GuardedRecords(queries, kinds, cache, guard),
    )
    return reader, guard


class _CursorQueries(Queries):
    """Statements that are read to their end, also those of which one row is wanted.

    A cursor with rows left goes on seeing the state of its first one, and would keep writers out.
    """

    __slots__ = ()

    def _fetch_all(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[object, ...]]:
        try:
            return self._execute(sql, parameters).fetchall()
        except self._faults as error:
            raise self._translate(error) from error
        except Exception:
            raise
        except BaseException:
            # Interrupted amid its rows; another statement lets go of the state that it saw.
            self._execute("")
            raise

    def _fetch_one(self, sql: str, parameters: Sequence[Parameter]) -> tuple[object, ...] | None:
        rows = self._fetch_all(sql, parameters)
        return rows[0] if rows else None


class _SnapshotQueries(_CursorQueries):
    """Statements outside of any transaction.

    In a snapshot, the state that nearly every read asks for is read once, until somebody commits.
    """

    __slots__ = ("answers",)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # None outside of snapshots: each statement then sees the newest state.
        self.answers: dict[object, list[tuple[object, ...]]] | None = None

    @property
    def state(self) -> Hashable:
        if self.answers is None:
            return None
        # Texts are only ever added, each with its event, and most events have none. A purge or a
        # repair begins another generation.
        newest = self.value(bytes, "newest_text")
        return None if newest is None else (self.number("setting", "vector_generation"), newest)

    def _fetch_all(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[object, ...]]:
        answers = self.answers
        if answers is None or sql not in _OF_STATE:
            return super()._fetch_all(sql, parameters)
        asked = (sql, parameters)
        if asked not in answers:
            answers[asked] = super()._fetch_all(sql, parameters)
        return answers[asked]


class FormatGuard:
    """Notices that another process has upgraded the file while this one has it open."""

    def __init__(self, connection: apsw.Connection, queries: _SnapshotQueries) -> None:
        self._connection = connection
        self.queries = queries
        # The commit after which the format was last checked.
        self._checked_at = -1
        # Of the state that was seen then.
        self._answers: dict[object, list[tuple[object, ...]]] = {}

    def check(self) -> None:
        """Refuse to read on where a newer Stratagem has upgraded the file since it was opened.

        Raises:
            DatabaseTooNew: It has.
        """
        row = self.queries.row(_FORMATS, "formats")
        assert row is not None, "the statement gives one row"
        check_format(*row, self._connection.filename)
        self._checked_at = self._connection.data_version()

    def check_if_changed(self) -> None:
        """Check again where any connection has committed since the last check."""
        if self._connection.data_version() != self._checked_at:
            self._answers = {}
            self.check()

    def begin_snapshot(self) -> None:
        """Begin to read one state, in the transaction that has begun.

        It ends where the `answers` of the `queries` are None again.

        Raises:
            DatabaseTooNew: A newer Stratagem has upgraded the file since it was opened.
        """
        # A connection learns of others' commits by reading.
        self.queries.row(_SETTING, "setting", "read_models_version")
        self.check_if_changed()
        if len(self._answers) > _ANSWERS_MAX:
            self._answers = {}
        self.queries.answers = self._answers


class _GuardedRecords(SqlRecords):
    """Records outside of any transaction."""

    __slots__ = ("_guard",)

    def __init__(
        self, queries: Queries, kinds: Kinds, cache: NameCache, guard: FormatGuard
    ) -> None:
        super().__init__(queries, kinds, cache)
        self._guard = guard

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        version = super().current(lineage, space, key)
        # Only now: a connection learns of others' commits by reading.
        self._guard.check_if_changed()
        return version


class SqliteSearch(SqlSearch):
    """Full-text search by FTS5; `lengths`, where given, are those of all passages."""

    __slots__ = ("_has_occurrences", "_lengths")

    def __init__(self, queries: Queries, lengths: LengthCache | None = None) -> None:
        super().__init__(queries)
        self._lengths = lengths
        self._has_occurrences = False

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
        name = "all_matches" if limit is None else "matches"
        given = (view.time, expression, limit, *weights)
        sql, parameters = _filter(name, view, given, spaces, tags)
        return self._queries.tuples_of(PASSAGE_ROW, sql, parameters)

    def passages(
        self,
        expression: str,
        *,
        weights: tuple[float, float, float],
        limit: int | None,
        expected: int = 0,
    ) -> ScoredPassages:
        if expected <= MATCHES_MAX:
            ranked = self._rank_by_lengths(query_terms(expression), weights, limit)
            if ranked is not None:
                return ranked
        ranked_by = f"bm25({weights[0]}, {weights[1]}, {weights[2]})"
        if limit is None:
            rows = self._queries.rows(PASSAGE_ROW, "all_passages", expression, ranked_by)
        else:
            rows = self._queries.rows(PASSAGE_ROW, "passages", expression, ranked_by, limit)
        return ScoredPassages.from_rows(rows)

    def _rank_by_lengths(
        self, terms: Sequence[str], weights: tuple[float, float, float], limit: int | None
    ) -> ScoredPassages | None:
        """Return the best passages, ranked here; None where FTS5 has to be asked."""
        lengths = self._current_lengths(terms)
        if lengths is None:
            return None
        occurrences = find_postings(self._queries, terms, self._known_postings())
        return rank_passages(occurrences, weights, lengths, limit)

    def _current_lengths(self, terms: Sequence[str]) -> PassageLengths | None:
        """Return the lengths of all passages; None where some terms have to be asked of FTS5."""
        if self._lengths is None or any(map(_NOT_ONE_TERM.search, terms)):
            return None
        lengths = self._lengths.get(self._queries, IndexTotals.read(self._queries))
        if lengths is not None and not self._has_occurrences:
            self._queries.run("occurrences_table")
            self._has_occurrences = True
        return lengths

    def _known_postings(self) -> Postings:
        assert self._lengths is not None
        return self._lengths.postings.of(self._queries.state)

    def shown_traits(
        self,
        view: View,
        sequences: Sequence[int],
        facet: str,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
    ) -> dict[int, TextTraits]:
        given = (view.time, _json_array(sequences), FACET_MARK + facet, None, None, None)
        sql, parameters = _filter("shown_traits", view, given, spaces, tags)
        rows = self._queries.tuples_of(TRAITS_ROW, sql, parameters)
        return {sequence: (chars, bool(there)) for sequence, chars, there in rows}

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        if self._current_lengths(terms) is not None:
            counts = count_passages(self._queries, terms, self._known_postings())
        others = [term for term in terms if term not in counts]
        if others:
            # As one statement: opening the table of terms takes as long as finding three of them.
            rows = self._queries.rows(_FREQUENCY_ROW, "terms_documents", _json_array(others))
            counts |= dict(rows)
        return counts

    def text_count(self) -> int:
        return IndexTotals.read(self._queries).passages

    def unindexed_count(self) -> int:
        return self._queries.number("unindexed_count")


def _filter(
    name: str,
    view: View,
    given: tuple[Parameter, ...],
    spaces: Sequence[int] | None,
    tags: Sequence[str],
) -> tuple[str, tuple[Parameter, ...]]:
    """Return a statement with its filters, whose parameters follow those that are given."""
    wanted = sorted(set(tags))
    parameters = (*given, _json_array(spaces or ()), _json_array(wanted), len(wanted))
    sql = statement(
        name,
        len(view.lineage),
        len(parameters) + 1,
        spaces=spaces is not None,
        tags=bool(tags),
    )
    return sql, parameters + view.lineage.numbers


def _json_array(items: Sequence[int] | Sequence[str]) -> str:
    """Return items as `json_each` takes them apart again: SQLite has no arrays."""
    return orjson.dumps(list(items)).decode()
