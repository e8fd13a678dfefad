"""16. No message makes the server stop: bodies are scanned in linear time, large ones in turn."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

import stratagem
from stratagem import limits
from stratagem.errors import RequestTooLarge
from stratagem.surfaces.mcp.request_bodies import RequestBodies
from stratagem.surfaces.serving.json_bodies import check_depth, read_json
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.surfaces.serving.request_scope import LARGE_ARGUMENTS
from tests.security.house import ENVELOPE, MODERN, House, make_token, read_message, serving

# Brackets that have the scanner look closer, and then a text that does not end.
UNENDING = '{"x":[' + "[]," * 70 + '"'
PUMPS = [
    '\\"',
    '"',
    "\\",
    '"[',
    "[]",
    "[[]]",
    '{"a":',
    "[" * 60 + "]" * 60 + ",",
    '"\\',
    "a",
    "\\\\",
]
SOCKET = "/socket.io/?EIO=4&transport=websocket"
DEEPEST = limits.VALUE_DEPTH_MAX
# For a busy machine; 64 KB that are read anew from each of their quotes take 14 seconds on a quiet one.
SECONDS_MAX = 10.0


documents = st.recursive(
    st.one_of(st.integers(0, 9), st.text('[]{}"\\,: a', max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text('[]{}"\\', max_size=3), inner)
    ),
    max_leaves=20,
)


def attack(size: int) -> str:
    """Return a text of about a size that was once read anew from each of its quotes."""
    return UNENDING + '\\"' * ((size - len(UNENDING)) // 2)


def is_too_deep(body: bytes) -> bool:
    try:
        check_depth(body)
    except RequestTooLarge:
        return True
    return False


@settings(max_examples=40)
@given(documents, st.integers(DEEPEST - 3, DEEPEST + 3))
def test_the_scanner_counts_levels_as_the_parser_finds_them(inner: Any, around: int) -> None:
    value = inner
    for _ in range(around):
        value = [value]

    body = orjson.dumps([*["[]"] * DEEPEST, value])

    assert is_too_deep(body) == (1 + around + _depth(inner) > DEEPEST)


def _depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0)


@pytest.mark.parametrize("offset", range(-2, 3))
def test_the_scanner_remembers_a_text_from_one_slice_to_the_next(offset: int) -> None:
    text = "x" * (64 * 1024 - 10 + offset) + "[" * 100 + '\\"]' * 5

    assert not is_too_deep(b'["' + text.encode() + b'", [1]]')
    assert is_too_deep(b'["' + text.encode() + b'", ' + b"[" * 70 + b"]" * 70 + b"]")


@pytest.mark.parametrize("pump", PUMPS)
def test_twice_the_body_takes_twice_the_time_whatever_it_says(pump: str) -> None:
    def seconds(size: int) -> float:
        body = ("[]" * 70 + "[" + pump * (size // len(pump))).encode()
        taken = []
        for _ in range(3):
            began = time.thread_time()
            is_too_deep(body)
            taken.append(time.thread_time() - began)
        return min(taken)

    # A quadratic scanner would take minutes for the longer one.
    assert seconds(1_600_000) < 16 * max(seconds(400_000), 0.01)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path: Path = tmp_path_factory.mktemp("guarded") / "memory.db"
    tokens = {name: make_token(path, name, "*:write") for name in ("reader", "writer")}
    with serving(path) as running:
        running.tokens = tokens
        yield running


def health_seconds(house: House) -> float:
    began = time.perf_counter()
    assert house.client().get("/health").status_code == 200
    return time.perf_counter() - began


def is_ended(socket: ClientConnection) -> bool:
    """Whether the server ends a socket: by its own packet, or as sockets are ended."""
    try:
        return socket.recv(timeout=60) == "1"
    except ConnectionClosed:
        return True


@pytest.mark.parametrize("size", [24 * 1024, 64 * 1024, 1024 * 1024])
def test_a_message_of_nobody_known_holds_nobody_up(guarded: House, size: int) -> None:
    address = guarded.url.replace("http", "ws") + SOCKET

    with connect(address, open_timeout=60) as socket:
        socket.recv()
        socket.send("40" + attack(size))
        waited = health_seconds(guarded)
        ended = is_ended(socket)

    assert ended
    assert waited < SECONDS_MAX


@pytest.mark.parametrize("known", [False, True])
def test_what_a_polling_client_may_send_depends_on_who_it_is(guarded: House, known: bool) -> None:
    client = guarded.client("writer" if known else None)
    opened = json.loads(client.get("/socket.io/?EIO=4&transport=polling").text[1:])
    address = f"/socket.io/?EIO=4&transport=polling&sid={opened['sid']}"
    if known:
        assert client.post(address, content="40").status_code == 200

    event = f'42["mcp:tools:list",{{"x":"{"x" * limits.UNKNOWN_SOCKET_BYTES_MAX}"}}]'
    answer = client.post(address, content=event)

    assert answer.status_code == (200 if known else 413)


def test_a_body_without_end_holds_nobody_up(guarded: House) -> None:
    client = guarded.client("reader")

    began = time.perf_counter()
    answer = client.post("/api/memory/strata_recall", content=attack(1024 * 1024))

    assert answer.status_code == 400
    assert time.perf_counter() - began < SECONDS_MAX
    assert health_seconds(guarded) < SECONDS_MAX


@pytest.mark.parametrize("levels", [60, 70])
def test_a_large_event_is_read_as_a_small_one_is(guarded: House, levels: int) -> None:
    client = guarded.open_socket("writer")
    deep = json.loads("[" * levels + "]" * levels)

    answer = client.call("mcp:tools:list", {"search": ["x" * 100_000, deep]}, timeout=60)

    assert answer["error"]["code"] == (
        "REQUEST_TOO_LARGE" if levels > DEEPEST else "VALIDATION_ERROR"
    )
    assert client.call("mcp:tools:list", {}, timeout=60)["success"]


VALUES = [["word"] * 10] * 9_000


def test_a_large_call_over_the_protocol_means_what_a_small_one_does(guarded: House) -> None:
    value = {"number": 2**64 - 1, "text": "\\ [[{ é 😀", "list": VALUES}

    stored = guarded.call("mcp", "writer", "strata_store", {"key": "large", "value": value})

    assert stored.error is None, stored.text
    with stratagem.open(str(guarded.path)) as db:
        found = db.memory.recall("large")
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("levels", [60, 70, 5_000])
def test_a_deep_call_over_the_protocol_is_refused_by_its_depth(guarded: House, levels: int) -> None:
    deep = "[" * levels + "]" * levels
    meta = json.dumps(ENVELOPE)
    arguments = f'{{"key": "deep", "value": {deep}, "tags": ["{"x" * 100_000}"]}}'
    body = (
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":'
        f' {{"name": "strata_store", "arguments": {arguments}, "_meta": {meta}}}}}'
    )

    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "strata_store",
    }
    told = read_message(guarded.client("writer").post("/mcp", content=body, headers=headers))

    assert told["id"] == 7
    error = told["result"]["structuredContent"]
    assert error["error"] == "validation_error"
    assert error["details"]["field"] == ("value" if levels > DEEPEST else "tags")


def test_what_is_large_besides_the_arguments_of_a_tool_is_refused(guarded: House) -> None:
    refused = guarded.post("tools/list", "writer", cursor=VALUES).json()

    assert refused["error"]["data"]["error"] == "request_too_large"
    assert refused["error"]["data"]["limit"] == limits.REQUEST_INLINE_BYTES


@pytest.mark.parametrize("arguments", [VALUES, "x" * 100_000])
def test_large_arguments_that_are_no_object_are_refused_as_such(
    guarded: House, arguments: Any
) -> None:
    refused = guarded.call("mcp", "writer", "strata_store", arguments)

    assert refused.error == "invalid_input"
    assert f"not {type(arguments).__name__}" in refused.text


@pytest.mark.anyio
async def test_the_parser_of_the_protocol_is_given_small_messages_only() -> None:
    """It runs on the event loop, where everybody waits for it."""
    message = {"id": 1, "method": "tools/call", "params": {"arguments": {"x": VALUES}}}
    parts = [json.dumps(message).encode()[at : at + 65_536] for at in range(0, 10**6, 65_536)]
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False
    taken: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def parser(scope: Any, receive: Any, _send: Any) -> None:
        taken.extend(((await receive())["body"], scope[LARGE_ARGUMENTS]))

    async def send(_message: Any) -> None: ...

    scope = {"type": "http", "method": "POST"}
    await RequestBodies(parser, LargeBodyQueue())(scope, receive, send)

    parsed, arguments = taken
    assert json.loads(parsed) == {**message, "params": {"arguments": {}}}
    assert arguments == {"x": VALUES}


@pytest.mark.anyio
async def test_a_large_body_is_parsed_in_its_turn_and_a_small_one_at_once() -> None:
    """Parsed at once it would hold the event loop, where everybody waits for it."""
    queue, ended = LargeBodyQueue(), threading.Event()
    held = asyncio.create_task(queue.run("another", ended.wait))
    await asyncio.sleep(0)

    small = await read_json(request_with(b"[1]"), queue)
    large = asyncio.create_task(read_json(request_with(json.dumps(VALUES).encode()), queue))
    await asyncio.sleep(0.05)
    waited = not large.done()
    ended.set()

    assert small == [1]
    assert waited
    assert await large == VALUES
    await held


def request_with(body: bytes) -> Request:
    """Return a request as a server gives it to a surface."""

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


@pytest.mark.anyio
async def test_large_bodies_are_read_one_at_a_time_and_callers_take_turns() -> None:
    turns, read, running = LargeBodyQueue(), list[str](), threading.Lock()

    def work(name: str) -> str:
        assert running.acquire(blocking=False)
        time.sleep(0.005)
        read.append(name)
        running.release()
        return name

    names = ["greedy"] * 4 + ["modest"]
    answers = [turns.run(name, lambda name=name: work(name)) for name in names]  # type: ignore[misc]

    assert await asyncio.gather(*answers) == names
    assert read.index("modest") <= 2


@pytest.mark.anyio
async def test_time_that_a_body_waited_itself_makes_no_other_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LARGE_REQUEST_REST", 100.0)
    queue = LargeBodyQueue()
    await queue.run("ann", lambda: threading.Event().wait(0.2))
    began = time.monotonic()

    await queue.run("bob", lambda: None)

    assert time.monotonic() - began < 0.2 * limits.LARGE_REQUEST_REST / 2


@pytest.mark.anyio
async def test_a_turn_that_fails_or_is_given_up_is_the_next_ones() -> None:
    turns, going = LargeBodyQueue(), threading.Event()
    first = asyncio.create_task(turns.run("one", lambda: going.wait(60)))
    await asyncio.sleep(0)
    left = asyncio.create_task(turns.run("two", lambda: None))
    await asyncio.sleep(0)

    left.cancel()
    going.set()
    await first
    with pytest.raises(ZeroDivisionError):
        await turns.run("one", lambda: 1 // 0)

    assert await turns.run("three", lambda: "read") == "read"


def bytes_per_second(pump: str) -> float:
    """Return how much of a body of about 4 MB the check takes in a second."""
    body = ("[]" * 70 + "[" + pump * (4_000_000 // len(pump))).encode()
    taken = []
    for _ in range(5):
        began = time.thread_time()
        is_too_deep(body)
        taken.append(time.thread_time() - began)
    return len(body) / statistics.median(taken)


@pytest.mark.slow
def test_the_check_of_bodies_takes_many_megabytes_a_second() -> None:
    rates = {pump: bytes_per_second(pump) for pump in PUMPS}
    shown = ", ".join(f"{pump[:6]!r} {rate / 1e6:.0f}" for pump, rate in rates.items())
    print(f"\nthe check of bodies, MB/s of text made of: {shown}")  # noqa: T201 -- the figures

    assert min(rates.values()) > 10e6


@pytest.mark.slow
@pytest.mark.parametrize("size", [64 * 1024, 1024 * 1024])
def test_health_is_answered_while_unknown_sockets_send_without_end(
    guarded: House, size: int
) -> None:
    """Eight sockets of nobody known send the worst message, again and again, for five seconds."""
    until = time.monotonic() + 5

    def send() -> int:
        sent = 0
        while time.monotonic() < until:
            address = guarded.url.replace("http", "ws") + SOCKET
            with suppress(OSError, WebSocketException), connect(address, open_timeout=5) as socket:
                socket.recv(timeout=5)
                socket.send("40" + attack(size))
                sent += 1
                is_ended(socket)
        return sent

    with ThreadPoolExecutor(8) as pool:
        senders = [pool.submit(send) for _ in range(8)]
        waited = []
        while time.monotonic() < until:
            waited.append(1000 * health_seconds(guarded))
            time.sleep(0.02)
        sent = sum(each.result() for each in senders)
    waited.sort()
    print(  # noqa: T201 -- the figures are what this is for
        f"\n/health under {sent} messages of {size:,} bytes: median {statistics.median(waited):.1f} "
        f"ms, at most {waited[-1]:.0f} ms"
    )

    assert waited[-1] < 2_000
