"""A server process on stdin and stdout."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

import stratagem
from stratagem import limits
from tests import forkserver
from tests.surfaces.mcp.clients import (
    CLIENT,
    INITIALIZE,
    MODES,
    Mode,
    Stdio,
    server_command,
)


@pytest.fixture(scope="module")
def greeted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stdio]:
    """Give a server that has shaken hands, for tests that leave it as it is."""
    with Stdio(tmp_path_factory.mktemp("stdio") / "memory.db") as server:
        server.shake_hands()
        yield server


STORE = {"name": "strata_store", "arguments": {"key": "city", "value": "Oslo"}}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_works_over_stdio(path: Path, mode: Mode) -> None:
    command, *arguments = server_command("stdio", path)
    found: list[Any] = []

    async with Client(
        StdioServerParameters(command=command, args=arguments), mode=mode, client_info=CLIENT
    ) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("strata_store", {"key": "city", "value": "Oslo"})

        async def recall() -> None:
            result = await client.call_tool("strata_recall", {"key": "city"})
            found.append(result.structured_content["value"])

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(recall)

    assert "strata_recall" in names
    assert found == ["Oslo"] * 20


def test_a_client_that_says_nothing_may_leave(path: Path) -> None:
    with Stdio(path) as server:
        status, out, _ = server.end()

    assert (status, out) == (0, "")
    assert not path.exists()


def test_the_end_of_stdin_ends_the_process_after_what_was_asked_is_answered(path: Path) -> None:
    with Stdio(path) as server:
        server.request("initialize", **INITIALIZE)
        server.notify("notifications/initialized")
        for number in range(10):
            arguments = {"key": f"k{number}", "value": number}
            server.request("tools/call", name="strata_store", arguments=arguments)

        status, out, err = server.end()

    answers = {message["id"]: message for message in map(json.loads, out.splitlines())}
    assert (status, err) == (0, "")
    assert sorted(answers) == list(range(1, 12))
    assert all("result" in answer for answer in answers.values())
    with stratagem.open(str(path)) as db:
        assert db.memory.status().keys == 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_good_order(path: Path, number: signal.Signals) -> None:
    with Stdio(path) as server:
        server.shake_hands()
        server.ask("tools/call", **STORE)

        server.process.send_signal(number)

        assert server.process.wait(timeout=60) == 0


def test_lines_that_are_no_messages_are_refused_and_the_next_one_is_answered(path: Path) -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 10_000
    lines = [b"not json", b"[]", b'{"jsonrpc":"1.0"}', b"\xff\xfe", deep, b'{"a":"\\ud800"}']

    with Stdio(path) as server:
        server.shake_hands()
        for line in [*lines, b"", b"  "]:
            server.write(line)
        refusals = [server.read() for _ in lines]
        server.write(b"x" * (limits.REQUEST_BYTES_MAX + 1))
        too_long = server.read()
        after = server.ask("ping")

    assert [refusal["error"]["code"] for refusal in refusals] == [-32700] * len(lines)
    assert all(refusal["id"] is None for refusal in refusals)
    assert too_long["error"]["code"] == -32600
    assert f"{limits.REQUEST_BYTES_MAX:,}" in too_long["error"]["message"]
    assert after["result"] == {}


def unreadable(value: bytes, method: bytes = b"tools/call", number: bytes = b"7") -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"name":"strata_store",'
        b'"uri":"a","arguments":{"key":"k","value":%s}}}' % (number, method, value)
    )


DEEP = [b"[" * depth + b"]" * depth for depth in (250, 3_000, 100_000)]
HALF = b'{"a": ["\\ud83d"]}'


@pytest.mark.parametrize("value", [HALF, *DEEP], ids=lambda value: str(len(value)))
def test_what_the_parser_gives_up_on_is_answered_under_its_own_id(
    greeted: Stdio, value: bytes
) -> None:
    greeted.write(unreadable(value))
    called = greeted.read()
    greeted.write(unreadable(value, b"resources/read", b'"x"'))
    read = greeted.read()
    after = greeted.ask("tools/call", name="strata_status", arguments={})

    envelope = called["result"]["structuredContent"]
    assert (called["id"], called["result"]["isError"]) == (7, True)
    assert "resultType" not in called["result"]
    assert envelope["error"] == "validation_error"
    assert envelope["details"]["field"] == "value"
    assert "nothing was written" in envelope["hint"]
    assert (read["id"], read["error"]["code"]) == ("x", -32602)
    assert read["error"]["data"]["field"] == "value"
    assert read["error"]["data"]["hint"]
    if value == HALF:
        assert "half of a surrogate pair" in envelope["message"]
    else:
        assert envelope["details"]["limit"] == limits.VALUE_DEPTH_MAX
    assert after["result"]["structuredContent"]["keys"] == 0


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_is_not_left_waiting(path: Path, mode: Mode) -> None:
    _command, *arguments = server_command("stdio", path)
    deep: list[Any] = []
    for _ in range(250):
        deep = [deep]

    parameters = StdioServerParameters(command=forkserver.program(), args=arguments)
    async with Client(parameters, mode=mode, client_info=CLIENT) as client:
        with anyio.fail_after(60):
            result = await client.call_tool("strata_store", {"key": "k", "value": deep})

    assert result.is_error
    assert result.structured_content["details"]["limit"] == limits.VALUE_DEPTH_MAX


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (unreadable(b"[" * 300), None, -32700),
        (unreadable(b"[" * 300 + b"]" * 301), None, -32700),
        (unreadable(b'"\\ud83d'), None, -32700),
        (unreadable(HALF, number=b"true"), None, -32700),
        (unreadable(HALF, number=b'"\\ud83d"'), None, -32700),
        (b'{"jsonrpc":"2.0","id":3,"method":4}', 3, -32600),
        (b'{"jsonrpc":"2.0","id":3,"method":"\\ud83d"}', 3, -32602),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"\\ud83d":1}}', 3, -32602),
    ],
)
def test_what_is_no_request_is_refused(
    greeted: Stdio, line: bytes, number: int | None, code: int
) -> None:
    greeted.write(line)
    refusal = greeted.read()

    assert (refusal["id"], refusal["error"]["code"]) == (number, code)


def test_a_request_that_was_cancelled_holds_nothing_up(path: Path) -> None:
    with Stdio(path) as server:
        server.shake_hands()
        for _ in range(5):
            number = server.request("tools/call", **STORE)
            server.notify("notifications/cancelled", requestId=number)
        server.request("ping")

        status, out, _ = server.end()

    assert status == 0
    assert any(json.loads(line)["result"] == {} for line in out.splitlines())


def test_only_the_protocol_is_on_stdout(path: Path) -> None:
    command = server_command("stdio", path)
    command[2] = command[2].replace(
        "run(ServerSettings",
        "from stratagem import bootstrap; start = bootstrap.start\n"
        "bootstrap.start = lambda settings: print('noise', flush=True) or start(settings)\n"
        "run(ServerSettings",
    )
    with Stdio(path, command=command) as server:
        server.shake_hands()
        answer = server.ask("tools/call", **STORE)

        status, out, err = server.end()

    assert answer["result"]["structuredContent"]["key"] == "city"
    assert (status, out, err) == (0, "", "noise\n")


def test_an_unknown_toolset_is_refused_at_once(path: Path) -> None:
    with Stdio(path, toolsets=["memroy"]) as server:
        status, out, err = server.end()

    assert (status, out) == (1, "")
    assert "There is no toolset named 'memroy'" in err


def test_a_database_that_cannot_be_opened_is_named_in_the_log(path: Path) -> None:
    path.mkdir()

    with Stdio(path) as server:
        hello = server.shake_hands()
        answer = server.ask("tools/call", **STORE)
        status, _, err = server.end()

    assert hello["result"]["serverInfo"]["name"] == "stratagem"
    assert answer["result"]["isError"] is True
    assert answer["result"]["structuredContent"]["error"].startswith("storage_")
    assert status == 0
    assert "stratagem: " in err
    assert "Traceback" not in err
