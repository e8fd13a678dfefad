"""Passages that are ranked in memory are those that FTS5 ranks best, with the same scores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import stratagem
from stratagem.function_cache import clear_text_caches
from stratagem.storage.contract import ScoredPassages
from stratagem.storage.relational.session import Queries
from stratagem.storage.sqlite import passage_ranking
from stratagem.storage.sqlite.passage_ranking import (
    MATCHES_MAX,
    IndexTotals,
    LengthCache,
    PassageLengths,
    PostingCache,
)
from stratagem.storage.sqlite.reader import SqliteSearch, make_queries
from stratagem.storage.sqlite.statements import SQL
from stratagem.storage.sqlite.store import SqliteStore

WORDS = [f"w{number}" for number in range(60)]
WEIGHTS = [(3.0, 1.0, 0.5), (1.0, 1.0, 1.0), (2.3, 0.7, 0.1)]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = apsw.Connection(str(tmp_path / "texts.db"))
    opened.execute(
        "CREATE VIRTUAL TABLE texts USING fts5 (title, body, context, content = '', "
        "contentless_delete = 1, tokenize = 'ascii')"
    )
    opened.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value ANY)")
    yield opened
    opened.close()


@pytest.fixture
def handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[stratagem.Stratagem, stratagem.Stratagem]]:
    """One database of five texts about ferries, opened twice, that ranks in memory at once."""
    monkeypatch.setattr(passage_ranking, "_SEARCHES_BEFORE_KEPT", 0)
    path = str(tmp_path / "m.db")
    with (
        stratagem.open(path, embedder="none") as db,
        stratagem.open(path, embedder="none") as other,
    ):
        db.memory.store(
            items=[{"key": f"k{number}", "value": "The ferry waits"} for number in range(5)]
        )
        yield db, other


def _fill(connection: apsw.Connection, draw: random.Random, sequences: range) -> None:
    def words(most: int) -> str:
        # The first ones are in nearly every text.
        return " ".join(WORDS[int(60 * draw.random() ** 3)] for _ in range(draw.randint(0, most)))

    with connection:
        for sequence in sequences:
            for passage in range(draw.choice((1, 1, 1, 4))):
                # Some longer than a byte can say.
                row = (sequence, passage, words(3), words(draw.choice((5, 30, 300))), words(5))
                connection.execute(SQL["insert_text"], row)


def _columns(found: ScoredPassages) -> list[list[float]]:
    return [column.tolist() for column in found]


def _searches(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> list[SqliteSearch]:
    """Return a search that asks FTS5, and one that ranks by itself from the first time."""
    monkeypatch.setattr(passage_ranking, "_SEARCHES_BEFORE_KEPT", 0)
    queries = make_queries(connection)
    return [SqliteSearch(queries), SqliteSearch(queries, LengthCache())]


def _assert_alike(searches: list[SqliteSearch], draw: random.Random) -> None:
    for _ in range(12):
        terms = draw.sample([*WORDS, "unknown"], draw.randint(1, 6))
        expression = " OR ".join(f'"{term}"' for term in terms)
        for limit in (None, 1, 10, 10_000):
            by_fts, by_us = (
                search.passages(expression, weights=draw.choice(WEIGHTS[:1]), limit=limit)
                for search in searches
            )
            assert _columns(by_us) == _columns(by_fts)


def test_what_is_ranked_here_is_what_fts5_ranks(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(7)
    searches = _searches(connection, monkeypatch)
    for begin in (1, 200, 230):
        _fill(connection, draw, range(begin, begin + (30 if begin > 1 else 199)))
        _assert_alike(searches, draw)
    # They were read: it was not FTS5 that ranked twice.
    assert connection.execute("SELECT count(*) FROM temp.sqlite_schema").fetchall() == [(1,)]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_any_weights_give_the_same_scores(
    connection: apsw.Connection,
    monkeypatch: pytest.MonkeyPatch,
    weights: tuple[float, float, float],
) -> None:
    _fill(connection, random.Random(3), range(1, 150))
    by_fts, by_us = (
        search.passages('"w0" OR "w2" OR "w9"', weights=weights, limit=None)
        for search in _searches(connection, monkeypatch)
    )

    assert len(by_us.scores) > 100
    assert _columns(by_us) == _columns(by_fts)


def test_an_empty_index_has_nothing_to_rank(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    _assert_alike(_searches(connection, monkeypatch), random.Random(1))


def test_passages_that_are_deleted_are_not_ranked(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)
    _fill(connection, draw, range(1, 100))
    searches = _searches(connection, monkeypatch)
    _assert_alike(searches, draw)
    connection.execute("DELETE FROM texts WHERE rowid >> 8 IN (20, 30, 99)")

    _assert_alike(searches, draw)


def test_a_reader_of_an_earlier_state_ranks_what_it_sees(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_ranking, "_SEARCHES_BEFORE_KEPT", 0)
    draw = random.Random(5)
    connection.pragma("journal_mode", "wal")
    _fill(connection, draw, range(1, 100))
    shared = LengthCache()
    earlier = apsw.Connection(connection.filename)
    earlier.execute("BEGIN")
    before, now = (make_queries(each) for each in (earlier, connection))
    _assert_alike([SqliteSearch(before), SqliteSearch(before, shared)], draw)
    _fill(connection, draw, range(100, 120))

    for queries in (now, before, now):
        _assert_alike([SqliteSearch(queries), SqliteSearch(queries, shared)], draw)
    earlier.close()


def test_lengths_are_kept_by_who_searches_often(connection: apsw.Connection) -> None:
    _fill(connection, random.Random(5), range(1, 20))
    queries = make_queries(connection)
    cache = LengthCache()
    kept = [_is_kept(cache, queries) for _ in range(20)]

    assert kept == [False] * 16 + [True] * 4
    _fill(connection, random.Random(5), range(20, 22))
    assert _is_kept(cache, queries)


def _is_kept(cache: LengthCache, queries: Queries) -> bool:
    return cache.get(queries, IndexTotals.read(queries)) is not None


def test_terms_that_fts5_takes_apart_are_left_to_it(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(SQL["insert_text"], (1, 0, "", "red fish", ""))
    for expression in ('"red\'fish"', '"Red"', '"red fish"'):
        by_fts, by_us = (
            search.passages(expression, weights=WEIGHTS[0], limit=9)
            for search in _searches(connection, monkeypatch)
        )
        assert _columns(by_us) == _columns(by_fts)
        assert len(by_us.scores) == 1


def test_matches_that_would_take_much_memory_are_ranked_by_fts5(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(connection, random.Random(5), range(1, 20))
    _, search = _searches(connection, monkeypatch)
    reads_occurrences = []
    for expected in (MATCHES_MAX + 1, MATCHES_MAX):
        search.passages('"w0"', weights=WEIGHTS[0], limit=9, expected=expected)
        tables = connection.execute("SELECT name FROM temp.sqlite_schema").fetchall()
        reads_occurrences.append(tables == [("occurrences",)])

    assert reads_occurrences == [False, True]


@pytest.mark.parametrize("embedder", ["none", "static"])
def test_a_search_tells_how_many_matches_it_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str
) -> None:
    told: list[tuple[str, int]] = []
    find = SqliteSearch.passages

    def note_expected(search: SqliteSearch, expression: str, **given: Any) -> ScoredPassages:
        told.append((expression, given["expected"]))
        return find(search, expression, **given)

    monkeypatch.setattr(SqliteSearch, "passages", note_expected)
    with stratagem.open(str(tmp_path / "m.db"), embedder=embedder) as db:
        texts = {f"k{number}": "The ferry waits" for number in range(250)}
        texts["rare"] = "A zebra waits for the ferry"
        db.memory.store(items=[{"key": key, "value": text} for key, text in texts.items()])
        db.memory.search("ferry")
        # Too few have the rare word, so that the common one is asked for, too.
        db.memory.search("ferry zebra")

    assert told[0] == ('"ferri"', 251)
    assert ('"zebra"', 1) in told
    assert told[-1][0] == '"ferri" OR "zebra"'
    assert told[-1][1] >= 252


def test_lengths_of_before_a_purge_are_not_used_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_ranking, "_SEARCHES_BEFORE_KEPT", 0)
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        first, *_ = [
            db.memory.log("message", {"role": "user", "content": "The ferry waits"}, session="s")
            for _ in range(4)
        ]
        # Indexes what a burst has left.
        db.memory.search("ferry")
        before = _totals_of(db)
        _assert_ranked_as_by_fts5(db)
        # It is the context of what follows, which so has other lengths.
        db.memory.purge(sequence=first.sequence)
        missing = before.terms - _totals_of(db).terms
        for length in range(1, missing + 1):
            db.memory.store("k", "zebra " * length)
            if _totals_of(db) == before:
                break
            db.memory.purge("k")

        assert _totals_of(db) == before
        _assert_ranked_as_by_fts5(db)


def _queries_of(db: stratagem.Stratagem) -> Queries:
    store = db.runtime.foundation.store
    assert isinstance(store, SqliteStore)
    return make_queries(store.thread_connection())


def _totals_of(db: stratagem.Stratagem) -> IndexTotals:
    return IndexTotals.read(_queries_of(db))


def _assert_ranked_as_by_fts5(db: stratagem.Stratagem) -> None:
    with db.runtime.foundation.store.snapshot() as reader:
        by_fts, by_us = (
            search.passages('"ferri" OR "wait"', weights=WEIGHTS[0], limit=None)
            for search in (SqliteSearch(_queries_of(db)), reader.search)
        )
    assert len(by_us.scores) >= 3
    assert _columns(by_us) == _columns(by_fts)


def test_occurrences_of_one_state_are_not_used_in_another(
    handles: tuple[stratagem.Stratagem, stratagem.Stratagem],
) -> None:
    db, other = handles

    _assert_ranked_as_by_fts5(db)
    other.memory.store("new", "Ferries wait and wait")
    _assert_ranked_as_by_fts5(db)
    db.memory.purge("k1")
    _assert_ranked_as_by_fts5(db)
    _assert_ranked_as_by_fts5(other)


def test_an_earlier_snapshot_keeps_its_own_occurrences(
    handles: tuple[stratagem.Stratagem, stratagem.Stratagem],
) -> None:
    db = handles[0]

    with (
        ThreadPoolExecutor(1) as another_thread,
        db.runtime.foundation.store.snapshot() as earlier,
    ):
        for _ in range(2):
            assert earlier.search.document_frequencies(["ferri"]) == {"ferri": 5}
            another_thread.submit(db.memory.store, "new", "Another ferry").result()
            another_thread.submit(_assert_ranked_as_by_fts5, db).result()
            found = earlier.search.passages('"ferri"', weights=WEIGHTS[0], limit=None)
            assert len(found.scores) == 5


@pytest.mark.parametrize("generation", [None, 7, 2**63 - 1, -1])
def test_occurrences_in_a_damaged_index_are_not_used_after_its_repair(
    tmp_path: Path,
    handles: tuple[stratagem.Stratagem, stratagem.Stratagem],
    generation: object,
) -> None:
    with closing(apsw.Connection(str(tmp_path / "m.db"))) as damaged:
        # A number that is not sealed, and a text that cannot be found.
        damaged.execute("INSERT INTO settings VALUES ('vector_generation', ?)", (generation,))
        damaged.execute("DELETE FROM texts WHERE rowid = (SELECT min(rowid) FROM texts)")
    assert [_count_ferries(each) for each in handles] == [4, 4]

    handles[0].runtime.foundation.store.repair(lambda _done, _total, _what: None)

    assert [_count_ferries(each) for each in handles] == [5, 5]


def _count_ferries(db: stratagem.Stratagem) -> int:
    with db.runtime.foundation.store.snapshot() as reader:
        found = reader.search.passages('"ferri"', weights=WEIGHTS[0], limit=None)
    return len(found.scores)


@pytest.mark.parametrize("read_whole_max", [0, 100_000])
@pytest.mark.parametrize("counted_max", [1, 20, 10_000])
def test_passages_with_a_term_are_counted_as_by_fts5(
    connection: apsw.Connection,
    monkeypatch: pytest.MonkeyPatch,
    counted_max: int,
    read_whole_max: int,
) -> None:
    monkeypatch.setattr(passage_ranking, "_COUNTED_MAX", counted_max)
    monkeypatch.setattr(passage_ranking, "_READ_WHOLE_MAX", read_whole_max)
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (texts, row)")
    _fill(connection, random.Random(5), range(1, 100))
    connection.execute("DELETE FROM texts WHERE rowid >> 8 IN (20, 30, 99)")
    by_fts, by_us = (
        search.document_frequencies([*WORDS, "unknown"])
        for search in _searches(connection, monkeypatch)
    )

    assert by_us == by_fts
    assert by_us["w0"] > 20


def test_a_purge_drops_the_terms_that_were_asked_for() -> None:
    cache = PostingCache()
    cache.of("state").add({"secret": np.zeros(1, np.int64)})

    clear_text_caches()

    assert not cache.of("state")


def test_occurrences_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_ranking, "_POSTING_BYTES_MAX", 600)
    kept = PostingCache().of("state")

    for _ in range(10):
        kept.add({"few": np.zeros(10, np.int64)})
    assert list(kept) == ["few"]
    kept.add({"more": np.zeros(10, np.int64)})
    assert list(kept) == ["more"]
    kept.add({"too many": np.zeros(100, np.int64)})
    assert not kept


def test_occurrences_that_were_used_last_are_kept_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_ranking, "_POSTING_BYTES_MAX", 1_000)
    kept = PostingCache().of("state")

    for term in ("first", "second", "third"):
        kept.add({term: np.zeros(0, np.int64)})
    assert list(kept.use(["first", "unknown"])) == ["first"]
    kept.add({"fourth": np.zeros(0, np.int64)})

    assert list(kept) == ["third", "first", "fourth"]


def test_occurrences_are_kept_until_a_text_comes(
    handles: tuple[stratagem.Stratagem, stratagem.Stratagem], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, other = handles
    read: list[str] = []
    statement = Queries.rows

    def listed(queries: Queries, shape: Any, name: str, *given: Any) -> list[Any]:
        if name == "occurrences":
            read.append(given[0])
        return statement(queries, shape, name, *given)

    monkeypatch.setattr(Queries, "rows", listed)
    _assert_ranked_as_by_fts5(db)
    other.branches.create("elsewhere")
    _assert_ranked_as_by_fts5(db)
    assert len(read) == 1
    other.memory.store("new", "Another text")
    _assert_ranked_as_by_fts5(db)
    assert len(read) == 2


def test_terms_that_occur_nowhere_are_kept_up_to_a_size() -> None:
    cache = PostingCache()
    most = 0

    for number in range(30_000):
        cache.of("state").add({f"nowhere{number}": np.zeros(0, np.int64)})
        most = max(most, len(cache.of("state")))

    assert 1_000 < most < 30_000


@pytest.mark.parametrize("sizes", [b"\xff\xff\xff\xff\xff\x7f", b"\xff", None, "text", 7])
def test_damaged_lengths_are_left_to_fts5(connection: apsw.Connection, sizes: object) -> None:
    _fill(connection, random.Random(5), range(1, 20))
    connection.execute("UPDATE texts_docsize SET sz = ? WHERE id = 256 * 3", (sizes,))
    queries = make_queries(connection)

    assert PassageLengths.read(queries, IndexTotals.read(queries), 0) is None


@pytest.mark.parametrize("record", [b"", b"\xff", b"\xff\xff\xff"])
def test_a_damaged_record_of_totals_says_that_there_is_nothing(
    connection: apsw.Connection, record: bytes
) -> None:
    connection.execute("UPDATE texts_data SET block = ? WHERE id = 1", (record,))

    assert IndexTotals.read(make_queries(connection)) == (0, 0)
