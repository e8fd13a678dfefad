"""A failure is answered with the fix of that error, and of no other with another code."""

from __future__ import annotations

from pathlib import Path

import pytest

import stratagem
from stratagem.hooks.clients import HookEvent
from stratagem.hooks.fixes import FixCard, find_fix, read_cards, write_cards
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings, read_settings

STEPS = ["Renew the licence of the build server"]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookSettings:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "project" / ".stratagem").mkdir(parents=True)
    return read_settings(str(tmp_path / "project"))


def answer_to(settings: HookSettings, *, known: str, failure: str) -> str:
    """Return what a failure is answered with where one error and its fix are known."""
    with stratagem.open(settings.database, embedder="none") as db:
        added = db.debugging.add_incident(
            "The build failed", STEPS, "auto", True, error_signature=known
        )
        assert added.solution_id is not None
        db.debugging.record_outcome(added.solution_id, True, "auto")
    event = HookEvent(
        "claude-code", "PostToolUse", "tool", "s", settings.folder, tool="Bash",
        arguments={"command": "make"}, output=failure, failed=True,
    )  # fmt: skip
    return find_fix(event, settings, SessionFiles(settings.database, "claude-code", "s"))


@pytest.mark.parametrize(
    ("known", "failure"),
    [
        ("E2000", "E1234"),
        ("The start failed with E2000", "The start failed with E1234"),
        ("Error: ORA-00942", "Error: ORA-01017"),
        ("HTTP 500", "HTTP 500"),
        ("HTTP 500", "HTTP 502"),
        ("Command failed: exit code 1", "Command failed: exit code 1"),
    ],
)
def test_a_code_is_not_answered_with_the_fix_of_another_nor_a_bare_status(
    settings: HookSettings, known: str, failure: str
) -> None:
    assert answer_to(settings, known=known, failure=failure) == ""


@pytest.mark.parametrize(
    ("known", "failure"),
    [
        ("The start failed with E2000", "The start failed with E2000"),
        ("The start failed with E2000", "make: going on\nThe start failed with E2000"),
        ("Order 4711 failed: no such customer", "Order 4712 failed: no such customer"),
        (
            "ModuleNotFoundError: No module named 'yaml'",
            "HTTP 500\nModuleNotFoundError: No module named 'yaml'",
        ),
    ],
)
def test_the_same_error_is_answered_with_its_fix(
    settings: HookSettings, known: str, failure: str
) -> None:
    assert STEPS[0] in answer_to(settings, known=known, failure=failure)


def test_cards_that_were_written_without_codes_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "fixes.tsv")
    card = FixCard("e2000", "i", "s", "title", STEPS, "why", "f", [], 1.0, 0.9, ["e2000"])
    write_cards(path, 7, "here", [card._replace(codes=())])
    older = (tmp_path / "fixes.tsv").read_text().replace(", []]", "]")
    (tmp_path / "fixes.tsv").write_text(older)

    about, cards = read_cards(path, "it ended with E2000")

    assert about == {"newest": 7, "env_bucket": "here"}
    assert [each.codes for each in cards] == [()]
