"""1. A foreign Host or Origin is answered with 403 on every surface, before the body is read."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.security.house import SURFACES, House, Surface, serving

WAYS = (
    "POST /mcp",
    "GET /api/mcp/tools",
    "POST /api/memory/strata_store",
    "GET /socket.io/?EIO=4&transport=polling",
    "GET /health",
)
TOOL = {"name": "t", "description": "d", "inputSchema": {"type": "object"}}


def speak(house: House, lines: list[str]) -> str:
    """Send the head of a request and nothing of its body; return the first line of the answer."""
    place = urlsplit(house.url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as line:
        line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return line.recv(1000).decode().splitlines()[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", ["host", "origin", "no host", "two hosts"])
def test_a_foreign_name_is_refused_before_the_body(house: House, way: str, fault: str) -> None:
    own = urlsplit(house.url).netloc
    hosts = {"host": ["evil.example"], "no host": [], "two hosts": [own, "evil.example"]}
    method, path = way.split(" ")
    lines = [f"{method} {path} HTTP/1.1" if fault != "no host" else f"{method} {path} HTTP/1.0"]
    lines += [f"Host: {each}" for each in hosts.get(fault, [own])]
    lines += ["Origin: http://evil.example"] if fault == "origin" else []
    lines += [f"Authorization: Bearer {house.tokens['admin']}", "Content-Length: 1000"]

    answer = speak(house, lines)

    # What is no HTTP at all never comes as far as our own check.
    assert answer.split(" ")[1] == "403" or (fault == "two hosts" and " 400 " in answer)


def test_a_foreign_page_opens_no_socket(house: House) -> None:
    lines = [
        "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1",
        f"Host: {urlsplit(house.url).netloc}",
        "Origin: http://evil.example",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        f"Authorization: Bearer {house.tokens['admin']}",
    ]

    assert speak(house, lines).split(" ")[1] == "403"


def test_the_servers_own_page_is_let_in(house: House) -> None:
    response = house.client("admin", origin=house.url).get("/api/mcp/tools")

    assert response.status_code == 200


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server without a token: whoever is let in owns it, so that no page must be."""
    with serving(tmp_path_factory.mktemp("unlocked") / "memory.db") as running:
        yield running


# What a browser sends with a request that a page made, by what the page did.
PAGES: dict[str, dict[str, str]] = {
    "fetch": {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    "fetch from a sandboxed frame": {"origin": "null", "sec-fetch-site": "cross-site"},
    "fetch from another port": {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"},
    "script": {"sec-fetch-site": "cross-site", "sec-fetch-dest": "script"},
    "frame": {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe"},
    "image of another port": {"sec-fetch-site": "same-site", "sec-fetch-dest": "image"},
    "rebinding": {"host": "evil.example"},
    "rebinding with the port": {"host": "evil.example:7437", "sec-fetch-site": "same-origin"},
}
# Bodies that a page may send anywhere without asking first.
SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
ACTS = {
    "strata_store": ("/api/memory/strata_store", {"key": "planted", "value": 1}),
    "strata_purge": ("/api/admin/strata_purge", {"key": "k"}),
    "cache_configure": ("/api/registry/cache_configure", {"enabled": False}),
    "tool_register": ("/api/mcp/tools", {"name": "planted"}),
}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_reaches_a_server_without_tokens(unlocked: House, page: str) -> None:
    client, headers = unlocked.client(), PAGES[page]

    posted = [
        client.post(path, content=json.dumps(body), headers={**headers, "content-type": kind})
        for path, body in ACTS.values()
        for kind in (*SIMPLE, "application/json")
    ]
    asked = [
        client.get(path, headers=headers)
        for path in (
            "/api/mcp/tools",
            "/socket.io/?EIO=4&transport=polling",
            "/socket.io/?EIO=4&transport=polling&j=0",
            "/metrics",
        )
    ]

    assert {each.status_code for each in (*posted, *asked)} == {403}
    assert not unlocked.call("rest", None, "strata_recall", {"key": "planted"}).answer["found"]


def test_a_link_to_the_documentation_may_be_followed(unlocked: House) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}

    assert unlocked.client().get("/api/docs", headers=headers).status_code == 200


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("server_add", {"name": "x", "command": "true"}),
        ("tool_register", TOOL | {"handler": {"type": "code", "language": "python", "code": "1"}}),
        ("tool_register", TOOL | {"handler": {"type": "python", "module": "os", "function": "x"}}),
        ("secret_grant", {"tool": "x", "name": "API_KEY", "origin": "https://evil.example"}),
    ],
    ids=["stdio server", "code", "python", "secret"],
)
def test_without_a_token_nobody_runs_code_or_gives_secrets_away(
    unlocked: House, surface: Surface, name: str, arguments: dict[str, Any]
) -> None:
    """The owner of the machine does that where a program cannot pretend to be them."""
    refused = unlocked.call(surface, None, name, arguments)
    erased = unlocked.call(surface, None, "strata_purge", {"key": "k"})
    owned = unlocked.call(surface, None, "strata_forget", {"key": "k"})

    assert refused.error == "permission_denied"
    assert "an administrator" in refused.text
    assert erased.error == "permission_denied"
    assert owned.error is None
