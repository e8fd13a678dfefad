"""operations, call, and commands made from the table."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from stratagem import operations
from stratagem.operation import Caller, Operation
from stratagem.surfaces.cli.generic import command_of, dashed
from tests.surfaces.cli.console import Cli


@pytest.mark.parametrize("name", operations.TABLE)
def test_every_operation_is_a_command(cli: Cli, name: str) -> None:
    assert "Usage" in cli(command_of(name), "--help")


@pytest.mark.parametrize("name", operations.TABLE)
def test_every_parameter_of_an_operation_is_an_option_or_argument(
    cli: Cli, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters that have another form at the command line are named here, with that form."""
    # A narrow terminal folds long names.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 240)
    forms = {
        "strata_store": {"index": "--no-index", "tags": "--tag"},
        "strata_recall": {"cursor": "--raw", "max_chars": "--raw", "keys": "KEY"},
        "strata_search": {"max_chars": "-k", "tags": "--tag"},
        "strata_forget": {"keys": "KEY"},
        "strata_log": {"tags": "--tag"},
        "strata_branch": {
            "action": "merge",
            "compare": "OTHER",
            "decisions": "--decide",
            "max_chars": "--cursor",
        },
        "strata_history": {"max_chars": "--limit"},
    }.get(name, {})
    pages = cli(command_of(name), "--help")
    if name == "strata_branch":
        pages += "".join(cli("branch", action, "--help") for action in ("fork", "merge", "diff"))

    shown = [
        dashed(forms.get(field, field)).lower()
        for field in operations.input_schema(name)["properties"]
    ]

    assert [field for field in shown if field not in pages.lower()] == []


def test_operations_are_listed_with_what_they_do(cli: Cli) -> None:
    rows = [line.split()[:3] for line in cli("operations").splitlines()]

    assert ["strata_recall", "memory", "reads"] in rows
    assert ["strata_purge", "admin", "erases"] in rows
    assert len(rows) == len(operations.TABLE) + 1


def test_what_operations_do_can_be_read_in_eighty_columns(cli: Cli) -> None:
    shown = cli("operations", COLUMNS="80", FORCE_COLOR="1", TERM="dumb")

    row = next(line for line in shown.splitlines() if line.startswith("strata_forget"))
    assert row.rstrip().endswith("Delete what is stored under a key")


def test_no_word_of_an_answer_is_broken_on_a_terminal(cli: Cli) -> None:
    asked = ("ranked-solutions", "--query-text", "boom", "--env", "{}")

    piped = cli(*asked)
    shown = cli(*asked, COLUMNS="40", FORCE_COLOR="1", TERM="xterm")

    assert max(map(len, shown.splitlines())) <= 40 < max(map(len, piped.splitlines()))
    assert shown.split()[2:] == piped.split()[2:]  # The id of the look-up differs.


def test_operations_in_json_have_their_schemas(cli: Cli) -> None:
    listed = {each["name"]: each for each in cli.json("operations")["results"]}

    assert listed.keys() == operations.TABLE.keys()
    assert listed["strata_recall"]["input_schema"] == operations.input_schema("strata_recall")


def test_any_operation_is_called_by_name(cli: Cli) -> None:
    cli("call", "strata_store", '{"key": "city", "value": "Oslo"}')

    answer = json.loads(cli("call", "strata_recall", "-", given='{"key": "city"}'))

    assert answer["value"] == "Oslo"
    assert json.loads(cli("call", "strata_status"))["keys"] == 1


@pytest.mark.parametrize(
    ("args", "error", "code"),
    [
        (("strata_recal",), "unknown_operation", 2),
        (("strata_recall", "{broken"), "invalid_input", 2),
        (("strata_recall", "[]"), "invalid_input", 2),
        (("strata_recall", '{"kex": 1}'), "validation_error", 2),
        (("strata_recall", '{"key": "a", "branch": "nope"}'), "branch_not_found", 3),
    ],
)
def test_a_call_that_fails_answers_in_json_too(
    cli: Cli, args: tuple[str, ...], error: str, code: int
) -> None:
    result = cli.run("call", *args)

    assert result.exit_code == code
    assert json.loads(result.stdout)["error"] == error


ECHO_SCHEMAS: dict[str, Any] = {
    "input": {
        "type": "object",
        "properties": {
            "word": {"type": "string", "description": "A word"},
            "times": {"type": "integer", "default": 1, "description": "How often"},
            "loud": {
                "anyOf": [{"type": "boolean"}, {"type": "null"}],
                "default": None,
                "description": "Whether to shout",
            },
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
            "options": {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None},
            "session": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "operation": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "from": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["word"],
        "additionalProperties": False,
    },
    "output": {"type": "object", "properties": {"word": {"type": "string"}}},
}


@pytest.fixture
def echo(add_row: Callable[[Operation], None]) -> None:
    def run(_foundation: object, given: dict[str, Any], caller: Caller) -> dict[str, Any]:
        return {**{name.rstrip("_"): each for name, each in given.items()}, "actor": caller.actor}

    operation = Operation(
        name="echo_words",
        toolset="tests",
        title="Echo",
        description="Say it again.",
        method=run,
        schemas=ECHO_SCHEMAS,
        run=run,
        summarise=lambda answer: f"You said {answer['word']}.",
    )
    add_row(operation)
    operations.input_schema.cache_clear()


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize("name", ["echo-words", "echo_words"])
def test_an_operation_without_a_command_of_its_own_gets_one(cli: Cli, name: str) -> None:
    assert "echo_words" in cli("operations")
    assert "How often" in cli(name, "--help")
    assert cli(name, "--word", "hello") == "You said hello.\n"
    assert cli.json(
        name, "--word", "hi", "--times", "2", "--loud", "--tags", "a", "--tags", "b",
        "--options", '{"deep": [1]}', "--session", "s", "--operation", "o", "--from", "f",
    ) == {
        "word": "hi",
        "times": 2,
        "loud": True,
        "tags": ["a", "b"],
        "options": {"deep": [1]},
        "session": "s",
        "operation": "o",
        "from": "f",
        "actor": "cli",
    }  # fmt: skip


@pytest.mark.usefixtures("echo")
def test_a_made_command_refuses_what_the_operation_refuses(cli: Cli) -> None:
    assert "Missing option" in cli.refused("echo-words", code=2)
    assert "not JSON" in cli.refused("echo-words", "--word", "a", "--options", "{", code=2)
