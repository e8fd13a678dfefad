"""A file that a newer Stratagem upgraded is left alone, also by whoever has it open already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem.errors import DatabaseTooNew
from tests.faults.opening import open_with

FORMAT = "PRAGMA user_version = 99"
READ_MODELS = "UPDATE settings SET value = 99 WHERE name = 'read_models_version'"
UPGRADES = pytest.mark.parametrize("upgrade", [FORMAT, READ_MODELS])


def upgraded(path: Path, statement: str) -> None:
    """Do what the first write of a newer release does, from another process's connection."""
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def events(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(next(iter(connection.execute("SELECT max(seq) FROM events")))[0])
    finally:
        connection.close()


@UPGRADES
@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.memory.store("city", "Bergen"),
        lambda db: db.memory.forget("city"),
        lambda db: db.memory.purge("city"),
        lambda db: db.runtime.foundation.store.rebuild(lambda *_: None),
        lambda db: db.memory.recall("city"),
        lambda db: db.memory.search("Oslo"),
        lambda db: db.memory.status(),
    ],
    ids=["store", "forget", "purge", "rebuild", "recall", "search", "status"],
)
def test_an_open_handle_neither_writes_nor_reads_once_the_file_is_newer(
    tmp_path: Path, use: Callable[[stratagem.Stratagem], object], upgrade: str
) -> None:
    path = tmp_path / "open.db"
    with open_with(path) as db:
        db.memory.store("city", "Oslo")
        db.memory.recall("city")
        before = events(path)
        upgraded(path, upgrade)

        with pytest.raises(DatabaseTooNew) as refused:
            use(db)

        assert refused.value.details["format"] == 99
        assert events(path) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_newer_read_models_are_never_made_anew_downwards(
    tmp_path: Path, *, read_only: bool
) -> None:
    path = tmp_path / "newer.db"
    with open_with(path) as db:
        db.memory.store("city", "Oslo")
    upgraded(path, READ_MODELS)
    before = path.read_bytes()

    with pytest.raises(DatabaseTooNew):
        stratagem.open(str(path), embedder="none", read_only=read_only)

    assert path.read_bytes() == before


def test_a_handle_goes_on_once_the_file_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "back.db"
    with open_with(path) as db:
        db.memory.store("city", "Oslo")
        upgraded(path, FORMAT)
        with pytest.raises(DatabaseTooNew):
            db.memory.recall("city")
        upgraded(path, "PRAGMA user_version = 2")

        found = db.memory.recall("city")

    assert found is not None
    assert found.value == "Oslo"
