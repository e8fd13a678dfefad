"""Commands that erase for good ask first; those that an agent is told to leave to a person work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from stratagem.errors import PermissionDenied
from stratagem.operation import Caller
from stratagem.operations import TABLE, find, prepare
from tests.security.test_16_person import RESERVED
from tests.surfaces.cli.console import Cli

USAGE = 2
ERASING = {
    "strata_purge": ["purge one", "strata_purge --key one"],
    "strata_state_purge": ["state-purge --cell one", "strata_state_purge --cell one"],
    "strata_vector_purge": ["vector-purge --collection docs --key one"],
    "executions_erase": ["tools retention --days 1", "executions-erase --days 1"],
    "secret_remove": ["secrets rm API_KEY", "secret-remove API_KEY"],
}
# What is a preview where no person stands behind the call asks a person all the same.
RETENTION = "retention-apply --keep 1"
# These say what they would erase until they are given a confirmation; a new value replaces a secret.
PREVIEWED = {"purge_record", "purge_knowledge", "tool_purge", "secret_set"}


@pytest.fixture
def filled(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path / "memory.db")
    cli("store", "one", "1")
    return cli


def test_every_operation_that_cannot_be_undone_is_tried() -> None:
    irreversible = {name for name, row in TABLE.items() if row.irreversible}

    assert irreversible == {*ERASING, *PREVIEWED}


@pytest.mark.parametrize(
    "command", [*(each for commands in ERASING.values() for each in commands), RETENTION]
)
def test_a_command_that_erases_for_good_asks_first(filled: Cli, command: str) -> None:
    refusal = filled.refused(*shlex.split(command), code=USAGE)

    assert "This needs confirmation" in refusal
    assert "--yes" in refusal


def test_a_preview_asks_nothing_and_yes_is_an_answer(filled: Cli) -> None:
    filled("store", "one", "2")

    planned = filled(*shlex.split(RETENTION), "--preview", "--json")
    erased = filled(*shlex.split(RETENTION), "--yes", "--json")
    again = filled(*shlex.split(RETENTION), "--preview", "--json")

    assert [json.loads(each)["versions"] for each in (planned, erased, again)] == [1, 1, 0]


@pytest.mark.parametrize("name", RESERVED)
def test_the_command_that_an_agent_is_told_of_can_be_pasted(filled: Cli, name: str) -> None:
    with pytest.raises(PermissionDenied) as refusal:
        prepare(find(name), RESERVED[name][0], Caller("mcp", authority="agent"))
    command = str(refusal.value.details["command"])

    result = filled.run(*shlex.split(command)[1:])

    assert "No such" not in result.stderr, command
    assert "Missing" not in result.stderr, command
    assert "unexpected" not in result.stderr, command
