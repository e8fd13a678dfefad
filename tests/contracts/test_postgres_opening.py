"""What is said of a server that cannot be used: why, what to do, and never the password."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stratagem import limits
from stratagem.errors import (
    DatabaseTooNew,
    StorageBusy,
    StorageUnavailable,
    StratagemError,
    ValidationFailed,
)
from stratagem.places import display_place
from stratagem.storage.postgres import schema
from stratagem.storage.postgres.statements import migrations
from tests.contracts.backends import open_postgres
from tests.contracts.samples import Clock, a_note, append, rebuild, text_of
from tests.postgres import Server

Made = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture
def made(postgres_address: str) -> Iterator[Made]:
    """Make databases, each with some statements run in it by a superuser."""
    names: list[str] = []
    with psycopg.connect(postgres_address, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS ada")
        admin.execute("CREATE ROLE ada LOGIN")

        def make(*statements: str, user: str = "postgres") -> str:
            names.append(f"opening{next(_numbers)}")
            admin.execute(f"CREATE DATABASE {names[-1]}".encode())
            address = postgres_address.rpartition("/")[0] + f"/{names[-1]}"
            with psycopg.connect(address, autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement.replace("{db}", names[-1]).encode())
            return address.replace("postgres@", f"{user}@")

        yield make
        for name in names:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        admin.execute("DROP ROLE ada")


def opened(address: str, **settings: Any) -> Any:
    return closing(open_postgres(Path("w"), Clock(), address=address, **settings))


def refused(address: str, **settings: Any) -> StratagemError:
    with pytest.raises(StratagemError) as caught, opened(address, **settings):
        pass
    return caught.value


SECRET = "hunter2"
UNREADABLE = (
    "postgresql://ada:hun/ter2@db.example/team",
    "postgresql://ada:1234/hunter2@db.example/team",
    "postgresql://ada:hun?ter2@db.example/team",
    "postgresql://ada:hun@ter2@db.example/team",
    "postgresql://ada:hun%ter2@db.example/team",
    "postgresql://ada:hunter2@db.example/team?nosuch=1",
)


@pytest.mark.parametrize("address", UNREADABLE)
def test_an_address_that_cannot_be_read_is_refused_and_not_quoted(address: str) -> None:
    error = refused(address)

    said = f"{error.envelope()} {error.__cause__} {display_place(address)}"
    assert isinstance(error, ValidationFailed)
    assert "%2F" in error.hint
    assert [part for part in ("hun", "ter2", SECRET, "1234") if part in said] == []


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada:x@a.example:5433/team?sslmode=require#w", "a.example:5433/team#w"),
        ("postgres://a.example,b.example:5433/team", "a.example,b.example:5433/team"),
        ("postgresql://ada@[::1]:5433/team#w", "[::1]:5433/team#w"),
        ("postgresql:///team?host=/run/postgresql&password=x", "local/team"),
        ("postgresql://ada:x", "…"),
        ("postgresql://ada:12#34@a.example/team", "…"),
        ("postgresql://a.example/team?password=x@y", "…"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert display_place(address) == f"postgresql://{shown}"


def test_the_first_of_several_servers_that_answers_is_used(postgres_address: str) -> None:
    address = postgres_address.replace("127.0.0.1", "127.0.0.1:9,127.0.0.1")

    with opened(address) as store:
        assert store.reader().log.head().sequence > 0


def test_the_next_step_is_named(made: Made, postgres_address: str) -> None:
    base = postgres_address.rpartition("/")[0]

    assert "CREATE DATABASE" in refused(f"{base}/nothing").hint
    assert "CREATE ROLE" in refused(postgres_address.replace("postgres@", "nobody@")).hint
    assert "GRANT CREATE ON DATABASE" in refused(made(user="ada")).hint
    ours = "CREATE SCHEMA stratagem AUTHORIZATION ada"
    assert "CREATE EXTENSION vector" in refused(made(ours, user="ada")).hint
    nowhere = "ALTER DATABASE {db} SET extension_control_path = '/nowhere'"
    assert "Install pgvector" in refused(made(nowhere)).hint


def test_a_wrong_password_is_told_from_other_faults() -> None:
    server = Server.create()
    try:
        with psycopg.connect(server.address, autocommit=True) as admin:
            admin.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
            hba = server.folder / "data" / "pg_hba.conf"
            hba.write_text(f"host all ada 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
            admin.execute("SELECT pg_reload_conf()")

        error = refused(server.address.replace("postgres@", f"ada:{SECRET}@"))
    finally:
        server.destroy()

    assert "password" in error.hint
    assert SECRET not in str(error.envelope())


def test_an_owner_of_the_schema_needs_no_other_right(made: Made) -> None:
    address = made(
        "CREATE EXTENSION vector", "CREATE SCHEMA stratagem AUTHORIZATION ada", user="ada"
    )

    with opened(address) as store:
        append(store, a_note("k", "red"))
        assert text_of(store, "k") == "red"


def test_pgvector_may_lie_in_a_schema_of_its_own(made: Made) -> None:
    address = made("CREATE SCHEMA extensions", "CREATE EXTENSION vector SCHEMA extensions")

    with opened(address) as store:
        append(store, a_note("k", "red"))
        assert text_of(store, "k") == "red"


def test_an_old_pgvector_is_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "PGVECTOR_MIN", (9, 0))

    error = refused(made())

    assert isinstance(error, StorageUnavailable)
    assert "ALTER EXTENSION vector UPDATE" in error.hint


def test_a_server_without_a_free_connection_is_busy(made: Made) -> None:
    address = made("ALTER ROLE ada CONNECTION LIMIT 0", user="ada")

    assert isinstance(refused(address), StorageBusy)


def test_read_models_of_a_newer_version_are_left_alone(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = made()
    before = schema.READ_MODELS_VERSION + 1
    with opened(address) as store:
        append(store, a_note("k", "red"))
        with monkeypatch.context() as newer:
            newer.setattr(schema, "READ_MODELS_VERSION", before)
            with opened(address):
                pass

        read = text_of(store, "k")
        with pytest.raises(DatabaseTooNew):
            append(store, a_note("k", "blue"))
        with pytest.raises(DatabaseTooNew):
            rebuild(store)

    error = refused(address)

    assert isinstance(error, DatabaseTooNew)
    assert read == "red"
    with psycopg.connect(address) as connection:
        kept = connection.execute(
            "SELECT value FROM stratagem.settings WHERE name = 'read_models_version'"
        ).fetchone()
    assert kept == (before,)


def test_a_statement_that_takes_too_long_is_ended_and_told(made: Made) -> None:
    address = made()
    with opened(address) as store:
        append(store, a_note("k", "red"))
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(
            f"ALTER DATABASE {address.rpartition('/')[2]} SET statement_timeout = 100".encode()
        )
        with opened(address) as store, admin.transaction():
            admin.execute("LOCK TABLE stratagem.subjects IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StorageBusy, match="took too long"):
                text_of(store, "k")


class TestMigrating:
    """A newer server changes the tables while one of the version before goes on."""

    ONLINE = (
        "-- online\n-- Tags by version.\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS tags_seq ON tags (workspace, seq);\n"
        "ALTER TABLE tags ADD COLUMN IF NOT EXISTS weight integer NOT NULL DEFAULT 1;\n"
    )

    @pytest.fixture
    def newer(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        def set_newer() -> None:
            number = schema.VERSION + 1
            scripts = [*migrations(), (number, self.ONLINE)]
            monkeypatch.setattr(schema, "migrations", lambda: scripts)
            monkeypatch.setattr(schema, "VERSION", number)

        return set_newer

    def test_an_older_server_reads_and_writes_on(
        self, made: Made, newer: Callable[[], None]
    ) -> None:
        address = made()
        with opened(address) as older:
            append(older, a_note("a", "red", tags=["t"]))
            newer()

            with opened(address) as upgraded:
                append(older, a_note("b", "blue", tags=["t"]))
                append(upgraded, a_note("c", "green", tags=["t"]))

                assert [text_of(older, key) for key in "abc"] == ["red", "blue", "green"]
                assert older.examine(lambda *_: None, None) == []
        with psycopg.connect(address) as connection:
            found = connection.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = 'stratagem.tags_seq'::regclass"
            ).fetchone()
        assert found == (True,)

    def test_readers_and_writers_go_on_while_an_index_is_built(
        self, made: Made, newer: Callable[[], None]
    ) -> None:
        address = made()
        with opened(address) as older, psycopg.connect(address) as holder:
            append(older, a_note("a", "red", tags=["t"]))
            # Building waits for whoever has written before it began.
            holder.execute("INSERT INTO stratagem.tags VALUES (999, 't', 1)")
            newer()
            upgraded: list[Any] = []
            thread = threading.Thread(
                target=lambda: upgraded.append(open_postgres(Path("w"), Clock(), address=address))
            )
            thread.start()
            _wait_for_building(address)

            append(older, a_note("b", "blue", tags=["t"]))
            read = text_of(older, "b")
            still_building = thread.is_alive()
            holder.rollback()
            thread.join(limits.SERVER_WAIT_SECONDS)

            upgraded[0].close()
        assert still_building
        assert read == "blue"


def _wait_for_building(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for _ in range(500):
            row = connection.execute(
                "SELECT pg_sleep(0.02) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND query LIKE '%CREATE INDEX CONCURRENTLY%' AND datname = current_database()"
                " AND pid <> pg_backend_pid()"
            ).fetchone()
            if row is not None:
                return
            connection.execute("SELECT pg_sleep(0.02)")
    raise AssertionError("nothing is built")
