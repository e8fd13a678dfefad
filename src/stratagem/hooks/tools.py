"""Events of tools: a failure is answered with the best known fix, and every use is captured.

The notes about each use (the command, its success, its changes) are evaluated at the end of the
turn: which fix helped, and what was tried between a failure and a success.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from stratagem.hooks.clients import HookEvent
from stratagem.hooks.context_text import strip_marked
from stratagem.hooks.records import mask_ends, mask_text, spool_tool
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings

__all__ = ["command_key", "handle_tool"]

_ACTION_CHARS: Final = 400
_ERROR_CHARS: Final = 4_000
# A command that is longer is known by its beginning.
_COMMAND_CHARS: Final = 4_000
# Tools that change files, by what clients call them, and commands that only look.
_EDITS: Final = re.compile(
    r"(?i)edit|write|replace|patch|create|notebook|insert|delete|move|rename"
)
_LOOKS: Final = frozenset(
    (
        *("awk", "basename", "cat", "cd", "cmp", "cut", "date", "df", "diff", "dig", "dirname"),
        *("dmesg", "du", "echo", "egrep", "env", "fd", "file", "find", "free", "getent", "grep"),
        *("head", "history", "host", "hostname", "id", "journalctl", "jq", "less", "ls", "lsof"),
        *("man", "more", "netstat", "nslookup", "ping", "printenv", "printf", "ps", "pwd"),
        *("readlink", "realpath", "rg", "sed", "sleep", "sort", "ss", "stat", "strings", "tail"),
        *("test", "tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami"),
    )
)
# What comes behind the name of a command that otherwise changes something.
_ASKS: Final = frozenset({"--help", "--version", "-V", "-h", "-v", "help", "version"})
_LISTS: Final = frozenset({"info", "list", "show"})
_LOOKS_WITH: Final[Mapping[str, frozenset[str]]] = {
    "apt": _LISTS | {"policy", "search"},
    "brew": _LISTS | {"search"},
    "cargo": frozenset({"metadata", "tree"}),
    "conda": _LISTS,
    "docker": frozenset({"images", "info", "inspect", "logs", "ps", "stats", "top"}),
    "git": frozenset({"blame", "branch", "diff", "log", "remote", "show", "status"}),
    "go": frozenset({"env", "list"}),
    "helm": frozenset({"get", "history", "list", "status"}),
    "kubectl": frozenset({"describe", "explain", "get", "logs", "top"}),
    "npm": frozenset({"list", "ls", "outdated", "view", "why"}),
    "pip": _LISTS | {"check", "freeze"},
    "pip3": _LISTS | {"check", "freeze"},
    "pnpm": frozenset({"list", "ls", "outdated", "view", "why"}),
    "podman": frozenset({"images", "info", "inspect", "logs", "ps", "stats", "top"}),
    "poetry": frozenset({"check", "show"}),
    "systemctl": frozenset({"cat", "is-active", "is-enabled", "list-units", "show", "status"}),
    "terraform": frozenset({"plan", "show", "validate"}),
    "yarn": frozenset({"info", "list", "outdated", "why"}),
}
# With these, what only looks otherwise changes something.
_CHANGING: Final = frozenset({"-i", "-delete", "-exec", "-execdir"})
# Into a file, and not away: `>> .env`, but not `2>/dev/null`.
_WRITES: Final = re.compile(r"(?<![\d&=-])>{1,2}\s*+(?![\s&]|/dev/null\b)")
_QUOTED: Final = re.compile(r"'[^']*+'|\"[^\"]*+\"")
# What stands around a command without making it another one.
_SETUP: Final = re.compile(
    r"(?:cd|export|source|set)\s[^&;|]{0,300}+(?:&&|;)\s*+|(?<![^\s&;|])[A-Z_]++=[^\s&;|]*+\s++"
)
# `python -m pytest` and `uv run pytest` run what `pytest` runs.
_RUNNER: Final = re.compile(r"^(?:uv run\s+|poetry run\s+)?(?:python3?\s+-m\s+)?")
_PIPED: Final = re.compile(
    r"(?<!\s)\s*+(?:2?>{1,2}\s?&?\S++|\|\s*+(?:tail|head|grep|tee|cat|less)\b[^|&;]*+)"
)


def handle_tool(
    event: HookEvent, settings: HookSettings, files: SessionFiles, *, wanted: bool
) -> str:
    """Return the fix for what failed, as a text; empty where nothing failed or none is known."""
    text = ""
    if event.interrupted:
        # The user stopped it: that is no failure to learn from.
        return text
    if settings.is_on("failure"):
        if not event.failed:
            _note_use(event, settings, files)
        elif wanted:
            from stratagem.hooks.fixes import find_fix

            text = find_fix(event, settings, files)
        else:
            note_failure(event, settings, files)
    if settings.is_on("capture"):
        spool_tool(event, settings, files)
    return text


def note_failure(event: HookEvent, settings: HookSettings, files: SessionFiles, **fix: Any) -> None:
    """Remember that a command failed, and the fix that was shown for it if one was.

    `incidents`, where given, are the known ones with the same error.
    """
    key = command_key(event, settings)
    if key:
        error = mask_ends(strip_marked(event.error), _ERROR_CHARS, settings)
        files.note("failed", command=key, error=error, **fix)


def _note_use(event: HookEvent, settings: HookSettings, files: SessionFiles) -> None:
    """Remember a command that went well, and anything that changes something."""
    action = _action(event)
    if action:
        action = mask_ends(action, 2 * _ACTION_CHARS, settings)[:_ACTION_CHARS]
    key = command_key(event, settings)
    if key or action:
        files.note("done", command=key, action=action)


def command_key(event: HookEvent, settings: HookSettings) -> str:
    """Return what a command is known by when it is run again: without options, pipes and secrets.

    Empty for tools that run no command.
    """
    command = event.command.strip()[:_COMMAND_CHARS]
    if not command:
        return ""
    # First of all: without its option a secret would not be recognised.
    command = mask_text(command, settings)
    command = _RUNNER.sub("", _PIPED.sub("", _SETUP.sub("", command)))
    words = [word for word in command.split() if not word.startswith("-")]
    return " ".join(words)[:_ACTION_CHARS]


def _action(event: HookEvent) -> str:
    """Say what a tool changed; empty for one that only looked."""
    command = event.command.strip()
    if command:
        return "" if _only_looks(command[:_COMMAND_CHARS]) else f"Run: {command}"
    if event.patch:
        return _patch_action(event.patch)
    if not _EDITS.search(event.tool) or not isinstance(event.arguments, Mapping):
        return ""
    given = event.arguments
    path = str(given.get("file_path") or given.get("filePath") or given.get("path") or "")
    name = os.path.relpath(path, event.folder) if event.folder and os.path.isabs(path) else path
    old = given.get("old_string") or given.get("oldString") or ""
    new = given.get("new_string") or given.get("newString") or given.get("content") or ""
    if old or new:
        return f"Edit {name}: replace {_brief(old)} by {_brief(new)}" if old else f"Write {name}"
    return f"Edit {name}" if name else ""


def _patch_action(patch: str) -> str:
    """Say what a patch changes: its files, and the lines that go and come."""
    lines = patch.splitlines()
    files = [line.partition(": ")[2] for line in lines if line.startswith("*** ") and ": " in line]
    old = " ".join(line[1:] for line in lines if line.startswith("-"))
    new = " ".join(line[1:] for line in lines if line.startswith("+"))
    changed = f": replace {_brief(old)} by {_brief(new)}" if old else f": add {_brief(new)}"
    return f"Edit {', '.join(files)}{changed if old or new else ''}"


def _brief(text: Any) -> str:
    line = " ".join(str(text).split())
    return f"`{line[:120]}`"


def _only_looks(command: str) -> bool:
    if _WRITES.search(_QUOTED.sub("", command)):
        return False
    parts = re.split(r"&&|\|\|?|;|\n", _SETUP.sub("", command))
    return all(_looks(part.split()) for part in parts)


def _looks(words: list[str]) -> bool:
    if words[:1] == ["sudo"]:
        words = words[1:]
    if not words:
        return True
    name, given = words[0], words[1:2]
    if len(words) == 2 and given[0] in _ASKS:  # noqa: PLR2004 -- a name, and what is asked of it
        return True
    if name in _LOOKS_WITH:
        return not _LOOKS_WITH[name].isdisjoint(given)
    return name in _LOOKS and not _CHANGING.intersection(words)
