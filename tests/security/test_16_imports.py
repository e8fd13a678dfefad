"""16. An import reads the folder that was named, and nothing that it points to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import ImportRefused
from stratagem.note_files import NoteFiles
from tests.surfaces.cli.console import Cli

SECRET = "root:x:0:0: the secret"
IMPORTS = (("import",), ("knowledge", "import"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "memory.db")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Give a folder of notes with every kind of thing in it that leads elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("passwd", "more.md"):
        (outside / name).write_text(SECRET, encoding="utf-8")
    folder = tmp_path / "vault"
    (folder / "deep").mkdir(parents=True)
    (folder / "honest.md").write_text("What it says.", encoding="utf-8")
    (folder / "deep" / "other.md").write_text("More.", encoding="utf-8")
    (folder / "link.md").symlink_to(outside / "passwd")
    (folder / "deep" / "up.md").symlink_to("../../outside/passwd")
    (folder / "within.md").symlink_to("honest.md")
    (folder / "folder").symlink_to(outside)
    (folder / "dangling.md").symlink_to("/nothing/here")
    os.mkfifo(folder / "pipe.md")
    return folder


@pytest.mark.parametrize("command", IMPORTS, ids=" ".join)
def test_links_and_pipes_are_left_out_and_told(
    cli: Cli, planted: Path, command: tuple[str, ...]
) -> None:
    done = cli.json(*command, str(planted))
    told = {Path(each["file"]).name: each["reason"] for each in done["skipped"]}
    shown = cli(*command, str(planted))

    assert done["created"] == 2
    assert told.pop("pipe.md") == "it is not a regular file"
    assert told == dict.fromkeys(
        ("link.md", "up.md", "within.md", "folder", "dangling.md"), "it is a symbolic link"
    )
    assert f"Left out {planted / 'link.md'}: it is a symbolic link." in shown
    assert SECRET.encode() not in cli.database.read_bytes()
    assert SECRET not in cli("export", str(planted.parent / "all.jsonl")) + cli("search", "secret")


@pytest.mark.parametrize("command", IMPORTS, ids=" ".join)
def test_a_folder_of_links_alone_is_refused_with_the_reason(
    cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").symlink_to("/etc/passwd")

    said = cli.refused(*command, str(tmp_path / "vault"), code=2)

    assert "symbolic link" in said


@pytest.mark.parametrize("swapped", ["note.md", "deep"])
def test_what_becomes_a_link_after_it_was_listed_is_not_followed(
    tmp_path: Path, swapped: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "note.md").write_text(SECRET, encoding="utf-8")
    vault = tmp_path / "vault"
    (vault / "deep").mkdir(parents=True)
    (vault / "deep" / "note.md").write_text("honest", encoding="utf-8")
    files = NoteFiles(vault)
    (vault / "deep" / "note.md").unlink()
    if swapped == "deep":
        (vault / "deep").rmdir()
        (vault / "deep").symlink_to(outside)
    else:
        (vault / "deep" / "note.md").symlink_to(outside / "note.md")

    with pytest.raises(ImportRefused, match="cannot be read"):
        files.text(files.paths[0])


def test_a_link_that_was_named_itself_is_what_the_caller_wants(cli: Cli, planted: Path) -> None:
    named = planted.parent / "by-link"
    named.symlink_to(planted)

    assert cli.json("import", str(named))["created"] == 2


@pytest.mark.parametrize("what", ["note", "folder"])
def test_an_export_does_not_write_through_a_link(cli: Cli, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / ("victim" if what == "note" else "Oslo.md")
    target.write_text("as it was", encoding="utf-8")
    source, vault = tmp_path / "notes", tmp_path / "vault"
    (source / "north").mkdir(parents=True)
    (source / "north" / "Oslo.md").write_text("By the sea.", encoding="utf-8")
    cli("knowledge", "import", str(source))
    vault.mkdir()
    if what == "note":
        (vault / "north").mkdir()
        (vault / "north" / "Oslo.md").symlink_to(target)
    else:
        (vault / "north").symlink_to(outside)

    given: Any = ("knowledge", "export", str(vault), "--format", "markdown", "--force")
    said = cli.refused(*given, code=2)

    assert "do not write through links" in said
    assert target.read_text(encoding="utf-8") == "as it was"
