"""Where options can stand, and which of them wins."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.cli.console import Cli


def test_options_are_taken_before_and_after_the_command(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    cli("--db", other, "store", "city", "Oslo")

    assert "Oslo" in cli("recall", "city", "--db", other)
    assert "Oslo" in cli("--db", other, "recall", "city")
    assert "Nothing" in cli("recall", "city")


def test_the_option_nearest_to_the_command_wins(cli: Cli, tmp_path: Path) -> None:
    near, far = str(tmp_path / "near.db"), str(tmp_path / "far.db")

    cli("--db", far, "store", "city", "Oslo", "--db", near)

    assert "Oslo" in cli("recall", "city", "--db", near)
    assert not Path(far).exists()


def test_options_stand_between_a_command_and_its_action(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")

    cli("branch", "--db", other, "fork", "trial")

    assert "trial" in cli("--db", other, "branch")
    assert "trial" not in cli("branch")


def test_the_environment_sets_options_and_the_command_line_overrides_it(cli: Cli) -> None:
    cli("store", "city", "Oslo", STRATAGEM_NAMESPACE="work")

    assert "Oslo" in cli("recall", "city", "--namespace", "work")
    assert "Nothing" in cli("recall", "city", "--namespace", "home", STRATAGEM_NAMESPACE="work")


def test_json_is_asked_for_before_or_after_or_by_the_environment(cli: Cli) -> None:
    cli("store", "city", "Oslo")

    answers = [
        cli("--json", "recall", "city"),
        cli("recall", "city", "--json"),
        cli("recall", "city", STRATAGEM_JSON="1"),
    ]

    assert {json.loads(answer)["value"] for answer in answers} == {"Oslo"}


def test_a_namespace_filters_a_search_only_where_it_was_asked_for(cli: Cli) -> None:
    cli("store", "city", "Oslo", "--namespace", "work")

    assert "city" in cli("search", "Oslo", STRATAGEM_NAMESPACE="home")
    assert "Nothing was found" in cli("search", "Oslo", "--namespace", "home")
    assert "Nothing was found" in cli("--namespace", "home", "search", "Oslo")


@pytest.mark.parametrize("flags", [("--no-auto-embed",), ("--embedder", "none")])
def test_search_is_by_words_only_without_an_embedder(cli: Cli, flags: tuple[str, ...]) -> None:
    cli("store", "city", "Oslo", *flags)

    found = cli("search", "Oslo", *flags)

    assert "Found by words only" in found


def test_a_database_opened_for_reading_refuses_to_write(cli: Cli) -> None:
    cli("store", "city", "Oslo")

    said = cli.refused("store", "city", "Bergen", "--read-only", code=5)

    assert "reading only" in said
    assert "Oslo" in cli("recall", "city", "--read-only")


def test_the_folder_of_a_project_has_the_database(cli: Cli) -> None:
    Path(".stratagem").mkdir()

    cli("store", "city", "Oslo", STRATAGEM_DB="")

    assert Path(".stratagem/stratagem.db").is_file()


def test_version_says_which_it_is(cli: Cli) -> None:
    assert cli("--version").startswith("stratagem ")


def test_help_names_every_command(cli: Cli) -> None:
    from stratagem.surfaces.cli.app import COMMANDS

    page = cli()

    assert [name for name in COMMANDS if f" {name} " not in page] == []
    assert "ranked-solutions" in page


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help_that_names_the_shared_options(cli: Cli, flag: str) -> None:
    from stratagem.surfaces.cli.app import COMMANDS

    for name in COMMANDS:
        # Clients call a hook as they are told to, and it finds its databases by itself.
        assert "--db" in cli(name, flag) or name == "hook", name


# Every character that a terminal obeys and JSON does not escape by itself.
OBEYED = "".join(
    chr(code)
    for low, high in ((0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069))
    for code in range(low, high + 1)
)  # fmt: skip


@pytest.mark.parametrize("command", ["recall", "search", "history"])
def test_json_has_no_character_that_a_terminal_would_obey(cli: Cli, command: str) -> None:
    hostile = f"city{OBEYED}[31m"
    cli("store", "city", hostile)

    printed = cli(command, "city", "--json")

    assert not set(OBEYED) & set(printed)
    assert "\\u009b" in printed
    assert "\\u202e" in printed
    if command != "search":
        assert hostile in _texts(json.loads(printed)), "a program reads what was stored"


def test_errors_and_results_of_tools_have_none_either(cli: Cli) -> None:
    hostile = f"no{OBEYED}such"
    given = json.dumps({"language": "javascript", "code": f"({{a: {json.dumps(hostile)}}})"})

    refused = cli.run("import", hostile, "--format", "markdown", "--json")
    called = cli("tools", "call", "code_executor", given)

    assert not set(OBEYED) & set(refused.stdout + called)
    assert hostile in json.loads(refused.stdout)["message"]
    assert "\\u009b" in called


def _texts(value: Any) -> set[str]:
    """Return every text in a value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {text for each in value for text in _texts(each)}
    return {value} if isinstance(value, str) else set()
