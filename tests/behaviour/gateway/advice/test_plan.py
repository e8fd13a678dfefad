"""workflow_plan: steps with their tools and the sources of their arguments, and what is proven."""

from __future__ import annotations

from typing import Any

import pytest

import stratagem
from tests.behaviour.gateway.advice.registered import add, give
from tests.manifest import proves

TEXT = {"type": "string"}


def plan(db: stratagem.Stratagem, goal: str, **more: Any) -> dict[str, Any]:
    return db.call("workflow_plan", {"goal": goal, **more})


def tools(answer: dict[str, Any]) -> list[str]:
    return [each["tool"] for each in answer["steps"]]


@proves("plan:chain")
def test_a_runnable_plan_is_run_by_pipeline(db: stratagem.Stratagem) -> None:
    inputs = {"city": "Oslo", "recipient": "ada@example.com"}

    answer = plan(db, "get the weather of the city, then send an email", inputs=inputs)
    run = db.call("tools_pipeline", {**answer["definition"], "input": inputs})

    assert tools(answer) == ["get_weather", "send_email"]
    assert answer["runnable"] is True
    sources = answer["steps"][1]["sources"]
    assert sources["summary"]["from"] == "step"
    assert sources["summary"]["step"] == "get_weather"
    assert sources["recipient"]["from"] == "input"
    assert run["success"] is True
    executed = db.call("tool_executions", {"toolId": "send_email"})["executions"][0]
    assert executed["arguments"]["summary"] == "cold"


@proves("plan:options")
def test_each_step_has_the_best_three_tools_with_score_and_open_arguments(
    db: stratagem.Stratagem,
) -> None:
    for name in ("mail_letter", "mail_parcel", "mail_card"):
        add(db, name, "Send an email or a letter to somebody.", {"street": TEXT}, ("street",))

    (step,) = plan(db, "send an email to somebody", inputs={"recipient": "Ada"})["steps"]

    assert step["part"] == "send an email to somebody"
    assert [each["name"] for each in step["open"]] == ["summary"]
    assert len(step["alternatives"]) == 2
    assert all(each["open"] == ["street"] for each in step["alternatives"])
    scores = [step["score"], *(each["score"] for each in step["alternatives"])]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] <= scores[0] <= 1


@proves("plan:open")
def test_what_has_no_source_is_asked_for(db: stratagem.Stratagem) -> None:
    answer = plan(db, "send an email")

    assert answer["runnable"] is False
    assert set(answer["missing"]) == {"recipient", "summary"}
    assert answer["inputs"]["properties"]["recipient"] == TEXT


@proves("plan:open")
def test_a_default_of_the_schema_is_not_filled_in_unasked(db: stratagem.Stratagem) -> None:
    add(db, "wipe_disk", "Wipe a disk.", {"disk": {**TEXT, "default": "sda"}}, ("disk",))

    answer = plan(db, "wipe a disk")

    assert answer["missing"] == ["disk"]
    assert answer["runnable"] is False


@proves("plan:parts")
def test_named_tools_are_kept_in_their_order(db: stratagem.Stratagem) -> None:
    answer = plan(db, "anything", tools=["read_file", "get_weather", "read_file"])

    assert tools(answer) == ["read_file", "get_weather", "read_file"]
    assert [each["id"] for each in answer["steps"]] == ["read_file", "get_weather", "read_file_2"]


@proves("plan:parts")
def test_a_tool_may_be_needed_twice(db: stratagem.Stratagem) -> None:
    answer = plan(db, "read the contents of a file, then read the contents of another file")

    assert tools(answer) == ["read_file", "read_file"]


@proves("plan:evidence")
def test_a_chain_that_worked_before_is_evidence(db: stratagem.Stratagem) -> None:
    for _ in range(2):
        for tool, arguments in (
            ("get_weather", {"city": "Oslo"}),
            ("send_email", {"recipient": "ada", "summary": "cold"}),
        ):
            db.call("tool_execute", {"toolName": tool, "arguments": arguments})

    answer = plan(db, "weather of a city, then send an email")

    assert answer["steps"][1]["evidence"]["successRate"] == 1.0
    assert answer["knownChains"][0]["sequence"] == ["get_weather", "send_email"]


@proves("plan:open")
@pytest.mark.parametrize("goal", ["qqqq zzzz", "。；。", "x" * 4000, "a, " * 3000])
def test_a_goal_that_nothing_fits_has_no_steps_or_a_valid_plan(
    db: stratagem.Stratagem, goal: str
) -> None:
    answer = plan(db, goal)

    assert (answer["definition"] is None) == (answer["steps"] == [])


def weigher(**output: Any) -> dict[str, Any]:
    return {
        "outputSchema": {"type": "object", "properties": {"grams": {"type": "number"}}, **output},
        "handler": give({"grams": 5.5}),
    }


@proves("plan:proof")
@pytest.mark.parametrize(
    ("output", "wanted", "proven"),
    [
        ({"required": ["grams"]}, {"type": "number"}, True),
        ({"required": ["grams"]}, {"anyOf": [{"type": "number"}, {"type": "null"}]}, True),
        ({"required": ["grams"]}, {}, True),
        # It may be left out, or be more than the parameter takes.
        ({}, {"type": "number"}, False),
        ({"required": ["grams"]}, {"type": "number", "maximum": 5}, False),
        ({"required": ["grams"]}, {"type": ["number", "string"], "enum": [1, "a"]}, False),
    ],
)
def test_a_plan_is_runnable_only_when_the_schemas_prove_it(
    db: stratagem.Stratagem, output: dict[str, Any], wanted: dict[str, Any], proven: bool
) -> None:
    add(db, "weigh", "Weigh.", **weigher(**output))
    add(db, "pack", "Pack.", {"grams": wanted}, ("grams",))

    answer = plan(db, "anything", tools=["weigh", "pack"])

    assert answer["steps"][1]["sources"]["grams"]["from"] == "step"
    assert answer["runnable"] is proven
    assert bool(answer["unproven"]) is not proven


