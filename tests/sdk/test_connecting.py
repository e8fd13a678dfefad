"""Addresses, tokens, workspaces, timeouts, and servers that say to come back later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, assert_type

import pytest
from typer.testing import CliRunner

import stratagem
from stratagem import connect, connect_async
from stratagem.errors import (
    PermissionDenied,
    RateLimited,
    RequestTooLarge,
    ServiceUnavailable,
    StorageBusy,
    StratagemError,
    Unauthenticated,
    ValidationFailed,
)
from stratagem.knowledge.models import Hierarchy
from stratagem.memory.entries import Item
from stratagem.memory.models import Entry, Stored
from stratagem.sdk.remote import Client
from stratagem.sdk.retry_policy import RetryPolicy, may_repeat
from stratagem.surfaces.cli.app import app
from tests.surfaces.serving import Service, as_json, serving

RECALL = "/api/memory/strata_recall"
BATCH = "/api/gateway/tools_batch"
FOUND = {
    "found": True,
    "key": "k",
    "value": 1,
    "namespace": "n",
    "version": 3,
    "timestamp": "t",
    "tags": [],
}


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.mark.parametrize(
    "url",
    [
        "localhost:7437", "ftp://host", "http://", "", "/mcp", "http://[bad", "http://host:port",
        "http://host:99999", "http://ho\nst", "http://two words", None,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: Any) -> None:
    for way in (connect, connect_async):
        with pytest.raises(ValidationFailed, match="not the address of a server"):
            way(url)


@pytest.mark.parametrize("field", ["token", "workspace"])
@pytest.mark.parametrize("value", ["tök", "se\ncret", "se\x00cret"])
def test_what_cannot_be_sent_is_refused_and_not_repeated(field: str, value: str) -> None:
    with pytest.raises(ValidationFailed, match=f"The {field} has characters") as refused:
        connect("http://127.0.0.1:9", **{field: value})  # type: ignore[arg-type]

    assert value not in str(refused.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_timeout_is_a_time(seconds: float) -> None:
    with pytest.raises(ValidationFailed, match="A timeout is a number of seconds"):
        connect("http://127.0.0.1:9", timeout=seconds)


def test_a_client_that_was_closed_says_so(url: str) -> None:
    async def later() -> None:
        async with connect_async(url) as client:
            assert (await client.memory.status()).branch == "default"
        await client.memory.status()

    with connect(url) as db:
        assert db.memory.status().branch == "default"
    with pytest.raises(ServiceUnavailable, match="This client was closed"):
        db.memory.status()
    with pytest.raises(ServiceUnavailable, match="This client was closed"):
        asyncio.run(later())


def test_an_answer_that_cannot_be_unpacked_is_no_answer(service: Service) -> None:
    def junk(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in (("content-encoding", "gzip"), ("content-length", "4")):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(b"junk")

    service.raw[RECALL] = junk
    with (
        connect(service.url(""), patience=0) as db,
        pytest.raises(ServiceUnavailable, match="cannot be read"),
    ):
        db.memory.recall("k")


def test_a_server_that_asks_for_no_wait_is_spared_all_the_same(service: Service) -> None:
    def at_once(request: BaseHTTPRequestHandler) -> None:
        request.send_response(429)
        for name, value in (("retry-after", "0"), ("content-length", "2")):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(b"{}")

    service.raw[RECALL] = at_once
    with connect(service.url(""), patience=0.5) as db, pytest.raises(StratagemError):
        db.memory.recall("k")

    assert 2 <= service.count(RECALL) < 10


def test_the_address_of_any_surface_will_do(url: str) -> None:
    for each in (url, f"{url}/", f"{url}/mcp", f"{url}/api/"):
        with connect(each) as db:
            assert db.memory.status().branch == "default"


def test_a_client_has_a_branch_and_a_namespace_of_its_own(url: str, remote: Client) -> None:
    remote.memory.fork("tríal/1")
    with connect(url, branch="tríal/1", namespace="ñotes") as db:
        db.memory.store("k", "there")
        assert (db.branch, db.namespace) == ("tríal/1", "ñotes")
        db.memory.switch("default")
        assert db.branch == "default"
        assert db.memory.recall("k") is None

    assert (remote.branch, remote.namespace) == ("default", "default")
    assert remote.memory.recall("k", branch="tríal/1") is None
    there = remote.memory.recall("k", branch="tríal/1", namespace="ñotes")
    assert there is not None
    assert there.value == "there"


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        connect("http://127.0.0.1:9", patience=0.2) as db,
        pytest.raises(ServiceUnavailable, match="http://127.0.0.1:9 cannot be reached"),
    ):
        db.memory.status()


def test_a_server_that_does_not_answer_in_time_is_given_up(service: Service) -> None:
    service.answers[RECALL] = lambda _said: None
    url = service.url("")

    async def recall() -> Any:
        async with connect_async(url, timeout=0.2, patience=0) as db:
            return await db.memory.recall("k")

    with (
        connect(url, timeout=0.2, patience=0) as db,
        pytest.raises(ServiceUnavailable, match="did not answer in time"),
    ):
        db.memory.recall("k")
    with pytest.raises(ServiceUnavailable, match="did not answer in time"):
        asyncio.run(recall())


def later(*answers: tuple[int, str, bytes]) -> Any:
    """Give one answer after another."""
    left = list(answers)
    return lambda _said: left.pop(0) if len(left) > 1 else left[0]


BUSY = as_json({"success": False, "error": "storage_busy", "message": "Busy.", "hint": ""}, 503)
LIMITED = as_json({"success": False, "error": "rate_limited", "message": "Wait.", "hint": ""}, 429)
PAGE = (502, "text/html", b"<h1>Bad gateway</h1>")


@pytest.mark.parametrize("first", [BUSY, LIMITED, PAGE], ids=["busy", "limited", "no JSON"])
def test_a_read_is_repeated_when_the_server_says_so(service: Service, first: Any) -> None:
    service.answers[RECALL] = later(first, first, as_json(FOUND))
    with connect(service.url("")) as db:
        entry = db.memory.recall("k")

    assert entry is not None
    assert entry.value == 1
    assert service.count(RECALL) == 3


def test_what_cannot_be_repeated_is_so_only_where_it_was_turned_away(service: Service) -> None:
    service.answers[BATCH] = later(LIMITED, BUSY)
    with (
        connect(service.url("")) as db,
        pytest.raises(StorageBusy, match="Busy"),
    ):
        db.gateway.batch([])

    assert service.count(BATCH) == 2


def test_a_wait_that_is_too_long_is_told_to_the_caller(service: Service) -> None:
    limited = {"success": False, "error": "rate_limited", "message": "Wait.", "hint": "Later."}
    service.answers[RECALL] = lambda _said: as_json(limited, 429)
    with connect(service.url(""), patience=0.3) as db, pytest.raises(RateLimited, match="Wait"):
        db.memory.recall("k")

    assert service.count(RECALL) > 1


def test_an_answer_that_is_none_of_ours_is_told(service: Service) -> None:
    service.answers[RECALL] = lambda _said: (200, "text/html", b"<h1>Welcome</h1>")
    with (
        connect(service.url("")) as db,
        pytest.raises(ServiceUnavailable, match="Welcome"),
    ):
        db.memory.recall("k")


def test_what_no_server_takes_is_not_sent(remote: Client) -> None:
    items: list[Item] = [{"key": str(number), "value": "x" * 3_000_000} for number in range(6)]
    with pytest.raises(RequestTooLarge, match="a server accepts"):
        remote.memory.store(items=items)


def token(place: Path, *options: str) -> str:
    command = ["--db", str(place), "token", "create", *options, "--json"]
    done = CliRunner().invoke(app, command)
    secret: str = json.loads(done.stdout)["token"]
    return secret


def test_tokens_and_workspaces(tmp_path: Path) -> None:
    place = tmp_path / "team.db"
    both = ("--workspace", "default", "--workspace", "blue")
    ada, reader = token(place, "ada", *both), token(place, "bob", "--scope", "*:read", *both)
    with serving(place) as server:
        with connect(server.url) as nobody, pytest.raises(Unauthenticated) as refused:
            nobody.memory.status()
        assert "token=... in Python" in refused.value.hint
        assert "stratagem token create" in refused.value.hint
        with connect(server.url, token="strat_wrong") as wrong, pytest.raises(Unauthenticated):
            wrong.memory.status()
        with connect(server.url, token=ada, workspace="blue") as db:
            db.memory.store("k", "blue")
            db.memory.fork("trial")
            db.memory.switch("trial")
        with connect(server.url, token=ada) as db:
            # Neither the workspace nor the branch of another client of the same token.
            assert db.memory.recall("k") is None
            assert db.branch == "default"
        with connect(server.url, token=reader, workspace="blue") as db:
            entry = db.memory.recall("k")
            assert entry is not None
            assert entry.value == "blue"
            with pytest.raises(PermissionDenied, match="memory:write"):
                db.memory.store("k", "mine")
        with (
            connect(server.url, token=reader, workspace="red") as db,
            pytest.raises(PermissionDenied),
        ):
            db.memory.recall("k")


def test_patience_doubles_its_pauses_up_to_a_second_and_ends() -> None:
    policy = RetryPolicy(10.0, lambda _low, high: high)

    assert [policy.delay(attempt, 0) for attempt in (0, 1, 2, 3, 4, 50)] == [
        0.1,
        0.2,
        0.4,
        0.8,
        1.0,
        1.0,
    ]
    assert policy.delay(0, 9.95) is None
    assert policy.delay(0, 1, "7") == 7
    assert policy.delay(0, 4, "7") is None
    assert may_repeat(429, repeatable=False)
    assert not may_repeat(503, repeatable=False)
    assert not may_repeat(500, repeatable=True)


def test_a_connected_client_is_typed_as_the_embedded_one(remote: Client) -> None:
    """Checked by mypy, which reads the tests too."""
    assert_type(remote.memory.store("k", 1), Stored)
    assert_type(remote.memory.recall("k"), Entry | None)
    assert_type(remote.knowledge.list_hierarchy(), Hierarchy)


@pytest.mark.parametrize("path", [None, 5, b"a.db"])
def test_what_is_no_path_makes_no_file(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValidationFailed) as refused:
        stratagem.open(path)

    assert refused.value.details["field"] == "path"
    assert list(tmp_path.iterdir()) == []
