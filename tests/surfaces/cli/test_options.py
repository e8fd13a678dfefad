"""Where options can stand, and which of them wins."""

import json
from pathlib import Path

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

    assert "By words only" in found


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
        assert "--db" in cli(name, flag), name
