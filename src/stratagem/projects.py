"""Where a project's memory is, and where a person's own: found without importing anything heavy.

A hook runs at every prompt of an agent, so what it needs first stands apart from `places`.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import Final

__all__ = [
    "DATABASE_NAME",
    "PROJECT_FOLDER",
    "find_git_folder",
    "find_project",
    "is_tracked",
    "user_config_folder",
    "user_folder",
]

PROJECT_FOLDER: Final = ".stratagem"
DATABASE_NAME: Final = "stratagem.db"
_APPLICATION: Final = "stratagem"
_GIT_FILE_BYTES_MAX: Final = 4_096
_INDEX_BYTES_MAX: Final = 50_000_000


def find_project(folder: str) -> str | None:
    """Return the nearest folder, from one upwards, that has a memory of its own; None if none.

    A git worktree that lies elsewhere has that of its repository.
    """
    here = os.path.realpath(folder)
    found = _find_upwards(here)
    if found is not None:
        return found
    git = find_git_folder(here)
    if git is None or os.path.basename(os.path.dirname(git)) != "worktrees":
        return None
    # <repository>/.git/worktrees/<name>
    repository = os.path.dirname(os.path.dirname(os.path.dirname(git)))
    return repository if _has_memory(repository) else None


def find_git_folder(folder: str) -> str | None:
    """Return the git folder of a working tree; of a worktree it is one of its own."""
    here = os.path.realpath(folder)
    while True:
        place = os.path.join(here, ".git")
        if os.path.isdir(place):
            return place
        if os.path.isfile(place):
            return _read_git_file(place)
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def _find_upwards(here: str) -> str | None:
    while not _has_memory(here):
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    return here


def _has_memory(folder: str) -> bool:
    """Whether a folder has a memory that is this user's.

    Anybody may make one in a folder that all may write to, to read along in what is below it.
    """
    try:
        found = os.stat(os.path.join(folder, PROJECT_FOLDER))
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found.st_uid)


def _is_own(user: int) -> bool:
    # Windows has no such numbers. What is root's nobody else has made; root works for others.
    return sys.platform == "win32" or user in {0, os.geteuid()} or os.geteuid() == 0


def is_tracked(project: str, name: str) -> bool:
    """Whether git has a file of a project's memory: then it came with the repository.

    Its index is a file with the paths in it, each with a zero behind. In its newest form a path
    lacks what it has in common with the one before, so the name alone is looked for.
    """
    git = find_git_folder(project)
    try:
        with open(os.path.join(git or "", "index"), "rb") as file:
            return name.encode() + b"\0" in file.read(_INDEX_BYTES_MAX)
    except OSError:
        return False


def _read_git_file(place: str) -> str | None:
    """Return where the git folder of a worktree or a submodule is."""
    try:
        with open(place, "rb") as file:
            told = file.read(_GIT_FILE_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return None
    if not told.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(place), told.removeprefix("gitdir: ")))


def user_folder() -> str:
    """Return the folder of a person's own database, as `platformdirs.user_data_dir` has it.

    That library takes longer to import than a hook may run; a test compares the two.
    """
    return _user_folder("XDG_DATA_HOME", ".local/share")


def user_config_folder() -> str:
    """Return the folder of a person's own settings, as `platformdirs.user_config_dir` has it."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, usual: str) -> str:
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = os.environ.get(variable, "").strip() or os.path.join(home, usual)
    return os.path.join(base, _APPLICATION)
