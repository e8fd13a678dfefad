from pathlib import Path

import pytest

import stratagem
from tests.surfaces.cli.console import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Give the command line, in an empty folder, with a database that is empty."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    database = tmp_path / "memory.db"
    stratagem.open(database).close()
    return Cli(database)
