"""`stratagem copy` between a file and a server."""

from __future__ import annotations

from pathlib import Path

import stratagem
from tests.postgres import a_workspace
from tests.surfaces.cli.console import Cli


def test_a_database_goes_to_a_server_and_back(
    cli: Cli, tmp_path: Path, postgres_address: str
) -> None:
    place = f"{postgres_address}#{a_workspace()}"
    with stratagem.open(str(tmp_path / "a.db"), embedder="none") as db:
        db.memory.store("city", "Oslo")
        db.memory.branch("fork", name="trial")
        db.memory.store("city", "Bergen", branch="trial")

    there = cli.json("copy", str(tmp_path / "a.db"), place)
    back = cli.json("copy", place, str(tmp_path / "b.db"))

    assert there["head"] == back["head"]
    assert there["events"] == back["events"] == 4
    with stratagem.open(str(tmp_path / "b.db"), embedder="none", branch="trial") as db:
        entry = db.memory.recall("city")
        assert entry is not None
        assert entry.value == "Bergen"


def test_a_copy_into_another_log_says_so(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        with stratagem.open(str(tmp_path / name), embedder="none") as db:
            db.memory.store("name", name)

    said = cli.refused("copy", str(tmp_path / "a.db"), str(tmp_path / "b.db"), code=2)

    assert "another log" in said


def test_a_server_is_a_database_for_every_command(cli: Cli, postgres_address: str) -> None:
    place = f"{postgres_address}#{a_workspace()}"

    cli("--db", place, "store", "city", "Oslo")
    answer = cli.json("--db", place, "recall", "city")
    health = cli.json("--db", place, "doctor")

    assert answer["value"] == "Oslo"
    assert health["healthy"] is True
