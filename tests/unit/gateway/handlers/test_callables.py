"""Which functions a stored tool may name is the operator's to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.bootstrap import Settings, start
from stratagem.errors import PermissionDenied
from stratagem.gateway.handlers.python import CallableList
from stratagem.operation import Caller

OPERATOR = Caller("cli", authority="operator")


@pytest.mark.parametrize(
    ("patterns", "place", "function"),
    [
        (None, "os:system", None),
        (("json:dumps",), "json:dumps", json.dumps),
        (("json:*",), "json:dumps", json.dumps),
        (("json*:*",), "json.decoder:scanstring", None),
    ],
)
def test_what_is_on_the_list_is_allowed(
    patterns: tuple[str, ...] | None, place: str, function: Any
) -> None:
    CallableList(patterns).require(place, function)


@pytest.mark.parametrize(
    ("patterns", "place", "function"),
    [
        ((), "os:system", None),
        (("json:dumps",), "json:loads", None),
        # What a module has imported is another's.
        (("json:*",), "json:codecs.open", None),
        (("json:*",), "json:JSONDecoder", json.JSONDecoder),
        (("json:*",), "jsonschema:validate", None),
    ],
)
def test_nothing_else_is(patterns: tuple[str, ...], place: str, function: Any) -> None:
    with pytest.raises(PermissionDenied) as refused:
        CallableList(patterns).require(place, function)

    assert f"--allow-callable {place}" in refused.value.hint


def test_an_entry_that_names_a_module_alone_is_told() -> None:
    with pytest.raises(PermissionDenied) as refused:
        CallableList(("json",)).require("json:dumps")

    assert "'json' allows nothing: for a module write json:*." in refused.value.hint


def test_a_stored_tool_outside_of_the_list_is_seen_and_not_called(tmp_path: Path) -> None:
    path = str(tmp_path / "m.db")
    with stratagem.open(path, embedder="none") as db:
        db.gateway.register(
            name="where",
            description="The folder.",
            input_schema={"type": "object"},
            handler={"type": "python", "callable": "os:getcwd"},
        )
        mine = db.gateway.execute("where")["result"]
    runtime = start(Settings(path, embedder="none", allow_callables=("json:*",)))
    try:
        every = runtime.call("tools_list", {"limit": 500}, OPERATOR)["tools"]
        listed = next(tool for tool in every if tool["name"] == "where")
        with pytest.raises(PermissionDenied, match="os:getcwd"):
            runtime.call("tool_execute", {"toolName": "where", "arguments": {}}, OPERATOR)
        changed = {"toolId": "where", "handler": {"type": "python", "callable": "os:system"}}
        with pytest.raises(PermissionDenied, match="os:system"):
            runtime.call("tool_update", changed, OPERATOR)
    finally:
        runtime.close()

    assert mine
    assert listed["callable"] is False
    assert "--allow-callable os:getcwd" in listed["refusal"]
