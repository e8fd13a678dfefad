"""knowledge at the command line; what it does is tested in unit/knowledge."""

import json
from pathlib import Path

from tests.surfaces.cli.console import Cli


def concept(cli: Cli, name: str) -> str:
    created: str = cli.json("create_concept", "--name", name, "--explanation", "e")["concept_id"]
    return created


def test_knowledge_goes_out_and_comes_in_elsewhere(cli: Cli, tmp_path: Path) -> None:
    one, two = concept(cli, "One"), concept(cli, "Two")
    cli.json(
        "create_relationship",
        *("--source-id", one, "--target-id", two, "--relationship-type", "includes"),
    )
    other = Cli(tmp_path / "other.db")

    said = cli("knowledge", "export", "k.jsonl")
    tried = other("knowledge", "import", "k.jsonl", "--dry-run")
    back = other("knowledge", "import", "k.jsonl")

    assert said == "Exported 2 concepts and 1 relationship of default to k.jsonl.\n"
    assert tried.startswith("Would import k.jsonl (jsonl) into default: 2 new concepts")
    assert back.startswith("Imported k.jsonl (jsonl) into default: 2 new concepts, 1 new relation")
    assert "1 new relationships" not in back
    assert other.json("get_concept", "--concept-id", one)["concept"]["name"] == "One"
    assert "--force" in cli.refused("knowledge", "export", "k.jsonl", code=2)


def test_a_picture_is_drawn(cli: Cli) -> None:
    concept(cli, "One")

    said = cli("knowledge", "graph", "one", "--out", "one.html")

    assert said.startswith("Drawn: one.html (")
    assert "One" in Path("one.html").read_text("utf-8")
    assert "--force" in cli.refused("knowledge", "graph", "--out", "one.html", code=2)
    missing = cli.refused("knowledge", "graph", "nothing", "--out", "two.html", code=3)
    assert "nothing" in missing


def test_lists_of_words_are_given_with_commas_or_one_by_one(cli: Cli) -> None:
    concept(cli, "Fjord")
    cli("store", "city", "Fjord town")

    together = cli.json("search", "fjord", "--kinds", "entry,concept")["results"]
    apart = cli.json("search", "fjord", "--kinds", "entry", "--kind", "concept")["results"]

    assert [each["kind"] for each in together] == [each["kind"] for each in apart]
    assert {each["kind"] for each in together} == {"entry", "concept"}


def test_a_search_prints_the_ids_of_concepts_and_incidents(cli: Cli) -> None:
    made = concept(cli, "Fjord")
    fix = ("--steps", "wait", "--env", '{"os":"linux"}', "--worked")
    incident = cli.json("add-incident", "The fjord is frozen", *fix)["incident_id"]

    shown = cli("search", "fjord", "--kind", "concept", "--kind", "incident")

    assert f"concept · {made} · knowledge" in shown
    assert f"incident · {incident} · debugging" in shown


def test_a_recall_of_the_id_of_a_concept_says_which_command_reads_it(cli: Cli) -> None:
    made = concept(cli, "Fjord")

    said = cli.run("recall", made).output

    assert (
        f"It is the id of a concept: `stratagem get-concept --concept-id {made}` reads it." in said
    )


def test_a_comma_in_a_name_is_part_of_it_and_several_are_explained(cli: Cli) -> None:
    concept(cli, "Newton,Isaac")

    marked = cli.json("mark-known", "--concepts", "Newton,Isaac")
    refused = cli.refused("mark-known", "--concepts", "Fjord,Newton", code=3)

    assert marked["concepts"] == ["Newton,Isaac"]
    assert "Several: --concepts A --concepts B" in refused


def test_a_dash_exports_to_stdout(cli: Cli, tmp_path: Path) -> None:
    concept(cli, "Fjord – Ærø")

    lines = cli("knowledge", "export", "-").splitlines()

    assert [json.loads(line).get("name") for line in lines] == [None, "Fjord – Ærø"]
    assert not Path("-").exists()
    assert "folder" in cli.refused("knowledge", "export", "-", "--format", "markdown", code=2)


def test_null_gives_a_certainty_back_and_clears_an_area(cli: Cli) -> None:
    concept(cli, "Fjord")
    cli("update-concept", "Fjord", "--certainty-score", "90", "--area", "Geography")

    given = cli.json("get-concept", "Fjord")["concept"]
    cli("update-concept", "Fjord", "--certainty-score", "null", "--area", "null")
    cleared = cli.json("get-concept", "Fjord")["concept"]

    assert (given["certainty_score"], given["area"]) == (90, "Geography")
    assert (cleared["certainty_score"], cleared["area"]) == (60, None)
    assert cleared["certainty_source"] == "computed"
    wrong = cli.refused("update-concept", "Fjord", "--certainty-score", "much", code=2)
    assert "--certainty-score" in wrong


def test_several_words_that_are_required_are_given_by_position(cli: Cli) -> None:
    concept(cli, "Fjord")
    concept(cli, "Glacier")

    marked = cli.json("mark-known", "Fjord", "Glacier", "--learner", "Mia")

    assert marked["concepts"] == ["Fjord", "Glacier"]


def test_whether_anything_works_is_answered_though_nothing_can_be_read(cli: Cli) -> None:
    cli.database.write_bytes(b"no database at all" * 100)

    by_name = cli.json("ping")
    called = json.loads(cli("call", "ping"))
    available = json.loads(cli("call", "get_tool_availability"))

    assert by_name["status"] == called["status"] == "ok"
    assert "get_concept" in available["unavailable"]
    assert cli.run("call", "list_hierarchy").exit_code != 0
