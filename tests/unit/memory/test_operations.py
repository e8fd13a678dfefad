"""The rows of the table that every surface is made from."""

from __future__ import annotations

import json
from typing import Any

import pytest

import stratagem
from stratagem import operations
from stratagem.errors import InvalidInput, OperationNotFound, StratagemError
from stratagem.memory.answer_text import say_exchange
from stratagem.memory.operations import OPERATIONS

EIGHT = (
    "strata_store",
    "strata_recall",
    "strata_search",
    "strata_forget",
    "strata_log",
    "strata_branch",
    "strata_history",
    "strata_status",
)
# As in the source document; where it is silent the hint is not given.
HINTS = {
    "strata_store": (False, False, True),
    "strata_recall": (True, None, None),
    "strata_search": (True, None, None),
    "strata_forget": (False, True, True),
    "strata_log": (False, False, False),
    "strata_branch": (False, False, None),
    "strata_history": (True, None, None),
    "strata_status": (True, None, None),
}
PARAMETERS = {
    "strata_store": {"key", "value", "tags", "namespace"},
    "strata_recall": {"key", "namespace", "as_of"},
    "strata_search": {"query", "k", "tags", "namespace"},
    "strata_forget": {"key", "namespace"},
    "strata_log": {"event", "data"},
    "strata_branch": {"action", "name", "source", "compare"},
    "strata_history": {"key", "namespace"},
    "strata_status": set(),
}


def test_memory_has_the_eight_tools_and_erasure_apart_from_them() -> None:
    toolsets = {operation.name: operation.toolset for operation in OPERATIONS}

    assert tuple(name for name in toolsets if toolsets[name] == "memory") == EIGHT
    assert toolsets["strata_purge"] == "admin"


@pytest.mark.parametrize("name", EIGHT)
def test_a_tool_has_the_documented_parameters_and_hints(name: str) -> None:
    operation = operations.find(name)
    schema = operations.input_schema(name)

    reads, destroys, repeats = HINTS[name]
    assert set(schema["properties"]) >= PARAMETERS[name]
    assert operation.read_only == reads
    assert destroys is None or operation.destructive == destroys
    assert repeats is None or operation.idempotent == repeats


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_schema_is_short_and_says_no_null(operation: Any) -> None:
    schema = operations.input_schema(operation.name)

    text = json.dumps(schema)
    assert schema["type"] == "object"
    assert '"title"' not in text
    # A parameter is left out, not null; null is a kind of value, though.
    assert '"type": "null"' not in text
    assert "$defs" not in text
    assert operation.output_schema["type"] == "object"
    assert operation.description.endswith(".")


def test_the_tools_of_memory_leave_room_in_a_conversation() -> None:
    listed = [
        {
            "name": operation.name,
            "description": operation.description,
            "inputSchema": operations.input_schema(operation.name),
            "outputSchema": operation.output_schema,
        }
        for operation in OPERATIONS
        if operation.toolset == "memory"
    ]

    assert len(json.dumps(listed, separators=(",", ":"))) < 8_000


def test_every_answer_fits_its_schema_and_can_be_said_in_words() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        for name, arguments in (
            ("strata_store", {"key": "k", "value": {"a": 1}}),
            ("strata_store", {"items": [{"key": "a", "value": 1}, {"key": "b", "value": "x"}]}),
            ("strata_recall", {"key": "k"}),
            ("strata_recall", {"key": "never"}),
            ("strata_recall", {"keys": ["a", "never"]}),
            ("strata_log", {"event": "e", "data": "words"}),
            ("strata_search", {"query": "words"}),
            ("strata_search", {"query": "nothing"}),
            ("strata_branch", {"action": "fork", "name": "trial"}),
            ("strata_branch", {"action": "create", "name": "fresh"}),
            ("strata_branch", {"action": "switch", "name": "trial"}),
            ("strata_store", {"key": "k", "value": {"a": 2}}),
            ("strata_branch", {"action": "switch", "name": "default"}),
            ("strata_branch", {"action": "list"}),
            ("strata_branch", {"action": "diff", "compare": "trial"}),
            ("strata_branch", {"action": "merge", "source": "trial", "preview": True}),
            ("strata_branch", {"action": "merge", "source": "trial"}),
            ("strata_branch", {"action": "delete", "name": "trial"}),
            ("strata_branch", {"action": "restore", "name": "trial"}),
            ("strata_forget", {"key": "k"}),
            ("strata_forget", {"key": "k"}),
            ("strata_history", {"key": "k"}),
            ("strata_history", {"key": "never"}),
            ("strata_history", {}),
            ("strata_history", {"branch": "fresh"}),
            ("strata_status", {}),
            ("strata_purge", {"key": "k"}),
        ):
            operation = operations.find(name)

            answer = db.call(name, arguments)

            assert_fits(answer, operation.output_schema)
            assert operation.summarise(answer).strip()


def test_the_text_of_a_diff_says_on_which_branch_each_place_was_changed() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("prefs", {"theme": "dark", "size": 1})
        db.memory.fork("trial")
        db.memory.store("prefs", {"theme": "dark", "size": 2})
        db.memory.store("prefs", {"theme": "light", "size": 1}, branch="trial")

        answer = db.call("strata_branch", {"action": "diff", "compare": "trial"})

    said = operations.find("strata_branch").summarise(answer)
    assert "(changed: $.size on default; $.theme on trial)" in said


def assert_fits(answer: dict[str, Any], schema: dict[str, Any]) -> None:
    types: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    assert set(schema.get("required", ())) <= set(answer)
    for name, described in schema["properties"].items():
        if name in answer and "type" in described:
            assert isinstance(answer[name], types[described["type"]]), (name, answer)


def test_an_unknown_operation_suggests_those_that_are_near() -> None:
    with pytest.raises(OperationNotFound) as refused:
        operations.find("strata_stor")

    assert refused.value.details["similar"][0] == "strata_store"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("store", "strata_store"),
        ("Recall", "strata_recall"),
        ("list", "strata_list"),
        ("strata-search", "strata_search"),
        ("hist", "strata_history"),
        ("strata_sta", "strata_status"),
        ("ranked", "ranked_solutions"),
        ("serch", "strata_search"),
    ],
)
def test_a_name_without_its_prefix_or_its_end_is_known(name: str, meant: str) -> None:
    with pytest.raises(OperationNotFound) as refused:
        operations.find(name)

    assert refused.value.details["similar"][0] == meant
    assert f"Did you mean {meant!r}" in (refused.value.hint or "")


@pytest.mark.parametrize("arguments", [[], "text", 5, None])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidInput):
        operations.read_input(operations.find("strata_status"), arguments)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_nonsense_is_always_refused_in_words(operation: Any) -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        for nonsense in (None, True, 5, 1.5, "", "x", [], {}, [None], {"x": 1}):
            for name in operations.input_schema(operation.name)["properties"]:
                try:
                    db.call(operation.name, {name: nonsense})
                except StratagemError as error:
                    assert error.message


def test_a_reply_that_was_cut_says_how_long_it_is() -> None:
    hit = {"reply": {"sequence": 3, "passage": "On cliffs…", "chars": 3_881}}

    assert list(say_exchange(hit)) == ["reply @3: On cliffs… (@3 has all 3,881 characters)"]
