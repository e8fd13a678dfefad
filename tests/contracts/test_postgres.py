"""What only the store in PostgreSQL shows: its tables, its ranking, its vectors, its clock."""

from __future__ import annotations

import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from stratagem.engine.lineage import OPEN_END
from stratagem.engine.records import Text
from stratagem.errors import DatabaseTooNew, StorageUnavailable, ValidationFailed
from stratagem.places import display_place
from stratagem.storage.contract import IndexedText, Store, Transaction
from stratagem.storage.postgres import schema
from stratagem.storage.postgres.connection import connect
from stratagem.storage.postgres.rows import encode_numbers
from stratagem.storage.postgres.store import PostgresStore
from stratagem.storage.postgres.terms import text_rows
from tests.contracts.backends import open_postgres, open_sqlite_file
from tests.contracts.samples import (
    MAIN,
    NOTE,
    START,
    TESTER,
    Clock,
    Words,
    a_happening,
    a_note,
    an_erasure,
    append,
    examine,
    fork,
    live,
    matching,
    rebuild,
    text_of,
    view,
)

Opener = Callable[..., PostgresStore]


@pytest.fixture
def opened(tmp_path: Path, postgres_address: str) -> Iterator[Opener]:
    with ExitStack() as stack:

        def open_store(**settings: Any) -> PostgresStore:
            wanted = {"address": postgres_address, **settings}
            store = open_postgres(tmp_path, Clock(), **wanted)
            return stack.enter_context(closing(store))

        yield open_store


@pytest.fixture
def store(opened: Opener) -> PostgresStore:
    return opened()


def behind_its_back(address: str, sql: str, *parameters: object) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            f"SET search_path TO stratagem, public; {sql}".encode(), parameters or None
        )


@pytest.mark.parametrize("numbers", [[], [0], [7, -5, 2**63 - 1, -(2**63)]])
def test_arrays_of_numbers_arrive_as_they_are(postgres_address: str, numbers: list[int]) -> None:
    with connect(postgres_address) as connection:
        given = (encode_numbers(numbers),)
        assert connection.execute("SELECT $1::bigint[]", given).fetchone() == (numbers,)


# What the database, its user, the environment or the address may ask of every connection.
STRANGE_SETTINGS = (
    "?client_encoding=latin1&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
)


