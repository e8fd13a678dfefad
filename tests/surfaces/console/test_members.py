"""Pages for members of a team, who may see others' calls but not what is in them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from stratagem import limits
from tests.manifest import proves
from tests.security.house import House, make_token, serving
from tests.surfaces.console.conftest import HTML, fill
from tests.surfaces.console.test_links import kind_of
from tests.surfaces.serving import Service

PAGES_MAX = 120
SCHEMA = {
    "type": "object",
    "properties": {"celsius": {"type": "number"}, "day": {"type": "string", "format": "date"}},
    "required": ["celsius"],
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server on which much has happened to the tools, most of it by an administrator."""
    path = tmp_path_factory.mktemp("team") / "memory.db"
    tokens = {
        "ada": make_token(path, "ada", "*:admin"),
        "bo": make_token(path, "bo", "*:write", "*:execute"),
        "reader": make_token(path, "reader", "*:read"),
        "eve": make_token(path, "eve", "*:write", roles={"red": "member"}),
    }
    with Service() as service, serving(path, allow_hosts=(service.host, "127.0.0.1:1")) as house:
        house.tokens = tokens
        service.answers["/hangs"] = lambda _: None
        for name, url in {
            "set_heat": service.url("/heat"),
            "hangs": service.url("/hangs"),
            "gone": "http://127.0.0.1:1/",
        }.items():
            _register(house, name, url)
        _use(house)
        yield house


def _register(house: House, name: str, url: str) -> None:
    definition = {
        "name": name,
        "description": "Heat a greenhouse.",
        "inputSchema": SCHEMA,
        "handler": {"type": "webhook", "url": url},
    }
    assert house.call("rest", "ada", "tool_register", definition).error is None


def _use(house: House) -> None:
    """Have calls that worked, failed, were corrected, taught something, wait and run."""
    _execute(house, "ada", "set_heat", celsius="20")
    misnamed = _execute(house, "ada", "set_heat", warmth=20)
    offer = misnamed["error"]["details"]["corrections"][0]["correctionId"]
    body = {"arguments": {"warmth": 20}, "correctionId": offer, "confirm": True}
    assert house.client("ada").post("/api/mcp/tools/set_heat/execute", json=body).is_success
    for _ in range(limits.BREAKER_FAILURES):
        _execute(house, "ada", "gone", celsius=1)
    body = {"arguments": {"celsius": 1}, "async": True}
    assert house.client("bo").post("/api/mcp/tools/hangs/execute", json=body).is_success
    rights = {"toolId": "set_heat", "rights": {"approval": True}}
    assert house.call("rest", "ada", "tool_update", rights).error is None
    _execute(house, "bo", "set_heat", celsius=3)
    assert house.call("rest", "eve", "strata_store", {"key": "a", "value": 1}, "red").error is None


def _execute(house: House, who: str, tool: str, **arguments: Any) -> Any:
    address = f"/api/mcp/tools/{tool}/execute"
    return house.client(who).post(address, json={"arguments": arguments}).json()


def visit(house: House, who: str) -> httpx2.Client:
    client = httpx2.Client(base_url=house.url, headers=HTML, trust_env=False, timeout=60)
    house.stack.callback(client.close)
    assert client.post("/signin", data={"token": house.tokens[who]}).status_code == 303
    return client


@proves("console:links")
@pytest.mark.parametrize("who", ["ada", "bo", "reader"])
def test_every_page_is_shown_to_every_member(team: House, who: str) -> None:
    client = visit(team, who)
    dead, seen, waiting = [], {kind_of("/")}, ["/"]

    for _ in range(PAGES_MAX):
        if not waiting:
            break
        # Pages about tools first: they are what this team has.
        waiting.sort(key=lambda each: not each.startswith("/tools"))
        address = waiting.pop(0)
        page = client.get(address)
        if page.status_code != 200:
            dead.append(f"{page.status_code} {address}")
        for each in map(html.unescape, re.findall(r'href="(/[^"#]*)', page.text)):
            one_of_each = (each,) if "/tools/" in each else kind_of(each)
            if not each.startswith(("/static/", "/api/")) and one_of_each not in seen:
                seen.add(one_of_each)
                waiting.append(each)

    assert dead == []
    assert len(seen) > 40


@proves("console:rights")
def test_the_calls_of_others_are_listed_and_their_contents_withheld(team: House) -> None:
    client = visit(team, "bo")

    listed = client.get("/tools/calls?status=failed")
    which = re.findall(r'href="(/tools/call\?[^"]+)"', listed.text)[-1]
    failed = client.get(html.unescape(which))

    assert "token:ada" in listed.text
    assert "withheld" in listed.text
    assert "shown only to the caller" in failed.text
    assert "warmth" not in failed.text


@proves("console:questions")
def test_a_page_of_tools_says_what_runs_and_what_is_left_alone(team: House) -> None:
    page = visit(team, "bo").get("/tools").text

    assert re.search(r'gone <span class="state bad">open</span>', page)
    assert re.search(r"/tools/tool\?name=hangs.*?running", page, re.DOTALL)
    # `gone` failed until it was left alone, one call was misnamed, and one waits for a person.
    assert f'Errors <span class="quiet">{limits.BREAKER_FAILURES + 2}</span>' in page
    assert "None" not in re.sub(r"<[^>]+>", " ", page)


@proves("console:questions")
def test_a_call_that_was_corrected_or_refused_says_how_it_was_read(team: House) -> None:
    client = visit(team, "ada")
    address = "/tools/tool?name=set_heat"
    day = {"arg:celsius": "20", "arg:day": "3 March 2026"}

    corrected = fill(client, address, "try", tool="set_heat", **day)
    refused = fill(client, address, "try", tool="set_heat", **{**day, "arg:day": "3/4/2026"})

    assert "2026-03-03" in corrected.text
    assert "<h3>Corrected</h3>" in corrected.text
    assert "may have been meant" in refused.text
    assert "2026-04-03" in refused.text


def test_a_workspace_of_others_is_refused_with_a_page_that_leads_on(team: House) -> None:
    browser = visit(team, "bo")

    page = browser.get("/memory?workspace=red")
    again = browser.get("/memory.json?workspace=red")

    assert (page.status_code, again.status_code) == (403, 403)
    assert "does not open the workspace" in page.text
    assert '<a href="/">' in page.text
    assert 'name="token"' in page.text
    assert again.json()["code"] == "permission_denied"
