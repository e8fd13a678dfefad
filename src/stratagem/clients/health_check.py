"""A check of the configured clients: each command is started as the client would start it.

A client hands a server a few variables of its own environment and those of its settings, not all
that a shell has. A server has to answer the first two requests of the protocol; a hook has to end
well, with an answer in JSON or none.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from stratagem.clients.catalogue import CLIENTS, AgentClient, Folders, Scope
from stratagem.clients.hook_lists import hook_command, plugin_program
from stratagem.clients.settings_edit import hook_targets, read_server
from stratagem.clients.settings_files import SettingsRecord, digest, read_settings
from stratagem.clients.setup_plan import server_file
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError

__all__ = ["Checked", "check_clients", "foreign_commands"]

# What clients hand on to servers that they start.
_HANDED_ON: Final = (
    *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("APPDATA", "LOCALAPPDATA", "PATHEXT", "SystemRoot", "TEMP", "USERPROFILE"),
)
# A server answers within a second; the machine may be busy.
_SECONDS_MAX: Final = 20
_ENDING_SECONDS: Final = 1
_WORDS_MAX: Final = 400
_VERSION: Final = "2025-06-18"
_HANDSHAKE: Final = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": _VERSION,
            "capabilities": {},
            "clientInfo": {"name": "stratagem-init", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of starting one thing that a client is set up to start."""

    client: str
    scope: Scope
    what: str
    file: str
    command: str
    ok: bool
    message: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A command as a client would start it."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: Path


def check_clients(clients: Sequence[AgentClient], folders: Folders) -> list[Checked]:
    """Start everything that clients are set up to start, each command once."""
    known: dict[_Start, tuple[bool, str]] = {}
    found: list[Checked] = []
    for client in clients:
        for scope in ("project", "user"):
            found += _check_server(client, scope, folders, known)
            found += _check_hooks(client, scope, folders)
    return found


def foreign_commands(
    clients: Sequence[AgentClient], folders: Folders, record: SettingsRecord
) -> list[tuple[Path, str]]:
    """Return what a check would start that somebody else may have written, and the file it is in.

    That is what the project's own files name, unless they are as `init` left them on this machine.
    """
    found: dict[tuple[Path, str], None] = {}
    for client in clients:
        for file, command in _project_commands(client, folders):
            known = record.files.get(str(file))
            if known is None or known.written != digest(read_settings(file) or ""):
                found[file, command] = None
    return [*found]


def _project_commands(client: AgentClient, folders: Folders) -> Iterator[tuple[Path, str]]:
    """Yield each command and address that a project's settings of a client name, and the file."""
    if (place := client.servers.get("project")) is not None:
        file = server_file(place, folders)
        with suppress(StratagemError):
            entry = read_server(read_settings(file) or "", place)
            _fault, start = _read_entry(entry or {}, folders)
            if start is not None:
                yield file, shlex.join(start.words)
    if (plugin := client.plugins.get("project")) is not None:
        file = folders.path(plugin)
        with suppress(StratagemError):
            if program := plugin_program(read_settings(file) or ""):
                yield file, hook_command(program, client.name)
    if (hooks := client.hooks.get("project")) is not None:
        file = folders.path(hooks.file)
        with suppress(StratagemError):
            for target in hook_targets(read_settings(file) or ""):
                yield file, target


def _check_server(
    client: AgentClient, scope: Scope, folders: Folders, known: dict[_Start, tuple[bool, str]]
) -> Iterator[Checked]:
    place = client.servers.get(scope)
    if place is None:
        return
    file = server_file(place, folders)
    about = (client.name, scope, "server", str(file))
    try:
        entry = read_server(read_settings(file) or "", place)
    except StratagemError as error:
        yield Checked(*about, "", ok=False, message=error.message)
        return
    if entry is None:
        return
    fault, start = _read_entry(entry, folders)
    if start is None:
        yield Checked(*about, "", ok=False, message=fault)
        return
    if start not in known:
        known[start] = _try_server(start)
    ok, message = known[start]
    yield Checked(*about, " ".join(start.words), ok, message)


def _read_entry(entry: Mapping[str, Any], folders: Folders) -> tuple[str, _Start | None]:
    """Return an entry of a client's settings as the command it stands for, or what is wrong."""
    command, args, given = entry.get("command"), entry.get("args", []), entry.get("env") or {}
    if entry.get("url"):
        return "it names a server by its address, so nothing is started here", None
    if not isinstance(command, str) or not isinstance(args, list):
        return "it has no command, or its arguments are not a list", None
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return "it is switched off in these settings", None
    words = [
        str(each).replace("${workspaceFolder}", str(folders.here)) for each in [command, *args]
    ]
    variables = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    if isinstance(given, Mapping):
        variables |= {str(name): str(value) for name, value in given.items()}
    folder = Path(str(entry.get("cwd") or folders.here))
    return "", _Start(tuple(words), tuple(variables.items()), folder)


def _try_server(start: _Start) -> tuple[bool, str]:
    fault, child = _begin(start)
    if child is None:
        return False, fault
    requests = "".join(json.dumps(each) + "\n" for each in _HANDSHAKE).encode()
    lines = _ask(child, requests)
    words = _end(child)
    if lines is None:
        return False, f"it did not answer within {_SECONDS_MAX} seconds{words}"
    return _judge(start, lines, f"status {child.returncode}{words}")


