from pathlib import Path

import pytest

from tests.surfaces.cli.console import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Give the command line, in an empty folder, with a database that is not there yet."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return Cli(tmp_path / "memory.db")
