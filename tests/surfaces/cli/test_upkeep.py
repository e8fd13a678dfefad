"""doctor, rebuild, embed and purge."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from tests.surfaces.cli.console import Cli


@contextmanager
def opened(cli: Cli) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(cli.database))) as connection:
        yield connection


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli("store", "city", "Oslo", "-t", "north")
    cli("store", "city", "Bergen", "-t", "west")
    cli("log", "note", "it rains")
    return cli


def test_a_healthy_database_is_found_healthy_and_gives_an_anchor(filled: Cli) -> None:
    shown = filled("doctor")

    anchor = shown.split("--expect ")[1].split()[0]
    assert "Healthy: 4 events" in shown
    assert anchor == filled.json("status")["head"]
    assert "Healthy" in filled("doctor", "--expect", anchor)


def test_a_log_without_its_anchor_is_damaged(filled: Cli) -> None:
    result = filled.run("doctor", "--expect", f"9:{'a' * 64}")

    assert result.exit_code == 7
    assert "cut short or rewritten" in result.stdout


@pytest.mark.parametrize("anchor", ["12", "a:b", "1:xyz"])
def test_what_is_no_anchor_is_refused(filled: Cli, anchor: str) -> None:
    assert "is not a head" in filled.refused("doctor", "--expect", anchor, code=2)


def test_damaged_read_models_are_found_and_repaired(filled: Cli) -> None:
    with opened(filled) as connection:
        connection.execute("DELETE FROM tags")

    found = filled.run("doctor")
    repaired = filled("doctor", "--repair")

    assert found.exit_code == 7
    assert "repairable  The read model tags differs from the log." in found.stdout
    assert "--repair" in found.stdout
    assert "repaired  The read model tags" in repaired
    assert "Healthy" in repaired
    assert "city" in filled("search", "Bergen", "--tag", "west")


def test_a_damaged_log_is_found_and_not_papered_over(filled: Cli) -> None:
    with opened(filled) as connection:
        connection.execute("UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 2")

    result = filled.run("doctor", "--repair")

    assert result.exit_code == 7
    assert "damaged  The content of an event about 'city' was altered. (event 2)" in result.stdout
    assert "restore a backup" in result.stdout


def test_the_report_in_json_says_the_same(filled: Cli) -> None:
    healthy = filled.json("doctor")

    assert healthy["healthy"]
    assert healthy["findings"] == []
    assert healthy["head"] == filled.json("status")["head"]


@pytest.mark.parametrize("command", ["doctor", "rebuild", "embed"])
def test_a_database_that_is_not_there_is_not_made(cli: Cli, command: str) -> None:
    cli.database.unlink()

    assert "There is no database" in cli.refused(command, code=6)
    assert not cli.database.exists()


def test_rebuild_makes_the_read_models_anew(filled: Cli) -> None:
    with opened(filled) as connection:
        connection.execute("DELETE FROM versions")

    said = filled("rebuild")

    assert said.startswith("Rebuilt from 4 events;")
    assert "Bergen" in filled("recall", "city")
    assert filled.json("status")["unembedded"] == 0


def test_embed_gives_waiting_texts_their_vectors(cli: Cli) -> None:
    cli("store", "city", "Oslo", "--no-auto-embed")

    assert cli("embed", "--no-auto-embed") == "No embedder is in use.\n"
    assert cli("embed") == "Embedded 1 texts.\n"
    assert cli("embed") == "Embedded 0 texts.\n"


def test_purge_erases_for_good_when_told_so(filled: Cli) -> None:
    assert "--yes" in filled.refused("purge", "city", code=2)
    assert "Bergen" in filled("recall", "city")

    assert filled("purge", "city", "--yes").startswith("Erased 2 events.")
    assert filled("purge", "--sequence", "4", "-y").startswith("Erased 1 event.")
    assert b"Bergen" not in filled.database.read_bytes()
    assert "Healthy" in filled("doctor")


def test_purge_must_be_told_what_to_erase(filled: Cli) -> None:
    said = filled.refused("purge", "--yes", code=2)

    assert "Give `key` or `sequence`." in said
    assert "Hint: Add one of them, or see the command's --help." in said


def test_an_export_notices_that_the_read_models_are_wrong(filled: Cli) -> None:
    with opened(filled) as connection:
        connection.execute("UPDATE tallies SET live = live + 1")

    said = filled.refused("export", "out.jsonl", code=7)

    assert "Nothing was exported" in said
    assert not Path("out.jsonl").exists()


def test_doctor_tries_the_sandbox_and_says_what_works(filled: Cli) -> None:
    told = filled.json("doctor")["sandbox"]
    shown = filled("doctor")

    tried = {(each["layer"], each["language"]): each for each in told["layers"]}
    assert len(tried) == 6
    assert all(each["holds"] == (each["attacks"] > 5) for each in tried.values()), tried
    assert all(each["holds"] or each["missing"] for each in tried.values()), tried
    for language, layers in told["languages"].items():
        for kind, names in (
            ("snippet", ("monty", "quickjs")),
            ("full", ("bubblewrap", "landlock")),
        ):
            holding = [name for name in names if tried.get((name, language), {}).get("holds")]
            assert layers[kind] == (holding[0] if holding else None)
            assert all(f"{layer} did not stop all attacks" not in shown for layer in holding)
    assert told["limits"]["memoryBytes"] == 256 << 20
    assert "Sandbox: network none; 256 MB and 30 s" in shown
    assert shown.index("Healthy") < shown.index("Sandbox: python")


def test_doctor_says_whether_code_may_have_the_network(filled: Cli) -> None:
    shown = filled("doctor", STRATAGEM_SANDBOX_NETWORK="yes")

    assert "Sandbox: network with permission" in shown


def test_a_purge_says_where_nothing_was_erased_and_what_to_do_with_what_is_left(cli: Cli) -> None:
    cli("store", "pin", "The code of the vault is 99887766.")
    cli("store", "note", "He said: The code of the vault is 99887766.")

    purged = cli("purge", "pin", "--yes")
    again = cli("purge", "pin", "--yes")

    assert "Erased 1 event. The same text is still in: 1 x entry. Search for it" in purged
    assert again.startswith("Nothing was erased: there is no such entry")
