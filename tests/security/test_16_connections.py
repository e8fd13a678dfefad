"""Whoever connects and does not speak, speaks slowly or does not listen, keeps nobody out."""

from __future__ import annotations

import itertools
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_websocket

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.surfaces.server import http
from stratagem.surfaces.server.connections import Connections, TrustedProxies
from tests.security.flood import HELD, beside_held, holding, seconds_to_end, with_few_files
from tests.security.house import House, make_token, server_log, serving
from tests.surfaces.serving import Service, eventually

MOST = 20
HEAD = "POST /api/memory/strata_status HTTP/1.1\r\nHost: {}\r\nContent-Length: 200000\r\n\r\n"


@pytest.fixture(scope="module", params=[H11Protocol, AutoHTTPProtocol])
def crowded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A server that takes few connections, and needs no token; uvicorn reads HTTP in two ways."""
    path = tmp_path_factory.mktemp("crowded") / "memory.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "AutoHTTPProtocol", request.param)
        with serving(path, max_connections=MOST) as house:
            yield house


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(house: House, opened: ExitStack, sent: str = "") -> socket.socket:
    connection = opened.enter_context(socket.create_connection(house.address, timeout=60))
    if sent:
        connection.sendall(sent.encode())
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed a connection without a word."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def half_sent(house: House) -> str:
    return HEAD.format("{}:{}".format(*house.address)) + '{"x":'


def health(house: House) -> int:
    """Ask on a connection of its own, as somebody new does."""
    return httpx2.get(f"{house.url}/health", timeout=60, trust_env=False).status_code


def test_silent_connections_keep_nobody_out(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long this takes, none is closed for its silence alone.
    monkeypatch.setattr(limits, "HEAD_SECONDS", 600.0)
    silent = [connect(crowded, opened) for _ in range(3 * MOST)]

    answered = [health(crowded) for _ in range(5)]

    assert answered == [200] * 5
    eventually(lambda: sum(map(is_closed, silent)) >= 2 * MOST)
    # The youngest are closed last.
    assert not is_closed(silent[-1])


def test_half_sent_heads_keep_nobody_out(crowded: House, opened: ExitStack) -> None:
    for _ in range(2 * MOST):
        connect(crowded, opened, "POST /api/memory/strata_status HTTP/1.1\r\nHost: ")

    assert [health(crowded) for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("before", ["", "GET /health HTTP/1.1\r\nHost: {}:{}\r\n\r\n"])
def test_a_head_that_comes_byte_by_byte_is_not_waited_for(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.4)
    monkeypatch.setattr(limits, "KEEP_ALIVE_SECONDS", 0.2)
    began = time.monotonic()
    connection = connect(crowded, opened, before.format(*crowded.address))
    if before:
        assert b" 200 " in connection.recv(1000)
    connection.sendall(b"GET /health HTTP/1.1\r\n")

    for letter in itertools.cycle("X-Head: y\r\n"):
        if is_closed(connection) or time.monotonic() - began > 60:
            break
        try:
            connection.sendall(letter.encode())
        except OSError:
            break

    assert 0.3 < time.monotonic() - began < 60


def test_a_head_that_never_ends_is_refused(crowded: House, opened: ExitStack) -> None:
    connection = connect(crowded, opened, "GET /health HTTP/1.1\r\n")

    answer = b""
    try:
        for number in range(200):
            connection.sendall(f"X-{number}: {'y' * 1000}\r\n".encode())
        answer = connection.recv(1000)
    except OSError:
        # Closed under what was still sent.
        pass

    assert answer[9:12] in {b"431", b"400", b""}
    assert eventually(lambda: is_closed(connection))


CHUNKED = (
    "POST /api/memory/strata_recall HTTP/1.1\r\nHost: {}:{}\r\n"
    'Transfer-Encoding: chunked\r\n\r\n7\r\n{{"key":\r\n'
)


@pytest.mark.parametrize(
    "endless",
    ['4\r\n"k"}\r\n0\r\n' + "X-A: b\r\n" * 50_000, "4;" + "x" * 400_000],
    ids=["trailers", "extension of a chunk"],
)
def test_what_stands_beside_a_body_without_end_is_refused(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch, endless: str
) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 1.0)
    connection = connect(crowded, opened, CHUNKED.format(*crowded.address))

    answer = b""
    try:
        connection.sendall(endless.encode())
        answer = connection.recv(1000)
    except OSError:
        # Closed under what was still sent.
        pass

    # h11 reads no further, so that the body does not come in time.
    assert answer[9:12] in {b"431", b"408", b""}
    assert eventually(lambda: is_closed(connection))


def test_a_trailer_is_no_header(guarded: House, opened: ExitStack) -> None:
    token = guarded.tokens["alice"]
    body = CHUNKED.format(*guarded.address) + '4\r\n"k"}\r\n0\r\n'
    connection = connect(guarded, opened, f"{body}Authorization: Bearer {token}\r\n\r\n")

    assert connection.recv(1000)[9:12] == b"401"


def test_the_rest_of_a_refused_body_is_taken_for_no_head(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNWANTED_BYTES_PER_SECOND", 4_000_000)
    head = HEAD.replace("strata_status", "nothing_here").replace("200000", "400000")
    connection = connect(crowded, opened, head.format("{}:{}".format(*crowded.address)))
    refused = connection.recv(10_000)
    began = time.monotonic()

    connection.sendall(b"x" * 400_000)
    connection.sendall(
        "GET /health HTTP/1.1\r\nHost: {}:{}\r\n\r\n".format(*crowded.address).encode()
    )
    after = connection.recv(10_000)

    assert b" 404 " in refused
    assert b" 200 " in after
    # It is taken no faster than that, but for what the buffers of the sockets hold.
    assert time.monotonic() - began > 0.02


def unanswered_bytes(house: House, request: bytes) -> int:
    """Return how much the server has parsed or buffered of requests that wait on a connection."""
    assert house.server is not None
    most = 0
    protocols: set[Any] = set(house.server.server_state.connections)
    for each in protocols:
        if isinstance(each, H11Protocol):
            most = max(most, len(each.conn.trailing_data[0]))
        else:
            most = max(most, len(each.pipeline) * len(request))
    return most


def test_requests_that_are_sent_ahead_are_read_a_few_at_a_time(
    crowded: House, opened: ExitStack
) -> None:
    """Or the server would do nothing else while it parses thirty thousand of them."""
    request = "GET /health HTTP/1.1\r\nHost: {}:{}\r\n\r\n".format(*crowded.address).encode()
    count = 300_000 // len(request)
    connection = connect(crowded, opened)
    connection.settimeout(60)
    sender = threading.Thread(target=connection.sendall, args=(request * count,))
    status = b"HTTP/1.1 200"
    answered, held, unread = 0, [], b""

    sender.start()
    while answered < count and (more := connection.recv(65536)):
        read = unread + more
        answered += read.count(status)
        # A status may come in two parts.
        unread = read[-len(status) + 1 :]
        held.append(unanswered_bytes(crowded, request))
    sender.join()

    assert answered == count
    assert max(held) <= 2 * limits.PARSED_AT_ONCE_BYTES
    assert health(crowded) == 200


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_body_that_is_sent_with_requests_behind_it_is_whole(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Whether others have their turn after each piece of it, or not."""
    monkeypatch.setattr(limits, "PARSED_AT_ONCE_SECONDS", seconds)
    body = json.dumps({"key": "ahead", "value": "é" * 150_000}).encode()
    host = "{}:{}".format(*crowded.address)
    store = f"POST /api/memory/strata_store HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}"
    recall = (
        f"POST /api/memory/strata_recall HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        'Content-Length: 15\r\n\r\n{"key":"ahead"}'
    )
    connection = connect(crowded, opened)

    connection.sendall(f"{store}\r\n\r\n".encode() + body + recall.encode())

    connection.settimeout(60)
    answers = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 200") == 2
    assert "éé" in answers.decode()


