"""branch and its actions."""

import json
import re

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


def test_each_branch_that_was_deleted_under_a_name_is_restored_by_when_it_was_made(
    cli: Cli,
) -> None:
    for value in ("1", "2"):
        cli("branch", "create", "trial")
        cli("store", "k", value, "--branch", "trial")
        cli("branch", "delete", "trial")
    told = cli.json("branch", "restore", "trial")["note"]
    made = told.split("created at ")[1].split(". ")[0]

    cli("branch", "restore", "first", "--source", "trial", "--as-of", made)

    values = [cli.json("recall", "k", "--branch", name)["value"] for name in ("first", "trial")]
    assert values == [1, 2]


def test_switch_says_how_to_work_on_another_branch(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    said = cli.refused("branch", "switch", "trial", code=4)

    assert "--branch trial" in said
    assert "STRATAGEM_BRANCH=trial" in said


def test_diff_shows_whose_each_change_is_and_the_places_that_differ(diverged: Cli) -> None:
    diverged("store", "moved", "on")

    lines = diverged("branch", "diff", "trial").splitlines()

    assert lines == [
        "trial against default: 1 added; default changed 1 since; 1 changed on both",
        "Changed on trial only:",
        "+ new  1",
        "Changed on default only:",
        "+ moved  on",
        "Changed on both, default → trial:",
        "~ prefs",
        "    $.theme  blue → light  on both",
    ]


def test_diff_says_where_each_place_of_what_both_changed_was_changed(diverged: Cli) -> None:
    diverged("store", "prefs", "2", "--path", "$.size")
    diverged("store", "prefs", "[1, 2]", "--path", "$.list", "--branch", "trial")
    diverged("store", "prefs", '"a\\nb"', "--path", "$.note", "--branch", "trial")

    lines = diverged("branch", "diff", "trial").splitlines()

    assert [" ".join(line.split()) for line in lines[lines.index("~ prefs") + 1 :]] == [
        "$.theme blue → light on both",
        "$.size 2 → 1 on default",
        "$.list [1, 2] on trial",
        "$.note on trial",
        "+a",
        "+b",
    ]


def test_diff_of_branches_that_show_the_same_says_so(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    assert cli("branch", "diff", "trial") == "trial and default show the same.\n"
    cli("log", "deployed", "today", "--branch", "trial")
    assert cli("branch", "diff", "trial") == "trial against default: 1 event logged\n"


def test_diff_shows_expiry_tags_lines_and_titles(cli: Cli) -> None:
    cli("store", "lease", "1", "--namespace", "team")
    cli("store", "notes", "one\ntwo\nthree")
    cli("store", "list", "[1, 2]", "-t", "old")
    cli("store", "gone", '{"a": 1}')
    cli("store", "old", "x\ny")
    cli("store", "short", "one")
    cli("branch", "fork", "trial")
    on_trial = ("--branch", "trial")
    cli("forget", "old", *on_trial)
    cli("store", "short", "one\ntwo", *on_trial)
    cli("store", "long", "a\nb", "--ttl", "1h", *on_trial)
    cli("store", "lease", "1", "--ttl", "1h", "--namespace", "team", *on_trial)
    cli("store", "notes", "one\n2\nthree", *on_trial)
    cli("store", "list", "[1, 3]", "-t", "new", *on_trial)
    cli("forget", "gone", *on_trial)
    concept = '{"name": "%s", "explanation": "x", "area": "a", "topic": "t", "subtopic": "s"}'
    ends = [
        json.loads(cli("call", "create_concept", concept % name, *on_trial))["concept_id"]
        for name in ("Loops", "Recursion")
    ]
    link = {"source_id": ends[0], "target_id": ends[1], "relationship_type": "prerequisite"}
    cli("call", "create_relationship", json.dumps(link), *on_trial)

    shown = cli("branch", "diff", "trial")

    assert not any(end in line for end in ends for line in shown.splitlines() if line[:1] in "+~-")
    assert "+ concept Loops\n" in shown
    assert "+ relationship Loops prerequisite Recursion\n" in shown
    assert '- gone  {"a": 1}\n' in shown
    assert "- old\n    -x\n    -y\n" in shown
    assert "~ short\n    @@ -1 +1,2 @@\n     one\n    +two\n" in shown
    assert re.search(r"\+ long\n    value\n    \+a\n    \+b\n    expires  \d{4}-", shown)
    assert "~ list\n    $[1]  2 → 3\n    tags  old → new\n" in shown
    assert "~ notes\n    @@ -1,3 +1,3 @@\n     one\n    -two\n    +2\n     three\n" in shown
    assert re.search(r"~ lease  in team\n    expires  never → \d{4}-\d\d-\d\d \d\d:", shown)
    assert re.search(r"created_at +\d{4}-\d\d-\d\d \d\d:", shown)


def test_conflicts_are_refused_and_shown_side_by_side(diverged: Cli) -> None:
    said = diverged.refused("branch", "merge", "trial", code=4)

    shown = said[said.index("!") :].splitlines()
    assert shown[:4] == [
        "! default/prefs#$.theme  at $.theme",
        "    before   dark",
        "    default  blue   =target",
        "    trial    light  =source",
    ]
    assert "--decide" in said


def test_a_preview_shows_conflicts_and_changes_nothing(diverged: Cli) -> None:
    shown = diverged("branch", "merge", "trial", "--preview")

    assert shown.startswith("Would merge 1 change and 0 events from trial into default.")
    assert "1 conflict to decide:" in shown
    assert "Nothing" in diverged("recall", "new")


@pytest.mark.parametrize(
    ("what", "theme"),
    [
        ("source", "light"),
        ("target", "blue"),
        ('{"value": "grey"}', "grey"),
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


def test_a_status_of_a_branch_that_never_was_is_an_error(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    said = cli.refused("--branch", "trail", "status", code=3)

    assert said == "Error: There is no branch named 'trail'.\nHint: Did you mean 'trial'?\n"
    assert json.loads(cli.run("status", "--branch", "trail", "--json").stdout)["details"]


def test_a_branch_that_is_not_there_is_named_with_its_neighbours(cli: Cli) -> None:
    cli("branch", "fork", "trial")

    said = cli.refused("recall", "city", "--branch", "trail", code=3)

    assert "Did you mean 'trial'?" in said
