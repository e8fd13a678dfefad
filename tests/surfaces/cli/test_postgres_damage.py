"""doctor, export and backup of a damaged database on a PostgreSQL server."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

import stratagem
from stratagem.storage.postgres.store import PostgresStore
from tests.postgres import Server, a_workspace
from tests.surfaces.cli.console import Cli

READ_MODELS = {
    "a lost version": "DELETE FROM versions WHERE workspace = {w} AND seq = 3",
    "a lost text": "DELETE FROM texts WHERE workspace = {w} AND seq = 3",
    "a wrong tally": "UPDATE tallies SET live = 9 WHERE workspace = {w}",
}
ALTERED = (
    'UPDATE events SET payload = \'{{"value": "Paris"}}\'::bytea WHERE workspace = {w} AND seq = 3'
)


class Damaged:
    """A workspace of a server, as the command line and as its administrator see it."""

    def __init__(self, cli: Cli, address: str, *, keys: int = 5, embedder: str = "none") -> None:
        self._cli = cli
        self._address = address
        self._workspace = a_workspace()
        self.place = f"{address}#{self._workspace}"
        with stratagem.open(self.place, embedder=embedder) as db:
            for number in range(keys):
                db.memory.store(f"city {number}", f"Oslo {number}")
            db.runtime.foundation.index.embed_waiting(lambda *_: None)
            if keys > 5:
                db.memory.store("long", " ".join(f"word{number}" for number in range(4_000)))

    def index_vectors(self) -> None:
        """Give the workspace the index that one with many vectors has."""
        with stratagem.open(self.place) as db:
            store = db.runtime.foundation.store
            assert isinstance(store, PostgresStore)
            assert store.index_vectors(at_least=1)

    def damage(self, statement: str) -> None:
        """Change what is stored, past the store."""
        with psycopg.connect(self._address) as connection:
            connection.execute("SET search_path TO stratagem")
            found = connection.execute(
                "SELECT id FROM workspaces WHERE name = %s", (self._workspace,)
            ).fetchone()
            assert found is not None
            assert connection.execute(statement.format(w=found[0])).rowcount > 0

    @contextmanager
    def without_upkeep(self, *indexes: str) -> Iterator[None]:
        """Have the server leave indexes as they are, whatever is written to their tables."""
        change = "UPDATE pg_index SET indisready = %s WHERE indexrelid = ANY(%s::regclass[])"
        names = [f"stratagem.{index}" for index in indexes]
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(change, (False, names))
            yield
            connection.execute(change, (True, names))

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and whatever it printed."""
        result = self._cli.run("--db", self.place, *arguments)
        return result.exit_code, result.stdout + result.stderr


@pytest.fixture
def damaged(cli: Cli, postgres_address: str) -> Damaged:
    return Damaged(cli, postgres_address)


@pytest.mark.parametrize("what", READ_MODELS)
def test_a_damaged_read_model_is_told_as_such_and_repaired(damaged: Damaged, what: str) -> None:
    damaged.damage(READ_MODELS[what])

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert "The log is complete" in found
    assert "doctor --repair" in found
    assert "Healthy" in repaired
    code, told = damaged.run("recall", "city 1", "--json")
    assert code == 0
    assert json.loads(told)["value"] == "Oslo 1"


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Server]:
    """Start a server for this module alone, which can be stopped while its files are damaged."""
    server = Server.create()
    yield server
    server.destroy()


_numbers = itertools.count(1)


