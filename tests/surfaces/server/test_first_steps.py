"""What somebody meets who sets a team's server up: the greeting, a proxy, a browser, the log."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import stratagem
from stratagem.errors import StorageUnavailable, ValidationFailed
from stratagem.surfaces.rest.routes import all_routes
from stratagem.surfaces.server.startup_message import DatabaseState, startup_message
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.version import VERSION
from tests import forkserver
from tests.surfaces.serving import Served, serving

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

EVERYWHERE = "0.0.0.0"  # noqa: S104 -- nothing listens on it here


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forkserver.run(
        [sys.executable, "-m", "stratagem", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server behind a proxy, with a token, and the token."""
    path = tmp_path_factory.mktemp("guarded") / "guarded.db"
    made = run("--db", str(path), "token", "create", "ada", "--json")
    names = ("--server-name", "bare.example", "--server-name", "tls.example:443")
    proxied = ("--server-name", "odd.example:8443", "--public-url", "https://public.example")
    with serving(path, *names, *proxied, "--log-format", "json") as served:
        yield served, json.loads(made.stdout)["token"]


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("unlocked") / "unlocked.db") as served:
        yield served


@pytest.mark.parametrize(
    ("host", "status"),
    [
        # A proxy on the usual port passes on what its clients sent: a name without a port.
        ("bare.example", 200),
        ("Bare.Example", 200),
        ("tls.example", 200),
        ("tls.example:443", 200),
        ("odd.example:8443", 200),
        ("public.example", 200),
        ("odd.example", 403),
        ("tls.example:8443", 403),
        ("other.example", 403),
        ("127.0.0.1", 403),
        ("localhost", 403),
    ],
)
def test_a_server_behind_a_proxy_is_reached_by_the_names_it_was_given(
    guarded: tuple[Served, str], host: str, status: int
) -> None:
    served, _ = guarded

    plain = served.client.get("/health", headers={"host": host})
    page = served.client.get("/health", headers={"host": host, "origin": f"https://{host}"})

    assert (plain.status_code, page.status_code) == (status, status)


def test_the_greeting_of_a_server_with_tokens_says_where_the_token_goes(
    guarded: tuple[Served, str],
) -> None:
    said = guarded[0].log.read_text("utf-8").partition("Stop with")[0]

    address = "https://public.example/mcp"
    assert f'stratagem {address} --header "Authorization: Bearer TOKEN"' in said
    cursor = json.loads(said.partition(".cursor/mcp.json: ")[2].partition("\n")[0])
    entry = {"type": "http", "url": address, "headers": {"Authorization": "Bearer TOKEN"}}
    assert cursor == {"mcpServers": {"stratagem": entry}}
    assert "NOT READY" not in said


def test_the_greeting_of_a_server_without_tokens_asks_for_none(unlocked: Served) -> None:
    said = unlocked.log.read_text("utf-8")

    assert f"--transport http stratagem {unlocked.url}/mcp\n" in said
    assert "Authorization" not in said


def test_whoever_starts_a_server_is_told_that_its_database_is_away(tmp_path: Path) -> None:
    nowhere = "postgresql://ada:hunter2@127.0.0.1:1/team"
    with serving(tmp_path / "away.db", "--db", nowhere) as served:
        said = served.log.read_text("utf-8").partition("Stop with")[0]
        ready = served.client.get("/ready")

    assert "NOT READY: The PostgreSQL server cannot be used: " in said
    assert "GET /ready" in said
    assert "hunter2" not in said
    assert ready.status_code == 503


def test_a_server_for_everybody_says_that_it_needs_a_name() -> None:
    everywhere = ServerSettings("team.db", host=EVERYWHERE, auth="token")
    named = ServerSettings("team.db", host=EVERYWHERE, server_names=("team.example",))

    assert "--server-name NAME" in startup_message(everywhere, 7437, DatabaseState())
    assert "http://127.0.0.1:7437/mcp --header" in startup_message(
        everywhere, 7437, DatabaseState()
    )
    assert "--server-name" not in startup_message(named, 7437, DatabaseState())
    assert "stratagem http://team.example:7437/mcp\n" in startup_message(
        named, 7437, DatabaseState()
    )


def test_the_greeting_names_the_command_where_the_shell_would_not_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside = Path(sys.executable).parent

    monkeypatch.setenv("PATH", "/usr/bin")
    hidden = startup_message(ServerSettings("team.db"), 7437, DatabaseState(tokens=True))
    monkeypatch.setenv("PATH", str(beside))
    found = startup_message(ServerSettings("team.db"), 7437, DatabaseState(tokens=True))

    assert f"Command: {beside / 'stratagem'} (not on your PATH)" in hidden
    assert f"`{beside / 'stratagem'} token create NAME`" in hidden
    assert "Command:" not in found
    assert "`stratagem token create NAME`" in found


def test_trouble_is_told_with_its_next_step() -> None:
    trouble = StorageUnavailable("It is away.", hint="Start it.")

    said = startup_message(ServerSettings("team.db"), 7437, DatabaseState(trouble))

    assert "NOT READY: It is away.\nHint: Start it.\n" in said


