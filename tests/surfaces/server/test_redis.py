"""Two servers and a Redis between them: events reach the clients of both, rates hold for both."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis as AsyncRedis
from typer.testing import CliRunner

from stratagem import connect
from stratagem.errors import RateLimited, ServiceUnavailable, Unauthenticated
from stratagem.sdk.remote import Client as Remote
from stratagem.surfaces.admission.quotas import RateBuckets
from stratagem.surfaces.cli.app import app
from stratagem.surfaces.cluster.redis import RedisChannel, channel_name, check_redis
from tests.surfaces.serving import Served, eventually, serving
from tests.surfaces.socket.clients import Client, javascript_client

RATE = 60


def ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


class Redis:
    """A Redis server that can be killed, stopped in its tracks, and started again."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed (Debian has it in redis-server)")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self._command = [program, *settings, "--port", str(self.port)]
        self._folder = folder
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: ready(self.port))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    server = Redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@dataclass
class Pair:
    one: Served
    other: Served
    place: Path


@pytest.fixture(scope="module")
def pair(redis: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    place = folder / "shared.db"
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(
                serving(folder / f"{name}.db", "--db", str(place), "--redis", redis.url)
            )
            for name in ("one", "other")
        )
        yield Pair(one, other, place)


def test_an_event_of_one_server_reaches_the_clients_of_the_other(pair: Pair) -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))
    tool = {
        "name": "far",
        "description": "Registered at one server.",
        "inputSchema": {"type": "object"},
        "handler": {"type": "webhook", "url": "https://example.com/far"},
    }
    with Client(pair.one.url) as near, Client(pair.other.url) as far:
        assert near.first.get("connected"), near.first
        # Asked so that both are in their rooms before anything happens.
        for client in (near, far):
            assert client.ask("mcp:tools:list", {})["success"]
        pair.one.call("POST", "/api/mcp/tools", tool, 201)
        heard = [client.event("mcp:tool:available") for client in (near, far)]
        time.sleep(0.3)

        assert [each["name"] for each in heard] == ["far", "far"]
        assert near.none("mcp:tool:available", 0)
        assert far.none("mcp:tool:available", 0), "it was told once"


def test_an_event_of_a_server_without_clients_reaches_those_of_the_other(pair: Pair) -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))
    tool = {
        "name": "lonely",
        "description": "Registered where nobody listens.",
        "inputSchema": {"type": "object"},
        "handler": {"type": "webhook", "url": "https://example.com/lonely"},
    }
    with Client(pair.other.url) as far:
        assert far.ask("mcp:tools:list", {})["success"]
        pair.one.call("POST", "/api/mcp/tools", tool, 201)

        assert far.event("mcp:tool:available")["name"] == "lonely"


def test_polling_is_refused_where_a_request_may_meet_another_server(pair: Pair) -> None:
    response = pair.one.client.get("/socket.io/", params={"EIO": "4", "transport": "polling"})

    assert response.status_code == 400
    assert 'transports: ["websocket"]' in response.json()["error"]["hint"]


def test_a_tool_that_a_client_hosts_can_be_called_at_the_other_server(pair: Pair) -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))
    with Client(pair.one.url) as client:
        answer = client.ask(
            "mcp:tool:register",
            {"name": "shout", "description": "Loud.", "inputSchema": {"type": "object"}},
        )
        near, far = (each.execute("shout", {"text": "hi"}) for each in (pair.one, pair.other))

    assert answer["success"]
    assert near["result"] == far["result"] == {"said": "HI"}


@pytest.mark.parametrize("fault", ["killed", pytest.param("hung", marks=pytest.mark.slow)])
def test_servers_work_alone_while_redis_is_away_and_together_again(
    pair: Pair, redis: Redis, fault: str
) -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))

    def register(name: str) -> None:
        handler = {"type": "webhook", "url": f"https://example.com/{name}"}
        tool = {"name": name, "description": "Told.", "inputSchema": {"type": "object"}}
        pair.one.call("POST", "/api/mcp/tools", {**tool, "handler": handler}, 201)

    with Client(pair.one.url) as near, Client(pair.other.url) as far:
        for client in (near, far):
            assert client.ask("mcp:tools:list", {})["success"]
        if fault == "killed":
            redis.kill()
        else:
            redis.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        register(f"{fault}_0")
        assert near.event("mcp:tool:available")["name"] == f"{fault}_0"
        asked = {"toolName": "calculator", "arguments": {"expression": "6 * 7"}}
        assert near.ask("mcp:tool:execute", asked)["success"]
        took = time.monotonic() - began
        if fault == "killed":
            redis.start()
        else:
            # Long enough that it was given up.
            time.sleep(7)
            redis.process.send_signal(signal.SIGCONT)
        eventually(lambda: _reaches(register, far, fault), 60)

    assert took < 20, "nobody waits for Redis"


