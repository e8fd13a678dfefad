"""6. Every operation that reads, asked in one workspace about whatever another one has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from stratagem.operations import TABLE
from tests.security.house import (
    ENVELOPE,
    EVERY_TOOLSET,
    MODERN,
    House,
    make_token,
    read_message,
    serving,
)
from tests.security.test_05_reading import READS

# In everything that red has, and in nothing that blue asks.
SECRET = "quixotrope"
# What names something, or is looked for.
NAMING = re.compile(r"(?i)(id|ids|name|key|cell|branch|query|intent|session|transaction|tool)$")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, list[str]]]:
    """Give a server with something of everything in one workspace, and the ids of it."""
    path = tmp_path_factory.mktemp("operations") / "memory.db"
    tokens = {
        name: make_token(path, name, "*:admin", roles={name: "admin"}, rate=1_000_000)
        for name in ("red", "blue")
    }
    bundles = path.parent / "bundles"
    bundles.mkdir()
    with serving(
        path, embedder="static", bundles=str(bundles), toolsets=(*EVERY_TOOLSET, "developer")
    ) as running:
        running.tokens = tokens
        yield running, fill(running)


def fill(house: House) -> list[str]:
    """Write something of every kind as red; return the ids that came of it."""
    ids: list[str] = []

    def call(name: str, /, **arguments: Any) -> Any:
        outcome = house.call("rest", "red", name, arguments)
        assert outcome.error is None, (name, outcome)
        ids.extend(
            value
            for field, value in outcome.answer.items()
            if isinstance(value, str) and re.search(r"(?i)id$|transaction", field)
        )
        return outcome.answer

    call("strata_store", key="entry", value=f"{SECRET} value", tags=[SECRET], session=SECRET)
    call("strata_log", event="message", data=f"about {SECRET}", session=SECRET)
    call("strata_branch", action="fork", name=f"{SECRET}-branch")
    for name in ("one", "two"):
        call("create_concept", name=f"{SECRET} {name}", explanation=f"what {SECRET} is")
    call(
        "add_incident",
        title=f"{SECRET} fails",
        error_signature=f"{SECRET}Error: 3",
        steps=f"restart {SECRET}",
        env={"os": "linux"},
        worked=True,
    )
    code = {"type": "code", "language": "python", "code": f"result = '{SECRET}'"}
    schema = {"type": "object"}
    call(
        "tool_register",
        name=f"{SECRET}-tool",
        description=f"does {SECRET}",
        inputSchema=schema,
        handler=code,
    )
    call("tool_execute", toolName="strata_recall", arguments={"key": "entry"})
    call("resource_create", type="prompt", name=f"{SECRET}-prompt", content=SECRET)
    call("toolset_define", name=f"{SECRET}-set", allow=["*"])
    call("strata_state_set", cell="leader", value=SECRET)
    call("strata_vector_create_collection", name=f"{SECRET}-docs", dimension=3)
    vector = {"key": "a", "vector": [1, 0, 0], "metadata": {"about": SECRET}}
    call("strata_vector_upsert", collection=f"{SECRET}-docs", **vector)
    call("strata_bundle_export", name=f"{SECRET}-bundle")
    call("strata_txn_begin")
    return sorted({each for each in ids if SECRET not in each})


def questions(name: str, ids: list[str]) -> Iterator[dict[str, Any]]:
    """Yield arguments of a reading operation: as they are, and with each id where one can be."""
    for given in READS[name]:
        base = {key: each for key, each in given.items() if "{" not in str(each)}
        yield base
        for field, schema in TABLE[name].parameters["properties"].items():
            if NAMING.search(field) and "string" in str(schema):
                kind = "array" if "array" in str(schema.get("type", "")) else "string"
                for each in ids:
                    yield {**base, field: [each] if kind == "array" else each}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_operation_shows_what_another_workspace_has(house: tuple[House, list[str]]) -> None:
    running, ids = house
    asked, leaks = 0, []

    for name in READS:
        path = f"/api/{TABLE[name].toolset}/{name}"
        for given in questions(name, ids):
            response = running.client("blue").post(path, json=given)
            asked += 1
            if SECRET in response.text.lower() or response.status_code == 500:
                leaks.append((name, given, response.status_code, response.text[:300]))

    assert leaks == [], f"{len(leaks)} of {asked} questions"
    assert asked > 500, f"{asked} questions about {len(ids)} ids"


@pytest.mark.parametrize(
    "method", ["resources/list", "resources/templates/list", "prompts/list", "tools/list"]
)
def test_no_list_of_the_protocol_shows_it(house: tuple[House, list[str]], method: str) -> None:
    running, _ids = house

    own = running.post(method, "red")
    other = running.post(method, "blue")

    assert "result" in read_message(own)
    assert SECRET not in other.text


def test_a_set_of_tools_is_served_in_its_own_workspace(house: tuple[House, list[str]]) -> None:
    running, _ids = house
    path = f"/mcp/{SECRET}-set"

    def ask(token: str) -> Any:
        params = {"_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/list",
        }
        return running.client(token, **headers).post(path, json=message)

    assert "There is no set of tools" in ask("blue").text
    assert "There is no set of tools" not in ask("red").text
