"""Memory follows git: when a git branch was merged, so is its memory, at the next session's start.

The last seen commits of git branches with a memory are stored in a file beside the database. A
branch counts as merged when its last commit is an ancestor of the checked-out commit, and it had
commits of its own. A branch that disappears without that was squashed or abandoned: which of the
two is unknown, so it goes to review. Nothing is lost: a deleted memory branch can be restored.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from stratagem.bootstrap import Runtime
from stratagem.capture.orphans import keep_orphan
from stratagem.capture.spool_files import hooks_folder
from stratagem.errors import MergeConflict, StratagemError
from stratagem.git_branches import DEFAULT, current_git_branch, git_tip, main_git_branch
from stratagem.hooks.settings import HookSettings
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.projects import common_git_folder, find_git_folder

__all__ = ["follow_git"]

# All that git may take of a session's start.
_GIT_SECONDS: Final = 0.5
_CONFLICTS_SHOWN: Final = 3

Seen = dict[str, dict[str, Any]]


def follow_git(
    runtime: Runtime, settings: HookSettings, branch: str, *, may_ask: bool
) -> list[str]:
    """Note what is checked out, and merge the memory of what git has merged; say what was done.

    `may_ask`: git itself may be run, for at most half a second.
    """
    path = os.path.join(hooks_folder(settings.database), "git.json")
    seen = _read(path)
    until = time.monotonic() + (_GIT_SECONDS if may_ask else 0.0)
    if branch != DEFAULT:
        _note(seen, settings, branch, until)
        lines: list[str] = []
    else:
        lines = list(_merge_all(runtime, settings, seen, until))
    _write(path, seen)
    return lines


def _note(seen: Seen, settings: HookSettings, branch: str, until: float) -> None:
    name = current_git_branch(settings.folder) or branch
    tip = git_tip(settings.folder, name)
    if tip is None:
        return
    known = seen.get(branch)
    if known is None or "merged" in known:
        main = main_git_branch(settings.folder)
        from_main = git_tip(settings.folder, main) if main else None
        known = seen[branch] = {"git": name, "base": tip, "main": from_main}
        known["apart"] = _is_apart(settings.folder, known, until)
    known["tip"] = tip
    known["repository"] = _repository(settings.folder)


def _is_apart(folder: str, known: dict[str, Any], until: float) -> bool | None:
    """Whether a branch had commits of its own when it was first seen; None until git was asked.

    An agent may make a branch and commit to it between two events, at which git is not run.
    """
    if known.get("apart") is not None:
        return bool(known["apart"])
    main = known.get("main")
    if main is None or main == known["base"]:
        return False
    is_part = _is_ancestor(folder, known["base"], main, until)
    return None if is_part is None else not is_part


def _repository(folder: str) -> str:
    """Return the git folder of the clone that one works in."""
    git = find_git_folder(folder)
    return common_git_folder(git) if git else ""


def _is_elsewhere(known: dict[str, Any], folder: str) -> bool:
    """Whether a branch was seen in another clone, which alone knows whether it is still there."""
    seen_in: str = known.get("repository", "")
    return seen_in != _repository(folder) and os.path.isdir(seen_in)


def _merge_all(runtime: Runtime, settings: HookSettings, seen: Seen, until: float) -> Iterator[str]:
    caller = Caller("hook", can_switch=False)
    memory = Memory(runtime.foundation, caller)
    for branch, known in seen.items():
        live = runtime.foundation.store.reader().branches.by_name(branch)
        if live is None or known.get("merged") == known["tip"] or known.get("asked"):
            continue
        now_at = git_tip(settings.folder, known.get("git", branch))
        gone = now_at is None and not _is_elsewhere(known, settings.folder)
        tip = known["tip"] = now_at or known["tip"]
        known["apart"] = _is_apart(settings.folder, known, until)
        has_work = known["apart"] or tip != known["base"]
        merged = has_work and _is_ancestor(settings.folder, tip, "HEAD", until)
        if merged:
            yield from _merge(memory, branch, known, gone=gone)
        elif gone and merged is not None:
            known["asked"] = True
            keep_orphan(runtime.foundation, caller, branch, tip)
            yield (
                f"- The git branch {branch} is gone, and its commits are not here. Its memory "
                "waits for review: `stratagem review`."
            )


def _merge(memory: Memory, branch: str, known: dict[str, Any], *, gone: bool) -> Iterator[str]:
    try:
        done = memory.merge(branch, branch=DEFAULT)
    except MergeConflict as error:
        places = [each["id"] for each in error.details.get("conflicts", ())[:_CONFLICTS_SHOWN]]
        yield (
            f"- git has merged {branch}; its memory has conflicts ({', '.join(places)}). Decide "
            f"with strata_branch, action merge, source {branch!r}."
        )
        return
    except StratagemError as error:
        yield f"- The memory of {branch} was not merged: {error.message}"
        return
    known["merged"] = known["tip"]
    if gone:
        with suppress(StratagemError):
            memory.delete(branch)
    yield (
        f"- git has merged {branch}; so was its memory: {_count(done.merged, 'entry', 'entries')}, "
        f"{_count(done.events, 'event', 'events')}."
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _is_ancestor(folder: str, commit: str, of: str, until: float) -> bool | None:
    """Ask git whether a commit is part of another; None where it has no answer in time."""
    left = until - time.monotonic()
    if left <= 0:
        return None
    command = ["git", "merge-base", "--is-ancestor", commit, of]
    try:
        done = subprocess.run(  # noqa: S603 -- a commit or a branch that git itself has named
            command, cwd=folder, capture_output=True, check=False, timeout=left
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {0: True, 1: False}.get(done.returncode)


def _read(path: str) -> Seen:
    try:
        with open(path, encoding="utf-8") as file:
            seen = json.load(file)
    except (OSError, ValueError):
        return {}
    return seen if isinstance(seen, dict) else {}


def _write(path: str, seen: Seen) -> None:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    aside = f"{path}.{os.getpid()}"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(seen, file)
    os.replace(aside, path)
