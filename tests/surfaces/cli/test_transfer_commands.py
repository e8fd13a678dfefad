"""export and import at the command line; what they do is tested in unit/memory."""

import json
from pathlib import Path

import pytest

from tests.surfaces.cli.console import Cli


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli("store", "city", "Oslo", "-t", "north")
    cli("log", "note", "it rains", "--session", "weather")
    return cli


def test_a_branch_goes_out_and_comes_in_elsewhere(filled: Cli, tmp_path: Path) -> None:
    other = Cli(tmp_path / "other.db")

    said = filled("export", "out.jsonl")
    back = other("import", "out.jsonl")

    assert said.startswith("Exported 1 entry and 1 event of default to out.jsonl (")
    assert back == "Imported out.jsonl (stratagem) into default: 1 new entry, 1 new event.\n"
    assert other.json("recall", "city")["tags"] == ["north"]
    assert other("import", "out.jsonl").endswith("1 entry unchanged, 1 event known already.\n")


def test_an_import_into_a_namespace_says_so(filled: Cli, tmp_path: Path) -> None:
    filled("export", "out.jsonl")

    said = Cli(tmp_path / "other.db")("import", "out.jsonl", "--namespace", "copy")

    assert "into default, namespace 'copy': 1 new entry" in said


def test_a_note_in_another_encoding_is_refused_with_what_to_do(cli: Cli) -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_bytes("Ålesund".encode("latin-1"))

    said = cli.refused("import", "notes", code=2)

    assert "Save it as UTF-8, or leave it out" in said


def test_a_dry_run_writes_nothing(filled: Cli, tmp_path: Path) -> None:
    filled("export", "out.jsonl")
    other = Cli(tmp_path / "other.db")

    said = other("import", "out.jsonl", "--dry-run")

    assert said.startswith("Would import out.jsonl")
    assert other.json("status")["keys"] == 0


def test_a_file_is_only_replaced_by_force(filled: Cli) -> None:
    Path("out.jsonl").write_text("mine")

    assert "--force" in filled.refused("export", "out.jsonl", code=2)
    assert Path("out.jsonl").read_text() == "mine"
    assert filled("export", "out.jsonl", "--force").startswith("Exported")


def test_a_damaged_file_is_refused_with_its_line(filled: Cli) -> None:
    filled("export", "out.jsonl")
    text = Path("out.jsonl").read_text()
    Path("out.jsonl").write_text(text.replace("Oslo", "Rome"))

    said = filled.refused("import", "out.jsonl", "--branch", "default", code=2)
    envelope = json.loads(filled.run("import", "out.jsonl", "--json").stdout)

    assert "out.jsonl, line 4" in said
    assert envelope["error"] == "import_refused"
    assert envelope["details"]["line"] == 4


def test_a_past_moment_and_another_branch_are_exported(filled: Cli) -> None:
    filled("branch", "fork", "trial")
    filled("store", "city", "Bergen", "--branch", "trial")

    filled("export", "past.jsonl", "--as-of", "@2")
    filled("export", "trial.jsonl", "--branch", "trial")

    assert json.loads(Path("past.jsonl").read_text().splitlines()[0])["events"] == 0
    assert "Bergen" in Path("trial.jsonl").read_text()


def test_a_namespace_is_only_replaced_where_it_was_asked_for(filled: Cli, tmp_path: Path) -> None:
    filled("export", "out.jsonl")
    other = Cli(tmp_path / "other.db")

    other("import", "out.jsonl", STRATAGEM_NAMESPACE="home")
    other("import", "out.jsonl", "--namespace", "work")

    assert other.json("status")["namespaces"] == ["default", "work"]


def test_imported_texts_are_found_by_meaning_at_once(filled: Cli, tmp_path: Path) -> None:
    filled("export", "out.jsonl")
    other = Cli(tmp_path / "other.db")

    other("import", "out.jsonl")

    assert other.json("status")["unembedded"] == 0


def test_the_format_can_be_named(cli: Cli) -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_text("# A\n")

    assert "(markdown)" in cli("import", "notes")
    assert "not the first line of an export" in cli.refused(
        "import", "notes/a.md", "--format", "stratagem", code=2
    ) or "not complete JSON" in cli.refused("import", "notes/a.md", "--format", "stratagem", code=2)


def test_a_dash_exports_to_stdout(cli: Cli, tmp_path: Path) -> None:
    cli("store", "city", "Ålesund")
    cli("add-incident", "Fjord", "--steps", "row", "--env", "{}", "--worked")
    other = Cli(tmp_path / "other.db")

    Path("branch").write_text(cli("export", "-"), "utf-8")
    Path("incidents").write_text(cli("debug", "export", "-"), "utf-8")

    assert other("import", "branch").startswith("Imported branch (stratagem) into default: 1 new")
    assert other("debug", "import", "incidents").startswith("Imported 1 incident, 1 solution")
    assert not Path("-").exists()
    assert "Name a file" in cli.refused("export", "-", "--rescue", code=2)


def test_an_import_reads_stdin(filled: Cli, tmp_path: Path) -> None:
    other = Cli(tmp_path / "other.db")
    exported = filled("export", "-")

    said = other("import", "-", given=exported)
    facts = other("knowledge", "import", "-", given=filled("knowledge", "export", "-"))
    fixes = other("debug", "import", "-", given=filled("debug", "export", "-"))

    assert said == "Imported stdin (stratagem) into default: 1 new entry, 1 new event.\n"
    assert (facts[:14], fixes[:8]) == ("Imported stdin", "Imported")
    assert other.json("recall", "city")["tags"] == ["north"]
    cut = json.loads(other.run("import", "-", "--json", given=exported[:-50]).stdout)
    assert cut["details"]["file"] == "stdin"
    assert cut["message"].startswith("stdin, line ")


@pytest.mark.parametrize("group", [(), ("knowledge",), ("debug",)])
def test_a_file_that_is_not_there_is_told_alike(cli: Cli, group: tuple[str, ...]) -> None:
    said = cli.refused(*group, "import", "gone.jsonl", code=2)

    assert "gone.jsonl" in said
    assert "Errno" not in said
    assert "Hint: Check the path." in said


@pytest.mark.parametrize("form", [(), ("--format", "chroma"), ("--format", "markdown")])
@pytest.mark.parametrize("name", ["gone", "gone.md", "gone.json"])
def test_a_path_of_nothing_is_said_to_be_one(cli: Cli, name: str, form: tuple[str, ...]) -> None:
    said = cli.refused("import", name, *form, code=2)

    assert said == f"Error: There is nothing at {name}.\nHint: Check the path.\n"


def test_a_folder_without_notes_is_not_to_be_exported_again(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    said = cli.refused("import", str(tmp_path / "empty"), code=2).replace("\n", " ")

    assert "There is no Markdown file below" in said
    assert "Name the folder that has the files" in said


def test_what_stdin_cannot_be_is_refused(cli: Cli) -> None:
    assert "cannot be watched" in cli.refused("import", "-", "--watch", code=2)
    for command in (("import",), ("knowledge", "import")):
        assert "folder" in cli.refused(*command, "-", "--format", "markdown", code=2)
