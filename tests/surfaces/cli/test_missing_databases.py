"""A command that only reads or removes makes no database; it says that there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stratagem
from stratagem.bootstrap import has_workspace
from stratagem.errors import DatabaseNotFound, StorageUnavailable
from tests.postgres import a_workspace
from tests.surfaces.cli.console import Cli

EXIT_CODE = 6
READING = [
    ("recall", "k"),
    ("search", "k"),
    ("list",),
    ("history", "k"),
    ("status",),
    ("branch", "list"),
    ("call", "strata_recall", '{"key": "k"}'),
    ("token", "list"),
    ("token", "off", "--yes"),
    ("export", "-"),
]
REMOVING = [
    ("forget", "k"),
    ("purge", "k", "--yes"),
    ("delete-namespace", "n"),
    ("restore-namespace", "n", "--as-of", "1h ago"),
    ("branch", "delete", "b"),
    ("branch", "restore", "b"),
    ("branch", "merge", "b"),
    ("call", "strata_branch", '{"action": "merge", "source": "b"}'),
]


@pytest.mark.parametrize("command", READING + REMOVING, ids=" ".join)
def test_a_read_of_a_missing_database_says_so_and_leaves_nothing_behind(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    place = tmp_path / "not" / "there" / "memory.db"

    result = Cli(place).run(*command, "--json")

    assert result.exit_code == EXIT_CODE, result.output
    told = json.loads(result.stdout)
    assert told["error"] == "database_not_found"
    assert str(place) in told["message"]
    assert told["hint"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("recall", "k"), ("store", "k", "v")], ids=" ".join)
@pytest.mark.parametrize("below", ["", "memory.db"])
def test_a_place_that_cannot_be_looked_at_is_told_as_such(
    tmp_path: Path, command: tuple[str, ...], below: str
) -> None:
    # As a folder of somebody else is to everybody but root.
    place = tmp_path / ("a" * 300) / below

    told = json.loads(Cli(place).run(*command, "--json").stdout)

    assert told["error"] == "storage_unavailable"
    assert "too long" in told["message"]
    with pytest.raises(StorageUnavailable):
        stratagem.open(place, create=False)


def test_files_of_a_similar_name_are_suggested(tmp_path: Path) -> None:
    stratagem.open(tmp_path / "memory.db", embedder="none").close()
    (tmp_path / "notes.txt").write_text("x")

    said = Cli(tmp_path / "memroy.db").refused("recall", "k", code=EXIT_CODE)

    assert "memory.db" in "".join(said.split())
    assert "notes" not in said


def test_a_write_makes_the_database_and_reads_of_the_gateway_need_none(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "new" / "memory.db")

    listed = cli.json("tools", "list")
    assert listed["tools"]
    assert cli.json("secrets", "list")["secrets"] == []
    assert not (tmp_path / "new").exists()
    cli("store", "k", "v")

    assert cli.json("recall", "k")["value"] == "v"


def test_a_program_may_ask_that_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseNotFound):
        stratagem.open(tmp_path / "memory.db", create=False)

    assert list(tmp_path.iterdir()) == []
    stratagem.open(tmp_path / "memory.db").close()
    stratagem.open(tmp_path / "memory.db", create=False).close()


@pytest.mark.parametrize("line", [("recall", "city"), ("status",), ("doctor",), ("list",)])
def test_a_workspace_that_a_server_does_not_have_is_not_made_by_a_read(
    postgres_address: str, tmp_path: Path, line: tuple[str, ...]
) -> None:
    name = a_workspace()
    stratagem.open(postgres_address, workspace=name, embedder="none").close()
    wrong = f"{name}x"

    said = Cli(tmp_path).refused("--db", f"{postgres_address}#{wrong}", *line, code=6)

    assert f"has no workspace '{wrong}'" in said
    assert f"'{name}'" in said
    assert not has_workspace(f"{postgres_address}#{wrong}")


def test_a_program_may_ask_that_no_workspace_is_made(postgres_address: str) -> None:
    name = a_workspace()
    with pytest.raises(DatabaseNotFound) as refused:
        stratagem.open(postgres_address, workspace=name, create=False)

    assert "create=False" in refused.value.hint
    stratagem.open(postgres_address, workspace=name, embedder="none").close()
    stratagem.open(postgres_address, workspace=name, embedder="none", create=False).close()


def test_a_folder_is_no_database_and_those_in_it_are_suggested(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    stratagem.open(tmp_path / "mine.db").close()

    said = Cli(tmp_path).refused("recall", "k", code=EXIT_CODE)
    empty = Cli(tmp_path / "empty").refused("recall", "k", code=EXIT_CODE)

    assert "is a folder" in said
    assert f"Did you mean {tmp_path / 'mine.db'}?" in " ".join(said.split())
    assert "first write" not in empty
