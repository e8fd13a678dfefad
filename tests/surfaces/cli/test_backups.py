"""A backup is made while the database is in use, and is worth what restoring it gives."""

from __future__ import annotations

import json
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import stratagem
from stratagem import limits
from stratagem.access.workspaces import place_within
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
        for number in range(100):
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
    assert 100 < made["events"] <= len(whole)
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
    begun = tmp_path / "file.part"
    begun.mkdir()
    cli("copy", str(cli.database), str(begun / "default.db"))
    cli("store", "city", "Bergen")
    made = cli.json("backup", str(tmp_path / "file"))
    cli("--db", str(tmp_path / "restored.db"), "restore", str(tmp_path / "file"))

    assert log_of(str(tmp_path / "restored.db")) == log_of(str(cli.database))
    assert made["events"] == len(log_of(str(cli.database)))
    assert not begun.exists()


def an_empty_place(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """Return a database with no workspaces of other tests in it."""
    if kind == "sqlite":
        return str(folder / "team.db")
    address: str = request.getfixturevalue("postgres_address")
    name = a_workspace().replace("-", "_")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.removesuffix("postgres") + name


@pytest.fixture(params=["sqlite", "postgres"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of three workspaces that know nothing of one another."""
    place = an_empty_place(request.param, request, tmp_path)
    for name in ("default", "blue", "red"):
        with closing(stratagem.open(place_within(place, name), embedder="none")) as db:
            db.memory.store("name", name)
    return place


def values_of(place: str) -> dict[str, str]:
    found = {}
    for name in ("default", "blue", "red"):
        with closing(stratagem.open(place_within(place, name), embedder="none")) as db:
            entry = db.memory.recall("name")
            found[name] = entry.value if entry else ""
    return found


def test_a_backup_has_every_workspace_and_the_tokens(cli: Cli, team: str, tmp_path: Path) -> None:
    cli("--db", team, "token", "create", "ada", "--workspace", "blue")
    file, back = str(tmp_path / "all.backup"), str(tmp_path / "back.db")
    made = cli.json("--db", team, "backup", file)
    said = cli("--db", back, "restore", file)
    tokens = cli.json("--db", back, "token", "list")

    assert {each["workspace"] for each in made["workspaces"]} == {"default", "blue", "red"}
    assert values_of(back) == {"default": "default", "blue": "blue", "red": "red"}
    assert "in 3 workspaces" in said
    assert [each["name"] for each in tokens["tokens"]] == ["ada"]
    assert Path(file).stat().st_mode & 0o077 == 0, "it holds what only its user may read"
    for each in made["workspaces"]:
        place = place_within(back, each["workspace"])
        assert cli.json("--db", place, "doctor", "--expect", each["head"])["healthy"]


def test_one_workspace_can_be_taken_out_of_a_backup(cli: Cli, team: str, tmp_path: Path) -> None:
    file, back = str(tmp_path / "all.backup"), str(tmp_path / "back.db")
    cli("--db", team, "backup", file)
    cli("--db", back, "restore", file, "--workspace", "red")
    missing = cli.refused("--db", back, "restore", file, "--workspace", "green", code=2)

    assert values_of(back) == {"default": "red", "blue": "", "red": ""}
    assert "It has: " in missing


def test_a_copy_has_every_workspace_too(cli: Cli, team: str, tmp_path: Path) -> None:
    there = str(tmp_path / "there.db")
    answer = cli.json("copy", team, there)

    assert values_of(there) == {"default": "default", "blue": "blue", "red": "red"}
    assert {each["workspace"] for each in answer["workspaces"]} == {"default", "blue", "red"}


def test_a_copy_into_one_workspace_says_what_it_left_out(
    cli: Cli, tmp_path: Path, postgres_address: str
) -> None:
    place = str(tmp_path / "team.db")
    for name in ("default", "blue"):
        with closing(stratagem.open(place_within(place, name), embedder="none")) as db:
            db.memory.store("name", name)
    said = cli("copy", place, f"{postgres_address}#{a_workspace()}")

    assert "Not copied, because one workspace was named: blue." in said


@pytest.mark.parametrize("at", [0, 30, 400, 0.5, -200, -20])
def test_a_damaged_backup_is_refused(cli: Cli, tmp_path: Path, at: float) -> None:
    with closing(stratagem.open(str(cli.database), embedder="none")) as db:
        for number in range(20):
            db.memory.store(f"k{number}", "x" * 500)
    file = tmp_path / "whole.backup"
    cli("backup", str(file))
    body = bytearray(file.read_bytes())
    place = int(len(body) * at) if isinstance(at, float) else at
    body[place : place + 4] = bytes(255 - each for each in body[place : place + 4])
    file.write_bytes(bytes(body))
    result = cli.run("--db", str(tmp_path / "back.db"), "restore", str(file))

    assert result.exit_code == 7, result.output
    assert "defect" not in result.output
    assert str(file) in result.output


def listed_anew(file: Path, listed: object, *, encrypted: bool = False) -> None:
    """Write a backup with another list of what it has."""
    with zipfile.ZipFile(file) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, body in {**held, "backup.json": json.dumps(listed).encode()}.items():
            archive.writestr(name, body)
    if encrypted:
        whole = bytearray(file.read_bytes())
        for mark, flag in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            place = -1
            while (place := whole.find(mark, place + 1)) >= 0:
                whole[place + flag] |= 1
        file.write_bytes(bytes(whole))


def test_a_backup_of_a_newer_version_is_told_from_a_damaged_one(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    file = tmp_path / "newer.backup"
    cli("backup", str(file))
    listed_anew(file, {"format": 2, "workspaces": [{"name": "default", "more": 1}]})
    said = cli.refused("--db", str(tmp_path / "back.db"), "restore", str(file), code=2)

    assert "made by a newer Stratagem" in said


@pytest.mark.parametrize("what", ["nothing", "twice", "elsewhere", "encrypted", "endless"])
def test_what_a_backup_says_of_itself_is_not_believed(cli: Cli, tmp_path: Path, what: str) -> None:
    cli("store", "city", "Oslo")
    file, back = tmp_path / "wrong.backup", tmp_path / "back.db"
    made = cli.json("backup", str(file))
    entry = {"workspace": "default", "events": 2, "head": made["head"]}
    held = {"nothing": [], "twice": [entry, entry], "elsewhere": [{**entry, "workspace": "../x"}]}
    listed: dict[str, object] = {"format": 1, "workspaces": held.get(what, [entry])}
    if what == "endless":
        listed["more"] = " " * limits.BACKUP_LIST_BYTES_MAX
    listed_anew(file, listed, encrypted=what == "encrypted")
    said = cli.refused("--db", str(back), "restore", str(file), code=7)

    assert "not a backup, or it is damaged" in said
    assert not back.exists()


def test_a_backup_that_was_cut_off_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    file = tmp_path / "whole.backup"
    cli("backup", str(file))
    body = file.read_bytes()
    for length in (0, 10, len(body) // 2, len(body) - 1):
        file.write_bytes(body[:length])
        said = cli.refused("--db", str(tmp_path / "back.db"), "restore", str(file), code=7)
        assert "damaged" in said


def test_nothing_is_restored_of_a_backup_that_is_damaged_in_part(cli: Cli, tmp_path: Path) -> None:
    place, back = str(tmp_path / "team.db"), tmp_path / "back.db"
    for name in ("default", "blue"):
        with closing(stratagem.open(place_within(place, name), embedder="none")) as db:
            db.memory.store("name", name)
    file = tmp_path / "all.backup"
    cli("--db", place, "backup", str(file))
    body = bytearray(file.read_bytes())
    # The last workspace ends before the list of contents.
    with zipfile.ZipFile(file) as archive:
        last = archive.infolist()[-1]
    body[last.header_offset + 2_000] ^= 0xFF
    file.write_bytes(bytes(body))
    cli.refused("--db", str(back), "restore", str(file), code=7)

    assert not back.exists()


def test_a_database_file_can_be_restored_as_it_is(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Oslo")
    wrong = ("restore", str(cli.database), "--workspace", "blue")
    said = cli.refused("--db", str(tmp_path / "back.db"), *wrong, code=2)
    cli("--db", str(tmp_path / "back.db"), "restore", str(cli.database))

    assert "has no workspace 'blue'" in said
    assert log_of(str(tmp_path / "back.db")) == log_of(str(cli.database))


def test_several_workspaces_do_not_go_into_one(
    cli: Cli, tmp_path: Path, postgres_address: str
) -> None:
    place = str(tmp_path / "team.db")
    for name in ("default", "blue"):
        with closing(stratagem.open(place_within(place, name), embedder="none")) as db:
            db.memory.store("name", name)
    file = str(tmp_path / "all.backup")
    cli("--db", place, "backup", file)
    target = f"{postgres_address}#{a_workspace()}"
    said = cli.refused("--db", target, "restore", file, code=2)
    cli("--db", target, "restore", file, "--workspace", "blue")

    assert "choose one with --workspace" in said
    assert log_of(target) == log_of(place_within(place, "blue"))
