"""stratagem -C FOLDER: working in another folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stratagem
from tests import forkserver


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forkserver.run(
        [sys.executable, "-m", "stratagem", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )


def test_a_project_named_by_its_folder_is_read_with_ones_own_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".stratagem").mkdir(parents=True)
    with stratagem.open(project / ".stratagem" / "stratagem.db") as db:
        db.memory.store("city", "Oslo")
    run(elsewhere, "store", "editor", "vim")

    answers = [run(elsewhere, "-C", str(project), "recall", key) for key in ("city", "editor")]

    assert "Oslo" in answers[0].stdout
    assert "vim" in answers[1].stdout
    assert "personal memory" in answers[1].stdout


@pytest.mark.parametrize("arguments", [("-C",), ("-C", "/nowhere/at/all", "status")])
def test_a_folder_that_is_not_there_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments)

    assert done.returncode == 2
    assert "stratagem -C FOLDER COMMAND" in done.stderr