@pytest.mark.parametrize("given", ["x", "ftp://a.example", "https://", "https://a b"])
def test_an_address_that_no_client_can_use_is_refused(given: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        ServerSettings("team.db", public_url=given).check_public_url()
    assert caught.value.details["field"] == "public_url"


@pytest.mark.parametrize("given", ["https://a.example", "http://[::1]:8080", "https://a.b/under"])
def test_an_address_that_clients_use_is_taken(given: str) -> None:
    ServerSettings("team.db", public_url=given).check_public_url()


@pytest.mark.parametrize(
    ("place", "step"),
    [
        ("mysql://ada:hunter2@db.example/team", "postgresql://"),
        ("sqlite:///team.db", "Name the file"),
        ("https://team.example", "stratagem.connect"),
    ],
)
def test_an_address_that_is_no_database_is_refused_and_not_shown(
    place: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValidationFailed) as caught:
        stratagem.open(place)
    served = run("--db", place, "serve", "--port", "0")

    assert step in caught.value.hint
    assert served.returncode != 0
    assert step in served.stderr
    assert "hunter2" not in caught.value.message + served.stderr + served.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_program_is_told_what_runs_here(unlocked: Served) -> None:
    about = unlocked.client.get("/").json()

    assert about["name"] == "stratagem"
    assert about["version"] == VERSION
    assert unlocked.client.get(about["openapi"]).status_code == 200
    assert unlocked.client.get(about["rest"]).status_code == 200
    assert unlocked.client.get(about["ready"]).status_code == 200


def test_a_browser_is_led_back_from_an_address_of_nothing(unlocked: Served) -> None:
    page = unlocked.client.get("/n<i>ope", headers=BROWSER)
    program = unlocked.client.get("/nope")

    assert page.status_code == program.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is nothing at /n&lt;i&gt;ope." in page.text
    assert '<a href="/">' in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert program.json()["error"] == "not_found"


def test_a_search_of_the_console_says_what_was_probably_meant(unlocked: Served) -> None:
    unlocked.client.post(
        "/api/memory/strata_store", json={"key": "m", "value": "the wombat mascot"}
    )

    page = unlocked.client.get("/search", params={"q": "mascott"}, headers=BROWSER)

    assert "Did you mean &#39;mascot&#39;?" in page.text


@pytest.mark.parametrize("path", ["/", "/api/docs"])
def test_a_browser_gets_a_page_that_loads_nothing_from_elsewhere(
    unlocked: Served, path: str
) -> None:
    page = unlocked.client.get(path, headers=BROWSER)

    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.", page.text)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    for kind, content in re.findall(r"<(script|style)>(.*?)</\1>", page.text, re.DOTALL):
        hashed = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hashed}'" in policy


@pytest.mark.parametrize("path", ["/", "/api/docs"])
def test_a_browser_without_a_token_sees_the_page_with_the_refusal(
    guarded: tuple[Served, str], path: str
) -> None:
    served, token = guarded

    page = served.client.get(path, headers=BROWSER)
    program = served.client.get(path)
    wrong = served.client.get(path, headers={**BROWSER, "authorization": "Bearer strat_wrong"})
    known = served.client.get(path, headers={**BROWSER, "authorization": f"Bearer {token}"})

    assert page.status_code == program.status_code == wrong.status_code == 401
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["www-authenticate"].startswith("Bearer")
    assert "token" in page.text
    assert program.json()["error"] == wrong.json()["error"] == "unauthenticated"
    assert known.status_code == 200


def test_a_browser_at_an_address_of_nothing_is_asked_for_no_token(
    guarded: tuple[Served, str],
) -> None:
    served, _token = guarded

    page = served.client.get("/entries", headers=BROWSER)
    program = served.client.get("/entries")
    known = served.client.get("/api/memory/strata_list", headers=BROWSER)

    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is nothing at /entries." in page.text
    assert program.status_code == known.status_code == 401
    assert known.json()["error"] == "unauthenticated"


def test_every_route_is_known_to_the_page_of_addresses_of_nothing() -> None:
    beginnings = {route.path.split("/")[1] for route in all_routes()}

    assert beginnings == {"api"}


@pytest.mark.parametrize("path", ["/api/openapi.json", "/api/mcp/tools", "/mcp", "/metrics"])
def test_no_other_route_is_shown_to_a_browser_without_a_token(
    guarded: tuple[Served, str], path: str
) -> None:
    refused = guarded[0].client.get(path, headers=BROWSER)

    assert refused.status_code == 401
    assert refused.json()["success"] is False


def test_the_log_says_who_asked_and_in_which_workspace(guarded: tuple[Served, str]) -> None:
    served, token = guarded
    key = {"authorization": f"Bearer {token}", "x-request-id": "known"}

    served.client.post("/api/memory/strata_recall", json={"key": "a"}, headers=key)
    served.client.post("/api/memory/strata_recall", headers={"x-request-id": "unknown"})

    logged = _lines(served, "known", "unknown")
    assert (logged["known"]["by"], logged["known"]["workspace"]) == ("token:ada", "default")
    assert "by" not in logged["unknown"]
    assert token not in served.log.read_text("utf-8")


def _lines(served: Served, *wanted: str) -> dict[str, Any]:
    """Return the lines about some requests; they are written after the answers were sent."""
    found: dict[str, Any] = {}
    end = time.monotonic() + 60
    while not found.keys() >= set(wanted) and time.monotonic() < end:
        time.sleep(0.02)
        whole = served.log.read_text("utf-8").rpartition("\n")[0]
        lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        found = {line["requestId"]: line for line in lines if "requestId" in line}
    return found


def test_the_document_has_what_operators_ask(unlocked: Served) -> None:
    paths = unlocked.client.get("/api/openapi.json").json()["paths"]

    for path in ("/health", "/ready", "/metrics"):
        answer: httpx2.Response = unlocked.client.get(path)
        assert str(answer.status_code) in paths[path]["get"]["responses"]
