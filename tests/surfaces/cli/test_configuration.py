"""Settings of files, of the environment and of the command line, and who of them wins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stratagem.places import database_path
from stratagem.surfaces.cli.app import app, root_command
from stratagem.surfaces.cli.settings import SETTINGS
from stratagem.surfaces.serving.settings import ServerSettings
from tests.surfaces.cli.console import Cli

HIDDEN = "hunter2"


@pytest.fixture
def project(cli: Cli) -> Path:
    folder = Path(".stratagem")
    folder.mkdir()
    return folder / "config.toml"


def settings(cli: Cli, *args: str, **environment: str) -> dict[str, Any]:
    result = cli.run(*args, "config", "--json", **environment)
    assert result.exit_code == 0, result.output
    return {each["name"]: each for each in json.loads(result.stdout)["settings"]}


def test_without_anything_the_defaults_hold(cli: Cli) -> None:
    shown = settings(cli)

    assert (shown["port"]["value"], shown["port"]["from"]) == ("7437", "default")
    assert (shown["db"]["value"], shown["db"]["from"]) == (str(cli.database), "STRATAGEM_DB")


def test_a_settings_folder_that_cannot_be_looked_into_holds_none(cli: Cli) -> None:
    # As a folder of somebody else is to everybody but root.
    shown = settings(cli, XDG_CONFIG_HOME=f"/{'a' * 300}")

    assert shown["port"]["from"] == "default"


def test_the_nearer_one_wins_and_is_named(cli: Cli, project: Path) -> None:
    home = Path(os.environ["HOME"]) / ".config" / "stratagem"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text('port = 1\nworkers = 2\nhost = "10.0.0.1"\n', "utf-8")
    project.write_text('port = 2\nbranch = "filed"\nread_only = true\n', "utf-8")
    try:
        shown = settings(cli, "--branch", "flagged", STRATAGEM_HOST="127.0.0.2")
    finally:
        (home / "config.toml").unlink()

    assert (shown["workers"]["value"], shown["workers"]["from"]) == (
        "2",
        str(home / "config.toml"),
    )
    assert (shown["port"]["value"], shown["port"]["from"]) == ("2", str(project.resolve()))
    assert (shown["host"]["value"], shown["host"]["from"]) == ("127.0.0.2", "STRATAGEM_HOST")
    assert (shown["branch"]["value"], shown["branch"]["from"]) == ("flagged", "--branch")
    assert shown["read_only"]["value"] == "yes"


def test_what_a_file_says_holds_for_commands_and_only_for_them(cli: Cli, project: Path) -> None:
    project.write_text('namespace = "filed"\n', "utf-8")
    cli("store", "city", "Oslo")
    answer = cli.json("recall", "city", "--namespace", "filed")

    assert answer["value"] == "Oslo"
    assert "STRATAGEM_NAMESPACE" not in os.environ


def test_a_list_of_a_file_is_taken_by_the_command(cli: Cli, project: Path) -> None:
    project.write_text('toolsets = ["memory", "nonsense"]\nallow_hosts = ["a:1", "b:2"]\n', "utf-8")

    assert settings(cli)["allow_hosts"]["value"] == "a:1 b:2"
    assert "nonsense" in cli.refused("serve", "--port", "0", code=2)


def test_a_project_does_not_say_which_functions_run(cli: Cli, project: Path) -> None:
    project.write_text('allow_callables = ["os:system"]\n', "utf-8")

    told = cli.refused("config", code=2)

    assert "a project may have been written by anybody" in told


def test_passwords_are_not_shown(cli: Cli) -> None:
    addresses = {
        "STRATAGEM_DB": f"postgresql://ada:{HIDDEN}@db.example/team?password={HIDDEN}#blue",
        "STRATAGEM_REDIS": f"redis://:{HIDDEN}@10.0.0.5:6379/0",
        "STRATAGEM_PUBLIC_URL": f"https://user:{HIDDEN}@[bad",
    }
    for form in (("--json",), ()):
        said = cli.run("config", *form, **addresses)
        assert said.exit_code == 0
        assert HIDDEN not in said.output
    shown = settings(cli, **addresses)

    assert shown["db"]["value"] == "postgresql://db.example/team#blue"
    assert shown["redis"]["value"] == "redis://10.0.0.5:6379/0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("port = ", "cannot be read"),
        ("prot = 1", "does not exist: prot"),
        ("[port]\na = 1", "no value for port"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(
    cli: Cli, project: Path, text: str, words: str
) -> None:
    project.write_text(text, "utf-8")

    assert words in cli.refused("status", code=2)


def test_a_setting_that_no_option_has_is_taken_from_a_file(cli: Cli, project: Path) -> None:
    project.write_text('graph = "nonsense"\n', "utf-8")

    assert "There is no service 'nonsense'" in cli.refused("store", "city", "Oslo", code=2)


def test_an_option_of_the_root_wins_over_a_file_for_a_server(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ServerSettings] = []
    monkeypatch.setattr("stratagem.surfaces.server.run", started.append)
    project.write_text('branch = "filed"\nport = 5\nallow_hosts = ["a:1", "b:2"]\n', "utf-8")

    cli("--branch", "flagged", "serve")

    (settings,) = started
    assert (settings.branch, settings.port) == ("flagged", 5)
    assert settings.allow_hosts == ("a:1", "b:2")


def test_a_server_tells_the_options_that_it_was_started_with(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ServerSettings] = []
    monkeypatch.setattr("stratagem.surfaces.server.run", started.append)

    cli("serve", "--port", "7001", "--auth", "token", "--allow-host", "a:1")

    (settings,) = started
    told = {each["name"]: (each["value"], each["from"]) for each in settings.described}
    assert told["port"] == ("7001", "--port")
    assert told["auth"] == ("token", "--auth")
    assert told["allow_hosts"] == ("a:1", "--allow-host")
    assert told["workers"] == ("1", "default")


def test_a_value_that_is_wrong_is_told_with_its_file(cli: Cli, project: Path) -> None:
    project.write_text("workers = 0\n", "utf-8")

    said = cli.refused("serve", "--port", "0", code=2)
    assert f"it is set in {project.resolve()}" in said.replace("\n", " ")


def test_what_is_in_force_is_shown_where_nobody_chose(cli: Cli, tmp_path: Path) -> None:
    del tmp_path
    result = CliRunner().invoke(
        app, ["config", "--json"], env={"STRATAGEM_DB": None, "EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    )
    shown = {each["name"]: each for each in json.loads(result.stdout)["settings"]}

    assert shown["db"]["value"] == str(database_path())
    assert shown["db"]["from"] == "default"
    assert (shown["embedder"]["value"], shown["embedder"]["from"]) == ("minilm", "EMBEDDING_MODEL")


def test_a_variable_that_is_no_setting_is_named(cli: Cli) -> None:
    answer = json.loads(cli.run("config", "--json", STRATAGEM_PROT="1").stdout)
    said = cli("config", STRATAGEM_PROT="1")

    assert "STRATAGEM_PROT" in answer["unknown"]
    assert "perhaps misspelt: STRATAGEM_PROT" in said
    assert "misspelt" not in cli("config", STRATAGEM_DEBUG="")


def test_every_variable_that_a_command_takes_is_a_setting() -> None:
    root = root_command()
    commands = [root, *(root.get_command(None, name) for name in ("serve", "mcp"))]
    variables = {
        each.envvar
        for command in commands
        for each in command.params
        if isinstance(getattr(each, "envvar", None), str)
    }

    assert variables - {"STRATAGEM_JSON"} <= {each.variable for each in SETTINGS.values()}
    assert len(variables) > 15
