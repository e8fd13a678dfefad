"""What is handed on: the archive of the sources has all that its tests and docs need."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_archive_of_the_sources_has_every_folder_of_the_project() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    made = (ROOT / ".gitignore").read_text("utf-8").split()

    folders = {f"/{each.name}" for each in ROOT.iterdir() if each.is_dir()}

    assert [
        name
        for name in sorted(folders)
        if not name.startswith(("/.", "/__"))
        and f"{name}/" not in made
        and f"{name[1:]}/" not in made
        and name not in included
    ] == []