@pytest.fixture
def own_database(own_postgres: Server) -> str:
    """Make a database for one test: all workspaces of a database share its indexes and files."""
    name = f"damaged{next(_numbers)}"
    with psycopg.connect(own_postgres.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return own_postgres.address.removesuffix("postgres") + name


@pytest.fixture
def indexed_database(own_database: str) -> str:
    """Make a database that is read through its indexes, as it would be if the tables were large."""
    with psycopg.connect(own_database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET enable_seqscan TO off".encode())
    return own_database


def test_indexes_that_miss_a_row_are_found_and_made_anew(cli: Cli, indexed_database: str) -> None:
    damaged = Damaged(cli, indexed_database)
    indexes = (
        "versions_subject", "versions_branch", "subjects_workspace_space_key_key", "events_pkey"
    )  # fmt: skip
    with damaged.without_upkeep(*indexes):
        assert damaged.run("store", "city late", "Oslo late")[0] == 0

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    for index in indexes:
        assert f"The index {index} differs from its table" in found
    assert "The log is complete" in found
    assert "Healthy" in repaired
    assert damaged.run("doctor")[0] == 0
    code, told = damaged.run("recall", "city late", "--json")
    assert code == 0
    assert json.loads(told)["value"] == "Oslo late"


def test_every_ordered_index_is_compared_with_its_table(damaged: Damaged) -> None:
    code, told = damaged.run("doctor", "--json")

    assert code == 0
    assert json.loads(told)["warnings"] == []


def test_an_altered_payload_is_never_read_as_a_value(damaged: Damaged) -> None:
    damaged.damage(ALTERED)

    code, found = damaged.run("doctor")
    repairing, still = damaged.run("doctor", "--repair")
    reading, told = damaged.run("recall", "city 1", "--json")

    assert (code, repairing, reading) == (7, 7, 7)
    assert "The content of an event about 'city 1' was altered." in found
    assert "was altered" in still
    assert json.loads(told)["error"] == "database_corrupt"
    assert damaged.run("recall", "city 2")[0] == 0


def test_a_word_that_its_index_does_not_find_is_found_and_mended(
    cli: Cli, indexed_database: str
) -> None:
    damaged = Damaged(cli, indexed_database)
    with damaged.without_upkeep("texts_terms"):
        assert damaged.run("store", "late", "Trondheim")[0] == 0

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert "The index texts_terms does not find a text by one of its words." in found
    assert "The log is complete" in found
    assert "Healthy" in repaired


def test_indexes_that_are_gone_are_named_and_made_again(cli: Cli, indexed_database: str) -> None:
    damaged = Damaged(cli, indexed_database)
    lost = ("versions_subject", "branches_live", "texts_terms")
    with psycopg.connect(indexed_database) as connection:
        connection.execute("SET search_path TO stratagem")
        connection.execute("ALTER TABLE events DROP CONSTRAINT events_pkey")
        connection.execute(f"DROP INDEX {', '.join(lost)}".encode())

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    for index in ("events_pkey", *lost):
        assert f"The index {index} is missing." in found
    assert "The log is complete" in found
    assert "Healthy" in repaired


def test_an_index_of_vectors_that_misses_some_is_found_and_made_anew(
    cli: Cli, indexed_database: str
) -> None:
    damaged = Damaged(cli, indexed_database, keys=40, embedder="static")
    damaged.index_vectors()
    healthy = damaged.run("doctor")
    (index,) = _vector_indexes(indexed_database)
    with damaged.without_upkeep(index):
        for number in range(3):
            assert damaged.run("store", f"late {number}", f"Trondheim {number}")[0] == 0
        assert damaged.run("embed")[0] == 0

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert healthy[0] == 0, healthy
    assert code == 7
    assert f"The index {index} differs from its table: it misses 3 vectors." in found
    assert "Healthy" in repaired
    with psycopg.connect(indexed_database) as connection:
        connection.execute(f"DROP INDEX stratagem.{index}".encode())
    assert f"The index {index} is missing." in damaged.run("doctor")[1]
    assert "Healthy" in damaged.run("doctor", "--repair")[1]
    assert _vector_indexes(indexed_database) == [index]


def _vector_indexes(address: str) -> list[str]:
    with psycopg.connect(address) as connection:
        names = "SELECT relname FROM pg_class WHERE relname LIKE 'vectors\\_near%'"
        return [name for (name,) in connection.execute(names.encode())]


def test_an_altered_vector_is_found_and_made_again(cli: Cli, postgres_address: str) -> None:
    damaged = Damaged(cli, postgres_address, embedder="static")
    damaged.damage(
        "UPDATE vectors SET vector = vector OPERATOR(public.+) vector"
        " WHERE workspace = {w} AND seq = 3"
    )

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert "A vector was altered." in found
    assert "The log is complete" in found
    assert "Healthy" in repaired
    results = json.loads(damaged.run("search", "Oslo 1", "--json")[1])["results"]
    assert results[0]["key"] == "city 1"


def test_an_altered_result_of_a_request_is_found_and_forgotten(damaged: Damaged) -> None:
    assert damaged.run("store", "once", "told", "--request-id", "r1")[0] == 0
    damaged.damage("UPDATE requests SET result = '{{}}'::bytea WHERE workspace = {w}")

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert (
        "A stored result of a request was altered; a repair removes it. (request 'r1' of" in found
    )
    assert "Healthy" in repaired


def overwrite_page(server: Server, address: str, table: str, page: int, content: bytes) -> None:
    """Overwrite a page of a table in a database of a server while that is down."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        query = f"SELECT pg_relation_filepath('stratagem.{table}')"
        (path,) = connection.execute(query.encode()).fetchone() or ("",)
    server.stop()
    with (server.folder / "data" / path).open("r+b") as file:
        file.seek(page * 8_192)
        assert len(file.read(8_192)) == 8_192
        file.seek(page * 8_192)
        file.write(content)
    server.start()


PAGES = {"rubbish": os.urandom(8_192), "nothing": bytes(8_192)}


# Enough for a few pages of events.
MANY = 100


@pytest.mark.parametrize("content", PAGES)
def test_around_a_bad_page_of_events_all_else_is_saved(
    cli: Cli,
    own_postgres: Server,
    own_database: str,
    content: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    damaged = Damaged(cli, own_database, keys=MANY)
    overwrite_page(own_postgres, own_database, "events", 1, PAGES[content])

    code, found = damaged.run("doctor")
    plain = damaged.run("export", "plain.jsonl")
    exported = damaged.run("export", "--rescue", "out.jsonl", "--json")
    saved = damaged.run("backup", "--rescue", "out.zip", "--json")

    assert (code, plain[0], exported[0], saved[0]) == (7, 7, 7, 7)
    assert "The log itself is damaged" in found
    assert " backup --rescue FILE\n" in found
    told = json.loads(exported[1])
    lost = {each["key"] for each in told["lost"] if each["key"]}
    assert 0 < len(lost) < 60
    assert told["entries"] == MANY + 1 - len(lost)
    (losses,) = json.loads(saved[1])["rescued"].values()
    assert {each["key"] for each in losses["lost"] if each["key"]} == lost
    fresh = Cli(tmp_path_factory.mktemp("fresh") / "new.db")
    fresh("restore", "out.zip")
    assert "Healthy" in fresh("doctor")
    for number in range(MANY):
        if f"city {number}" not in lost:
            assert fresh.json("recall", f"city {number}")["value"] == f"Oslo {number}"
            break


@pytest.mark.parametrize("table", ["texts", "versions"])
def test_a_read_model_with_a_bad_page_is_written_anew(
    cli: Cli, own_postgres: Server, own_database: str, table: str
) -> None:
    damaged = Damaged(cli, own_database, keys=MANY)
    overwrite_page(own_postgres, own_database, table, 0, PAGES["rubbish"])

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert f"The read model {table} cannot be read: invalid page in block 0" in found
    assert "The log is complete" in found
    assert "Healthy" in repaired
    assert json.loads(damaged.run("recall", "city 1", "--json")[1])["value"] == "Oslo 1"


def test_a_user_who_may_not_leave_pages_out_is_told_what_a_superuser_runs(
    cli: Cli, own_postgres: Server, own_database: str
) -> None:
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE ROLE member LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO member".encode())
    damaged = Damaged(cli, own_database.replace("postgres@", "member@"), keys=MANY)
    overwrite_page(own_postgres, own_database, "texts", 0, PAGES["rubbish"])

    _, told = damaged.run("doctor", "--repair")

    assert "only a superuser may skip the damaged pages" in told
    assert "SET zero_damaged_pages TO on; VACUUM FULL stratagem.texts;" in told


@pytest.mark.parametrize("command", ["export", "backup"])
def test_nothing_is_saved_of_an_altered_log_as_if_it_were_whole(
    damaged: Damaged, command: str
) -> None:
    damaged.damage(ALTERED)

    code, told = damaged.run(command, "out.saved", "--json")

    assert code == 7
    assert json.loads(told)["error"] == "database_corrupt"
