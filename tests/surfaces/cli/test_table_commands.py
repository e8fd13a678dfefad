"""operations, call, and commands made from the table."""

import json
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from stratagem import operations
from stratagem.operation import Caller, Operation
from stratagem.surfaces.cli.app import app
from stratagem.surfaces.cli.operation_commands import (
    alias_of,
    commands_of,
    dash_name,
    example_words,
    hint_of_alias,
)
from tests.surfaces.cli.console import Cli

ROWS = list(operations.TABLE.values())
# A page of help needs none.
NO_DATABASE = Path("no database")
COMMANDS = [(row, words) for row in ROWS for words in commands_of(row)]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    # A narrow terminal folds long names.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 400)


def test_every_operation_is_a_command_by_its_name() -> None:
    # What their pages say is read below, of the other names.
    group = get_group(app)
    with group.make_context("stratagem", ["operations"]) as context:
        unknown = {
            name
            for row in ROWS
            for name in (row.name, alias_of(row.name))
            if name not in commands_of(row) and group.get_command(context, name) is None
        }

    assert unknown == set()


@pytest.mark.parametrize(("row", "words"), COMMANDS, ids=lambda each: getattr(each, "name", each))
def test_every_parameter_of_a_command_is_an_option_or_argument_with_its_words(
    row: Operation, words: str
) -> None:
    page = " ".join(Cli(NO_DATABASE)(*words.split(), "--help").split())
    hint = next((each for each in row.commands if " ".join(each.path) == words), None)
    shared = {"branch", "namespace"}
    # Hand-written, for it asks before it erases.
    own_words = words == "purge"
    for field, schema in row.parameters["properties"].items():
        if field in shared or (hint and hint.only is not None and field not in hint.only):
            continue
        if hint and field in {*hint.fixed, *hint.single.values()}:
            continue
        if field == "confirm" and words == "tools call":
            # It takes the correction as its value, and has words of its own.
            continue
        assert dash_name(field) in page.lower(), field
        said = schema["description"].partition(": ")[2] or schema["description"]
        assert own_words or said[1:] in page, field
    example = example_words(row, hint or hint_of_alias(row))
    assert example is None or f"Example: stratagem {shlex.join(example)}" in page


def test_the_parameters_of_all_actions_are_covered_by_their_commands() -> None:
    for row in ROWS:
        if len(row.commands) > 1:
            taken = {field for hint in row.commands for field in (*(hint.only or ()), *hint.fixed)}
            left = row.parameters["properties"].keys() - taken - {"action", "branch"}
            # A person at a terminal needs no budget, and says why nowhere.
            assert left <= {"max_chars"}, row.name


def test_what_is_named_on_a_row_is_there() -> None:
    for row in ROWS:
        for hint in row.commands:
            for name in filter(None, (hint.renderer, hint.handler)):
                module, _, function = name.rpartition(".")
                assert callable(
                    getattr(import_module(f"stratagem.surfaces.cli.{module}"), function)
                )


def test_an_operation_has_one_command_with_the_flags_of_all_its_names(cli: Cli) -> None:
    asked = [
        ("tools", "recommend", "add", "numbers", "--limit", "1"),
        ("tools", "recommend", "--intent", "add numbers", "--max-recommendations", "1"),
        ("tools-recommend", "--intent=add numbers", "--limit", "1"),
        ("tools_recommend", "add numbers", "--max-recommendations", "1"),
    ]

    assert len({cli(*each) for each in asked}) == 1


def test_an_argument_that_is_given_in_no_way_is_named(cli: Cli) -> None:
    assert "Missing argument 'INTENT" in cli.refused("tools", "recommend", code=2)
    assert "Missing argument 'INTENT" in cli.refused("tools-recommend", "--limit", "1", code=2)


def test_a_correction_is_confirmed_by_a_switch_or_with_its_id(cli: Cli) -> None:
    wrong = '{"formula": "6 * 7"}'

    def offer() -> str:
        said = cli.refused("tools", "call", "calculator", wrong, code=2)
        return next(line for line in said.splitlines() if line.startswith("corr_")).split()[0]

    by_value = cli("tools", "call", "calculator", wrong, "--confirm", offer())
    by_switch = cli(
        "tool-execute", "--tool-name", "calculator", "--arguments", wrong,
        "--confirm", "--correction-id", offer(),
    )  # fmt: skip

    assert '"result": 42' in by_value
    assert '"result": 42' in by_switch


def test_operations_are_listed_with_what_they_do(cli: Cli) -> None:
    rows = [line.split()[:2] for line in cli("operations").splitlines() if line]

    assert ["strata_recall", "reads"] in rows
    assert ["strata_purge", "erases"] in rows
    assert ["ADMIN", "DOES"] in rows
    assert len(rows) == len(operations.TABLE) + len(operations.TOOLSETS)


def test_what_operations_do_can_be_read_in_eighty_columns(cli: Cli) -> None:
    shown = cli("operations", COLUMNS="80", FORCE_COLOR="1", TERM="dumb")

    row = next(line for line in shown.splitlines() if line.startswith("strata_forget"))
    assert "Delete what is stored under" in row


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


def test_a_call_names_the_operation_that_was_meant(cli: Cli) -> None:
    refused = json.loads(cli.run("call", "store", "{}").stdout)

    assert refused["details"]["similar"] == ["strata_store"]
    assert refused["hint"] == "Did you mean 'strata_store'?"


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
    assert cli(name, "--word", "hello") == cli(name, "hello") == "You said hello.\n"
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
    assert "Missing argument 'WORD'" in cli.refused("echo-words", code=2)
    assert "not JSON" in cli.refused("echo-words", "--word", "a", "--options", "{", code=2)


def test_the_example_of_each_command_runs(cli: Cli) -> None:
    shown = []
    for row in ROWS:
        for hint in row.commands or (hint_of_alias(row),):
            words = example_words(row, hint)
            if words is None:
                continue
            assert cli.run(*words).exit_code == 0, words
            shown.append(words[0])

    assert {"store", "recall", "search", "forget", "log", "history", "status"} <= set(shown)


@pytest.mark.parametrize("words", [("call", "strata_store"), ("tools", "call", "calculator")])
def test_a_number_that_python_does_not_read_is_refused_in_our_words(
    cli: Cli, words: tuple[str, ...]
) -> None:
    given = json.dumps({"key": "k", "value": 0}).replace("0", "9" * 5000)

    result = cli.run(*words, given)

    said = result.output
    assert result.exit_code == 2
    assert "A number has 5,000 digits; the limit is 4,300." in said
    assert "Send it as text" in said
    assert "set_int_max_str_digits" not in said
