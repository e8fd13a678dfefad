"""doctor, export and backup of a damaged database on a PostgreSQL server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

import stratagem
from tests.postgres import Server, a_workspace
from tests.surfaces.cli.console import Cli

READ_MODELS = {
    "a lost version": "DELETE FROM versions WHERE workspace = {w} AND seq = 3",
    "a lost text": "DELETE FROM texts WHERE workspace = {w} AND seq = 3",
    "a wrong tally": "UPDATE tallies SET live = 9 WHERE workspace = {w}",
}
ALTERED = (
    'UPDATE events SET payload = \'{{"value": "Paris"}}\'::bytea WHERE workspace = {w} AND seq = 3'
)


class Damaged:
    """A workspace of a server, as the command line and as its administrator see it."""

    def __init__(self, cli: Cli, address: str) -> None:
        self._cli = cli
        self._address = address
        self._workspace = a_workspace()
        self.place = f"{address}#{self._workspace}"
        with stratagem.open(self.place, embedder="none") as db:
            for number in range(5):
                db.memory.store(f"city {number}", f"Oslo {number}")

    def damage(self, statement: str) -> None:
        """Change what is stored, past the store."""
        with psycopg.connect(self._address) as connection:
            connection.execute("SET search_path TO stratagem")
            found = connection.execute(
                "SELECT id FROM workspaces WHERE name = %s", (self._workspace,)
            ).fetchone()
            assert found is not None
            assert connection.execute(statement.format(w=found[0])).rowcount > 0

    @contextmanager
    def without_upkeep(self, index: str) -> Iterator[None]:
        """Have the server leave an index as it is, whatever is written to its table."""
        change = "UPDATE pg_index SET indisready = %s WHERE indexrelid = %s::regclass"
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(change, (False, f"stratagem.{index}"))
            yield
            connection.execute(change, (True, f"stratagem.{index}"))

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and whatever it printed."""
        result = self._cli.run("--db", self.place, *arguments)
        return result.exit_code, result.stdout + result.stderr


@pytest.fixture
def damaged(cli: Cli, postgres_address: str) -> Damaged:
    return Damaged(cli, postgres_address)


@pytest.mark.parametrize("what", READ_MODELS)
def test_a_damaged_read_model_is_told_as_such_and_repaired(damaged: Damaged, what: str) -> None:
    damaged.damage(READ_MODELS[what])

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert "The log is whole" in found
    assert "doctor --repair" in found
    assert "Healthy" in repaired
    assert damaged.run("doctor")[0] == 0
    code, told = damaged.run("recall", "city 1", "--json")
    assert code == 0
    assert json.loads(told)["value"] == "Oslo 1"


@pytest.fixture(scope="module")
def own_server() -> Iterator[str]:
    """Start a server for this module alone: all workspaces of a server share its indexes."""
    # It reads through indexes, as it would if the tables were large.
    server = Server.create(enable_seqscan="off")
    yield server.address
    server.destroy()


@pytest.mark.parametrize(
    "index",
    ["versions_subject", "versions_branch", "subjects_workspace_space_key_key", "events_pkey"],
)
def test_an_index_that_misses_a_row_is_found_and_made_anew(
    cli: Cli, own_server: str, index: str
) -> None:
    damaged = Damaged(cli, own_server)
    with damaged.without_upkeep(index):
        assert damaged.run("store", "city late", "Oslo late")[0] == 0

    code, found = damaged.run("doctor")
    _, repaired = damaged.run("doctor", "--repair")

    assert code == 7
    assert f"The index {index} differs from its table" in found
    assert "The log is whole" in found
    assert "Healthy" in repaired
    assert damaged.run("doctor")[0] == 0
    code, told = damaged.run("recall", "city late", "--json")
    assert code == 0
    assert json.loads(told)["value"] == "Oslo late"


def test_every_ordered_index_is_compared_with_its_table(damaged: Damaged) -> None:
    code, told = damaged.run("doctor", "--json")

    assert code == 0
    assert json.loads(told)["warnings"] == []


def test_an_altered_payload_is_never_read_as_a_value(damaged: Damaged) -> None:
    damaged.damage(ALTERED)

    code, found = damaged.run("doctor")
    repairing, still = damaged.run("doctor", "--repair")
    reading, told = damaged.run("recall", "city 1", "--json")

    assert (code, repairing, reading) == (7, 7, 7)
    assert "The content of an event about 'city 1' was altered." in found
    assert "was altered" in still
    assert json.loads(told)["error"] == "database_corrupt"
    assert damaged.run("recall", "city 2")[0] == 0


@pytest.mark.parametrize("command", ["export", "backup"])
def test_nothing_is_saved_of_an_altered_log_as_if_it_were_whole(
    damaged: Damaged, command: str
) -> None:
    damaged.damage(ALTERED)

    code, told = damaged.run(command, "out.saved", "--json")

    assert code == 7
    assert json.loads(told)["error"] == "database_corrupt"
