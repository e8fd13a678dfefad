"""Every workspace can lie on a node of its own, as a distributed PostgreSQL wants it.

There is no such server here, so its rules are held against an ordinary one. Every key begins with
the workspace; and where the tables are parted by workspace, no statement looks into two parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import stratagem
from stratagem.storage.log_copy import copy
from stratagem.storage.postgres import schema
from stratagem.storage.postgres.connection import Connection, PostgresSession
from stratagem.storage.postgres.rows import column_types
from stratagem.storage.postgres.statements import SQL, migrations
from tests.contracts.backends import open_postgres, open_sqlite_file
from tests.contracts.samples import TESTER, Clock, Words, a_note, append, examine, notes, rebuild
from tests.contracts.test_rebuilding import a_history, everything
from tests.postgres import a_workspace

# What is about all workspaces, or none.
GLOBAL_TABLES = {"workspaces", "migrations"}
TABLES = set(re.findall(r"CREATE TABLE (\w+)", "".join(text for _, text in migrations())))
PARTS = 4
RUNNING = ("SELECT", "WITH", "(SELECT", "INSERT", "UPDATE", "DELETE")
MENTION = re.compile(rf"\b(?:FROM|JOIN|UPDATE) (?:\w+\.|{{schema}}\.)?({'|'.join(TABLES)})\b")
BOUND = re.compile(r"\bworkspace = (?:\$1|{workspace})")


def test_every_key_begins_with_the_workspace(postgres_address: str, tmp_path: Path) -> None:
    with closing(open_postgres(tmp_path, Clock(), address=postgres_address)):
        pass

    with psycopg.connect(postgres_address) as connection:
        keys = connection.execute(
            "SELECT t.relname, i.relname, a.attname FROM pg_index x"
            " JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
            " JOIN pg_attribute a ON a.attrelid = i.oid AND a.attnum = 1"
            " WHERE t.relnamespace = 'stratagem'::regnamespace"
        ).fetchall()
        references = connection.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND connamespace = 'stratagem'::regnamespace"
        ).fetchall()

    kept = {table for table, _, _ in keys}
    assert kept | GLOBAL_TABLES >= TABLES
    assert {
        (table, index)
        for table, index, first in keys
        if table not in GLOBAL_TABLES and first != "workspace"
        # Its terms begin with the workspace instead; one workspace's vectors have their own index.
        and index != "texts_terms" and not index.startswith("vectors_near_")
    } == set()  # fmt: skip
    assert references == []


def test_every_statement_names_the_workspace_of_every_table_it_reads() -> None:
    unbound = {
        name: text
        for name, text in SQL.items()
        if len([table for table in MENTION.findall(text) if table not in GLOBAL_TABLES])
        > len(BOUND.findall(text))
    }
    inserting = {
        name: text
        for name, text in SQL.items()
        if (into := re.search(r"INSERT INTO (\w+) \((\w+)", text))
        and into[1] not in GLOBAL_TABLES
        and into[2] != "workspace"
    }

    assert unbound == {}
    assert inserting == {}


@pytest.fixture
def parted(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the address of a database whose tables are parted by workspace."""
    monkeypatch.setattr(schema, "migrations", lambda: [(n, parting(s)) for n, s in migrations()])
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE parted")
        yield postgres_address.rpartition("/")[0] + "/parted"
        connection.execute("DROP DATABASE parted WITH (FORCE)")


def parting(script: str) -> str:
    """Return a migration that makes every table in parts; what is unique must then be so in each."""

    def parts(table: re.Match[str]) -> str:
        name = table[1]
        if name in GLOBAL_TABLES:
            return table[0]
        made = f"{table[0][:-1]} PARTITION BY HASH (workspace);"
        for part in range(PARTS):
            made += (
                f"CREATE TABLE {name}_part{part} PARTITION OF {name}"
                f" FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {part});"
            )
        return made

    return re.sub(r"CREATE TABLE (\w+) \(.*?\n\);", parts, script, flags=re.DOTALL)


