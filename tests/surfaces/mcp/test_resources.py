"""Resources and prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client, MCPError

import stratagem
from tests.surfaces.mcp.clients import MODES, Mode, connected

pytestmark = pytest.mark.anyio


async def read(client: Client, uri: str) -> dict[str, Any]:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "application/json"
    assert content.uri == uri
    document: dict[str, Any] = json.loads(getattr(content, "text", ""))
    return document


@pytest.fixture
def stored(path: Path) -> Path:
    """Give a database with two versions of an entry, and another value on a branch."""
    with stratagem.open(str(path)) as db:
        db.memory.store("city", "Oslo", tags=["place"])
        db.memory.fork("trial")
        db.memory.store("city", "Bergen")
        db.memory.store("city", "Paris", branch="trial")
    return path


@pytest.mark.parametrize("mode", MODES)
async def test_what_can_be_read_is_listed(path: Path, mode: Mode) -> None:
    async with connected(path, mode) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates

    assert [resource.uri for resource in resources] == [
        "stratagem://guide",
        "skill://stratagem-memory/SKILL.md",
        "stratagem://status",
        "stratagem://namespaces",
    ]
    assert [template.uri_template for template in templates] == [
        "stratagem://entries/{namespace}/{key}{?branch,as_of}",
        "stratagem://history/{namespace}/{key}{?branch,as_of}",
        "stratagem://entries/{namespace}{?prefix,order,cursor,branch,as_of}",
        "stratagem://events/{namespace}{?event,session,since,after,order,cursor,branch,as_of}",
    ]
    assert all(resource.description for resource in resources)
    assert all(template.description for template in templates)


async def test_the_guide_for_models_is_the_page_of_the_docs(path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "for-agents.md"

    async with connected(path) as client:
        (content,) = (await client.read_resource("stratagem://guide")).contents

    assert content.mime_type == "text/markdown"
    assert getattr(content, "text", "") == page.read_text("utf-8")


@pytest.mark.parametrize("mode", MODES)
async def test_every_entry_is_a_resource_that_can_be_read(path: Path, mode: Mode) -> None:
    with stratagem.open(str(path)) as db:
        for number in range(250):
            db.memory.store(f"a b/{number}", number)
        db.memory.store("elsewhere", 1, namespace="other")

    async with connected(path, mode) as client:
        page = await client.list_resources()
        found = page.resources[4:]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            found += page.resources
        first = await read(client, found[0].uri)

    assert [each.name for each in found] == [f"a b/{number}" for number in range(249, -1, -1)]
    assert (found[0].description, first["key"], first["value"]) == ("249", "a b/249", 249)


async def test_a_branch_of_its_own_is_part_of_the_address(stored: Path) -> None:
    async with connected(stored, branch="trial") as client:
        listed = (await client.list_resources()).resources
        entry = await read(client, listed[-1].uri)

    assert listed[-1].uri == "stratagem://entries/default/city?branch=trial"
    assert entry["value"] == "Paris"


async def test_lists_are_read_by_their_addresses(stored: Path) -> None:
    with stratagem.open(str(stored)) as db:
        db.memory.log("step", 1, session="s")
        event = db.memory.log("note", 2)

    async with connected(stored) as client:
        entries = await read(client, "stratagem://entries/default?prefix=ci&order=key&as_of=%402")
        none = await read(client, "stratagem://entries/nowhere")
        session = await read(client, "stratagem://events/default?session=s")
        newest = await read(client, f"stratagem://events/default?after={event.sequence - 1}")
        spaces = await read(client, "stratagem://namespaces")

    assert [each["value"] for each in entries["results"]] == ["Oslo"]
    assert none["results"] == []
    assert [each["data"] for each in session["results"]] == [1]
    assert [each["data"] for each in newest["results"]] == [2]
    assert [each["name"] for each in spaces["results"]] == ["default"]


async def test_a_cursor_that_no_page_gave_is_refused(path: Path) -> None:
    async with connected(path) as client:
        with pytest.raises(MCPError, match="cursor is not one"):
            await client.list_resources(cursor="2")
        with pytest.raises(MCPError, match="one page"):
            await client.list_tools(cursor="2")


async def test_where_nothing_is_near_keys_are_named(stored: Path) -> None:
    async with connected(stored) as client:
        with pytest.raises(MCPError, match="Near: city") as caught:
            await client.read_resource("stratagem://entries/default/City")

    assert caught.value.data["near"] == ["city"]


async def test_the_status_is_a_resource(stored: Path) -> None:
    async with connected(stored) as client:
        status = await read(client, "stratagem://status")

    assert (status["keys"], status["branches"]) == (1, 2)


async def test_an_entry_is_read_by_its_address(stored: Path) -> None:
    async with connected(stored) as client:
        now = await read(client, "stratagem://entries/default/city")
        branch = await read(client, "stratagem://entries/default/city?branch=trial")
        past = await read(client, "stratagem://entries/default/city?as_of=%402")

    assert (now["value"], branch["value"], past["value"]) == ("Bergen", "Paris", "Oslo")
    assert past["tags"] == ["place"]


async def test_the_history_of_an_entry_is_read_by_its_address(stored: Path) -> None:
    async with connected(stored) as client:
        history = await read(client, "stratagem://history/default/city")

    assert [version["value"] for version in history["results"]] == ["Bergen", "Oslo"]


@pytest.mark.parametrize("key", ["a b", "a/b", "ø?&#%", "100%", "город", "..", 'quo"te'])
async def test_any_key_has_an_address(path: Path, key: str) -> None:
    with stratagem.open(str(path)) as db:
        db.memory.store(key, "here", namespace="my space/1")

    async with connected(path) as client:
        entry = await read(
            client, f"stratagem://entries/{quote('my space/1', safe='')}/{quote(key, safe='')}"
        )

    assert (entry["key"], entry["namespace"]) == (key, "my space/1")


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
@pytest.mark.parametrize(
    "uri",
    [
        "stratagem://entries/default/nowhere",
        "stratagem://history/default/nowhere",
        "stratagem://history/default",
        "stratagem://entries/default/",
        "stratagem://entries//city",
        "stratagem://status/city",
        "stratagem://nothing/default/city",
        "file:///etc/passwd",
        "http://[::1/",
        "",
    ],
)
async def test_where_nothing_is_the_protocol_says_so(
    stored: Path, mode: Mode, code: int, uri: str
) -> None:
    async with connected(stored, mode) as client:
        with pytest.raises(MCPError, match="There is nothing at") as caught:
            await client.read_resource(uri)

    assert caught.value.code == code
    assert caught.value.data == {"uri": uri}


async def test_an_address_on_a_branch_that_is_not_there_says_what_is_wrong(stored: Path) -> None:
    async with connected(stored) as client:
        with pytest.raises(MCPError, match="Did you mean 'trial'") as caught:
            await client.read_resource("stratagem://entries/default/city?branch=trail")

    assert caught.value.data["error"] == "branch_not_found"


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_are_listed_and_filled_in(path: Path, mode: Mode) -> None:
    async with connected(path, mode) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        recall = await client.get_prompt("recall_context", {"topic": "the login page"})
        remember = await client.get_prompt("remember_session", {"summary": "We chose SQLite."})
        blank = await client.get_prompt("remember_session")

    assert list(prompts) == ["recall_context", "remember_session"]
    texts = [getattr(got.messages[0].content, "text", "") for got in (recall, remember, blank)]
    assert "the login page" in texts[0]
    assert "strata_search" in texts[0]
    assert "We chose SQLite." in texts[1]
    assert "strata_store" in texts[2]


async def test_a_prompt_that_is_not_there_or_not_complete_is_refused(path: Path) -> None:
    async with connected(path) as client:
        with pytest.raises(MCPError, match="recall_context, remember_session"):
            await client.get_prompt("recall")
        with pytest.raises(MCPError, match="needs 'topic'"):
            await client.get_prompt("recall_context", {"topic": " "})


async def test_a_read_only_server_offers_no_prompt_that_writes(path: Path) -> None:
    async with connected(path, read_only=True) as client:
        prompts = (await client.list_prompts()).prompts

    assert [prompt.name for prompt in prompts] == ["recall_context"]