def _begin(start: _Start) -> tuple[str, subprocess.Popen[bytes] | None]:
    variables = dict(start.environment)
    program = shutil.which(start.words[0], path=variables.get("PATH"))
    if program is None:
        there = Path(start.words[0]).exists()
        return (
            f"{start.words[0]} is not a program that can be run"
            if there
            else f"there is no {start.words[0]}; run stratagem init again"
        ), None
    try:
        child = subprocess.Popen(  # noqa: S603 -- what the user's own settings name
            [program, *start.words[1:]],
            env=variables,
            cwd=start.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror}", None
    return "", child


def _ask(child: subprocess.Popen[bytes], requests: bytes) -> list[bytes] | None:
    """Send requests and return the lines of the answers; None where they take too long."""
    lines: list[bytes] = []

    def read() -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        # It may have ended already; what it wrote says why.
        with suppress(OSError):
            child.stdin.write(requests)
            child.stdin.flush()
        for line in child.stdout:
            lines.append(line)
            if b'"id":2' in line.replace(b" ", b""):
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(_SECONDS_MAX)
    return None if reader.is_alive() else lines


def _judge(start: _Start, lines: list[bytes], ending: str) -> tuple[bool, str]:
    answers: dict[Any, Any] = {}
    for line in lines:
        try:
            message = json.loads(line)
            answers[message.get("id")] = message
        except (ValueError, AttributeError):
            words = line.decode("utf-8", "replace").strip()[:_WORDS_MAX]
            return False, f"it writes something to its output that is not MCP: {words}"
    tools = answers.get(2, {}).get("result", {}).get("tools")
    if not isinstance(tools, list):
        fault = next((each["error"] for each in answers.values() if "error" in each), None)
        words = f"{fault.get('message')}; {ending}" if fault else ending
        return False, f"it ended without an answer: {words}"
    server = answers[1]["result"].get("serverInfo", {})
    version = f"{server.get('name', '?')} {server.get('version', '?')}"
    hint = "" if Path(start.words[0]).is_absolute() else _path_hint(start.words[0])
    return True, f"{version} answers, with {len(tools)} tools{hint}"


def _path_hint(program: str) -> str:
    return f"; {program} was found by this shell's PATH, which a desktop application may not have"


def _end(child: subprocess.Popen[bytes]) -> str:
    """End a command, and return the last of what it said of its trouble."""
    with suppress(OSError):
        assert child.stdin is not None
        child.stdin.close()
    child.stdin = None
    with suppress(subprocess.TimeoutExpired):
        # One that ends by itself says with which status.
        child.wait(_ENDING_SECONDS)
    child.kill()
    _, said = child.communicate()
    words = said.decode("utf-8", "replace").strip()
    return f". It said: {words[-_WORDS_MAX:]}" if words else ""


def _check_hooks(client: AgentClient, scope: Scope, folders: Folders) -> Iterator[Checked]:
    if (plugin := client.plugins.get(scope)) is not None:
        yield from _check_plugin(client, scope, folders.path(plugin))
    place = client.hooks.get(scope)
    if place is None:
        return
    file = folders.path(place.file)
    about = (client.name, scope, "hooks", str(file))
    try:
        targets = hook_targets(read_settings(file) or "")
    except StratagemError as error:
        if CLIENTS[client.name].servers[scope].files != (place.file,):
            yield Checked(*about, "", ok=False, message=error.message)
        return
    for target in targets:
        ok, message = _try_url(target) if target.startswith("http") else _try_hook(target)
        yield Checked(*about, target, ok, message)


def _check_plugin(client: AgentClient, scope: Scope, file: Path) -> Iterator[Checked]:
    source = read_settings(file)
    if source is None:
        return
    program = plugin_program(source)
    command = hook_command(program, client.name)
    ok, message = _try_hook(command) if program else (False, "it names no program")
    yield Checked(client.name, scope, "hooks", str(file), command, ok, message)


def _try_url(url: str) -> tuple[bool, str]:
    """Send a server an event that is nothing to it, so that nothing is written."""
    request = Request(url, b"{}", {"content-type": "application/json"})  # noqa: S310 -- of ours
    try:
        with urlopen(request, timeout=_SECONDS_MAX) as response:  # noqa: S310 -- of ours
            json.loads(response.read())
    except HTTPError as error:
        # It is there; the token is the client's to send.
        needs_token = error.code == HTTPStatus.UNAUTHORIZED
        return needs_token, "it answers, and asks for a token" if needs_token else str(error)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return False, f"no server answers there ({reason}): start it with `stratagem serve`"
    return True, "it answers"


def _try_hook(command: str) -> tuple[bool, str]:
    """Hand a hook an event of a folder that has no memory, so that nothing is written."""
    with tempfile.TemporaryDirectory(prefix="stratagem-check-") as folder:
        event = {"hook_event_name": "Stop", "session_id": "stratagem-check", "cwd": folder}
        try:
            done = subprocess.run(  # noqa: S602 -- a client has a shell run it, too
                command,
                shell=True,
                input=json.dumps(event).encode(),
                capture_output=True,
                timeout=_SECONDS_MAX,
                cwd=folder,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, f"it cannot be run: {error}"
    words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-_WORDS_MAX:]
    if done.returncode:
        return False, f"it ends with status {done.returncode}. It said: {words}"
    answer = done.stdout.strip()
    try:
        json.loads(answer or b"{}")
    except ValueError:
        return False, f"its answer is not JSON: {words}"
    return True, "it runs"