def test_a_half_sent_body_is_answered_with_408_and_makes_room(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(limits, "SERVER_REQUESTS_MAX", 4)
    slow = [connect(crowded, opened, half_sent(crowded)) for _ in range(4)]
    answers = [read_answer(each) for each in slow]

    monkeypatch.setattr(limits, "BODY_SECONDS", 60.0)
    after = httpx2.post(
        f"{crowded.url}/api/memory/strata_status", json={}, trust_env=False, timeout=60
    )

    for head, body in answers:
        assert " 408 " in head
        assert "x-request-id: " in head
        assert "connection: close" in head
        assert body["error"] == "request_timeout"
        assert body["details"]["bytes_per_second"] == limits.BODY_BYTES_PER_SECOND
        assert body["hint"]
    assert after.status_code == 200


def read_answer(connection: socket.socket) -> tuple[str, dict[str, Any]]:
    """Return the head and the object of an answer after which the server closes."""
    connection.settimeout(60)
    text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    head, _, body = text.partition("\r\n\r\n")
    return head, json.loads(body)


def test_a_body_that_keeps_coming_has_its_time(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    # A minute for each piece, on a machine that is busy too.
    monkeypatch.setattr(limits, "BODY_BYTES_PER_SECOND", 10_000 / 60)
    body = json.dumps({"key": "slow", "value": "x" * 90_000})
    head = HEAD.replace("strata_status", "strata_store").replace("200000", str(len(body)))
    connection = connect(crowded, opened, head.format("{}:{}".format(*crowded.address)))

    for at in range(0, len(body), 10_000):
        connection.sendall(body[at : at + 10_000].encode())
        time.sleep(0.06)

    assert b" 200 " in connection.recv(1000)


def test_the_oldest_of_too_many_half_sent_bodies_makes_room(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODIES_AWAITED_MAX", 3)
    assert crowded.server is not None
    awaited = crowded.server._deadlines._awaited  # noqa: SLF001 -- nobody outside sees it
    first = connect(crowded, opened, half_sent(crowded))
    eventually(lambda: len(awaited) == 1)
    later = [connect(crowded, opened, half_sent(crowded)) for _ in range(3)]

    head, body = read_answer(first)

    assert " 408 " in head
    assert body["error"] == "request_timeout"
    assert not any(map(is_closed, later))


def test_a_client_that_does_not_read_is_cut_off(
    crowded: House, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert crowded.server is not None
    connections = crowded.server._connections  # noqa: SLF001 -- nobody outside sees it
    given = {"key": "large", "value": "x" * 3_000_000}
    stored = httpx2.post(
        f"{crowded.url}/api/memory/strata_store", json=given, trust_env=False, timeout=60
    )
    assert stored.status_code == 200
    eventually(lambda: not len(connections))
    body = json.dumps({"key": "large"})
    request = (
        f"POST /api/memory/strata_recall HTTP/1.1\r\nHost: {crowded.url[7:]}\r\n"
        f"x-stratagem-answers: whole\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    deaf = opened.enter_context(socket.socket())
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(crowded.address)

    deaf.sendall((request * 4).encode())

    eventually(lambda: len(connections))
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 0.5)
    eventually(lambda: not len(connections))


class Transport:
    """As much of a transport as is asked for its state."""

    closed = False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.closed = True


def test_an_address_takes_places_from_itself() -> None:
    connections = Connections(10, TrustedProxies(), time.monotonic)
    modest = Transport()
    connections.add(modest, "192.0.2.1")

    greedy = []
    for _ in range(50):
        assert connections.make_room("192.0.2.2")
        greedy.append(Transport())
        connections.add(greedy[-1], "192.0.2.2")

    assert not modest.closed
    assert [each.closed for each in greedy] == [True] * 45 + [False] * 5


def test_many_addresses_take_places_from_the_one_that_has_most() -> None:
    connections = Connections(10, TrustedProxies(), time.monotonic)
    of_one = [Transport() for _ in range(4)]
    for each in of_one:
        connections.add(each, "192.0.2.1")
    for number in range(6):
        connections.add(Transport(), f"192.0.2.{number + 10}")

    assert connections.make_room("192.0.2.99")

    assert [each.closed for each in of_one] == [True, False, False, False]


def test_where_all_are_busy_one_more_is_refused() -> None:
    connections = Connections(4, TrustedProxies(), time.monotonic)
    for number in range(4):
        connections.enter(connections.add(Transport(), f"192.0.2.{number}"), "busy")

    assert not connections.make_room("192.0.2.99")


def test_a_proxy_may_hold_all_of_them() -> None:
    proxies = TrustedProxies(["10.0.0.0/24", "2001:db8::7"])
    connections = Connections(10, proxies, time.monotonic)
    for address in ("10.0.0.3", "2001:db8::7", "127.0.0.1", "::1", "", "::ffff:10.0.0.3") * 2:
        if len(connections) < 10:
            assert connections.make_room(address)
            connections.enter(connections.add(Transport(), address), "busy")

    assert len(connections) == 10
    with pytest.raises(ValidationFailed):
        TrustedProxies(["the proxy"])


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A server with tokens, and room for few sockets of nobody known."""
    monkeypatch.setattr(limits, "UNKNOWN_SOCKETS_MAX", 4)
    monkeypatch.setattr(limits, "UNKNOWN_SOCKET_SECONDS", 1.0)
    path = tmp_path / "memory.db"
    secret = make_token(path, "alice", "*:read")
    with serving(path) as house:
        house.tokens["alice"] = secret
        yield house


@pytest.mark.parametrize("path", ["/api/mcp/tools", "/mcp", "/", "/socket.ios"])
def test_a_websocket_elsewhere_is_refused_and_is_no_defect(
    guarded: House, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = {"authorization": f"Bearer {guarded.tokens['alice']}"}
    url = f"ws://{guarded.url[7:]}{path}"

    with pytest.raises(InvalidStatus) as refused:
        open_websocket(url, proxy=None, additional_headers=token)

    assert refused.value.response.status_code == 404
    assert not [each for each in server_log(caplog) if each.exc_info or http._is_news(each)]  # noqa: SLF001


def unknown_websocket(house: House, opened: ExitStack) -> ClientConnection:
    url = f"ws://{house.url[7:]}/socket.io/?EIO=4&transport=websocket"
    return opened.enter_context(open_websocket(url, proxy=None))


def test_broken_messages_of_sockets_are_logged_by_the_servers_own_log_only(guarded: House) -> None:
    """Which counts repeats; the handlers of the libraries write every one with its trace."""
    assert guarded.client().get("/health").status_code == 200

    assert logging.getLogger("engineio.server").handlers == []
    assert logging.getLogger("socketio.server").handlers == []


@pytest.mark.parametrize("sent", ["", "9x", "x", "b!"])
def test_what_is_no_packet_ends_a_socket_and_is_no_defect(
    guarded: House, opened: ExitStack, sent: str, caplog: pytest.LogCaptureFixture
) -> None:
    handshake = "/socket.io/?EIO=4&transport=polling"
    session = json.loads(guarded.client().get(handshake).text[1:])["sid"]
    socket_ = unknown_websocket(guarded, opened)
    assert str(socket_.recv(timeout=60)).startswith("0")

    socket_.send(sent)
    polled = guarded.client().post(f"{handshake}&sid={session}", content=sent.encode())
    with pytest.raises(ConnectionClosed):
        socket_.recv(timeout=60)

    assert polled.status_code == 400
    assert not [each for each in server_log(caplog) if each.exc_info]


def test_an_event_with_several_values_is_answered(guarded: House) -> None:
    client = guarded.open_socket("alice")

    several = client.call("mcp:tools:list", ({"limit": 1}, {}), timeout=60)
    unknown = client.call("mcp:nothing", ({}, {}), timeout=60)

    assert several["error"]["code"] == "VALIDATION_ERROR"
    assert "one JSON object, not 2 values" in several["error"]["message"]
    assert unknown["error"]["code"] == "TOOL_NOT_FOUND"


def test_sockets_of_nobody_known_keep_no_browser_out(guarded: House, opened: ExitStack) -> None:
    handshake = "/socket.io/?EIO=4&transport=polling"
    polling = [guarded.client().get(handshake).status_code for _ in range(6)]
    unknown = [unknown_websocket(guarded, opened) for _ in range(12)]

    browser = guarded.open_socket("alice")

    assert polling == [200] * 6
    assert browser.call("mcp:tools:list", {}, timeout=60)["success"]
    assert guarded.server is not None
    quotas = guarded.server._authenticator.quotas  # noqa: SLF001 -- nobody outside sees it
    assert len(quotas.unauthenticated_sockets) <= 4
    ended = threading.Barrier(13)
    for each in unknown:
        threading.Thread(target=_read_to_end, args=(each, ended), daemon=True).start()
    # All of them are ended, the last ones because they never said who they are.
    ended.wait(timeout=60)
    assert browser.connected


def _read_to_end(connection: ClientConnection, ended: threading.Barrier) -> None:
    list(connection)
    ended.wait(timeout=60)


def test_calls_cut_off_by_a_stop_are_told_so_and_whether_to_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "STOPPING_CALL_SECONDS", 0.5)
    answers: dict[str, Any] = {}
    with Service() as service:
        service.answers["/hang"] = lambda _said: None
        with serving(tmp_path / "memory.db", allow_hosts=(service.host,)) as house:
            handler = {"type": "webhook", "url": service.url("/hang"), "method": "POST"}
            tool = {"name": "hang", "description": "d", "inputSchema": {}, "handler": handler}
            assert house.client().post("/api/mcp/tools", json=tool).status_code == 201
            given = {"toolName": "hang", "arguments": {}}
            event = {**given, "context": {"requestId": "by-socket"}}
            browser = house.open_socket()
            told: list[Any] = []
            browser.on("mcp:error", told.append)
            calls = {
                "rest": lambda: house.client().post(
                    "/api/mcp/tools/hang/execute",
                    json={"arguments": {}},
                    headers={"x-request-id": "r-1"},
                ),
                "mcp": lambda: house.call(
                    "mcp", None, "tool_execute", {**given, "requestId": "m-1"}
                ),
                "socket": lambda: browser.call("mcp:tool:execute", event, timeout=60),
            }
            with ExitStack() as opened:
                half = connect(house, opened, half_sent(house))
                threads = [
                    threading.Thread(
                        target=lambda name=name, call=call: answers.update({name: call()})
                    )
                    for name, call in calls.items()
                ]
                for thread in threads:
                    thread.start()
                eventually(lambda: service.count("/hang") == 3)
                assert house.server is not None
                house.server.should_exit = True
                began = time.monotonic()
                halved = read_answer(half)
                for thread in threads:
                    thread.join(60)
                seconds = time.monotonic() - began
                eventually(lambda: told)

    rest = answers["rest"]
    assert rest.status_code == 503
    assert rest.headers["x-request-id"] == "r-1"
    assert rest.headers["retry-after"] == "1"
    assert rest.json()["error"]["code"] == "SHUTTING_DOWN"
    assert rest.json()["error"]["details"]["repeat"] == "unsafe"
    assert answers["mcp"].error == "shutting_down"
    assert answers["mcp"].answer["details"]["repeat"] == "safe_with_request_id"
    assert "m-1" in answers["mcp"].answer["hint"]
    assert answers["socket"]["error"]["details"]["repeat"] == "safe_with_request_id"
    assert told[0]["code"] == "SHUTTING_DOWN"
    assert " 503 " in halved[0]
    assert halved[1]["details"] == {"outcome": "not_begun", "repeat": "safe", "retry_after": 1}
    assert seconds < 20
    # uvicorn says it of each, and the server's own log leaves it out.
    assert [each.message for each in server_log(caplog) if http._is_news(each)] == []  # noqa: SLF001


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_floods_of_connections_are_hardly_noticed_with_1024_files(tmp_path: Path) -> None:
    with with_few_files(tmp_path / "memory.db") as server:
        seen = [beside_held(server, kind, count) for kind, count in HELD]
        with holding(server.url, "bodies", 1_100, 30):
            time.sleep(2)
            seconds = seconds_to_end(server)
    for each in seen:
        print(  # noqa: T201 -- the figures are what this is for
            f"\n{each.count} {each.kind}: health p50 {each.health.median:.0f} ms, longest "
            f"{each.health.longest:.0f} ms, {each.lines} lines logged, {each.cpu:.0f} % CPU"
        )

    assert [each.health.failed for each in seen] == [0] * len(seen)
    assert max(each.health.median for each in seen) < 2_000
    assert max(each.lines for each in seen) < 50
    assert seconds < 5