class Plans:
    """Asks for the plan of every statement before it is run, and notes the parts it looks into."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str], set[str]] = {}

    def note(self, connection: Connection, sql: str, given: Sequence[Any]) -> None:
        # The first parameter of every statement about a workspace is its number.
        if not (given and isinstance(given[0], int) and sql.startswith(RUNNING)):
            return
        if (given[0], sql) in self.seen:
            return
        rows = _execute(connection, f"EXPLAIN {sql}".encode(), given, prepare=False)
        plan = "\n".join(row[0] for row in rows)
        self.seen[given[0], sql] = set(re.findall(r"_part\d+", plan))


_execute = psycopg.Connection.execute


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    plans = Plans()
    many = PostgresSession.executemany

    def executing(
        connection: Connection, sql: str | bytes, given: Sequence[Any] = (), **options: Any
    ) -> Any:
        plans.note(connection, sql if isinstance(sql, str) else sql.decode(), given)
        return _execute(connection, sql, given or None, **options)

    def executing_many(session: PostgresSession, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        given = list(rows)
        if given and not column_types(sql):
            plans.note(session.connection, sql, (session.workspace, *given[0]))
        return many(session, sql, given)

    monkeypatch.setattr(psycopg.Connection, "execute", executing)
    monkeypatch.setattr(PostgresSession, "executemany", executing_many)
    return plans


def test_no_statement_looks_into_two_parts(parted: str, plans: Plans, tmp_path: Path) -> None:
    with closing(open_postgres(tmp_path, Clock(), address=parted, indexer=Words("w"))) as store:
        store.write(lambda t: t.vectors.change_embedder("w"), TESTER)
        a_history(store)
        everything(store)
        append(store, a_note("gone", "secret"))
        store.purge(TESTER, space=notes(), key="gone", sequence=None)
        rebuild(store)
        assert examine(store) == []
        with closing(open_sqlite_file(tmp_path, Clock())) as file:
            copy(store, file, lambda *_: None)
            elsewhere = open_postgres(tmp_path / "b", Clock(), address=parted)
            with closing(elsewhere):
                copy(file, elsewhere, lambda *_: None)
                assert everything(elsewhere) == everything(store)
    for work in (remembering, mending, learning):
        with stratagem.open(parted, workspace=a_workspace(), embedder="static") as db:
            work(db)

    assert {sql for (_, sql), parts in plans.seen.items() if len(parts) > 1} == set()
    assert len({part for parts in plans.seen.values() for part in parts}) > 1
    assert len({sql for _, sql in plans.seen}) > 80


def remembering(db: stratagem.Stratagem) -> None:
    db.memory.store("city", "Oslo is rainy", tags=["t"], request_id="r1")
    db.memory.branch("fork", name="trial")
    db.memory.store("city", "Bergen is rainier", branch="trial")
    db.memory.log("seen", {"what": "rain"}, session="s")
    db.memory.search("rain", tags=["t"])
    db.memory.search("rain", branch="trial")
    db.memory.history("city")
    db.memory.branch("merge", source="trial")
    db.memory.status()


def mending(db: stratagem.Stratagem) -> None:
    env = {"os": "linux"}
    db.debugging.add_incident("Boom", ["Do it."], env, True, error_signature="ValueError: boom")
    db.debugging.ranked_solutions("ValueError: boom", env)


def learning(db: stratagem.Stratagem) -> None:
    first, second = (
        db.knowledge.create_concept(name, f"What {name} is.").concept_id for name in ("A", "B")
    )
    db.knowledge.create_relationship(first, second, "prerequisite")
    db.knowledge.get_related_concepts(first)
    db.knowledge.get_concept_chain(first, second)
    db.knowledge.get_prerequisites(second)
    db.knowledge.get_recent_concepts()
    db.knowledge.get_concepts_by_certainty()
    db.knowledge.search_concepts_exact(name="A")
    db.knowledge.search_concepts_semantic("what")
    db.knowledge.list_hierarchy()
