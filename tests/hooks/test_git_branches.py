"""Memory that follows git, in a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import stratagem
from stratagem.surfaces.cli import app
from tests.hooks.client import Client


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-m", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".stratagem").mkdir(parents=True)
    (folder / ".stratagem" / ".gitignore").write_text("*\n")
    (folder / ".stratagem" / "config.toml").write_text('branches = "git"\n')
    git(folder, "init", "-b", "main")
    commit(folder, "first")
    with stratagem.open(folder / ".stratagem" / "stratagem.db") as db:
        db.memory.store("release", "Releases are tagged by hand")
    return folder


def run(folder: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        app.root_command().main(list(arguments), prog_name="stratagem")
    assert ended.value.code in {0, None}


def say(client: Client, text: str) -> str:
    client.send_event("UserPromptSubmit", prompt=text)
    return client.send_event("Stop", last_assistant_message="Understood.").context


def branches(folder: Path) -> list[str]:
    with stratagem.open(folder / ".stratagem" / "stratagem.db") as db:
        return [each.name for each in db.memory.branches()]


def messages(folder: Path, branch: str) -> list[str]:
    with stratagem.open(folder / ".stratagem" / "stratagem.db", branch=branch) as db:
        return [
            each.data["content"]
            for each in db.memory.events().results
            if each.data["role"] == "user"
        ]


def test_what_git_has_merged_is_merged_at_the_next_start(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client("claude-code", repository)
    git(repository, "checkout", "-b", "feature/login")
    client.send("start")
    commit(repository, "second")
    say(client, "The login form needs a captcha")
    run(repository, "store", "captcha", "hcaptcha", monkeypatch=monkeypatch)
    apart = messages(repository, "default")

    git(repository, "checkout", "main")
    client.session = "before"
    before = client.send("start").context
    git(repository, "merge", "--no-ff", "feature/login")
    client.session = "after"
    after = client.send("start").context

    assert apart == []
    assert "feature/login" not in before
    assert "git has merged feature/login; so was its memory: 1 entry, " in after
    assert messages(repository, "default") == ["The login form needs a captcha"]


def test_a_branch_without_commits_of_its_own_is_not_merged(repository: Path) -> None:
    client = Client("claude-code", repository)
    git(repository, "checkout", "-b", "idea")
    client.send("start")
    say(client, "What about a dark theme")
    git(repository, "checkout", "main")

    context = client.send("start").context

    assert "idea" not in context
    assert messages(repository, "default") == []


def test_a_branch_that_was_squashed_goes_to_review_and_can_be_restored(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client("claude-code", repository)
    git(repository, "checkout", "-b", "squashed")
    client.send("start")
    commit(repository, "second")
    say(client, "The squashed work is about caching")
    git(repository, "checkout", "main")
    git(repository, "merge", "--squash", "squashed")
    git(repository, "commit", "-m", "squashed")
    git(repository, "branch", "-D", "squashed")

    context = client.send("start").context
    with stratagem.open(repository / ".stratagem" / "stratagem.db") as db:
        [item] = db.review.list("branch")
        db.review.decide([item.id], "keep")
        left = db.review.list("branch").results
        db.memory.restore("squashed")

    assert "Its memory waits for review" in context
    assert item.id == "branch:squashed"
    assert left == []
    assert messages(repository, "default") == ["The squashed work is about caching"]
    assert "squashed" in branches(repository)


def test_a_worktree_has_its_own_branch_of_the_same_memory(repository: Path) -> None:
    worktree = repository.parent / "elsewhere"
    git(repository, "worktree", "add", "-b", "side", str(worktree))
    client = Client("claude-code", worktree)

    say(client, "Said in the worktree")

    assert messages(repository, "default") == []
    assert messages(repository, "side") == ["Said in the worktree"]
    assert not (worktree / ".stratagem").exists()


def test_reads_fall_back_until_the_first_write_forks(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(repository, "checkout", "-b", "topic")

    run(repository, "recall", "release", monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    before = branches(repository)
    run(repository, "store", "release", "Releases are tagged by CI", monkeypatch=monkeypatch)
    git(repository, "checkout", "main")
    run(repository, "recall", "release", monkeypatch=monkeypatch)

    assert "Releases are tagged by hand" in shown
    assert before == ["default"]
    assert branches(repository) == ["default", "topic"]
    assert "Releases are tagged by hand" in capsys.readouterr().out


def test_a_branch_that_was_made_and_committed_to_between_two_events_is_merged(
    repository: Path,
) -> None:
    session = Client("claude-code", repository, "one")
    session.send_event("SessionStart", source="startup")
    # The agent does this by itself, within a turn.
    git(repository, "checkout", "-b", "feature")
    commit(repository, "work")
    say(session, "The feature listens on port 9191")
    git(repository, "checkout", "main")
    git(repository, "merge", "--no-ff", "-m", "merge", "feature")

    told = Client("claude-code", repository, "two").send_event("SessionStart", source="startup")

    assert "git has merged feature; so was its memory" in told.context
    assert "The feature listens on port 9191" in messages(repository, "default")


def test_a_branch_that_was_only_made_is_not_taken_for_merged(repository: Path) -> None:
    git(repository, "branch", "older")
    commit(repository, "more")
    git(repository, "checkout", "older")
    session = Client("claude-code", repository, "one")
    say(session, "Nothing is committed here yet")
    git(repository, "checkout", "main")

    told = Client("claude-code", repository, "two").send_event("SessionStart", source="startup")

    assert "git has merged" not in told.context
    assert "Nothing is committed here yet" not in messages(repository, "default")
