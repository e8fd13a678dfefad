"""Names of workspaces, and where the database of each is."""

from __future__ import annotations

import re
from typing import Final

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.places import is_address

__all__ = ["HOME", "Place", "check_workspace", "home_of", "place_of"]

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
