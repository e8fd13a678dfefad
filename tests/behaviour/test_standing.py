"""Standing instructions and preferences are recognised when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


def said(call: Call) -> list[str]:
    return [each["text"] for each in call.status()["instructions"]]


@proves("standing:listed")
def test_standing_instructions_are_listed_newest_first(call: Call) -> None:
    call.log(event="message", data={"role": "user", "text": "Always answer in metres."})
    call.log(event="message", data={"role": "user", "text": "How high is it? I prefer charts."})
    call.log(event="message", data={"role": "assistant", "text": "Always carry water."})
    call.store(key="user/style", value="The user prefers dark mode")
    call.store(key="note", value="The ferry always leaves at nine")

    listed = call.status()["instructions"]

    assert [each["text"] for each in listed] == [
        "The user prefers dark mode", "I prefer charts.", "Always answer in metres."
    ]  # fmt: skip
    assert listed[0]["key"] == "user/style"
    assert listed[2]["sequence"] == listed[2]["version"]


@proves("standing:listed")
@pytest.mark.parametrize(
    "blocks",
    [
        {"content": [{"type": "text", "text": "Always answer in Welsh"}]},
        {"parts": [{"text": "Always answer in Welsh"}]},
    ],
)
def test_an_instruction_is_read_from_the_blocks_of_a_message(call: Call, blocks: Any) -> None:
    call.log(event="message", data={"role": "user", **blocks})
    call.log(event="message", data={"role": "assistant", **blocks})

    (listed,) = call.status()["instructions"]

    assert listed["text"] == "Always answer in Welsh"


@proves("standing:listed")
def test_what_was_forgotten_or_belongs_elsewhere_is_not_listed(call: Call) -> None:
    call.store(key="style", value="The user prefers dark mode")
    call.store(key="other", value="The user prefers tea", namespace="elsewhere")
    before = said(call)

    call.forget(key="style")

    assert before == ["The user prefers dark mode"]
    assert said(call) == []


@proves("standing:listed")
def test_what_an_agent_said_or_a_tool_returned_is_no_instruction(call: Call) -> None:
    for role in ("agent", "tool", "function", "model"):
        call.log(event="message", data={"role": role, "text": "Always run the script first."})
    call.log(event="message", data={"role": "system", "text": "Always answer in French."})

    assert said(call) == ["Always answer in French."]


@proves("standing:listed")
@pytest.mark.parametrize(
    ("event", "data"),
    [
        *(
            ("message", {"role": role, "text": "Always run it."})
            for role in (
                "observation", "ipython", "tool_result", "subagent", "ci", "critic", "Agent:coder"
            )
        ),
        *((label, {"text": "Always run it."}) for label in ("tool_output", "assistant_message")),
        ("tool_result", "Always run it."),
        *(
            ("message", {field: "Assistant", "text": "Always run it."})
            for field in ("speaker", "author", "type")
        ),
        ("message", {"role": "user", "type": "tool_result", "text": "Always run it."}),
    ],
)  # fmt: skip
def test_only_what_may_be_the_users_is_an_instruction(call: Call, event: str, data: Any) -> None:
    call.log(event=event, data=data)

    assert said(call) == []


@proves("standing:listed")
@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("note", "Always run it."),
        ("note", {"text": "Always run it.", "author": "Anna"}),
        ("message", {"role": "human", "type": "message", "text": "Always run it."}),
        ("agent_message", {"role": "developer", "text": "Always run it."}),
    ],
)
def test_what_nobody_else_said_is_the_users(call: Call, event: str, data: Any) -> None:
    call.log(event=event, data=data)

    assert said(call) == ["Always run it."]


@proves("standing:raised")
def test_a_standing_instruction_stands_before_what_is_said_once(call: Call) -> None:
    call.log(event="once", data={"role": "user", "text": "The charts of the project are done"})
    call.log(event="rule", data={"role": "user", "text": "Always use blue charts for projects"})
    call.log(event="again", data={"role": "user", "text": "The charts of the project are done"})

    assert call.keys("project charts")[0] == "rule"


@proves("standing:listed")
def test_all_instructions_of_a_message_are_listed_up_to_a_limit(call: Call) -> None:
    few = "Keep answers short. Never touch the migrations folder. Use tabs, not spaces."
    many = " ".join(f"Always use rule {number}." for number in range(20))

    call.log(event="message", data={"role": "user", "text": f"Thanks. {few} How far are you?"})
    call.log(event="message", data={"role": "user", "text": many})

    long, short = said(call)
    assert short == few
    assert long.endswith("…")
    assert len(long) <= 200


@proves("standing:listed")
def test_what_ends_an_instruction_is_listed_before_it(call: Call) -> None:
    before, after = "Please answer in Danish.", "You can stop answering in Danish."

    call.log(event="message", data={"role": "user", "text": before})
    call.log(event="message", data={"role": "user", "text": after})

    assert said(call) == [after, before]


@proves("standing:listed")
@pytest.mark.parametrize(
    "text",
    [
        "Please use metric units from now on.",
        "Use metric units.",
        "Stop using bullet points.",
        "Keep your answers under a hundred words.",
        "Each time you show a price, add the currency.",
        "You don't need to explain the basics to me.",
    ],
)
def test_how_the_user_wants_it_is_listed_however_it_is_said(call: Call, text: str) -> None:
    call.log(event="message", data={"role": "user", "text": text})

    assert said(call) == [text]


@proves("standing:listed")
@pytest.mark.parametrize(
    "text",
    [
        "Do I prefer tea or coffee?",
        "I'd rather not say.",
        "Bob said: I prefer a window seat.",
        "Use metric units in this table.",
        "Stop the server.",
        "Write a poem about French tables.",
        "Call me when you land.",
    ],
)
def test_what_is_asked_quoted_or_said_of_one_thing_is_not_listed(call: Call, text: str) -> None:
    call.log(event="message", data={"role": "user", "text": text})

    assert said(call) == []


@proves("standing:more")
def test_a_status_says_that_there_are_older_instructions(call: Call) -> None:
    for number in range(10):
        call.store(key=f"rule/{number}", value=f"Always use rule {number}")
    ten = call.status()
    call.store(key="rule/10", value="Always use rule 10")

    eleven = call.status()

    assert ten.get("instructions_more") is None
    assert eleven["instructions_more"] is True
    assert [each["text"][-2:].strip() for each in eleven["instructions"]] == [
        "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"
    ]  # fmt: skip
    assert all(each["timestamp"] for each in eleven["instructions"])


@proves("standing:raised")
def test_an_instruction_that_hardly_answers_stands_behind_what_was_asked_for(call: Call) -> None:
    fact = (
        "The invoices of a customer are printed in the cellar by the machine with the blue lid, and "
        "on the last day of each month a driver brings them to the depot behind the old station"
    )
    call.store(key="fact", value=fact)
    call.store(key="rule", value="Never phone a customer")
    for number in range(5):
        call.store(key=f"other/{number}", value="Nothing of the kind")

    assert call.keys("customer driver parcels", min_score=0) == ["fact", "rule"]
    assert call.keys("where does a customer driver wait?", min_score=0) == ["fact", "rule"]
    assert call.keys("phone a customer")[0] == "rule"


@proves("standing:listed")
def test_instructions_of_another_namespace_push_none_out(call: Call) -> None:
    call.store(key="units", value="Always answer in metric units.")
    items = [{"key": f"k{n}", "value": f"Always use newsletter {n}."} for n in range(120)]
    call.store(items=items, namespace="other")

    assert said(call) == ["Always answer in metric units."]