_numbers = itertools.count(1)


def _reaches(register: Callable[[str], None], far: Client, fault: str) -> bool:
    register(f"{fault}_{next(_numbers)}")
    return not far.none("mcp:tool:available", 0.5)


def test_a_rate_holds_for_all_servers_together(pair: Pair) -> None:
    """The last of these servers: from the first token on everybody needs one."""
    options = ["token", "create", "ada", "--admin", "--rate", str(RATE), "--json"]
    made = CliRunner().invoke(app, ["--db", str(pair.place), *options])
    token = json.loads(made.stdout)["token"]
    for server in (pair.one, pair.other):
        eventually(partial(_needs_a_token, server.url))
    with (
        connect(pair.one.url, token=token, patience=0) as one,
        connect(pair.other.url, token=token, patience=0) as other,
    ):
        other.memory.status()
        alone = granted(one)
        # It is told of what the other one took ten times a second; a few seconds fill up a few.
        time.sleep(2)
        together = granted(other)

    assert RATE - 1 <= alone < 2 * RATE
    assert together < RATE / 2


def _needs_a_token(url: str) -> bool:
    with connect(url, patience=0) as db:
        try:
            db.memory.status()
        except Unauthenticated:
            return True
    return False


def granted(db: Remote) -> int:
    """Ask until it is refused; return how often it was not."""
    for count in range(3 * RATE):
        try:
            db.memory.status()
        except RateLimited:
            return count
    return 3 * RATE


@pytest.mark.anyio
@pytest.mark.parametrize("junk", [b"no JSON", b"[]", b"{}", b'{"from": "x", "messages": [1]}'])
async def test_servers_of_another_database_hear_nothing_and_junk_ends_nothing(
    redis: Redis, junk: bytes
) -> None:
    heard: dict[str, list[int]] = {}
    channels = {}
    numbers = {"own": 0, "near": 0, "other": 1}
    for name, number in numbers.items():
        channel = channels[name] = RedisChannel(f"redis://127.0.0.1:{redis.port}/{number}")
        channel.subscribe("news", heard.setdefault(name, []).append)
        channel.start()

    async def told(news: int) -> None:
        async with asyncio.timeout(60):
            while news not in heard["near"]:
                channels["own"].publish("news", news)
                await asyncio.sleep(0.1)

    try:
        await told(1)
        async with AsyncRedis.from_url(redis.url) as client:
            assert await client.publish(channel_name(client), junk) >= 2
        await told(2)
    finally:
        for channel in channels.values():
            await channel.close()

    assert set(heard["near"]) == {1, 2}
    assert heard["own"] == heard["other"] == []


def test_what_was_taken_elsewhere_is_taken_here() -> None:
    now = [0.0]
    here, there = RateBuckets(lambda: now[0]), RateBuckets(lambda: now[0])
    assert [here.take("a", 60, 3) for _ in range(3)] == [0, 0, 0]
    told = here.drain()
    for name, (count, per_minute, burst) in told.items():
        there.spend(name, count, per_minute, burst)

    assert told == {"a": (3, 60, 3)}
    assert here.drain() == {}
    assert there.drain() == {}, "what was heard is not told on"
    assert there.take("a", 60, 3) == 1.0
    now[0] = 2.0
    assert there.take("a", 60, 3) == 0
    there.spend("a", 1_000, 60, 3)
    assert there.take("a", 60, 3) == 4.0, "no debt is deeper than a whole bucket"


def test_what_is_no_address_of_redis_is_refused() -> None:
    with pytest.raises(ServiceUnavailable, match="not the address of a Redis server"):
        check_redis("http://127.0.0.1")
