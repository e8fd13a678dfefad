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
    assert "editor  personal ·" in answers[1].stdout


@pytest.mark.parametrize("arguments", [("-C",), ("-C", "/nowhere/at/all", "status")])
def test_a_folder_that_is_not_there_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments)

    assert done.returncode == 2
    assert "stratagem -C FOLDER COMMAND" in done.stderr


_IN_REMOVED_FOLDER = """
import os, sys
os.chdir(sys.argv[1])
os.rmdir(sys.argv[1])
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "stratagem", "recall", "city"),
        ("-m", "stratagem", "--json", "status"),
        ("-m", "stratagem", "mcp"),
        ("-c", "import stratagem; stratagem.open('memory.db')"),
    ],
)
def test_a_working_folder_that_was_removed_is_named_as_the_reason(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", _IN_REMOVED_FOLDER, str(folder), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )

    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "has been removed" in said
    assert "cd ~" in said
    assert "defect" not in said
