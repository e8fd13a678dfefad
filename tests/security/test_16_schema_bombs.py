"""16. No schema, and no arguments for one, take more time or memory than they have bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

import stratagem
from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.errors import PermissionDenied, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.correction.open_names import name_slips, remarks
from stratagem.gateway.correction.schemas import ready
from stratagem.gateway.definitions.schemas import Schema, check
from stratagem.operation import Caller
from stratagem.sdk.embedded import Stratagem
from stratagem.storage.contract import Transaction
from tests.security import schema_bombs
from tests.security.schema_bombs import BOMBS, HOOK, MEGABYTES_MAX, SECONDS_MAX, doubled


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Stratagem]:
    with stratagem.open(str(tmp_path / "bombs.db"), embedder="none") as opened:
        yield opened


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_evaluated_within_its_budget(name: str) -> None:
    bomb = BOMBS[name]()
    began = time.process_time()

    if not bomb.registered:
        with pytest.raises(ValidationFailed) as refused:
            check(bomb.schema, field="inputSchema")
        assert refused.value.details["field"] == "inputSchema"
        assert refused.value.details["pointer"].startswith("#")
        assert refused.value.hint
    else:
        schema = Schema(bomb.schema)
        violations = schema.violations(bomb.arguments)
        assert schema.accepts(bomb.arguments) == (not violations)
        assert len(violations) <= limits.VIOLATIONS_MAX
        assert len(str(violations)) < 100_000
    assert time.process_time() - began < SECONDS_MAX


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little_time_and_memory_through_every_operation(name: str) -> None:
    outcome = schema_bombs.apart(name)

    assert "died" not in outcome, outcome
    assert (outcome["codes"]["tool_register"] == "ok") == BOMBS[name]().registered
    assert outcome["peak"] - outcome["before"] < MEGABYTES_MAX
    assert max(outcome["ms"].values()) < SECONDS_MAX * 1000, outcome["ms"]
    # What was sent may be offered back, corrected.
    assert outcome.get("longest", 0) < 3 * outcome["given"] + 100_000
    assert "internal_error" not in outcome["codes"].values()


@pytest.mark.parametrize("name", [name for name, bomb in BOMBS.items() if bomb().registered])
def test_names_that_a_bomb_does_not_know_are_looked_for_soon(name: str) -> None:
    """This is done for every call that was run, on the event loop."""
    bomb = BOMBS[name]()
    began = time.process_time()

    with suppress(ValidationFailed):
        schema = ready(bomb.schema)
        remarks(schema, bomb.arguments)
        name_slips(schema, bomb.arguments)

    assert time.process_time() - began < SECONDS_MAX


def test_the_bomb_of_two_kilobytes_takes_little_memory() -> None:
    outcome = schema_bombs.apart("allOf, 30 levels")

    assert outcome["codes"] == {"tool_register": "validation_error"}
    assert outcome["details"]["tool_register"]["limit"] == limits.SCHEMA_EXPANSION_MAX
    assert outcome["peak"] - outcome["before"] < MEGABYTES_MAX


@pytest.mark.parametrize("field", ["inputSchema", "outputSchema"])
def test_a_tool_is_neither_registered_nor_changed_to_a_bomb(db: Stratagem, field: str) -> None:
    fine = {"name": "fine", "description": "d", "inputSchema": {"type": "object"}, "handler": HOOK}
    db.call("tool_register", fine)

    for operation, given in (
        ("tool_register", {**fine, "name": "bomb", field: doubled("allOf")}),
        ("tool_update", {"toolId": "fine", field: doubled("allOf")}),
    ):
        with pytest.raises(ValidationFailed) as refused:
            db.call(operation, given)
        assert refused.value.details["field"] == field
        assert refused.value.details["limit"] == limits.SCHEMA_EXPANSION_MAX


def test_a_bomb_of_an_earlier_release_is_listed_and_cannot_be_called(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    with stratagem.open(path, embedder="none") as db:
        _store(db, "old", {"inputSchema": doubled("allOf")})
        _store(db, "older", {"inputSchema": {}, "outputSchema": doubled("anyOf")})

    with stratagem.open(path, embedder="none") as db:
        for name in ("old", "older"):
            listed = db.call("tools_list", {"search": name})["tools"]
            assert "evaluated" in next(each["fault"] for each in listed if each["name"] == name)
            assert "fault" in db.call("tool_get", {"toolId": name})["tool"]
            with pytest.raises(PermissionDenied) as refused:
                db.call("tool_execute", {"toolName": name, "arguments": {"a": 1}})
            assert refused.value.details["reason"] == "schema_refused"
            for operation, given in schema_bombs.operations(name, {"a": 1}).items():
                _call(db, operation, given)
        assert "fault" not in db.call("tool_get", {"toolId": "calculator"})["tool"]


def _call(db: Stratagem, operation: str, given: dict[str, Any]) -> None:
    try:
        db.call(operation, given)
    except stratagem.errors.StratagemError as error:
        assert error.code != "internal_error", (operation, error)


def _store(db: Stratagem, name: str, schemas: dict[str, Any]) -> None:
    """Write a tool into the log as an earlier release would have."""
    content = {
        "id": f"tool_{name}",
        "name": name,
        "description": f"The {name} one.",
        "handler": HOOK,
        **schemas,
    }

    def work(transaction: Transaction) -> None:
        view = foundation.views.view(transaction, "default")
        transaction.append(view.branch, [Draft(names.TOOL_REGISTERED, content, names.TOOLS, name)])

    foundation = db.runtime.gateway.foundation
    foundation.write(Caller(actor="test"), work)


@pytest.mark.parametrize("depth", [1, 20])
def test_a_schema_that_contains_itself_in_several_ways_is_used_within_a_budget(
    depth: int,
) -> None:
    def tree(levels: int, leaf: Any) -> Any:
        return {"and": [tree(levels - 1, leaf)]} if levels else leaf

    form = {"$ref": "#/$defs/filter"}
    forms = [
        {
            "type": "object",
            "properties": {name: {"type": "array", "items": form}},
            "required": [name],
        }
        for name in ("and", "or")
    ]
    schema = Schema(
        {
            "type": "object",
            "properties": {"filter": form},
            "$defs": {"filter": {"anyOf": [*forms, {"type": "string"}]}},
        }
    )

    assert schema.accepts({"filter": tree(depth, "x")})
    assert schema.violations({"filter": tree(depth, 1)})


def test_references_are_followed_wherever_they_lead() -> None:
    def of(reference: str, **more: Any) -> dict[str, Any]:
        inner = doubled("allOf")["$defs"]
        return {"properties": {"a": {"$ref": reference}}, "$defs": inner, **more}

    for document in (
        of("#/$defs/d0"),
        of("#/%24defs/d0"),
        of("#/$defs/d1/allOf/0"),
        of("https://x/y#/$defs/d0", **{"$id": "https://x/y"}),
        of("y#/$defs/d0", **{"$id": "https://x/y"}),
        of("#start", anyOf=[{"$anchor": "start", "$ref": "#/$defs/d0"}]),
    ):
        with pytest.raises(ValidationFailed, match="expands to"):
            check(document, field="inputSchema")
    check(
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}, field="x"
    )


def test_a_bomb_in_a_document_is_left_out_and_the_rest_registered(db: Stratagem) -> None:
    bomb = doubled("anyOf")
    definitions = bomb.pop("$defs")
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://example.com"}],
        "components": {"schemas": definitions},
        "paths": {
            "/a": {
                "post": {
                    "operationId": "bomb",
                    "requestBody": {"content": {"application/json": {"schema": bomb}}},
                    "responses": {},
                }
            },
            "/b": {"get": {"operationId": "fine", "responses": {}}},
        },
    }
    text = orjson.dumps(document).replace(b"#/$defs/", b"#/components/schemas/")

    answer = db.call("openapi_add", {"document": orjson.loads(text), "prefix": "x_"})

    assert answer["registered"] == ["x_fine"]
    assert any("x_bomb was left out" in each and "5,000" in each for each in answer["warnings"])
