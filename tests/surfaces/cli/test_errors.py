"""What goes wrong, in words, in JSON and as an exit code."""

import json
from pathlib import Path

import pytest

from stratagem import errors
from stratagem.bootstrap import Runtime
from stratagem.errors import StratagemError
from tests.surfaces.cli.console import Cli


def error_classes() -> list[type[StratagemError]]:
    return StratagemError.__subclasses__()


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.code)
def test_every_error_has_its_words_and_its_exit_code(
    cli: Cli, kind: type[StratagemError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise kind("Something is so.", hint="Do this.")

    monkeypatch.setattr(Runtime, "call", fail)

    result = cli.run("status")
    in_json = cli.run("status", "--json")

    assert result.exit_code == in_json.exit_code == errors.TABLE[kind.code].exit_code
    assert result.stderr == "Error: Something is so.\nHint: Do this.\n"
    assert (result.stdout, in_json.stderr) == ("", "")
    assert json.loads(in_json.stdout) == {
        "success": False,
        "error": kind.code,
        "message": "Something is so.",
        "details": {},
        "hint": "Do this.",
    }


@pytest.mark.parametrize("debugging", ["0", "1"])
def test_a_defect_is_reported_shortly_unless_somebody_debugs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, debugging: str
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Runtime, "call", fail)

    result = cli.run("status", STRATAGEM_DEBUG=debugging)

    assert result.exit_code == 1
    assert "Error: ZeroDivisionError: oh" in result.stderr
    assert ("Traceback" in result.stderr) is (debugging == "1")


def test_a_file_of_somebody_else_is_no_defect(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/their/file")

    monkeypatch.setattr(Runtime, "call", fail)

    said = cli.refused("status", code=errors.TABLE["storage_unavailable"].exit_code)

    assert said.startswith("Error: You may not use /their/file: Permission denied.")


@pytest.mark.parametrize(
    ("args", "words", "code", "field"),
    [
        (("serch", "x"), "Did you mean 'search'", "invalid_input", None),
        (("forget",), "Missing argument", "missing_required", "keys"),
        (("restore-namespace", "a"), "Missing option '--as-of'", "missing_required", "as_of"),
        (("recall", "a", "--nope"), "No such option", "invalid_input", "nope"),
        (("search", "a", "-k", "many"), "not a valid integer.", "validation_error", "k"),
        (("serve", "--port", "x"), "not a valid integer.", "validation_error", "port"),
        (("serve", "--port", "70000"), "0<=x<=65535", "validation_error", "port"),
        (("store", "a", "two", "words"), "Quote what has blanks", "invalid_input", None),
        (("branch", "explode"), "No such command", "invalid_input", None),
        (("--embedder", "magic", "status"), "magic", "validation_error", "embedder"),
    ],
)
def test_a_command_line_that_is_not_understood_says_so(
    cli: Cli, args: tuple[str, ...], words: str, code: str, field: str | None
) -> None:
    said = cli.refused(*args, code=2)
    in_json = cli.run(*args, "--json")

    assert words in said
    assert "--help`" in said
    assert in_json.exit_code == 2
    error = json.loads(in_json.stdout)
    assert (error["error"], error["details"].get("field")) == (code, field)


@pytest.mark.parametrize("option", ["--db", "--namespace", "--branch"])
@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_place_is_not_taken_for_the_usual_one(cli: Cli, option: str, blank: str) -> None:
    for words in (("store", "a", "1", option, blank), (option, blank, "store", "a", "1")):
        refused = json.loads(cli.run(*words, "--json").stdout)

        assert (refused["error"], refused["details"]["field"]) == ("validation_error", option[2:])
        assert refused["message"] == f"{option} is empty."
    assert cli.json("status")["keys"] == 0


def test_what_is_missing_is_described_with_an_example(cli: Cli) -> None:
    said = cli.refused("ranked-solutions", "KeyError: x", code=2).replace("\n", " ")

    assert "Missing argument 'ENV'." in said
    assert 'ENV: {"os":"linux",' in said
    assert 'or "auto"' in said
    assert "Example: stratagem ranked-solutions 'KeyError: DATABASE_URL' '{\"os\":" in said


def test_the_help_page_is_named_as_it_is_called(cli: Cli) -> None:
    said = cli.refused("create_concept", "--name", "A", code=2).replace("\n", " ")

    assert "See `stratagem create-concept --help`." in said


@pytest.mark.parametrize(
    "group", ["corrections", "debug", "knowledge", "outbox", "projections", "token", "tools"]
)
def test_a_group_without_a_command_shows_its_help_and_no_empty_error(cli: Cli, group: str) -> None:
    result = cli.run(group)

    assert result.exit_code == 2
    assert f" {group} [OPTIONS] COMMAND" in result.output
    assert "Error" not in result.output


def test_who_leaves_something_out_is_sent_to_the_help_page(cli: Cli) -> None:
    said = cli.refused("store", code=2)

    assert "Hint: Add one or the other, or see the command's --help." in said


def test_a_choice_that_there_is_not_is_told_in_plain_words(cli: Cli) -> None:
    said = cli.refused("init", "emacs", code=2)

    assert "There is no client 'emacs'." in said
    assert "Hint: One of claude-code, claude-desktop, cursor," in said


def test_a_file_that_is_no_database_is_refused(cli: Cli) -> None:
    cli.database.write_bytes(b"hello, world " * 1000)

    assert "not a Stratagem database" in cli.refused("status", code=7)


def test_an_interrupt_ends_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runtime, "call", interrupt)

    assert cli.run("status").exit_code == 130


def test_an_error_about_a_database_says_about_which(cli: Cli, tmp_path: Path) -> None:
    here, nowhere = tmp_path / "here.db", tmp_path / "nowhere.db"
    cli("--db", str(here), "store", "a", "1")

    missing = cli.run("copy", str(nowhere), str(here))
    here.write_text("Dear diary, " * 100)
    damaged = cli.run("--db", str(here), "recall", "a")

    assert f"At: {nowhere}\n" in missing.stderr
    assert f"At: {here}\n" in damaged.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("get", "'recall'"),
        ("set", "'store'"),
        ("ls", "'list' or 'recall'"),
        ("delete", "'forget'"),
        ("fork", "'branch fork'"),
    ],
)
def test_a_command_is_known_by_what_others_call_it(cli: Cli, word: str, meant: str) -> None:
    assert f"No such command {word!r}. Did you mean {meant}?" in cli.refused(word, "a", code=2)


def test_hints_name_commands(cli: Cli) -> None:
    cli("store", "a", "1")

    said = cli.refused("recall", "a", "--branch", "zzz", code=3)
    in_json = json.loads(cli.run("recall", "a", "--branch", "zzz", "--json").stdout)

    assert "Hint: List the branches with `stratagem branch list`." in said
    assert in_json["hint"] == "List the branches with `stratagem branch list`."
