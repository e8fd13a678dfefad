"""3. Every route and every event needs a token; they are taken from the tables themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import socketio
from starlette.routing import Route
from websockets.sync.client import connect

from stratagem import limits
from stratagem.surfaces import rest
from stratagem.surfaces.admission import Authenticator
from stratagem.surfaces.rest.routes import all_routes
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.socket import Sockets
from tests.security.house import House, make_token, revoke, serving, turn_off
from tests.surfaces.serving import eventually

OPEN = {"/health", "/ready"}
# A browser that signs in to an upstream server has no token; without the state of a sign-in and a
# cookie of its own these tell and do nothing (`test_21_user_credentials.py`).
SIGN_IN = {"/oauth/client.json", "/oauth/sign-in/x", "/oauth/continue/x", "/oauth/callback"}

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    },
}


def parts() -> tuple[Database, Authenticator]:
    settings = ServerSettings(":memory:")
    database = Database(settings)
    return database, Authenticator(settings, database)


def routes() -> list[tuple[str, str]]:
    router: Any = rest.application(*parts())
    found = {
        (method, re.sub(r"\{.*?\}", "x", each.path))
        for each in router.routes
        if isinstance(each, Route)
        for method in each.methods or ("PATCH",)
    }
    protocol = {(method, "/mcp") for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT")}
    return sorted(found | protocol | {("GET", "/nothing/here"), ("GET", "/mcp/more")})


def events() -> list[str]:
    handlers = Sockets(*parts())._server.handlers["/"]  # noqa: SLF001 -- the one list there is
    return sorted(set(handlers) - {"connect", "disconnect", "*"})


def test_the_table_of_routes_is_in_the_list() -> None:
    listed = set(routes())

    assert {(each.method, re.sub(r"\{.*?\}", "x", each.path)) for each in all_routes()} <= listed
    assert len(events()) >= 15


@pytest.mark.parametrize("shown", ["nothing", "a wrong token", "another scheme", "two tokens"])
def test_no_route_is_open(house: House, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE", 1_000_000)
    good = house.tokens["admin"]
    headers: list[tuple[str, str]] = {
        "nothing": [],
        "a wrong token": [("authorization", "Bearer strat_" + "A" * 43)],
        "another scheme": [("authorization", f"Basic {good}")],
        "two tokens": [("authorization", f"Bearer {good}"), ("authorization", "Bearer x")],
    }[shown]
    open_ones = set()
    client = house.client()

    # Who asks is judged before it is known which route is asked for: elsewhere some routes are enough.
    for method, path in routes()[:: 1 if shown == "nothing" else 7]:
        response = client.request(method, path, headers=headers)
        if response.status_code != 401:
            open_ones.add(path)
        else:
            assert response.headers["www-authenticate"].startswith("Bearer"), path

    assert open_ones <= OPEN | SIGN_IN


def test_health_is_open_and_says_nothing_else(house: House) -> None:
    assert house.client().get("/health").json() == {"status": "ok"}


def test_a_token_in_the_address_is_no_token(house: House) -> None:
    response = house.client().get(f"/api/mcp/tools?token={house.tokens['admin']}")

    assert response.status_code == 401


def test_a_socket_that_says_nothing_is_refused(house: House) -> None:
    with pytest.raises(socketio.exceptions.ConnectionError):
        house.open_socket()


def test_a_socket_is_refused_with_the_error_that_other_surfaces_answer_with(house: House) -> None:
    client, heard = socketio.Client(reconnection=False), list[Any]()
    client.on("connect_error", heard.append)

    with pytest.raises(socketio.exceptions.ConnectionError):
        client.connect(
            house.url, auth={"token": "wrong"}, transports=["websocket"], wait_timeout=60
        )

    (refusal,) = eventually(lambda: heard)
    assert refusal["message"] == refusal["data"]["message"]
    assert refusal["data"]["code"] == "PERMISSION_DENIED"


def test_a_socket_with_a_wrong_header_is_not_even_opened(house: House) -> None:
    client = socketio.Client(reconnection=False)

    with pytest.raises(socketio.exceptions.ConnectionError):
        client.connect(
            house.url,
            headers={"authorization": "Bearer wrong"},
            transports=["websocket"],
            wait_timeout=60,
        )


def test_no_event_is_answered_before_somebody_is_known(house: House) -> None:
    address = f"ws://{urlsplit(house.url).netloc}/socket.io/?EIO=4&transport=websocket"
    heard: list[str] = []

    with connect(address, open_timeout=60) as line:
        assert str(line.recv()).startswith("0{")
        for number, event in enumerate(events(), start=1):
            line.send(f"42{number}{json.dumps([event, {}])}")
        line.send('40{"token": "wrong"}')
        while not (heard and heard[-1].startswith("44")):
            heard.append(str(line.recv(timeout=60)))
        for number, event in enumerate(events(), start=1):
            line.send(f"42{number}{json.dumps([event, {}])}")
        try:
            while True:
                heard.append(str(line.recv(timeout=0.3)))
        except (TimeoutError, OSError):
            pass

    assert [each for each in heard if each.startswith(("42", "43"))] == []


def test_a_revoked_token_is_soon_refused_everywhere(tmp_path: Path) -> None:
    assert limits.TOKEN_CHECK_SECONDS <= 0.5
    path = tmp_path / "memory.db"
    secret = make_token(path, "alice", "*:admin")
    with serving(path) as house:
        house.tokens["alice"] = secret
        client, socket = house.client("alice"), house.open_socket("alice")
        assert client.get("/api/mcp/tools").status_code == 200
        assert socket.call("mcp:tools:list", {}, timeout=60)["success"]
        assert house.tools("alice")
        told: list[Any] = []
        socket.on("mcp:error", told.append)

        revoke(path, "alice")

        eventually(lambda: client.get("/api/mcp/tools").status_code == 401)
        assert house.post("tools/list", "alice").status_code == 401
        # A socket that only listens hears no more, and is told why.
        eventually(lambda: not socket.connected)
        assert ["revoked" in each["message"] for each in eventually(lambda: told)] == [True]
        with pytest.raises(socketio.exceptions.ConnectionError):
            house.open_socket("alice")
        # Revoking the last token opens nothing.
        assert house.client().get("/api/mcp/tools").status_code == 401


def test_turning_tokens_off_opens_a_server_that_runs_on_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_token(path, "alice", "*:admin")
    with serving(path) as house:
        assert house.client().get("/api/mcp/tools").status_code == 401

        turn_off(path)

        eventually(lambda: house.client().get("/api/mcp/tools").status_code == 200)


def test_turning_tokens_off_opens_no_server_that_others_reach(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_token(path, "alice", "*:admin")
    turn_off(path)

    with serving(path, server_names=("example.org",)) as house:
        assert house.client().get("/api/mcp/tools").status_code == 401
    with serving(path) as house:
        assert house.client().get("/api/mcp/tools").status_code == 200


@pytest.mark.parametrize("opened_by", ["a token", "nobody"])
def test_a_stream_that_is_open_ends_with_its_token(tmp_path: Path, opened_by: str) -> None:
    """Of the protocol's streams, which may last for days, none outlasts the right to it."""
    path = tmp_path / "memory.db"
    holder = "alice" if opened_by == "a token" else None
    secret = make_token(path, "alice", "*:admin") if holder else ""
    with serving(path) as house:
        house.tokens["alice"] = secret
        accept = {"accept": "application/json, text/event-stream"}
        begun = house.client(holder, **accept).post("/mcp", json=HELLO)
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        listening = house.client(holder, accept="text/event-stream", **session)
        with listening.stream("GET", "/mcp") as stream:
            assert stream.status_code == 200
            if holder:
                revoke(path, "alice")
            else:
                make_token(path, "alice", "*:admin")

            # It is cut: nothing more comes, and whoever listens is not left waiting.
            with pytest.raises(httpx2.RemoteProtocolError):
                for _line in stream.iter_lines():
                    pass


def test_the_first_token_closes_a_server_that_was_open(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with serving(path) as house:
        socket = house.open_socket()
        assert house.client().get("/api/mcp/tools").status_code == 200
        assert socket.call("mcp:tools:list", {}, timeout=60)["success"]

        make_token(path, "alice", "*:admin")

        eventually(lambda: house.client().get("/api/mcp/tools").status_code == 401)
        assert house.post("tools/list", None).status_code == 401
        eventually(lambda: not socket.connected)


def test_a_session_belongs_to_the_token_that_began_it(house: House) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    begun = house.client("member", **headers).post("/mcp", json=HELLO)
    session = begun.headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

    stolen = house.client("reader", **headers, **{"mcp-session-id": session})
    own = house.client("member", **headers, **{"mcp-session-id": session})

    assert stolen.post("/mcp", json=listing).status_code == 404
    assert stolen.delete("/mcp").status_code == 404
    assert own.post("/mcp", json=listing).status_code == 200
