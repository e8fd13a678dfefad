"""The OpenAPI document, and what generated requests make of the server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from stratagem.operation import DEFAULT_TOOLSETS
from stratagem.operations import TABLE, find, of_toolsets
from stratagem.surfaces.rest.openapi import document
from stratagem.surfaces.rest.routes import all_routes
from tests.surfaces.generated_requests import DOCUMENTED_ROUTES, send_requests
from tests.surfaces.serving import Served, serving

if TYPE_CHECKING:
    from schemathesis import Case

# Requests that would start programs of a name that was made up.
_LEFT_OUT = {("POST", "/api/mcp/servers")}
# What the tools of a gateway may answer though nothing is wrong with the server: they failed.
_TOOLS_FAULT = {502, 503, 504}


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server of its own: requests that were made up change and erase what there is."""
    with serving(tmp_path_factory.mktemp("openapi") / "openapi.db") as running:
        yield running


def test_every_operation_has_a_route() -> None:
    routed = {route.operation for route in all_routes()}

    assert set(TABLE) - routed == set()


def test_the_document_and_its_page_are_served(rest: Served) -> None:
    served = rest.client.get("/api/openapi.json").json()
    page = rest.client.get("/api/docs")

    assert served["openapi"].startswith("3.1")
    assert "/api/mcp/tools/{toolName}/execute" in served["paths"]
    assert set(served["paths"]["/api/mcp/tools"]) == {"get", "post"}
    assert page.headers["content-type"].startswith("text/html")
    assert "openapi.json" in page.text
    # Nothing is fetched from elsewhere.
    assert "https://" not in page.text


def test_the_page_begins_with_memory_and_says_where_a_filter_finds_nothing(rest: Served) -> None:
    first = next(iter(document()["paths"]))
    page = rest.client.get("/api/docs").text

    assert first.startswith("/api/memory/")
    assert "No route matches" in page


def test_the_samples_of_the_page_work_when_they_are_pasted(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    examples = {row.name: row for row in TABLE.values() if row.example is not None}
    paths = {
        route.operation: route.path for route in all_routes() if route.path.startswith("/api/")
    }

    with serving(tmp_path_factory.mktemp("samples") / "samples.db") as fresh:
        answers = {
            name: fresh.client.post(f"/api/{row.toolset}/{name}", json=dict(row.example or {}))
            for name, row in examples.items()
        }
        again = {
            name: fresh.client.post(f"/api/{row.toolset}/{name}", json=dict(row.example or {}))
            for name, row in examples.items()
            if row.toolset in {"memory", "debugging"}
        }

    assert set(paths) == set(TABLE)
    for name, answer in [*answers.items(), *again.items()]:
        assert answer.status_code < 300, (name, answer.text)
    # What works on something that has an id of its own.
    without = {each.name for each in of_toolsets(DEFAULT_TOOLSETS)} - set(examples)
    assert without == {"record_outcome", "add_solution"}


def send(rest: Served, case: Case[Any]) -> None:
    from schemathesis.checks import not_a_server_error

    if (case.method.upper(), case.path) in _LEFT_OUT:
        return
    response = case.call(base_url=rest.url, headers={"origin": rest.url}, timeout=60)
    if response.status_code not in _TOOLS_FAULT:
        case.validate_response(response, checks=[not_a_server_error])
    if response.content == b"Invalid HTTP request received.":
        # Not even HTTP: nobody of ours was asked.
        assert response.status_code == 400
    elif response.status_code >= 400:
        kind = response.headers["content-type"]
        assert kind == ["application/json"], (response.status_code, response.content[:300])
        answer = response.json()
        assert answer["success"] is False
        assert answer["error"]


@pytest.mark.parametrize("route", DOCUMENTED_ROUTES)
def test_no_request_makes_the_server_fail(route: str, rest: Served) -> None:
    send_requests(route, partial(send, rest), examples=1, derandomize=True)


def test_what_needs_no_body_takes_every_parameter_with_its_words() -> None:
    for route in all_routes():
        if route.body:
            continue
        described = document()["paths"][route.path][route.method.lower()]["parameters"]
        named = {each["name"] for each in described} | set(route.without)
        assert named == set(find(route.operation).parameters["properties"]), route.path
        assert all(each["description"] for each in described if each["in"] == "query")
