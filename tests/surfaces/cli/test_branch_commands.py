"""branch and its actions."""

import pytest

from tests.surfaces.cli.console import Cli


@pytest.fixture
def diverged(cli: Cli) -> Cli:
    """Give two branches that changed the same place, and a key that only one of them has."""
    cli("store", "prefs", '{"theme": "dark", "size": 1}')
    cli("branch", "fork", "trial")
    cli("store", "prefs", '"light"', "--path", "$.theme", "--branch", "trial")
    cli("store", "new", "1", "--branch", "trial")
    cli("store", "prefs", '"blue"', "--path", "$.theme")
    return cli


def test_branches_are_listed_with_where_they_come_from(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    for shown in (cli("branch"), cli("branch", "list")):
        rows = [line.split() for line in shown.splitlines()]
        assert rows[1][:2] == ["*", "default"]
        assert rows[2][:3] == ["trial", "default", "@1"]


def test_the_branch_worked_on_is_marked(cli: Cli) -> None:
    cli("branch", "create", "empty")

    assert "*  empty" in cli("branch", STRATAGEM_BRANCH="empty")


def test_a_fork_can_begin_in_the_past(cli: Cli) -> None:
    first = cli.json("store", "city", "Oslo")
    cli("store", "city", "Bergen")

    said = cli("branch", "fork", "before", "--as-of", f"@{first['version']}")

    assert said == f"Forked before from default at @{first['version']}.\n"
    assert "Oslo" in cli("recall", "city", "--branch", "before")


def test_names_are_made_up_for_new_branches(cli: Cli) -> None:
    assert cli("branch", "fork").startswith("Forked branch-2 from default")
    assert cli("branch", "create") == "Created branch-3, empty.\n"


def test_a_branch_is_deleted_and_restored(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    assert "brings it back" in cli("branch", "delete", "trial")
    assert "trial" not in cli("branch")
    assert cli("branch", "restore", "trial") == "Restored trial.\n"
    assert "trial" in cli("branch")


def test_switch_says_how_to_work_on_another_branch(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    said = cli.refused("branch", "switch", "trial", code=4)

    assert "--branch trial" in said
    assert "STRATAGEM_BRANCH=trial" in said


def test_diff_shows_each_change_with_both_values(diverged: Cli) -> None:
    lines = diverged("branch", "diff", "trial").splitlines()

    assert lines[0] == "trial against default: 1 added, 0 removed, 1 changed"
    assert [line.split()[:2] for line in lines[2:]] == [["+", "new"], ["~", "prefs"]]
    assert '"blue"' in lines[3]
    assert '"light"' in lines[3]


def test_conflicts_are_refused_and_shown_side_by_side(diverged: Cli) -> None:
    said = diverged.refused("branch", "merge", "trial", code=4)

    assert "CONFLICT" in said
    row = next(line.split() for line in said.splitlines() if "$.theme" in line)
    assert row[1:] == ["prefs", "$.theme", "dark", "blue", "light"]
    assert "--decide" in said


def test_a_preview_shows_conflicts_and_changes_nothing(diverged: Cli) -> None:
    shown = diverged("branch", "merge", "trial", "--preview")

    assert shown.startswith("Would merge 1 entry and 0 events from trial into default.")
    assert "1 conflict to decide:" in shown
    assert "Nothing" in diverged("recall", "new")


@pytest.mark.parametrize(
    ("what", "theme"),
    [
        ("source", "light"),
        ("target", "blue"),
        ('{"value": {"theme": "grey", "size": 1}}', "grey"),
    ],
)
def test_conflicts_are_decided_one_by_one(diverged: Cli, what: str, theme: str) -> None:
    conflict = diverged.json("branch", "merge", "trial", "--preview")["conflicts"][0]["id"]

    said = diverged("branch", "merge", "trial", "--decide", f"{conflict}={what}")

    assert said.startswith("Merged ")
    assert diverged.json("recall", "prefs")["value"] == {"theme": theme, "size": 1}


def test_a_strategy_decides_all_conflicts(diverged: Cli) -> None:
    diverged("branch", "merge", "trial", "--strategy", "source_wins")

    assert diverged.json("recall", "prefs")["value"]["theme"] == "light"


def test_a_decision_without_a_choice_is_refused(diverged: Cli) -> None:
    said = diverged.refused("branch", "merge", "trial", "--decide", "nothing", code=2)

    assert "CONFLICT=source" in said


def test_a_branch_that_is_not_there_is_named_with_its_neighbours(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    said = cli.refused("recall", "city", "--branch", "trail", code=3)

    assert "Did you mean 'trial'?" in said
