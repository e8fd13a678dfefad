"""The memory of a repository that is kept outside of it, named after its git remote or its folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from stratagem.projects import find_memory, outside_memory
from tests import forkserver
from tests.hooks.client import Client
from tests.hooks.test_git_branches import commit, git

REMOTE = "git@git.example.com:team/shop.git"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


def clone(folder: Path, remote: str = REMOTE) -> Path:
    folder.mkdir()
    git(folder, "init", "-b", "main")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    commit(folder, "first")
    return folder


def stratagem(folder: Path, *arguments: str, status: int = 0) -> str:
    done = forkserver.run(
        [sys.executable, "-m", "stratagem", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_all_clones_of_a_remote_have_one_memory(tmp_path: Path) -> None:
    first = clone(tmp_path / "first")
    second = clone(tmp_path / "second", "https://ada@git.example.com:8443/team/shop")
    other = clone(tmp_path / "other", "git@git.example.com:team/other.git")
    stratagem(first, "init", "claude-code", "--outside", "--yes")
    stratagem(first, "store", "deploy/staging", "Staging deploys run with make deploy-staging")

    told = [
        Client("claude-code", folder, folder.name)
        .send_event("UserPromptSubmit", prompt="How do I deploy to staging?")
        .context
        for folder in (first, second, other)
    ]

    assert "make deploy-staging" in told[0]
    assert "[project] deploy/staging" in told[1]
    assert told[2] == ""
    assert not (first / ".stratagem").exists()
    assert "make deploy-staging" in stratagem(second, "recall", "deploy/staging")


def test_a_prompt_is_told_when_something_imported_was_said(tmp_path: Path) -> None:
    folder = clone(tmp_path / "first")
    stratagem(folder, "init", "claude-code", "--outside", "--yes")
    said = {
        "id": "m",
        "author": {"role": "assistant"},
        "create_time": 1_760_000_000,
        "content": {"content_type": "text", "parts": ["Staging deploys run with make ship"]},
    }
    mapping = {"m": {"id": "m", "parent": None, "message": said}}
    conversation = {"title": "Deploys", "mapping": mapping, "conversation_id": "c"}
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([conversation]))
    stratagem(folder, "import", str(export))

    told = Client("claude-code", folder).send_event(
        "UserPromptSubmit", prompt="How do staging deploys run?"
    )

    assert "assistant said (2025-10-09): Staging deploys run with make ship" in told.context


def test_a_repository_without_a_remote_is_known_by_its_folder_and_finds_it_with_one(
    tmp_path: Path,
) -> None:
    folder = clone(tmp_path / "shop", "")
    stratagem(folder, "init", "--project", "--outside", "--yes")
    before = find_memory(str(folder))

    git(folder, "remote", "add", "origin", REMOTE)

    assert before is not None
    assert find_memory(str(folder / "..")) is None
    assert find_memory(str(folder)) == before


def test_a_second_init_makes_no_second_memory(tmp_path: Path) -> None:
    folder = clone(tmp_path / "shop")
    stratagem(folder, "init", "cursor", "--outside", "--yes")
    again = stratagem(folder, "init", "cursor", "--yes")
    worktree = tmp_path / "elsewhere"
    git(folder, "worktree", "add", str(worktree), "-b", "trial")
    stratagem(worktree, "init", "claude-code", "--yes")

    assert "nothing to change" in again
    assert not (folder / ".stratagem").exists()
    assert not (worktree / ".stratagem").exists()
    # Cursor starts servers elsewhere, so its entry names the project.
    assert '"-C"' in (folder / ".cursor" / "mcp.json").read_text()


def test_what_cannot_be_outside_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    inside = clone(tmp_path / "inside")
    stratagem(inside, "init", "--project", "--yes")

    nowhere = stratagem(plain, "init", "--project", "--outside", "--yes", status=2)
    twice = stratagem(inside, "init", "--outside", "--project", "--yes", status=2)

    assert "not in a git repository" in nowhere
    assert "mv " in twice


def test_a_repository_of_another_user_says_nothing_about_whose_memory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clone(tmp_path / "shop")
    stratagem(folder, "init", "--project", "--outside", "--yes")
    if os.geteuid() == 0:
        os.chown(folder / ".git", 4242, -1)
    owner = (folder / ".git").stat().st_uid

    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    assert find_memory(str(folder)) is None


def test_a_branch_that_another_clone_has_is_not_gone(tmp_path: Path) -> None:
    first, second = clone(tmp_path / "first"), clone(tmp_path / "second")
    stratagem(first, "init", "--project", "--outside", "--yes")
    memory = Path(find_memory(str(first)) or "")
    (memory / "config.toml").write_text('branches = "git"\n')
    git(first, "checkout", "-b", "trial")
    commit(first, "work")
    Client("claude-code", first).send_event("UserPromptSubmit", prompt="The trial uses port 8081")
    Client("claude-code", first).send_event("Stop", last_assistant_message="Understood.")

    told = Client("claude-code", second, "other").send_event("SessionStart", source="startup")

    assert "is gone" not in told.context
    assert "Nothing is waiting" in stratagem(second, "review", "list", "branch")


@pytest.mark.parametrize(
    "address",
    [
        "git@git.example.com:team/shop.git",
        "https://git.example.com/team/shop",
        "https://ada:secret@GIT.example.com:8443/team/shop.git/",
        "ssh://git@git.example.com:22/team/shop.git",
    ],
)
def test_all_forms_of_a_remote_are_one(tmp_path: Path, address: str) -> None:
    first, second = clone(tmp_path / "a", REMOTE), clone(tmp_path / "b", address)

    assert outside_memory(str(first)) == outside_memory(str(second))


@pytest.mark.parametrize("address", ["/srv/git/shop.git", "file:///srv/git/shop", "C:/git/shop"])
def test_a_folder_is_a_remote_as_well(tmp_path: Path, address: str) -> None:
    first, second = clone(tmp_path / "a", address), clone(tmp_path / "b", address)

    assert outside_memory(str(first)) == outside_memory(str(second))
