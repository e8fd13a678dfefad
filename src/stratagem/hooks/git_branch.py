"""Which memory branch belongs to the git branch that an agent works on.

Nothing is run for it: the head of a repository or of a worktree is a small file. The branches that
repositories merge into (`main`, `master` and the like) are the memory's own `default`.
"""

from __future__ import annotations

import os
from typing import Final

from stratagem.hooks.settings import HookSettings
from stratagem.projects import find_git_folder

__all__ = ["MAIN_BRANCHES", "current_git_branch", "memory_branch"]

MAIN_BRANCHES: Final = frozenset({"main", "master", "trunk", "develop", "default"})
_DEFAULT: Final = "default"
_HEAD: Final = "ref: refs/heads/"
_HEAD_BYTES_MAX: Final = 1_000


def memory_branch(settings: HookSettings) -> str:
    """Return the branch to read and write, as the settings have it."""
    if not (settings.git_branches and settings.project):
        return _DEFAULT
    name = current_git_branch(settings.folder)
    return _DEFAULT if name is None or name in MAIN_BRANCHES else name


def current_git_branch(folder: str) -> str | None:
    """Return the branch that is checked out where an agent works; None where there is none."""
    git = find_git_folder(folder)
    head = _read(os.path.join(git, "HEAD")) if git else ""
    return head.removeprefix(_HEAD) if head.startswith(_HEAD) else None


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return ""
