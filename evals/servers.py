"""Calls of real servers, damaged in their names.

The servers are installed from their registries, started, and asked for their tools, as somebody who
adds them would. Nothing of theirs is kept here. Only tools whose schemas are open are taken: those
without `additionalProperties`, which a validator lets any name pass by.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import stratagem
from evals.calls import Call, made_for
from evals.damage import Case
from evals.suites import DataMissing
from stratagem.gateway.correction import ready
from tests.registries import cache_folder, fetch_once, npm_package

__all__ = ["cases"]

_SEED: Final = 20261116
_PER_KIND: Final = 30
_FETCH_SECONDS: Final = 300
# They ask for one before they list their tools; none is called here.
_SECRETS: Final = {"SLACK_BOT_TOKEN": "none", "SLACK_TEAM_ID": "none", "TAVILY_API_KEY": "none"}


class Server(NamedTuple):
    """A server of a registry, and what it is started with."""

    package: str
    module: str | None = None
    arguments: tuple[str, ...] = ()


_SERVERS: Final = (
    Server("@modelcontextprotocol/server-everything"),
    Server("@modelcontextprotocol/server-filesystem", arguments=(".",)),
    Server("@modelcontextprotocol/server-memory"),
    Server("@modelcontextprotocol/server-sequential-thinking"),
    Server("@modelcontextprotocol/server-slack"),
    Server("tavily-mcp"),
    Server("mcp-server-git", module="mcp_server_git"),
    Server("mcp-server-time", module="mcp_server_time"),
)

# What models call common parameters; many of them are no synonyms anywhere else.
_HABITS: Final = {
    "path": ("file", "filename", "file_path", "dir"), "paths": ("files", "file_paths"),
    "query": ("q", "search", "search_term"), "content": ("text", "body", "data"),
    "message": ("msg", "text"), "repo_path": ("repo", "repository", "path"),
    "channel_id": ("channel", "chan"), "text": ("message", "body"), "limit": ("count", "max"),
    "max_count": ("limit", "n"), "pattern": ("glob", "regex"), "source": ("src", "from"),
    "destination": ("dest", "to", "target"), "urls": ("links", "pages"), "url": ("link", "address"),
    "branch_name": ("branch", "name"), "timezone": ("tz", "zone"), "target": ("ref", "to"),
    "thought": ("idea", "thinking"), "names": ("entities", "nodes"), "max_results": ("limit",),
    "user_id": ("user", "member"), "files": ("paths", "file_list"), "time": ("hour", "when"),
}  # fmt: skip
_ODD_NAMES: Final = ("blorp", "zeta_flag", "whatnot")


def cases() -> list[Case]:
    """Return damaged calls of the servers' tools, the same ones for the same tools."""
    rng = random.Random(_SEED)
    calls = [
        call
        for _ in range(30)
        for name, schema in sorted(_open_tools().items())
        if (call := Call(name, schema, made_for(schema, rng))).arguments
        and ready(schema).validator.is_valid(call.arguments)
    ]
    found: list[Case] = []
    for kind in _KINDS:
        drawn = (_damage(kind, call, rng) for call in rng.sample(calls, len(calls)))
        found += islice(filter(None, drawn), _PER_KIND)
    return found


_KINDS: Final = (
    "required misspelt", "required in another style", "required by a habit", "required misnamed",
    "optional misspelt", "optional in another style", "optional in another number",
    "optional by a habit", "both misspelt", "unknown beside", "control valid",
)  # fmt: skip


def _damage(kind: str, call: Call, rng: random.Random) -> Case | None:
    required = set(call.schema.get("required", ()))
    given = {name: name in required for name in call.arguments}
    first, _, how = kind.partition(" ")
    if kind == "control valid":
        return Case(kind, call, call.arguments, call.arguments)
    if kind == "unknown beside":
        sent = {**call.arguments, rng.choice(_ODD_NAMES): 1}
        return Case(kind, call, sent, sent)
    renamed: dict[str, str] = {}
    for wanted in (True, False) if first == "both" else (first == "required",):
        names = [name for name, needed in given.items() if needed is wanted]
        name = rng.choice(names) if names else ""
        other = _other_name(name, how, call, rng) if names else None
        if other is None:
            return None
        renamed[name] = other
    sent = {renamed.get(name, name): value for name, value in call.arguments.items()}
    return Case(kind, call, sent, call.arguments)


def _other_name(name: str, how: str, call: Call, rng: random.Random) -> str | None:
    others = {
        "misspelt": _misspelt(name, rng),
        "in another style": _in_another_style(name),
        "in another number": name[:-1] if name.endswith("s") else f"{name}s",
        "by a habit": rng.choice(_HABITS.get(name, ("",))),
        "misnamed": rng.choice(_ODD_NAMES),
    }
    other = others[how]
    known = {each.casefold() for each in call.schema["properties"]}
    return other if other and other != name and other.casefold() not in known - {name} else None


def _misspelt(name: str, rng: random.Random) -> str:
    places = [at for at in range(1, len(name) - 1) if name[at].isalpha()]
    # Of shorter names too many are words.
    if len(name) < 5 or not places:
        return ""
    at = rng.choice(places)
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    return rng.choice((swapped, name[:at] + name[at + 1 :]))


def _in_another_style(name: str) -> str:
    if "_" in name:
        head, *rest = name.split("_")
        return head + "".join(each.capitalize() for each in rest)
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


_TOOLS: dict[str, dict[str, Any]] = {}


def _open_tools() -> dict[str, dict[str, Any]]:
    """Return the open schemas of every server, by tool; the servers are started once."""
    if not _TOOLS:
        with tempfile.TemporaryDirectory() as folder:
            for server in _SERVERS:
                for tool in _listed(server, Path(folder)):
                    schema = tool["inputSchema"]
                    if schema.get("properties") and "additionalProperties" not in schema:
                        _TOOLS[f"{server.package} {tool['name']}"] = schema
    return _TOOLS


def _listed(server: Server, folder: Path) -> Iterator[dict[str, Any]]:
    command, environment = _command(server)
    with stratagem.open(":memory:", embedder="none") as database:
        database.call(
            "server_add",
            {
                "name": "server",
                "command": command[0],
                "args": [*command[1:], *(str(folder) for _ in server.arguments)],
                "env": {**_SECRETS, **environment},
            },
        )
        listed = database.call("tools_list", {"search": "", "limit": 500})["tools"]
        yield from (tool for tool in listed if tool["provider"] != "stratagem")


def _command(server: Server) -> tuple[list[str], dict[str, str]]:
    try:
        if server.module is None:
            node, package = npm_package(server.package)
            named = json.loads((package / "package.json").read_text("utf-8"))["bin"]
            script = named if isinstance(named, str) else next(iter(named.values()))
            return [node, str(package / script)], {}
    except LookupError as reason:
        raise DataMissing(str(reason)) from reason
    kept = cache_folder("pypi", server.package)
    if (problem := fetch_once(kept, lambda folder: _fetch(server.package, folder))) is not None:
        raise DataMissing(problem)
    return [sys.executable, "-m", server.module], {"PYTHONPATH": str(kept)}


def _fetch(package: str, folder: Path) -> str | None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), package],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=_FETCH_SECONDS,
        check=False,
    )
    return f"{package} cannot be fetched: {done.stderr[-300:]}" if done.returncode else None
