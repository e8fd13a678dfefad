"""Names of workspaces, and where the database of each is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.places import is_address

__all__ = ["HOME", "Place", "check_workspace", "files_of", "home_of", "place_of", "place_within"]

# The workspace that a server's own database is, unless its address says otherwise.
HOME: Final = "default"
MEMORY: Final = ":memory:"
# A part of a file's name and of an address: no separators, no dots, no capitals.
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{limits.WORKSPACE_NAME_CHARS_MAX - 1}}}")

Place = tuple[str, str]


def check_workspace(name: str) -> str:
    """Return the name of a workspace.

    Raises:
        ValidationFailed: No workspace can have it.
    """
    if not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"{name[:100]!r} cannot be the name of a workspace.",
            field="workspace",
            limit=limits.WORKSPACE_NAME_CHARS_MAX,
            hint="Small letters, digits, - and _, beginning with a letter or a digit.",
        )
    return name


def home_of(database: str) -> str:
    """Return the workspace that a database itself is."""
    return (database.partition("#")[2] or HOME) if is_address(database) else HOME


def place_of(database: str, workspace: str) -> Place:
    """Return where a workspace is: a database, and the workspace's name within it."""
    check_workspace(workspace)
    if is_address(database):
        return database.partition("#")[0], workspace
    if workspace == HOME or database == MEMORY:
        return database, HOME
    return f"{database}-workspaces/{workspace}.db", HOME


def place_within(database: str, workspace: str) -> str:
    """Return where a workspace is, as one address or file.

    Raises:
        ValidationFailed: No file can have its name.
    """
    if is_address(database):
        return f"{database.partition('#')[0]}#{workspace}"
    return place_of(database, workspace)[0]


def files_of(database: str) -> list[str]:
    """Return the workspaces of a database that is kept in files, the server's own first."""
    own = Path(database).expanduser()
    beside = own.with_name(f"{own.name}-workspaces")
    found = sorted(file.stem for file in beside.glob("*.db") if _NAME.fullmatch(file.stem))
    return [HOME, *found] if own.is_file() else found