class TestSettingsOfOthers:
    """Settings that were made for other programs do not change what is stored."""

    def test_text_is_stored_as_it_is(self, opened: Opener, postgres_address: str) -> None:
        store = opened(address=postgres_address + STRANGE_SETTINGS)
        append(store, a_note("Größe €", "schön"))
        append(store, a_note("Größe €", "schöner €"))

        assert text_of(opened(), "Größe €") == "schöner €"
        assert examine(store) == []

    def test_a_writer_sees_what_was_committed_while_it_waited(
        self, opened: Opener, postgres_address: str
    ) -> None:
        store = opened(address=postgres_address + STRANGE_SETTINGS)
        other = opened()
        with ThreadPoolExecutor(1) as pool:

            def write_between(transaction: Transaction) -> None:
                waiting.append(pool.submit(append, store, a_note("b")))
                until_one_waits_for_a_lock(postgres_address)
                transaction.append(live(transaction, MAIN), [a_note("a")])

            waiting: list[Future[object]] = []
            other.write(write_between, TESTER)
            waiting[0].result()

        assert examine(other) == []

    @pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
    def test_a_database_in_another_encoding_is_used_or_refused_with_the_next_step(
        self, postgres_address: str, encoding: str
    ) -> None:
        with psycopg.connect(postgres_address, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS encoded WITH (FORCE)")
            connection.execute(
                f"CREATE DATABASE encoded ENCODING '{encoding}' TEMPLATE template0".encode()
            )
        store = _open(postgres_address.rpartition("/")[0] + "/encoded")

        with closing(store):
            append(store, a_note("plain", "words"))
            try:
                append(store, a_note("Größe €", "schön"))
            except StorageUnavailable as error:
                assert encoding == "LATIN1"
                assert "ENCODING 'UTF8'" in (error.hint or "")
            else:
                assert text_of(store, "Größe €") == "schön"
            assert text_of(store, "plain") == "words"


def until_one_waits_for_a_lock(address: str) -> None:
    """Wait until a connection waits for one that holds a workspace."""
    deadline = time.monotonic() + 60
    sql = b"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(address, autocommit=True) as connection:
        while time.monotonic() < deadline:
            if connection.execute(sql).fetchone() != (0,):
                return
            time.sleep(0.02)
    raise AssertionError("nobody waits")


class TestRanking:
    def test_scores_are_those_of_the_other_store(self, store: Store, tmp_path: Path) -> None:
        draw = random.Random(5)
        words = [f"w{number}" for number in range(40)]
        notes = [
            a_note(
                f"k{number} {draw.choice(words)}",
                " ".join(draw.choices(words, k=draw.randrange(1, 60))),
            )
            for number in range(200)
        ]
        with closing(open_sqlite_file(tmp_path, Clock())) as other:
            for each in (store, other):
                append(each, *notes)
                append(each, *(an_erasure(note.key or "") for note in notes[::7]))

            answers = [
                ranked(each, words[at : at + 3]) for at in range(30) for each in (store, other)
            ]

        for mine, theirs in zip(answers[::2], answers[1::2], strict=True):
            assert [at for at, _ in mine] == [at for at, _ in theirs]
            assert [score for _, score in mine] == pytest.approx([score for _, score in theirs])

    def test_a_word_may_hold_what_a_query_is_made_of(self, store: Store) -> None:
        odd = ("a|b", "a&b", "!a", "a:*", "(a)", "a<->b", "é", "日本", "a%b", "$1")
        written = {word: append(store, a_note(f"k{place}", word)) for place, word in enumerate(odd)}

        assert {word: matching(store, word) for word in odd} == {
            word: [at] for word, at in written.items()
        }

    def test_a_text_is_counted_by_field(self) -> None:
        document = IndexedText("red fish", ["red red blue", "green"], "fish", None)

        rows = list(text_rows(7, 1, document))

        assert rows[0][:4] == (1, 0, 6, "7:red 7:blue 7:fish")
        assert rows[0].frequencies == '{"red":65538,"blue":1,"fish":65792}'
        assert rows[1][:4] == (1, 1, 4, "7:green 7:red 7:fish")


def ranked(store: Store, words: Sequence[str]) -> list[tuple[int, float]]:
    with store.snapshot() as reader:
        found = reader.search.matches(
            view(reader),
            " OR ".join(f'"{word}"' for word in words),
            weights=(3.0, 1.0, 0.5),
            spaces=None,
            tags=(),
            limit=50,
        )
    return [(sequence, score) for sequence, _, score in found]


class Numbers(Words):
    """Makes vectors of length one, near to each other where texts begin alike."""

    def documents(
        self, texts: Sequence[tuple[Text, Sequence[str]]], *, embed: bool
    ) -> list[IndexedText]:
        made = super().documents(texts, embed=False)
        if not embed:
            return made
        return [each._replace(vector=vector(each.passages[0])) for each in made]


def vector(text: str) -> bytes:
    row = np.random.default_rng(zlib.crc32(text.encode())).normal(size=16)
    return (row / np.linalg.norm(row)).astype(np.float32).tobytes()


class TestVectors:
    @pytest.fixture
    def store(self, opened: Opener) -> PostgresStore:
        store = opened(indexer=Numbers("numbers"))
        store.write(lambda t: t.vectors.change_embedder("numbers"), TESTER)
        append(
            store,
            *(
                a_note(f"k{n}", f"text {n}", tags=["even"] if n % 2 == 0 else [])
                for n in range(300)
            ),
        )
        fork(store, "trial")
        append(store, *(a_note(f"k{n}", f"other {n}") for n in range(0, 300, 3)), branch="trial")
        append(store, *(an_erasure(f"k{n}") for n in range(1, 300, 5)))
        return store

    @pytest.mark.parametrize("indexed", [False, True])
    def test_the_nearest_that_a_view_shows_are_found(
        self, store: PostgresStore, indexed: bool
    ) -> None:
        if indexed:
            assert store.index_vectors(at_least=100)
        question = vector("text 12")

        with store.snapshot() as reader:
            assert reader.vector_comparer is not None
            rows = {row.sequence: row.vector for row in reader.vectors.after(0, 1_000)}
            for branch in ("default", "trial"):
                for tags in ((), ("even",)):
                    shown = view(reader, branch)
                    seen = reader.records.visible_among(shown, list(rows))
                    if tags:
                        seen &= set(reader.search.tagged_versions(tags).tolist())
                    expected = sorted(seen, key=lambda at: (-near(rows[at], question), -at))[:20]
                    found = reader.vector_comparer.nearest(
                        shown, question, spaces=None, tags=tags, depth=20
                    )

                    known = sorted(seen)[::3]
                    compared, cosines = reader.vector_comparer.compare(
                        shown, question, known, spaces=None, tags=tags, depth=20
                    )

                    assert compared == found
                    assert cosines == pytest.approx(
                        {at: near(rows[at], question) for at in known}, abs=1e-5
                    )
                    assert [each.sequence for each in found] == expected
                    assert [each.score for each in found] == pytest.approx(
                        [near(rows[at], question) for at in expected], abs=1e-5
                    )

    def test_few_that_a_filter_leaves_are_all_found(self, store: PostgresStore) -> None:
        store.index_vectors(at_least=100)
        rare = append(store, a_note("rare", "something rare", tags=["rare"]))

        with store.snapshot() as reader:
            assert reader.vector_comparer is not None
            found = reader.vector_comparer.nearest(
                view(reader), vector("x"), spaces=None, tags=["rare"], depth=9
            )
            none = reader.vector_comparer.nearest(
                view(reader), vector("x"), spaces=[], tags=(), depth=9
            )

        assert [each.sequence for each in found] == [rare]
        assert none == []

    def test_cosines_leave_out_what_has_no_vector(self, store: PostgresStore) -> None:
        reader = store.reader()
        assert reader.vector_comparer is not None

        found = reader.vector_comparer.cosines([2, 3, 999_999], vector("text 0"))

        assert set(found) == {2, 3}
        assert found[2] == pytest.approx(1, abs=1e-5)

    def test_another_embedder_of_another_size_can_follow(self, store: PostgresStore) -> None:
        store.index_vectors(at_least=100)

        store.write(lambda t: t.vectors.change_embedder("wider"), TESTER)
        at = store.reader().vectors.pending(1)[0]
        store.write(lambda t: t.vectors.add({at: bytes(4 * 32)}), TESTER)

        reader = store.reader()
        assert reader.vector_comparer is not None
        assert reader.vector_comparer.cosines([at], bytes(4 * 32)) == {at: 0.0}

    def test_few_vectors_get_no_index(self, store: PostgresStore) -> None:
        assert not store.index_vectors(at_least=10_000)


def test_a_new_workspace_is_counted_soon(opened: Opener, postgres_address: str) -> None:
    # In tables of its own: among many rows of others it would be too few to be counted.
    store = opened(address=_create_database(postgres_address, "counted"))

    append(store, *(a_note(f"k{n}", f"text {n}") for n in range(200)))

    # Not counted, a server takes it for nearly empty, and a search for a matter of two rows.
    plan = "EXPLAIN SELECT FROM stratagem.versions WHERE workspace = $1"
    ends = time.monotonic() + 60
    with store.connect() as connection:
        while True:
            line = store.session(connection).execute(plan).fetchall()[0][0]
            expected = int(re.search(r"rows=(\d+)", line)[1])  # type: ignore[index]
            if expected > 100 or time.monotonic() > ends:
                break
            time.sleep(0.05)
    assert 100 < expected < 400


def test_a_commit_is_acknowledged_where_no_thread_can_be_started(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert append(store, *(a_note(f"k{n}", f"text {n}") for n in range(100))) == 101


def near(one: bytes, other: bytes) -> float:
    return float(np.frombuffer(one, np.float32) @ np.frombuffer(other, np.float32))


def _create_database(address: str, name: str) -> str:
    """Create an empty database on the server; return its address."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{address.rpartition('/')[0]}/{name}"


class TestSchema:
    def test_servers_that_start_at_once_make_the_tables_once(self, postgres_address: str) -> None:
        address = _create_database(postgres_address, "fresh")

        with ThreadPoolExecutor(4) as pool:
            stores = list(pool.map(lambda _: _open(address), range(4)))

        heads = {store.reader().log.head() for store in stores}
        for store in stores:
            store.close()
        assert len(heads) == 1

    def test_a_newer_format_is_refused(
        self, opened: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened()
        monkeypatch.setattr(schema, "VERSION", 1)

        with pytest.raises(DatabaseTooNew):
            opened()

    def test_read_models_of_an_older_version_are_made_anew(
        self, opened: Opener, postgres_address: str
    ) -> None:
        store = opened()
        append(store, a_note("k", "red"))
        behind_its_back(
            postgres_address,
            "DELETE FROM versions WHERE workspace = {w};"
            "UPDATE settings SET value = '0'"
            " WHERE workspace = {w} AND name = 'read_models_version'".replace(
                "{w}", str(store.number)
            ),
        )

        again = opened()

        assert text_of(again, "k") == "red"
        assert examine(again) == []

    @pytest.mark.parametrize("version", [9, 10])
    def test_a_workspace_of_a_version_that_knew_fewer_instructions_is_replayed(
        self, opened: Opener, postgres_address: str, version: int
    ) -> None:
        store = opened()
        append(store, a_note("k", "red", tags=["t"]))
        behind_its_back(
            postgres_address,
            "DELETE FROM tags WHERE workspace = {w};"
            "UPDATE settings SET value = '{v}'"
            " WHERE workspace = {w} AND name = 'read_models_version'".replace(
                "{w}", str(store.number)
            ).replace("{v}", str(version)),
        )

        again = opened()

        assert examine(again) == []
        append(again, a_note("k", "blue"))
        assert text_of(again, "k") == "blue"

    def test_a_missing_workspace_is_not_made_by_reading(self, opened: Opener) -> None:
        with pytest.raises(StorageUnavailable, match="does not exist"):
            opened(read_only=True)

    def test_a_workspace_needs_a_name(self, opened: Opener) -> None:
        with pytest.raises(ValidationFailed):
            opened(workspace="a\nb")

    def test_an_address_is_shown_without_its_password(self) -> None:
        place = display_place("postgresql://ada:hunter2@db.example:5433/team?sslmode=require#w")

        assert place == "postgresql://db.example:5433/team#w"


def _open(address: str) -> PostgresStore:
    return open_postgres(Path("fresh"), Clock(), address=address)


DAMAGE = {
    "an altered event": "UPDATE events SET payload = 'x' WHERE workspace = {w} AND seq = 2",
    "a missing event": "DELETE FROM events WHERE workspace = {w} AND seq = 2",
    "an altered hash": "UPDATE events SET hash = 'x' WHERE workspace = {w} AND seq = 3",
    "a lost version": "DELETE FROM versions WHERE workspace = {w} AND seq = 3",
    "a lost text": "DELETE FROM texts WHERE workspace = {w} AND seq = 3",
    "other terms": "UPDATE texts SET terms = 'x' WHERE workspace = {w} AND seq = 3",
    "wrong totals": "UPDATE text_totals SET tokens = 99 WHERE workspace = {w}",
    "a wrong tally": "UPDATE tallies SET live = 9 WHERE workspace = {w}",
    "a branch renamed": "UPDATE branches SET name = 'x' WHERE workspace = {w} AND id = 1",
    "a lost place in the queue": "DELETE FROM unembedded WHERE workspace = {w}",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_whatever_is_altered_behind_its_back_is_found(
    store: PostgresStore, postgres_address: str, what: str
) -> None:
    append(store, a_note("a", "red", tags=["t"]), a_note("b", "blue"), a_happening("dawn"))
    assert examine(store) == []

    behind_its_back(postgres_address, DAMAGE[what].format(w=store.number))
    findings = examine(store)

    assert findings
    if all(each.repairable for each in findings):
        rebuild(store)
        assert examine(store) == []
        assert text_of(store, "b", limit=OPEN_END) == "blue"


def test_the_time_is_the_servers(opened: Opener) -> None:
    behind = Clock(START - 10**15)
    store = opened(server_clock=True)
    store._adapters = store._adapters._replace(clock=behind)  # noqa: SLF001

    append(store, a_note("k", "red"))

    assert store.now() > START - 10**14
    assert store.reader().log.head().at > START - 10**14


class TestTwoWriters:
    """Servers that write to one workspace, each of which remembers its last commit."""

    def test_a_writer_knows_what_others_have_appended_since(self, opened: Opener) -> None:
        ours, theirs = opened(), opened()
        append(ours, a_note("a"))
        trial = fork(ours, "trial")
        append(theirs, a_note("b"))
        theirs.write(lambda t: t.branches.delete(trial), TESTER)

        found = ours.write(lambda t: t.branches.by_name("trial"), TESTER)
        append(ours, a_note("c"), a_note("b"))
        append(theirs, a_note("d"))

        assert found is None
        assert ours.reader().records.count(view(ours.reader()), NOTE) == 4
        assert examine(ours) == []

    def test_a_writer_knows_what_others_have_changed_beside_the_log(self, opened: Opener) -> None:
        ours, theirs = opened(), opened()
        append(ours, a_note("a"))
        theirs.write(lambda t: t.outbox.register("elsewhere", (NOTE,)), TESTER)

        append(ours, a_note("b"))

        assert ours.reader().outbox.count("elsewhere").pending == 1
