"""The one check of arguments: whatever is sent, a refusal names the field, and nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import InvalidInput, ValidationFailed
from stratagem.operations import find, read_input


@pytest.fixture
def db() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


@pytest.mark.parametrize(
    ("operation", "arguments", "field"),
    [
        ("strata_store", {"key": 10**5000, "value": 1}, "key"),
        ("strata_store", {"key": "a", "key_": "b", "value": 1}, "key_"),
        ("strata_store", {1: 2}, "arguments"),
        ("strata_branch", {"action": 10**5000}, "action"),
        ("strata_purge", {"sequence": 10**5000}, "sequence"),
        ("create_concept", {"name": "a", "explanation": "b", "certainty_score": 10**400},
         "certainty_score"),
        ("tool_execute", {"toolName": "calculator", "tool_name": "date_time"}, "tool_name"),
        ("tool_execute", {"toolName": "calculator", "options": {1: 1}}, "options"),
        ("tool_execute", {"toolName": "a\ud800b"}, "toolName"),
        ("tool_execute", {"toolName": "calculator", "arguments": {"expression": {1}}}, "arguments"),
        ("tool_execute", {"toolName": "calculator", "arguments": {"expression": 10**25}},
         "arguments"),
        ("record_outcome", {"solution_id": "a\ud800b", "worked": True, "env": {"os": "linux"}},
         "solution_id"),
        ("strata_vector_search", {"collection": "c", "query": [1.0, float("nan")]}, "query"),
        ("strata_vector_search", {"collection": "c", "query": [1.0, float("inf"), -float("inf")]},
         "query"),
        ("strata_vector_search", {"collection": "c", "query": [1.5, 10**400]}, "query"),
        ("strata_vector_search", {"collection": "c", "query": [1.5, True]}, "query"),
        ("resource_create", {"type": "data", "name": "x", "content": "y",
                             "metadata": {"a": float("nan")}}, "metadata"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_refused_by_its_field(
    db: Stratagem, operation: str, arguments: dict[Any, Any], field: str
) -> None:
    head = db.call("strata_status")["head"]

    with pytest.raises(ValidationFailed) as refused:
        db.call(operation, arguments)

    assert refused.value.details["field"] == field
    assert refused.value.hint
    assert db.call("strata_status")["head"] == head


@pytest.mark.parametrize("arguments", [[], 0, "", False])
def test_arguments_that_are_empty_and_no_object_are_refused(db: Stratagem, arguments: Any) -> None:
    with pytest.raises(InvalidInput):
        db.call("strata_status", arguments)


def test_a_call_that_is_refused_takes_no_other_record_with_it(db: Stratagem) -> None:
    def calculate(expression: Any) -> None:
        with suppress(stratagem.StratagemError):
            db.gateway.execute("calculator", {"expression": expression})

    for expression in ("1 + 1", {1}, 10**25, "2 + 2"):
        calculate(expression)

    assert len(db.gateway.executions(status="success")) == 2


@pytest.mark.parametrize(("k", "limit"), [(0, 1), (51, 50), ("0", 1), ("many", 50)])
def test_an_error_names_the_bound_that_was_crossed(k: Any, limit: int) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read_input(find("strata_search"), {"query": "q", "k": k})

    assert refused.value.details["limit"] == limit


def test_an_operation_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NoneType"):
        find(None)  # type: ignore[arg-type]


def test_a_list_of_texts_as_json_is_a_list_where_one_text_would_do_too() -> None:
    steps = read_input(
        find("add_solution"), {"incident_id": "i", "env": "auto", "steps": '["one", "two"]'}
    )["steps"]

    assert steps == ["one", "two"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"toolName": "calculator", "text": "2"}, "What the tool takes goes into `arguments`."),
        ({"toolname": "calculator"}, "Did you mean toolName?"),
        ({"toolName": "calculator", "text": "2", "arguments": {}}, "Did you mean context?"),
    ],
)
def test_what_a_tool_takes_is_asked_for_under_arguments(
    db: Stratagem, arguments: dict[str, Any], hint: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        db.call("tool_execute", arguments)

    assert refused.value.hint.startswith(hint)
