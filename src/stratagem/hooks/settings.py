"""The settings of hooks: what each may inject, and which are off.

They are rows of the one table of settings (`surfaces.cli.settings` makes them from these). A hook
reads them by itself: from the environment, then from the project's file, then from the user's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal

from stratagem.deferred_tuples import NamedTuple
from stratagem.projects import (
    DATABASE_NAME,
    came_with_repository,
    find_memory,
    tracked_files,
    user_config_folder,
    user_folder,
)

__all__ = [
    "HOOK_SETTINGS",
    "PERSONAL",
    "SWITCHES",
    "HookSetting",
    "HookSettings",
    "owner_of",
    "read_settings",
]

# Whose a memory is.
PERSONAL: Final = "personal"
_PROJECT: Final = "project"
# What can be switched off by itself.
SWITCHES: Final = ("start", "prompt", "failure", "capture")
_FILE_NAME: Final = "config.toml"
_PREFIX: Final = "STRATAGEM_"
# Settings that a hook shares with every other command.
_SHARED: Final = {
    "db": "",
    "namespace": "default",
    "redaction": "basic",
}


class HookSetting(NamedTuple):
    """One setting, as `surfaces.cli.settings.Setting` shows it."""

    name: str
    default: str
    words: str
    metavar: str = "NUMBER"


HOOK_SETTINGS: Final = (
    HookSetting(
        "hooks_off", "none", "hooks that are off: start, prompt, failure, capture, or all", "NAMES"
    ),
    HookSetting(
        "hook_start_chars", "2000", "most characters of the text at the start of a session"
    ),
    HookSetting("hook_prompt_hits", "3", "most memories that are added to a prompt"),
    HookSetting("hook_prompt_tokens", "500", "most tokens of these memories together"),
    HookSetting(
        "hook_prompt_floor", "0.8", "how relevant a memory must be to a prompt, from 0 to 1"
    ),
    HookSetting("hook_failure_tokens", "180", "most tokens of the fix for a failure"),
    HookSetting(
        "branches", "none", "git: each git branch has a memory branch of its own", "none|git"
    ),
    HookSetting(
        "hook_time_limit",
        "by event: 1.3 to 8",
        "after how many seconds a hook gives up",
        "SECONDS",
    ),
)
# What a file that came with a repository cannot set.
_OF_USER_ONLY: Final = frozenset({"db", "redaction"})
_DEFAULTS: Final = _SHARED | {each.name: each.default for each in HOOK_SETTINGS}


class HookSettings(NamedTuple):
    """What is in force for a folder.

    `folder` is where the agent works, `memory` the folder of its project's memory, if it has one.
    `database` is the one that is written to; `personal` the person's own, where that is another.
    `level` says what is masked. `knows_fixes`: whoever asks may read the fixes of failures.
    """

    folder: str
    database: str
    personal: str | None
    memory: str | None
    namespace: str
    level: Literal["none", "basic", "strict"]
    off: frozenset[str]
    start_chars: int
    prompt_hits: int
    prompt_tokens: int
    prompt_floor: float
    failure_tokens: int
    time_limit: float | None
    git_branches: bool
    knows_fixes: bool = True

    def is_on(self, switch: str) -> bool:
        """Whether hooks of a kind do anything."""
        return self.off.isdisjoint({switch, "all"})


def owner_of(settings: HookSettings) -> str:
    """Return whose the database is that is written to."""
    return _PROJECT if settings.memory else PERSONAL


def read_settings(folder: str) -> HookSettings:
    """Return what is in force where an agent works."""
    memory = find_memory(folder)
    given = _DEFAULTS | _read_file(os.path.join(user_config_folder(), _FILE_NAME))
    switched_off = _names(given["hooks_off"])
    if memory:
        theirs = _read_file(os.path.join(memory, _FILE_NAME))
        if theirs.keys() & _OF_USER_ONLY and not tracked_files(memory).isdisjoint({"", _FILE_NAME}):
            # Whoever wrote the repository says neither where this user's memory is nor what is
            # masked in it.
            theirs = {name: said for name, said in theirs.items() if name not in _OF_USER_ONLY}
        given |= theirs
        # What the user has switched off everywhere no project switches on.
        switched_off |= _names(theirs.get("hooks_off", "none"))
    for name in _DEFAULTS:
        told = os.environ.get(_PREFIX + name.upper())
        if told is not None:
            given[name] = told
            switched_off = _names(told) if name == "hooks_off" else switched_off
    if memory and given["namespace"].partition("/")[0] == PERSONAL:
        # What is captured in a project is the project's, which has no namespace of that name.
        given["namespace"] = _DEFAULTS["namespace"]
    own = os.path.join(user_folder(), DATABASE_NAME)
    if memory and not given["db"] and came_with_repository(memory):
        # It came with the repository: nobody here has stored what it says.
        switched_off |= {"all"}
    database = os.path.expanduser(given["db"]) or (
        os.path.join(memory, DATABASE_NAME) if memory else own
    )
    return HookSettings(
        folder,
        database,
        own if memory and not given["db"] else None,
        memory,
        given["namespace"],
        _level(given["redaction"]),
        switched_off,
        _number(given, "hook_start_chars"),
        _number(given, "hook_prompt_hits"),
        _number(given, "hook_prompt_tokens"),
        min(_decimal(given, "hook_prompt_floor") or 0.0, 1.0),
        _number(given, "hook_failure_tokens"),
        _decimal(given, "hook_time_limit"),
        given["branches"] == "git",
    )


def _read_file(path: str) -> dict[str, str]:
    """Return what a file says of the settings that concern hooks; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    if not any(name.encode() in data for name in _DEFAULTS):
        return {}
    # Only now: most files say nothing about hooks, and a parser takes a while to import.
    import tomllib

    try:
        said: Mapping[str, Any] = tomllib.loads(data.decode())
    except ValueError:
        # The command line says what is wrong with it; a hook bothers nobody.
        return {}
    return {name: _text(said[name]) for name in _DEFAULTS if name in said}


def _names(said: str) -> frozenset[str]:
    return frozenset(said.replace(",", " ").split()) - {"none"}


def _level(said: str) -> Literal["none", "basic", "strict"]:
    # One that does not exist masks as the default does: nothing is let through by mistake.
    return "none" if said == "none" else "strict" if said == "strict" else "basic"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(given: Mapping[str, str], name: str) -> int:
    value = given[name]
    return int(value) if value.isdigit() else int(_DEFAULTS[name])


def _decimal(given: Mapping[str, str], name: str) -> float | None:
    """Return a number that is not negative; the default where it is none, or None."""
    for text in (given[name], _DEFAULTS[name]):
        try:
            return max(float(text), 0.0)
        except ValueError:
            continue
    return None
