"""Reads of one state ask the file about it once, and see every commit of others."""

from __future__ import annotations

from pathlib import Path

import stratagem
from stratagem.storage.sqlite.store import SqliteStore


def _traced(db: stratagem.Stratagem) -> list[str]:
    store = db.runtime.foundation.store
    assert isinstance(store, SqliteStore)
    statements: list[str] = []

    def trace(_cursor: object, sql: str, _bindings: object) -> bool:
        statements.append(" ".join(sql.split()))
        return True

    store.thread_connection().exec_trace = trace
    return statements


def test_what_no_commit_has_changed_is_asked_once(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.memory.store("boat", "The ferry leaves at seven")
        statements = _traced(db)
        db.memory.search("ferry")
        first = len(statements)
        db.memory.search("ferry")
        second = statements[first:]
        db.memory.store("bus", "The bus waits for the ferry")
        third = len(statements)
        found = db.memory.search("ferry")

    def asks_for_spaces(each: str) -> bool:
        return each.startswith("SELECT id, kind, namespace FROM spaces")

    assert any(map(asks_for_spaces, statements[:first]))
    assert not any(map(asks_for_spaces, second))
    assert any(map(asks_for_spaces, statements[third:]))
    assert {hit.key for hit in found.results} == {"boat", "bus"}


def test_commits_of_others_are_seen_by_the_next_read(tmp_path: Path) -> None:
    path = str(tmp_path / "m.db")
    with stratagem.open(path, embedder="none") as one, stratagem.open(path, embedder="none") as two:
        for number in range(5):
            namespace = f"place-{number}"
            one.memory.store(f"k{number}", "The ferry leaves", namespace=namespace)
            found = two.memory.search("ferry", k=10)
            assert len(found.results) == number + 1
            assert len(two.memory.search("ferry", namespace=namespace).results) == 1
            two.memory.fork(f"b{number}")
            assert len(one.memory.search("ferry", branch=f"b{number}").results) == number + 1


def test_a_snapshot_sees_one_state_while_others_write(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.memory.store("a", "one")
        store = db.runtime.foundation.store
        with store.snapshot() as reader:
            before = reader.log.head().sequence
            db.memory.store("b", "two")
            assert reader.log.head().sequence == before
        with store.snapshot() as reader:
            assert reader.log.head().sequence == before + 1
        assert store.reader().log.head().sequence == before + 1
