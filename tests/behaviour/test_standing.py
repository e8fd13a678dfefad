"""Standing instructions and preferences are recognised when they are written."""

from __future__ import annotations

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


@proves("standing:raised")
def test_a_standing_instruction_stands_before_what_is_said_once(call: Call) -> None:
    call.log(event="once", data={"role": "user", "text": "The charts of the project are done"})
    call.log(event="rule", data={"role": "user", "text": "Always use blue charts for projects"})
    call.log(event="again", data={"role": "user", "text": "The charts of the project are done"})

    assert call.keys("project charts")[0] == "rule"
