"""Which memory branch belongs to the git branch that is checked out in a folder.

Nothing is run for it: the head of a repository or of a worktree is a small file. The branches that
repositories merge into (`main`, `master` and the like) are the memory's own `default`.
"""

from __future__ import annotations

import os
from typing import Final

from stratagem import limits
from stratagem.projects import common_git_folder, find_git_folder

__all__ = ["DEFAULT", "current_git_branch", "git_tip", "main_git_branch", "memory_branch_of"]

DEFAULT: Final = "default"
_MAIN_BRANCHES: Final = ("main", "master", "trunk", "develop", "default")
_HEAD: Final = "ref: refs/heads/"
_BYTES_MAX: Final = 1_000
_CUT_CHARS: Final = 100
_PACKED_BYTES_MAX: Final = 10_000_000


def memory_branch_of(folder: str) -> str:
    """Return the memory branch for what is checked out in a folder."""
    name = current_git_branch(folder)
    if name is None or name in _MAIN_BRANCHES:
        return DEFAULT
    if len(name) <= limits.BRANCH_NAME_CHARS_MAX:
        return name
    # git takes longer names than a memory does. Imported here because most have none.
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{name[:_CUT_CHARS]}-{digest}"


def current_git_branch(folder: str) -> str | None:
    """Return the branch that is checked out in a folder; None where there is none."""
    git = find_git_folder(folder)
    head = _read(os.path.join(git, "HEAD"), _BYTES_MAX) if git else ""
    return head.removeprefix(_HEAD) if head.startswith(_HEAD) else None


def main_git_branch(folder: str) -> str | None:
    """Return the branch that others are merged into; None where the repository has none."""
    return next((name for name in _MAIN_BRANCHES if git_tip(folder, name)), None)


def git_tip(folder: str, branch: str) -> str | None:
    """Return the commit that a branch is at; None where there is no such branch."""
    git = find_git_folder(folder)
    if git is None:
        return None
    home = common_git_folder(git)
    loose = _read(os.path.join(home, "refs", "heads", *branch.split("/")), _BYTES_MAX)
    if loose:
        return loose
    suffix = f" refs/heads/{branch}"
    packed = _read(os.path.join(home, "packed-refs"), _PACKED_BYTES_MAX).splitlines()
    return next((line.removesuffix(suffix) for line in packed if line.endswith(suffix)), None)


def _read(path: str, bytes_max: int) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(bytes_max).decode("utf-8", "replace").strip()
    except OSError:
        return ""