@proves("plan:proof")
def test_rules_between_arguments_leave_a_plan_unproven(db: stratagem.Stratagem) -> None:
    add(db, "weigh", "Weigh.", **weigher(required=["grams"]))
    schema = {
        "type": "object",
        "properties": {"grams": {"type": "number"}, "box": TEXT},
        "required": ["grams"],
        "dependentRequired": {"grams": ["box"]},
    }
    add(db, "pack", "Pack.", inputSchema=schema)
    add(db, "label", "Label.", inputSchema=schema)

    chained = plan(db, "anything", tools=["weigh", "pack"])
    given = plan(db, "anything", tools=["label"], inputs={"grams": 5})

    assert chained["runnable"] is False
    assert given["runnable"] is False
    assert "box" in given["unproven"][0]


@proves("plan:proof")
def test_a_tool_that_is_a_guess_is_not_run(db: stratagem.Stratagem) -> None:
    add(db, "ring_bell", "Make the bell of the door ring.")

    guessed = plan(db, "noise at the door")
    named = plan(db, "noise at the door", tools=["ring_bell"])

    assert tools(guessed) == ["ring_bell"]
    assert guessed["runnable"] is False
    assert guessed["unproven"] == [
        "ring_bell: it is uncertain whether this tool does 'noise at the door'."
    ]
    assert named["runnable"] is True


@proves("plan:proof")
def test_a_value_has_to_fit_every_step_that_takes_it(db: stratagem.Stratagem) -> None:
    add(db, "fetch", "Fetch.", {"amount": {"type": "string"}}, ("amount",))
    add(db, "print", "Print.", {"amount": {}}, ("amount",))

    answer = plan(db, "anything", tools=["fetch", "print"], inputs={"amount": 5})

    assert list(answer["invalid"]) == ["amount"]
    assert answer["runnable"] is False


@proves("plan:proof")
@pytest.mark.parametrize(
    ("value", "runnable"),
    [({"street": "Main"}, True), ({"street": 5}, False), ({}, False), ("Main", False)],
)
def test_values_of_a_shared_definition_are_checked(
    db: stratagem.Stratagem, value: Any, runnable: bool
) -> None:
    schema = {
        "type": "object",
        "properties": {"address": {"$ref": "#/$defs/address"}, "note": TEXT},
        "required": ["address"],
        "$defs": {
            "address": {"type": "object", "properties": {"street": TEXT}, "required": ["street"]}
        },
    }
    add(db, "deliver", "Deliver.", inputSchema=schema)

    answer = plan(db, "anything", tools=["deliver"], inputs={"address": value})

    assert answer["runnable"] is runnable
    assert list(answer["invalid"]) == ([] if runnable else ["address"])


@proves("plan:proof")
def test_an_optional_value_is_checked_beside_what_a_step_gives(db: stratagem.Stratagem) -> None:
    add(db, "weigh", "Weigh.", **weigher(required=["grams"]))
    box = {"type": "string", "enum": ["small", "large"]}
    add(db, "pack", "Pack.", {"grams": {"type": "number"}, "box": box}, ("grams",))

    wrong, right = (
        plan(db, "anything", tools=["weigh", "pack"], inputs={"box": size})
        for size in ("huge", "large")
    )

    assert list(wrong["invalid"]) == ["box"]
    assert wrong["runnable"] is False
    assert right["runnable"] is True


@proves("plan:proof")
def test_the_same_reference_means_something_else_in_another_schema(
    db: stratagem.Stratagem,
) -> None:
    place = {"$ref": "#/properties/kind"}
    output = {"type": "object", "properties": {"grams": place, "kind": TEXT}, "required": ["grams"]}
    add(db, "weigh", "Weigh.", outputSchema=output, handler=give({"grams": "many"}))
    add(db, "pack", "Pack.", {"grams": place, "kind": {"type": "number"}}, ("grams",))

    answer = plan(db, "anything", tools=["weigh", "pack"])

    assert answer["steps"][1]["sources"]["grams"]["from"] == "step"
    assert answer["runnable"] is False


@proves("plan:proof")
@pytest.mark.parametrize(("kind", "runnable"), [({"type": "object"}, True), ({}, False)])
def test_only_an_object_has_the_fields_that_its_schema_requires(
    db: stratagem.Stratagem, kind: dict[str, Any], runnable: bool
) -> None:
    parcel = {**kind, "properties": {"grams": {"type": "number"}}, "required": ["grams"]}
    output = {"type": "object", "properties": {"parcel": parcel}, "required": ["parcel"]}
    add(db, "weigh", "Weigh.", outputSchema=output, handler=give({"parcel": {"grams": 5}}))
    add(db, "pack", "Pack.", {"grams": {"type": "number"}}, ("grams",))

    answer = plan(db, "anything", tools=["weigh", "pack"])

    assert answer["steps"][1]["sources"]["grams"]["path"] == "parcel.grams"
    assert answer["runnable"] is runnable


@proves("plan:proof")
def test_a_tool_that_cannot_be_called_now_is_not_run(db: stratagem.Stratagem) -> None:
    add(db, "ring_bell", "Make the bell of the door ring.")
    db.call("tool_update", {"toolId": "ring_bell", "status": "disabled"})

    answer = plan(db, "anything", tools=["ring_bell"])

    assert answer["runnable"] is False
    assert answer["unproven"][0].startswith("ring_bell: ")
