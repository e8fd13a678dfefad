"""No value of one caller reaches another, and nobody speaks for others: whatever is turned on."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import PermissionDenied
from stratagem.operation import Caller
from tests.behaviour.gateway.workshop import Answer, Workshop
from tests.manifest import proves
from tests.unit.gateway.learning.test_lessons import BOOK

# Enough for a lesson to be certain for its teacher.
CERTAIN = 10


@proves("correction:privacy")
def test_what_the_audit_log_keeps_is_told_to_nobody(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"requireAuditLog": True})
    shop.run("send", {"recipient": "Hildegard", "amount": "31337"})
    shop.fails("search", {"query": "unlucky Hildegard", "limit": "31337"})
    shop.fails("search", {"needle": "Hildegard"})
    shop.settle()

    about = [data for name, data in shop.heard if name.startswith(("attempt", "pattern"))]

    assert len(about) == 6
    assert "Hildegard" not in str(about)
    assert "31337" not in str(about)
    assert "Hildegard" in str(shop.records("correction_ok"))


@proves("correction:privacy")
def test_names_of_a_callers_own_are_neither_told_nor_learned(shop: Workshop) -> None:
    def note(people: dict[str, Any]) -> Answer:
        return {"people": len(people)}

    shop.database.gateway.add(note)
    shop.database.gateway.update("note", input_schema=BOOK)
    wrong = {"people": {"ann@example.com": {"name": "Ann", "mood": "cheerful"}}}
    for _time in range(2):
        shop.fails("note", wrong)
        shop.run("note", {"people": {"ann@example.com": {"name": "Ann", "mood": "glad"}}})
    near = {"people": {"ann@example.com": {"name": "Ann", "mood": "gladly"}}}
    made = shop.fails("note", near).details["corrections"][0]["correctionId"]
    shop.run("note", near, correctionId=made, confirm=True)

    told = shop.told("attempt:started")

    assert {path for each in told for path in each["paths"]} == {"$.people.*.mood"}
    assert shop.records("lesson_for") == []
    assert "ann@example" not in str(shop.ask("auto_correction_patterns"))


def teach(shop: Workshop, who: str, agent: str, times: int) -> None:
    for number in range(times):
        more = {"context": {"agentId": agent}}
        shop.fails("search", {"needle": f"{agent} {number}"}, who, **more)
        shop.run("search", {"query": f"{agent} {number}"}, who, **more)
    shop.settle()


@proves("lesson:callers")
def test_agents_of_one_caller_do_not_teach_others(shop: Workshop) -> None:
    teach(shop, "mallory", "one", CERTAIN)
    teach(shop, "mallory", "two", 1)

    refused = shop.fails("search", {"needle": "tea"}, "victim")

    assert refused.details["corrections"][0]["correctedParameters"] == {"query": "tea"}
    # To each other they are several, as agents of one process are.
    third = shop.run("search", {"needle": "tea"}, "mallory", context={"agentId": "three"})
    assert third["metadata"]["correction"]["appliedPattern"] == "key_known_alias"


@proves("lesson:callers")
def test_agents_of_two_callers_do(shop: Workshop) -> None:
    teach(shop, "mary", "one", CERTAIN)
    teach(shop, "bob", "one", 1)

    assert shop.run("search", {"needle": "tea"}, "carol")["result"]["query"] == "tea"


@proves("policy:rights")
@pytest.mark.parametrize(
    ("operation", "given"),
    [
        (
            "auto_correction_patterns",
            {
                "action": "restore",
                "backup": {
                    "format": "stratagem-correction-patterns",
                    "lessons": [
                        {"tool": "search", "kind": "alias", "path": "$", "form": "0" * 16,
                         "meaning": "query", "teacher": "x", "held": 50, "fell": 0},
                    ],
                },
            },
        ),
        ("auto_correction_circuits", {"action": "reset", "toolName": "search", "force": True}),
    ],
)  # fmt: skip
def test_only_an_administrator_speaks_for_everybody(
    shop: Workshop, operation: str, given: Answer
) -> None:
    writer = Caller("writer", scopes=frozenset({"gateway:write", "gateway:execute"}), local=False)

    with pytest.raises(PermissionDenied) as caught:
        shop.database.runtime.call(operation, given, writer)

    assert caught.value.details["required"] == "gateway:admin"
    assert shop.ask("auto_correction_patterns")["patterns"] == []


@proves("correction:privacy", "fix:draft")
def test_a_draft_has_none_of_the_arguments_it_came_of(shop: Workshop) -> None:
    for number in range(3):
        shop.fails("search", {"query": f"unlucky Hildegard {number}"}, f"caller {number}")

    (draft,) = shop.incidents()

    assert "Hildegard" not in str(draft)
    assert "nothing can be found for …" in draft["title"]
