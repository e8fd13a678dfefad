"""The methods for corrections and advice: they take what their tools take, and answer in types."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import stratagem
from stratagem import Stratagem, StratagemError, connect_async
from stratagem.errors import ToolNotFound, ValidationFailed
from stratagem.sdk.generated.gateway import GatewayOperations
from stratagem.sdk.remote import Client
from tests.sdk.typed import misfits

OPERATIONS = {
    "error_diagnose": "error_diagnose",
    "auto_correction_status": "auto_correction_status",
    "auto_correction_configure": "auto_correction_configure",
    "auto_correction_test": "auto_correction_test",
    "auto_correction_insights": "auto_correction_insights",
    "auto_correction_patterns": "auto_correction_patterns",
    "auto_correction_circuits": "auto_correction_circuits",
    "recommend": "tools_recommend",
    "recommend_on_error": "tools_recommend_on_error",
    "validate": "tools_validate",
    "discover": "tools_discover",
    "compare": "tools_compare",
    "workflow_plan": "workflow_plan",
}
CALCULATOR = {"toolName": "calculator", "parameters": {"expresion": "1"}}
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("error_diagnose", ("timed out",), {}),
    ("error_diagnose", (), {"tool_name": "calculator", "parameters": {"expresion": "1"},
                            "include_alternatives": True, "context": {"agentId": "a"}}),
    ("error_diagnose", (), {"tool_name": "calculator", "parameters": "{expression: '1"}),
    ("auto_correction_status", (), {}),
    ("auto_correction_status", (), {"include_metrics": False, "include_active_corrections": False}),
    ("auto_correction_configure", ({"maxRetries": 2},), {"apply_immediately": False}),
    ("auto_correction_configure", ({"maxRetries": 2},), {"tool_name": "calculator"}),
    ("auto_correction_test", ([CALCULATOR],), {"run_diagnostics": True}),
    ("auto_correction_test", (), {"test_suite": "validation_errors", "include_performance": True}),
    ("auto_correction_insights", (), {"include_failures": True, "time_range": "1h"}),
    ("auto_correction_patterns", (), {}),
    ("auto_correction_patterns", ("profile",), {"tool_name": "calculator"}),
    ("auto_correction_patterns", ("backup",), {}),
    ("auto_correction_circuits", (), {}),
    ("auto_correction_circuits", ("reset",), {"tool_name": "calculator"}),
    ("recommend", ("add two numbers",), {"max_recommendations": 2}),
    ("recommend", ("add two numbers",), {"context": "exactly", "agent_context": {"agentId": "a"}}),
    ("recommend_on_error", ("calculator", "timed out"), {"failed_parameters": {"expresion": "1"}}),
    ("validate", ("calculator",), {"check_configuration": True}),
    ("validate", (["calculator", "nowhere"],), {}),
    ("discover", ("calc*",), {"include_schema": True}),
    ("compare", (["calculator", "date_time"],), {"intent": "add two numbers"}),
    ("workflow_plan", ("add two numbers, then convert a file",), {"inputs": {"expression": "1+1"}}),
]  # fmt: skip


def used(db: Any) -> Any:
    """Return a gateway that has something to tell: a correction, an offer and a refusal."""
    db.gateway.execute("calculator", {"Expression": "1 + 1"}, context={"agentId": "a"})
    for arguments in ({"formula": "1 + 1"}, {}):
        with pytest.raises(ValidationFailed):
            db.gateway.execute("calculator", arguments, context={"agentId": "a"})
    return db.gateway


def wrong_with(answer: Any, method: str) -> list[str]:
    """Return where an answer is not what its method promises."""
    return misfits(get_type_hints(getattr(GatewayOperations, method))["return"], answer)


@pytest.mark.parametrize(("method", "operation"), OPERATIONS.items())
def test_a_method_passes_on_what_it_is_given(method: str, operation: str) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append((name, arguments))
        return {}

    lists = {"tool_names", "tools"}
    names = list(inspect.signature(getattr(GatewayOperations, method)).parameters)[1:]
    given: dict[str, Any] = {
        name: [f"a {name}"] if name in lists else f"a {name}" for name in names
    }
    given |= {"test_cases": [{"name": "a case"}]} if "test_cases" in names else {}
    getattr(GatewayOperations(call), method)(**given)

    assert asked == [(operation, given)]


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_every_answer_has_the_fields_that_its_type_says(
    where: str, request: pytest.FixtureRequest
) -> None:
    gateway = used(request.getfixturevalue(where))

    for method, given, named in CALLS:
        answer = getattr(gateway, method)(*given, **named)
        assert wrong_with(answer, method) == [], (method, named)
    assert {method for method, _given, _named in CALLS} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": 1}, "$.extra is in no type"),
        ({"totalChecked": "1"}, "$.totalChecked is '1', not <class 'int'>"),
        ({"results": [{"available": True}]}, "$.results[0].toolName is missing"),
    ],
)
def test_an_answer_of_another_form_would_be_noticed(
    embedded: Stratagem, change: dict[str, Any], said: str
) -> None:
    answer: Any = embedded.gateway.validate("calculator")

    assert wrong_with(answer | change, "validate") == [said]


def test_the_methods_can_be_awaited(url: str) -> None:
    async def asked() -> list[Any]:
        async with connect_async(url, patience=0) as db:
            return [
                await getattr(db.gateway, name)(*given, **named) for name, given, named in CALLS
            ]

    for answer, (method, _given, named) in zip(asyncio.run(asked()), CALLS, strict=True):
        assert wrong_with(answer, method) == [], (method, named)


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_a_diagnosis_leads_to_a_call_that_works(where: str, request: pytest.FixtureRequest) -> None:
    gateway = request.getfixturevalue(where).gateway

    found = gateway.error_diagnose(tool_name="calculator", parameters={"formula": "6 * 7"})
    offer = found["autoCorrection"]["corrections"][0]
    answer = gateway.execute(
        "calculator", {"formula": "6 * 7"}, correction_id=offer["correctionId"], confirm=True
    )

    assert offer["correctedParameters"] == {"expression": "6 * 7"}
    assert answer["result"]["result"] == 42


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_a_plan_can_be_run(where: str, request: pytest.FixtureRequest) -> None:
    gateway = request.getfixturevalue(where).gateway

    plan = gateway.workflow_plan(
        "evaluate an arithmetic expression", inputs={"expression": "6 * 7"}, max_steps=1
    )
    assert plan["definition"] is not None
    done = gateway.pipeline(**plan["definition"], input={"expression": "6 * 7"})

    assert plan["runnable"]
    assert done["steps"][0]["result"]["result"] == 42


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_errors_are_the_same_everywhere(where: str, request: pytest.FixtureRequest) -> None:
    db: Stratagem | Client = request.getfixturevalue(where)

    with pytest.raises(ToolNotFound, match="nowhere"):
        db.gateway.compare(["calculator", "nowhere"])
    with pytest.raises(StratagemError) as caught:
        db.gateway.recommend("x", max_recommendations=1000)
    assert (caught.value.details["field"], caught.value.code) == (
        "max_recommendations",
        "validation_error",
    )
    with pytest.raises(ValidationFailed, match="soon") as caught:
        db.gateway.auto_correction_status(time_range="soon")
    assert "for good" not in caught.value.hint


def test_a_function_of_another_process_cannot_be_called_here(tmp_path: Path) -> None:
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    with stratagem.open(str(tmp_path / "shared.db"), embedder="none") as here:
        here.gateway.add(shout)
        with stratagem.open(str(tmp_path / "shared.db"), embedder="none") as elsewhere:
            (told,) = elsewhere.gateway.validate("shout")["results"]
        (known,) = here.gateway.validate("shout")["results"]

    assert known["available"]
    assert not told["available"]
    assert told["reason"] == "No function named 'shout' was added here yet."
