"""A model sees the text of an answer and often nothing else: it has to be enough to go on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.surfaces.mcp.operation_tools import error_text
from tests.surfaces.mcp.clients import MODES, Mode, connected, text_of

pytestmark = pytest.mark.anyio

GATEWAY: dict[str, Any] = {"toolsets": ("gateway",)}


@pytest.mark.parametrize("mode", MODES)
async def test_an_offer_can_be_confirmed_from_the_text_alone(path: Path, mode: Mode) -> None:
    async with connected(path, mode, **GATEWAY) as client:
        call = {"toolName": "calculator", "arguments": {"formula": "6 * 7"}}
        refused = await client.call_tool("tool_execute", call)
        said = text_of(refused)
        (offer,) = re.findall(r"corr_[0-9a-f]+", said)
        done = await client.call_tool(
            "tool_execute", {**call, "correctionId": offer, "confirm": True}
        )

    assert refused.is_error
    assert '{"expression":"6 * 7"}' in said
    assert "correctionId and confirm: true" in said
    assert '"result":42' in text_of(done)


async def test_a_corrected_call_says_what_was_changed(path: Path) -> None:
    async with connected(path, MODES[0], **GATEWAY) as client:
        done = await client.call_tool(
            "tool_execute", {"toolName": "calculator", "arguments": {"Expression": "6 * 7"}}
        )

    assert '"result":42' in text_of(done)
    assert "Arguments corrected: $.Expression becomes `expression`" in text_of(done)


async def test_a_tool_in_its_own_right_says_the_same(path: Path) -> None:
    async with connected(path, MODES[0], expose=("calculator",)) as client:
        done = await client.call_tool("calculator", {"Expression": "6 * 7"})
        refused = await client.call_tool("calculator", {"formula": "6 * 7"})
        again = await client.call_tool("calculator", {"expression": "6 * 7"})

    assert done.structured_content == again.structured_content
    assert [text_of(again)] == [each.text for each in done.content[:1] if each.type == "text"]
    assert "Arguments corrected: $.Expression becomes `expression`" in str(done.content[1])
    assert len(again.content) == 1
    # It takes no correctionId; what it takes are the arguments.
    assert "call again with its arguments" in text_of(refused)
    assert '{"expression":"6 * 7"}' in text_of(refused)


def test_everything_that_is_wrong_is_said_once_and_within_bounds() -> None:
    violations = [{"path": f"$.p{n}", "message": "is wrong", "rule": "type"} for n in range(9)]
    offer = {
        "correctionId": "corr_1",
        "confidence": 0.5,
        "riskLevel": "high",
        "correctedParameters": {"text": "x" * 5_000},
        "reasoning": "It fits.",
    }
    error = ValidationFailed(
        "The arguments do not fit: $.p0: is wrong (and 8 more).",
        violations=violations,
        corrections=[offer] * 9,
        choices=[{"path": "$.p1", "question": "Which one?", "options": ["a", 2]}],
        knownFix={"steps": ["restart it", "wait"]},
    )

    said = error_text(error)

    assert said.count("$.p0") == 1
    assert "also $.p1: is wrong" in said
    assert "and 4 more" in said
    assert "choice at $.p1: Which one? (a, 2)" in said
    assert said.count("corr_1 (confidence 0.50, risk high): (too long to show) It fits.") == 3
    assert "known fix: restart it; wait" in said
    assert len(said) < 2_000


@pytest.mark.parametrize("details", [{"violations": 7}, {"corrections": ["x"]}, {"knownFix": []}])
def test_details_of_another_form_do_no_harm(details: dict[str, Any]) -> None:
    assert error_text(ValidationFailed("No.", hint="Yes.", **details)) == "No. Yes."


def test_values_that_a_hint_only_hints_at_are_listed_whole() -> None:
    error = ValidationFailed(
        "No 'foo'.", hint="A filter has gte.", allowed=["eq", "gt", "lt", "gte"]
    )

    assert error_text(error).endswith("allowed: eq, gt, lt, gte")
    said = ValidationFailed("No.", hint="Use eq or gt.", allowed=["eq", "gt"], limit=None)
    assert error_text(said) == "No. Use eq or gt."


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "tool", "arguments", "advice"),
    [
        ({"toolsets": ("developer",)}, "strata_kv_get", {"key": "a"}, "strata_branch_list"),
        ({"toolsets": ("developer",)}, "strata_search", {"query": "x"}, "strata_kv_list"),
        (
            {"toolsets": ("knowledge",)},
            "get_concept",
            {"concept_id": "x"},
            "`stratagem branch list`",
        ),
        (
            {"toolsets": ("memory", "knowledge"), "read_only": True},
            "strata_recall",
            {"key": "a"},
            'strata_branch, action "list"',
        ),
    ],
)
async def test_advice_leads_to_tools_that_the_server_lists(
    path: Path, options: dict[str, Any], tool: str, arguments: dict[str, Any], advice: str
) -> None:
    async with connected(path) as client:
        await client.call_tool("strata_store", {"key": "b", "value": "b"})
    place = {} if tool == "strata_search" else {"branch": "nowhere"}
    async with connected(path, **options) as client:
        answer = await client.call_tool(tool, {**arguments, **place})

        assert advice in text_of(answer)
        if place:
            assert advice in answer.structured_content["hint"]


@pytest.mark.anyio
async def test_stored_data_that_names_tools_is_shown_as_it_is(path: Path) -> None:
    told = "Ask strata_recall first."
    async with connected(path, toolsets=("knowledge",)) as client:
        made = await client.call_tool("create_concept", {"name": "A", "explanation": told})
        concept = made.structured_content["concept_id"]
        shown = await client.call_tool("get_concept", {"concept_id": concept})

    assert told in text_of(shown)
    assert shown.structured_content["concept"]["explanation"] == told


async def test_a_hit_of_a_concept_says_which_toolset_reads_all_of_it(path: Path) -> None:
    explanation = "Usual remarks about budgets. " * 120 + "A round keeps the Wombat quiet."
    async with connected(path, toolsets=("knowledge",)) as client:
        await client.call_tool("create_concept", {"name": "Raft", "explanation": explanation})
    async with connected(path) as client:
        query = {"query": "Wombat", "kinds": ["concept"]}
        said = text_of(await client.call_tool("strata_search", query))

    assert "keeps the Wombat quiet." in said
    assert f"part of {len(explanation):,} characters" in said
    assert "`stratagem get-concept --concept-id KEY` (toolset 'knowledge') reads all" in said
