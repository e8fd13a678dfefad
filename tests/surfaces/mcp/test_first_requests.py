"""What is answered without the protocol's library is answered as the library's server would."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.surfaces.mcp.client_identity import process_caller
from stratagem.surfaces.mcp.first_requests import FirstRequests
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from tests import forkserver
from tests.surfaces.mcp.clients import INITIALIZE, Stdio, server_command

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/templates/list", {}),
    ("resources/list", {"_meta": {"progressToken": 1, "client/turn": "x"}}),
    ("tools/call", {"name": "strata_recall", "arguments": {"key": "city"}}),
    ("tools/call", {"name": "strata_recall", "arguments": {"key": "nowhere"}}),
    ("tools/call", {"name": "strata_recall", "arguments": {"key": "large"}}),
    ("tools/call", {"name": "strata_status"}),
    ("tools/call", {"name": "strata_search", "arguments": {"query": "where \ud83d\ude00 is it"}}),
    ("tools/call", {"name": "strata_store", "arguments": {"key": ""}}),
    ("tools/call", {"name": "ranked_solutions", "arguments": {"query": "no such file"}}),
    ("tools/call", {"name": "strata_get", "arguments": {"key": "city"}}),
    ("tools/call", {"name": "tool_execute", "arguments": {}}),
]
MODERN = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":'
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'
)
# Each has to be answered by the library's server, which is shown the handshake first.
OTHERS: list[bytes | None] = [
    None,  # a line that is too long
    b"not json",
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"stratagem://status"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"remember_session"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[1]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"strata_status","task":{}}}',
    MODERN,
    b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
]
# The same server, told that there is something that only the library can show.
ALL_BY_LIBRARY = (
    "from stratagem.surfaces.mcp import first_requests\n"
    "first_requests.FirstRequests.serve = lambda self: []\n"
)
LOADED = """
import atexit, sys
atexit.register(lambda: print([name for name in sys.modules if name == "mcp"], file=sys.stderr))
"""


@pytest.fixture
def path(path: Path) -> Path:
    """Give a database with a few entries."""
    with stratagem.open(path, embedder="none") as db:
        db.memory.store("city", "Oslo")
        db.memory.store("large", 2**62)
    return path


def converse(path: Path, lines: list[str], *, library: bool = False) -> list[dict[str, Any]]:
    """Return what a server answers to lines, in the order of its ids."""
    command = server_command("stdio", path, embedder="none")
    command[2] = (ALL_BY_LIBRARY if library else "") + command[2]
    done = forkserver.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=60, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(answers, key=lambda each: str(each["id"]))


def handshake(version: str) -> list[str]:
    params = {**INITIALIZE, "protocolVersion": version}
    return [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def test_both_servers_answer_alike(path: Path) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(REQUESTS, 10)
    ]
    lines = [*handshake("2025-11-25"), *map(json.dumps, asked)]

    answers = converse(path, lines)

    assert len(answers) == len(REQUESTS) + 1
    assert answers == converse(path, lines, library=True)


class Lines:
    """A client's pipe whose lines are given; keeps what is written."""

    def __init__(self, lines: list[bytes | None]) -> None:
        self.lines = iter(lines)
        self.written: list[bytes] = []

    def write(self, message: bytes) -> None:
        self.written.append(message)


@pytest.mark.parametrize("other", OTHERS, ids=range(len(OTHERS)))
def test_what_is_not_answered_here_goes_to_the_library(path: Path, other: bytes | None) -> None:
    settings = ServerSettings(str(path), embedder="none")
    database = Database(settings)
    greeting = [line.encode() for line in handshake("2025-06-18")]
    pipe: Any = Lines([*greeting, b"", other, b"the next"])
    first = FirstRequests(settings, database, pipe, process_caller(settings))

    unread = first.serve()
    first.finish()
    database.close()

    assert unread is not None
    initialize, initialized, line = unread
    assert json.loads(initialize or b"")["params"]["clientInfo"] == INITIALIZE["clientInfo"]
    assert json.loads(initialized or b"")["method"] == "notifications/initialized"
    assert line == other
    assert [*pipe.lines] == [b"the next"]
    assert [json.loads(each)["id"] for each in pipe.written] == [0]


def test_a_client_is_handed_over_without_losing_its_branch(path: Path) -> None:
    with Stdio(path) as server:
        server.shake_hands()
        fork = {"action": "fork", "name": "trial"}
        server.ask("tools/call", name="strata_branch", arguments=fork)
        server.ask(
            "tools/call", name="strata_branch", arguments={"action": "switch", "name": "trial"}
        )
        read = server.ask("resources/read", uri="stratagem://status")
        stored = {"name": "strata_store", "arguments": {"key": "a", "value": 1}}
        after = server.ask("tools/call", **stored)
        status, out, err = server.end()

    assert json.loads(read["result"]["contents"][0]["text"])["branch"] == "trial"
    assert after["result"]["structuredContent"]["key"] == "a"
    assert (status, out, err) == (0, "", "")
    with stratagem.open(path, embedder="none") as db:
        assert db.memory.recall("a") is None
        assert db.memory.history("a", branch="trial").results[0].actor == "mcp:tester"


def test_the_library_is_not_imported_for_what_most_clients_ask(path: Path) -> None:
    command = server_command("stdio", path, embedder="none")
    command[2] = LOADED + command[2]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": REQUESTS[5][1]}
    done = subprocess.run(
        command,
        input="\n".join([*handshake("2025-06-18"), json.dumps(asked)]),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.strip() == "[]"
