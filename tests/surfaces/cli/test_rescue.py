"""doctor on damaged files, and what export and backup save of them."""

import gzip
import json
import os
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import stratagem
from tests.surfaces.cli.console import Cli

KEYS = 40
OLD_FILES = Path(__file__).parents[2] / "migrations"


@pytest.fixture
def filled(cli: Cli) -> Cli:
    with stratagem.open(str(cli.database), embedder="none") as db:
        for number in range(KEYS):
            db.memory.store(f"key {number}", f"{number} " + "x" * 500)
        db.memory.log("note", data="it rains")
    return cli


def overwrite_page(cli: Cli, name: str) -> None:
    """Overwrite a page of a table or index with rubbish."""
    with closing(apsw.Connection(str(cli.database))) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        query = "SELECT max(pageno) FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
        (page,) = connection.execute(query, (name,)).fetchone() or (0,)
    assert isinstance(page, int)
    with cli.database.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))


def test_damage_to_an_index_is_told_as_such_and_repaired(filled: Cli) -> None:
    overwrite_page(filled, "sqlite_autoindex_subjects_1")

    found = filled.run("doctor")
    repaired = filled("doctor", "--repair")

    assert found.exit_code == 7
    assert "The log is complete" in found.stdout
    assert f"\n  stratagem --db {filled.database} doctor --repair\n" in found.stdout
    assert "index sqlite_autoindex_subjects_1 of subjects" in found.stdout
    assert "Healthy" in repaired
    assert filled.json("recall", "key 39")["value"].startswith("39 ")


def test_around_a_bad_page_of_events_all_else_is_exported_and_imported(
    filled: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    overwrite_page(filled, "events")

    found = filled.run("doctor")
    plain = filled.run("export", "out.jsonl")
    done = filled.run("export", "--rescue", "out.jsonl", "--json")
    told = json.loads(done.stdout)

    assert found.exit_code == plain.exit_code == done.exit_code == 7
    assert f"\n  stratagem --db {filled.database} export --rescue FILE\n" in found.stdout
    assert "stratagem doctor" in plain.stderr
    lost = {each["key"] for each in told["lost"] if each["key"]}
    assert 0 < len(lost) < KEYS / 4
    assert told["entries"] == KEYS - len(lost)
    fresh = Cli(tmp_path_factory.mktemp("fresh") / "new.db")
    assert f"{told['entries']} new entries" in fresh("import", "out.jsonl")
    assert "Healthy" in fresh("doctor")


def test_a_plain_backup_of_a_damaged_log_says_what_is_damaged_and_what_saves_the_rest(
    filled: Cli,
) -> None:
    with closing(apsw.Connection(str(filled.database))) as connection:
        connection.execute("UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 3")

    refusal = filled.refused("backup", "out.zip", code=7)
    left = list(Path().glob("out.zip*"))
    rescued = filled.run("backup", "--rescue", "out.zip")

    assert "The source is damaged: The content of an event about 'key 1' was altered." in refusal
    assert "stratagem doctor" in refusal
    assert "backup --rescue" in refusal
    assert left == []
    assert "Lost of default: 1 event.\n" in rescued.stdout


def test_a_rescued_backup_is_restored_with_its_history_and_says_what_is_lost(
    filled: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    overwrite_page(filled, "events")

    done = filled.run("backup", "--rescue", "out.zip")
    fresh = Cli(tmp_path_factory.mktemp("fresh") / "new.db")
    restored = fresh("restore", "out.zip")

    assert done.exit_code == 7
    assert "Lost of default:" in done.stdout
    assert "entry key" in done.stdout
    assert "examined" in restored
    assert "Healthy" in fresh("doctor")
    assert fresh.json("recall", "key 1")["value"].startswith("1 ")


def test_a_rescue_of_a_healthy_database_loses_nothing_and_keeps_its_chain(filled: Cli) -> None:
    told = filled.json("backup", "--rescue", "out.zip")

    assert told["rescued"]["default"] == {"lost": [], "unverified": []}
    assert told["head"] == filled.json("status")["head"]


def test_a_file_that_cannot_be_opened_is_examined_and_saved_all_the_same(filled: Cli) -> None:
    with closing(apsw.Connection(str(filled.database))) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with filled.database.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(3_996))

    found = filled.run("doctor")
    told = filled.json("export", "--rescue", "out.jsonl")

    assert found.exit_code == 7
    assert "SQLite cannot open the file." in found.stdout
    assert "Every event can still be read." in found.stdout
    assert told["entries"] == KEYS
    assert told["lost"] == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_file_of_an_older_format_is_told_how_it_is_saved(cli: Cli, number: int) -> None:
    cli.database.write_bytes(gzip.decompress((OLD_FILES / f"format_{number}.db.gz").read_bytes()))
    with closing(apsw.Connection(str(cli.database))) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'events_at'"
        (page,) = connection.execute(query).fetchone() or (0,)
        size = connection.pragma("page_size")
    with cli.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))

    asked = cli.run("doctor")
    found = cli.refused("store", "k", "v", code=7)
    cli("backup", "--rescue", "saved.backup")

    assert "Open it once for writing" in asked.output
    assert "too damaged to be upgraded" in found
    assert "stratagem backup --rescue FILE" in found
    cli("--db", "new.db", "restore", "saved.backup")
    assert "Healthy" in cli("--db", "new.db", "doctor")
