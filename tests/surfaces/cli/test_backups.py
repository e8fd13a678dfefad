"""A backup is made while the database is in use, and is worth what restoring it gives."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

import stratagem
from tests.postgres import a_workspace
from tests.surfaces.cli.console import Cli


def places(kind: str, request: pytest.FixtureRequest, folder: Path) -> tuple[str, str]:
    """Return a database, and another one that is not there yet."""
    if kind == "sqlite":
        return str(folder / "team.db"), str(folder / "restored.db")
    address = request.getfixturevalue("postgres_address")
    return f"{address}#{a_workspace()}", f"{address}#{a_workspace()}"


def log_of(place: str) -> list[tuple[int, bytes]]:
    with closing(stratagem.open(place, read_only=True, embedder="none")) as db:
        return [(event.sequence, event.hash) for event in db.runtime.foundation.store.log()]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_made_under_writes_restores_to_an_equal_log(
    cli: Cli, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place, restored = places(kind, request, tmp_path)
    file = tmp_path / "team.backup"
    stop = threading.Event()
    with closing(stratagem.open(place, durability="fast")) as db:
        for number in range(300):
            db.memory.store(f"k{number}", f"value {number}", request_id=f"before{number}")

        def write() -> None:
            number = 0
            while not stop.is_set():
                db.memory.store("busy", number, request_id=f"r{number}")
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made = cli.json("--db", place, "backup", str(file))
        finally:
            stop.set()
            writer.join()
    whole = log_of(place)
    beside = sorted(path.name for path in tmp_path.glob("team.backup*"))
    cli("--db", restored, "restore", str(file))
    examined = cli.json("--db", restored, "doctor", "--expect", made["head"])

    assert log_of(restored) == whole[: made["events"]]
    assert 300 < made["events"] <= len(whole)
    assert examined["healthy"] is True
    assert beside == ["team.backup"]
    with closing(stratagem.open(restored)) as db:
        # What is remembered of requests is of the same moment as the rest.
        kept = db.memory.recall("busy")
        version = db.memory.store("busy", -1, request_id=f"r{_after(kept)}").version
        assert version > made["events"], "a write after the backup was not done already"


def _after(entry: object) -> int:
    value = getattr(entry, "value", None)
    return 0 if value is None else int(value) + 1


def test_a_backup_never_replaces_a_file(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    file = tmp_path / "kept"
    file.write_text("mine", "utf-8")

    assert "exists already" in cli.refused("backup", str(file), code=2)
    assert file.read_text("utf-8") == "mine"


def test_a_database_with_a_log_of_its_own_is_not_replaced(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    cli("backup", str(tmp_path / "copy"))
    other = str(tmp_path / "other.db")
    cli("--db", other, "store", "city", "Bergen")

    assert "another log" in cli.refused("--db", other, "restore", str(tmp_path / "copy"), code=2)


def test_what_is_no_backup_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert "no backup" in cli.refused("restore", str(tmp_path / "nowhere"), code=6)
    (tmp_path / "text").write_text("not a database" * 100, "utf-8")
    result = cli.run("restore", str(tmp_path / "text"))
    assert result.exit_code in {6, 7}


def test_a_backup_that_was_interrupted_goes_on(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    cli("copy", str(cli.database), str(tmp_path / "file.part"))
    cli("store", "city", "Bergen")
    made = cli.json("backup", str(tmp_path / "file"))

    assert log_of(str(tmp_path / "file")) == log_of(str(cli.database))
    assert made["events"] == len(log_of(str(cli.database)))
