"""debug, env and the commands of debugging; what they do is tested in unit/debugging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.operation import Caller
from tests.surfaces.cli.console import Cli

ENV = '{"os": "linux", "python": "3.12"}'
ERROR = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"


def add(cli: Cli, *more: str) -> Any:
    steps = ("--steps", "Halve the batch size", "--error-signature", ERROR)
    return cli.json("add-incident", "--title", "Memory", *steps, "--env", ENV, "--worked", *more)


def test_env_says_where_one_is(cli: Cli) -> None:
    cli.database.unlink()

    found = cli.json("env")

    assert found["bucket"].split("|")[1] == "py3"
    assert found["python"].startswith("3.")
    assert "bucket" in cli("env")
    assert not cli.database.exists()


def test_a_fix_of_several_steps_keeps_them_all(cli: Cli) -> None:
    add(cli, "--steps", "Try again")

    ranked = cli.json("ranked-solutions", "--query-text", ERROR, "--env", ENV)

    assert ranked["recommended_solution"]["steps"] == ["Halve the batch size", "Try again"]


def test_several_texts_may_be_one_json_array(cli: Cli) -> None:
    steps = ("--steps", '["Halve the batch size", "Try again"]', "--tags", '["gpu"]')
    cli.json("add-incident", "Memory", "--error-signature", ERROR, *steps, "--env", ENV, "--worked")

    ranked = cli.json("ranked-solutions", "--query-text", ERROR, "--env", ENV)
    tagged = cli.json("debug", "incidents", "--tag", "gpu")

    assert ranked["recommended_solution"]["steps"] == ["Halve the batch size", "Try again"]
    assert len(tagged["results"]) == 1


def test_what_is_given_by_place_and_by_flag_is_refused(cli: Cli) -> None:
    title = ("--title", "Memory", "--steps", "Try again", "--env", ENV)

    said = cli.refused("add-incident", *title, "--worked", "true", code=2)

    assert "TITLE is given twice: 'true', and --title 'Memory'" in said
    assert "A switch such as --worked takes no value" in said


def test_a_problem_is_solved_at_the_command_line(cli: Cli) -> None:
    added = add(cli)

    ranked = cli.json("ranked-solutions", "--query-text", ERROR, "--env", "auto")
    here = ("--solution-id", added["solution_id"], "--lookup-id", ranked["lookup_id"])
    failed = cli.json("record-outcome", *here, "--no-worked", "--env", ENV)

    assert ranked["recommended_solution"]["solution_id"] == added["solution_id"]
    assert (failed["stats"]["worked"], failed["stats"]["failed"]) == (1, 1)


def test_debug_memory_goes_out_and_comes_in_once(cli: Cli, tmp_path: Path) -> None:
    incident = add(cli)["incident_id"]
    other = Cli(tmp_path / "other.db")

    out = cli("debug", "export", "d.jsonl")
    first, second = other("debug", "import", "d.jsonl"), other("debug", "import", "d.jsonl")
    other("debug", "export", "back.jsonl")

    counts = "1 incident, 1 solution, 1 outcome"
    assert out == f"Exported {counts} (d.jsonl).\n"
    assert first == f"Imported {counts} (d.jsonl).\n"
    assert second.startswith("Imported 0 incidents, 0 solutions, 0 outcomes")
    assert "3 were known already" in second
    assert incident in Path("back.jsonl").read_text("utf-8")
    assert other.json("debug", "stats")["outcomes"] == 1


def test_a_file_that_was_cut_is_refused_and_nothing_comes_in(cli: Cli, tmp_path: Path) -> None:
    add(cli)
    cli("debug", "export", "d.jsonl")
    whole = Path("d.jsonl").read_text("utf-8").splitlines(keepends=True)
    Path("cut.jsonl").write_text("".join(whole[:-1]), "utf-8")
    other = Cli(tmp_path / "other.db")

    other.refused("debug", "import", "cut.jsonl", code=2)

    assert other.json("debug", "stats")["incidents"] == 0


def test_stats_say_how_often_the_first_recommendation_worked(cli: Cli) -> None:
    added = add(cli)
    before = cli("debug", "stats")
    ranked = cli.json("ranked-solutions", "--query-text", ERROR, "--env", ENV)
    here = ("--solution-id", added["solution_id"], "--lookup-id", ranked["lookup_id"])
    cli("record-outcome", *here, "--worked", "--env", ENV)

    after = cli.json("debug", "stats")

    assert "nothing reported yet" in before
    assert (after["answered"], after["hit_rate"]) == (1, 1.0)
    assert "by month" in cli("debug", "stats")


def test_what_was_stored_cannot_send_control_codes(cli: Cli) -> None:
    cli("call", "strata_status")
    title = "evil \u202e title"
    cli.json("add-incident", "--title", title, "--steps", "s", "--env", ENV, "--no-worked")

    assert "\u202e" not in cli("ranked-solutions", "--query-text", title, "--env", ENV)


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        ((), "at [secret] 10.1.2.3"),
        (("--redaction", "basic"), "at [secret] 10.1.2.3"),
        (("--redaction", "strict"), "at [secret] [ip]"),
        (("--redaction", "none"), "at hunter22 10.1.2.3"),
    ],
)
def test_redaction_is_as_strict_as_it_was_asked_to_be(
    cli: Cli, args: tuple[str, ...], kept: str
) -> None:
    added = cli.json(
        *("add-incident", "--title", "login with password=hunter22 at 10.1.2.3"),
        *("--steps", "s", "--env", ENV, "--worked", *args),
    )

    word, place = kept.removeprefix("at ").split(" ")
    assert added["title"] == f"login with password={word} at {place}"


def test_the_environment_sets_the_redaction(cli: Cli) -> None:
    arguments = ("--title", "at 10.1.2.3", "--steps", "s", "--env", ENV, "--worked", "--json")

    assert "[ip]" in cli("add-incident", *arguments, STRATAGEM_REDACTION="strict")
    assert "loud" in cli.refused("status", "--redaction", "loud", code=2)


def test_a_log_is_piped_in(cli: Cli) -> None:
    incident = add(cli)["incident_id"]
    log = "INFO all is fine\n" * 50_000 + ERROR + "\n"

    ranked = cli.json("ranked-solutions", "--query-text", "-", "--env", ENV, given=log)

    assert ranked["recommended_solution"]["incident_id"] == incident


def test_debug_memory_is_looked_after_at_the_command_line(cli: Cli) -> None:
    added = add(cli, "--tags", "gpu")
    other = add(cli, "--distinct")

    cli("debug", "merge", other["incident_id"], added["incident_id"])
    cli("debug", "edit-incident", added["incident_id"], "--title", "No memory", "-t", "cuda")
    cli("debug", "retire", added["solution_id"], "--reason", "Too slow")
    incidents, solutions = cli("debug", "incidents"), cli("debug", "solutions", "halve", "the")
    shown = cli("debug", "show", other["incident_id"])

    assert "No memory #cuda" in incidents
    assert f"merged into {added['incident_id']}" in incidents
    assert solutions.count("retired: Too slow") == 2
    assert "Merged into it" in shown
    assert "edited" in shown
    assert "CUDA out of memory" in shown
    restored = cli("debug", "restore", added["solution_id"])
    assert restored.startswith(f"The solution {added['solution_id']} was restored; it is working")
    assert "claim" in cli("debug", "outcomes", "--env", "linux")
    assert cli("debug", "outcomes", "--env", "windows") == "None.\n"


def test_more_than_a_page_says_how_to_go_on(cli: Cli) -> None:
    for _ in range(3):
        add(cli, "--distinct")

    first = cli.run("debug", "incidents", "--limit", "2")
    cursor = first.stderr.split("--cursor ")[1].strip().rstrip(".")
    second = cli("debug", "incidents", "--limit", "2", "--cursor", cursor)

    assert first.stdout.count("inc_") == 2
    assert second.count("inc_") == 1


def test_a_purge_says_what_goes_and_asks(cli: Cli) -> None:
    added = add(cli)

    refused = cli.refused("debug", "purge", added["incident_id"], code=2)
    planned = cli.json("purge-record", added["incident_id"], "--yes")

    assert "not a terminal" in refused
    assert planned["purged"]
    assert cli("debug", "incidents") == "None.\n"


def test_an_agent_cannot_purge_and_is_told_the_command(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "s.db"), embedder="none") as db:
        solution = db.debugging.add_incident("It fails", "mend it", {}, True).solution_id
        runtime, agent = db.runtime, Caller(authority="agent")

        planned = runtime.call("purge_record", {"record_id": solution}, agent)
        with pytest.raises(stratagem.PermissionDenied) as refused:
            runtime.call("purge_record", {"record_id": solution, "confirm": True}, agent)

    assert not planned["purged"]
    assert f"debug purge -- {solution}" in refused.value.details["command"]
