"""24. A repository that somebody else wrote makes nothing happen on the machine that it is cloned to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stratagem
from stratagem.errors import InvalidInput, PermissionDenied
from stratagem.hooks.settings import HOOK_SETTINGS, read_settings
from stratagem.places import database_path
from stratagem.projects import came_with_repository, tracked_files
from stratagem.surfaces.cli.settings import SETTINGS, FileSettings
from tests import forkserver
from tests.security.test_23_spools import git

# What changes how a project is worked on, and tells or opens nothing to anybody.
HARMLESS = {
    *("namespace", "branch", "durability", "embedder", "auto_embed", "relevance_min", "read_only"),
    *("toolsets", "developer", "expose", "port", "workers", "max_connections", "log_format"),
    *(each.name for each in HOOK_SETTINGS),
}
PROGRAM = [sys.executable, "-m", "stratagem"]


def run(folder: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command where a project is, as its user would."""
    environment = {name: each for name, each in os.environ.items() if "STRATAGEM" not in name}
    return forkserver.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env={**environment, "HOME": str(folder.parent)},
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def make_repository(folder: Path, *, form: str = "plain") -> Path:
    """Make a repository with a memory in it, in one of the ways in which git keeps paths."""
    memory = folder / ("notes" if form == "link" else ".stratagem")
    memory.mkdir(parents=True)
    with stratagem.open(str(memory / "stratagem.db"), embedder="none") as db:
        db.memory.store("hello", "from a stranger")
    (memory / "stratagem.d").write_text("so that the next path is but one letter in version 4")
    if form == "link":
        (folder / ".stratagem").symlink_to("notes")
    git(folder, "init", "-q")
    if form == "compressed":
        git(folder, "config", "index.version", "4")
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-qm", "Begin")
    if form == "split":
        git(folder, "update-index", "--split-index")
    return folder


@pytest.mark.parametrize("form", ["plain", "compressed", "split", "link"])
def test_a_memory_that_came_with_a_repository_is_used_only_by_its_name(
    tmp_path: Path, form: str
) -> None:
    folder = make_repository(tmp_path / "clone", form=form)
    place = folder / ".stratagem" / "stratagem.db"

    with pytest.raises(PermissionDenied, match="came with the repository"):
        database_path(folder=folder)

    assert "all" in read_settings(str(folder)).off
    assert database_path(str(place), folder=folder) == place


def test_a_submodule_in_place_of_the_memory_came_with_the_repository(tmp_path: Path) -> None:
    memory = make_repository(tmp_path / "theirs") / ".stratagem"
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    git(memory, "init", "-q")
    git(memory, "add", "-f", ".")
    git(memory, "commit", "-qm", "Begin")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", str(memory), ".stratagem")

    assert came_with_repository(str(folder / ".stratagem"))


def test_a_memory_of_ones_own_in_a_repository_is_used(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "own")
    (folder / ".stratagem" / "config.toml").write_text('toolsets = "memory"\n')
    git(folder, "rm", "-rq", "--cached", ".stratagem")
    git(folder, "add", "-f", ".stratagem/config.toml")

    found = database_path(folder=folder)

    assert found == (folder / ".stratagem" / "stratagem.db").resolve()
    assert tracked_files(str(folder / ".stratagem")) == {"config.toml"}


def test_no_program_of_a_cloned_memory_is_started(tmp_path: Path) -> None:
    """Until it was refused, `resources/list` started what the stranger had registered."""
    theirs, mark = tmp_path / "theirs", tmp_path / "MARK"
    (theirs / ".stratagem").mkdir(parents=True)
    database = str(theirs / ".stratagem" / "stratagem.db")
    upstream = " ".join([*PROGRAM, "--db", str(tmp_path / "upstream.db"), "mcp"])
    server = {"name": "tools", "command": "/bin/sh", "args": ["-c", f"touch {mark}; {upstream}"]}
    added = run(theirs, "--db", database, "call", "server_add", "-", text=json.dumps(server))
    assert mark.exists(), added.stderr
    mark.unlink()
    (theirs / ".stratagem" / "config.toml").write_text('toolsets = "memory,gateway"\n')
    git(theirs, "init", "-q")
    git(theirs, "add", "-f", ".stratagem/stratagem.db", ".stratagem/config.toml")
    git(theirs, "commit", "-qm", "Begin")
    git(tmp_path, "clone", "-q", "theirs", "clone")
    messages: list[dict[str, object]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "client", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "resources/list"},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages)

    ended = run(tmp_path / "clone", "mcp", text=text)
    init = run(tmp_path / "clone", "init", "claude-code", "--yes")

    assert not mark.exists()
    for each in (ended, init):
        assert each.returncode != 0
        assert "came with the repository" in each.stderr


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_settings_that_came_with_a_repository_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / ".stratagem"
    folder.mkdir()
    (folder / "config.toml").write_text(f'{name} = "none"\n')
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", ".")
    monkeypatch.chdir(tmp_path)

    if name in HARMLESS:
        assert name in FileSettings.read().of_files
    else:
        with pytest.raises(InvalidInput, match=f"cannot set {name}"):
            FileSettings.read()


def test_a_repository_does_not_say_what_hooks_mask(tmp_path: Path) -> None:
    folder = tmp_path / ".stratagem"
    folder.mkdir()
    (folder / "config.toml").write_text('redaction = "none"\ndb = "theirs.db"\n')
    git(tmp_path, "init", "-q")
    before = read_settings(str(tmp_path))

    git(tmp_path, "add", "-f", ".")
    after = read_settings(str(tmp_path))

    assert (before.level, before.database) == ("none", "theirs.db")
    assert (after.level, after.database) == ("basic", str(folder / "stratagem.db"))
