"""Which events of each client call `stratagem hook`, and how its files say so.

This is the one list: `stratagem init` writes it into the settings of clients, and
`python scripts/generate_plugins.py` into the packages of `plugins/`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import PurePath
from shlex import quote, split
from typing import Any, Final, Literal

from stratagem.deferred_dataclasses import dataclass

__all__ = [
    "HOOKS",
    "HOOKS_PATH",
    "Hook",
    "HookForm",
    "HookTarget",
    "hook_command",
    "hook_group",
    "is_own_handler",
    "plugin_program",
    "plugin_source",
    "server_url",
]

# How a file has its hooks: as groups with a matcher, as Claude Code has them; the same in
# milliseconds; as plain lists of commands; or as Cursor has them.
HookForm = Literal["groups", "groups-ms", "commands", "cursor"]


@dataclass(frozen=True, slots=True)
class Hook:
    """An event, and how long the client should wait for the command.

    The command ends by itself long before; the time is for a machine that is very busy.
    """

    event: str
    timeout_seconds: int = 5
    # Whether the client goes on without waiting, where it can.
    in_background: bool = False
    # Whether the client can call a server instead, as its documentation says.
    by_http: bool = False


# Where a server answers hooks, below its address: a client's name follows.
HOOKS_PATH: Final = "/stratagem/hook"
_START: Final = 10
_PLUGIN_PROGRAM: Final = re.compile(r"^const PROGRAM = (\[[^\]\n]*\])$", re.MULTILINE)

HOOKS: Final[Mapping[str, tuple[Hook, ...]]] = {
    "claude-code": (
        # A session may begin before anything is connected: there is no other form for it.
        Hook("SessionStart", _START),
        Hook("UserPromptSubmit", by_http=True),
        Hook("PostToolUse", in_background=True, by_http=True),
        Hook("PostToolUseFailure", by_http=True),
        Hook("Stop", by_http=True),
        Hook("PreCompact", by_http=True),
        Hook("PostCompact", by_http=True),
        Hook("SessionEnd"),
    ),
    "codex": (
        Hook("SessionStart", _START),
        Hook("UserPromptSubmit"),
        Hook("PostToolUse"),
        Hook("Stop"),
        Hook("PreCompact"),
        Hook("PostCompact"),
        Hook("SessionEnd"),
    ),
    "gemini": (
        Hook("SessionStart", _START),
        Hook("BeforeAgent"),
        Hook("AfterTool"),
        Hook("AfterAgent"),
        Hook("PreCompress"),
        Hook("SessionEnd"),
    ),
    "vscode": (
        Hook("SessionStart", _START),
        Hook("UserPromptSubmit"),
        Hook("PostToolUse"),
        Hook("Stop"),
        Hook("PreCompact"),
    ),
    "cursor": (
        Hook("sessionStart", _START),
        Hook("beforeSubmitPrompt"),
        Hook("postToolUse"),
        Hook("postToolUseFailure"),
        Hook("afterAgentResponse"),
        Hook("preCompact"),
        Hook("sessionEnd"),
    ),
}


@dataclass(frozen=True, slots=True)
class HookTarget:
    """What the events of a client call: a command, or, where it can, a running server.

    `url` is where the server answers hooks of this client; `token_variable` is the environment
    variable that has the token to send.
    """

    command: str
    url: str | None = None
    token_variable: str | None = None

    def handler(self, hook: Hook) -> dict[str, Any]:
        """Return the handler of an event, as Claude Code has it."""
        if self.url is None or not hook.by_http:
            waits = {"async": True} if hook.in_background else {}
            called = {"type": "command", "command": self.command}
            return {**called, "timeout": hook.timeout_seconds, **waits}
        handler: dict[str, Any] = {"type": "http", "url": self.url}
        if self.token_variable:
            handler["headers"] = {"Authorization": f"Bearer ${self.token_variable}"}
            handler["allowedEnvVars"] = [self.token_variable]
        return {**handler, "timeout": hook.timeout_seconds}


def server_url(server: str, client: str) -> str:
    """Return where a server answers the hooks of a client."""
    return f"{server.rstrip('/')}{HOOKS_PATH}/{client}"


def hook_group(form: HookForm, hook: Hook, target: HookTarget) -> dict[str, Any]:
    """Return what stands in a file for one event."""
    timeout, command = hook.timeout_seconds, target.command
    if form == "cursor":
        return {"command": command, "timeout": timeout}
    if form == "groups-ms":
        named = {"name": "stratagem", "type": "command", "command": command}
        return {"hooks": [{**named, "timeout": timeout * 1000}]}
    if form == "commands":
        return {"type": "command", "command": command, "timeout": timeout}
    return {"hooks": [target.handler(hook)]}


def hook_command(program: list[str], client: str) -> str:
    """Return the line that a shell runs for an event."""
    return " ".join(_quoted_word(word) for word in [*program, "hook", client])


def _quoted_word(word: str) -> str:
    """Return a word as the shells of this system take it; those of Windows know double quotes."""
    if os.name != "nt":
        return quote(word)
    return f'"{word}"' if set(word) & set(" \\&()") else word


def plugin_program(source: str) -> list[str]:
    """Return the program that a plugin of opencode calls; empty where it names none."""
    found = _PLUGIN_PROGRAM.search(source)
    return [str(word) for word in json.loads(found[1])] if found else []


def is_own_handler(handler: object) -> bool:
    """Whether a handler in a file of hooks runs `stratagem hook`, or calls a server of ours."""
    if not isinstance(handler, Mapping):
        return False
    if handler.get("type") == "http":
        return any(str(handler.get("url", "")).endswith(server_url("", name)) for name in HOOKS)
    if not isinstance(handler.get("command"), str):
        return False
    try:
        words = split(handler["command"])
    except ValueError:
        return False
    names = [PurePath(word.replace("\\", "/")).stem for word in words]
    calls = (names[at + 1 :] for at, name in enumerate(names) if name == "stratagem")
    # `stratagem hook CLIENT`, or `stratagem --db PLACE hook CLIENT`.
    return any((rest[2:] if rest[:1] == ["--db"] else rest)[:1] == ["hook"] for rest in calls)


def plugin_source(program: list[str]) -> str:
    """Return the plugin of opencode, which calls a program."""
    template = (resources.files(__package__) / "opencode_plugin.js").read_text("utf-8")
    return template.replace('["stratagem"]', json.dumps(program, ensure_ascii=False))
