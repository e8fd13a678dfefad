"""tools_recommend_on_error: corrected arguments, known fixes, other tools."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import stratagem
from tests.behaviour.gateway.advice.registered import add, fail
from tests.manifest import proves

DOCUMENTED = {
    "failedTool",
    "errorType",
    "errorMessage",
    "alternatives",
    "parameterCorrections",
    "preventionTips",
    "learningInsights",
    "processingTime",
    "agentId",
    "channelId",
}


@pytest.fixture
def failing(db: stratagem.Stratagem) -> stratagem.Stratagem:
    parameters = {"path": {"type": "string"}, "content": {"type": "string"}}
    add(db, "write_file", "Write content to a file.", parameters, ("path", "content"))
    return db


def recover(db: stratagem.Stratagem, **arguments: Any) -> dict[str, Any]:
    return db.call("tools_recommend_on_error", arguments)


@proves("recover:answer")
def test_the_documented_example(failing: stratagem.Stratagem) -> None:
    answer = recover(
        failing,
        failedTool="write_file",
        errorMessage="Expected string but received number for parameter: content",
        failedParameters={"path": "/output/report.txt", "content": 12345},
        intent="I was trying to save a report to a file",
        maxAlternatives=3,
        context={"agentId": "agent-123", "channelId": "file-ops"},
    )

    assert set(answer) >= DOCUMENTED
    assert answer["errorType"] == "typeMismatch"
    correction = answer["parameterCorrections"][0]
    assert correction["suggested"] == {"path": "/output/report.txt", "content": "12345"}
    assert 0 < correction["confidence"] <= 1
    assert "write_file" not in [each["name"] for each in answer["alternatives"]]
    assert answer["agentId"] == "agent-123"
    assert answer["learningInsights"]["similarFailuresInChannel"] == 0


@proves("recover:answer")
def test_what_is_wrong_with_one_form_says_more_than_that_none_fits(
    failing: stratagem.Stratagem,
) -> None:
    answer = recover(
        failing,
        failedTool="strata_store",
        errorMessage="Expected string but received number for parameter: key",
        failedParameters={"key": 12345, "value": 1},
    )

    assert answer["errorType"] == "typeMismatch"
    assert answer["parameterCorrections"][0]["suggested"] == {"key": "12345", "value": 1}


@proves("recover:alternatives")
def test_alternatives_do_a_similar_job(failing: stratagem.Stratagem) -> None:
    add(failing, "save_text", "Write a text to a file.", {"path": {"type": "string"}})

    answer = recover(failing, failedTool="write_file", errorMessage="disk full")

    assert answer["alternatives"][0]["name"] == "save_text"
    assert answer["errorType"] == "executionFailed"


@proves("recover:figures")
def test_failures_are_counted_from_the_log(failing: stratagem.Stratagem) -> None:
    add(failing, "broken", "It never works.", handler=fail())
    message = ""
    for _ in range(2):
        with pytest.raises(stratagem.StratagemError) as caught:
            failing.call(
                "tool_execute",
                {"toolName": "broken", "arguments": {}, "context": {"channelId": "ops"}},
            )
        message = caught.value.message

    told = recover(
        failing, failedTool="broken", errorMessage=message, context={"channelId": "ops"}
    )["learningInsights"]

    assert told["patternStored"] is True
    assert told["similarFailuresInChannel"] == 2
    assert (
        recover(failing, failedTool="broken", errorMessage="another thing")["learningInsights"][
            "patternStored"
        ]
        is False
    )


@proves("recover:known-fix")
def test_the_debugging_memory_is_asked(failing: stratagem.Stratagem) -> None:
    failing.debugging.add_incident(
        "The disk is full",
        ["Free some space."],
        {"runtime": "gateway", "tool": "write_file"},
        worked=True,
        error_signature="write_file: no space left on device",
    )

    answer = recover(failing, failedTool="write_file", errorMessage="no space left on device")

    assert answer["knownFix"]["incidentTitle"] == "The disk is full"
    assert "Free some space." in answer["knownFix"]["steps"]


@proves("recover:alternatives")
def test_a_tool_that_does_not_exist_gets_the_nearest_ones(failing: stratagem.Stratagem) -> None:
    answer = recover(failing, failedTool="weather_of_city", errorMessage="There is no such tool.")

    assert answer["errorType"] == "toolNotFound"
    assert answer["alternatives"][0]["name"] == "get_weather"


@proves("recover:answer")
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("It timed out after 30 seconds", "timeout"),
        ("403 Forbidden", "permissionDenied"),
        ("429 Too Many Requests", "rateLimited"),
        ("No such file or directory", "notFound"),
        ("401 Unauthorized: authentication is required", "permissionDenied"),
        ("The prototype is broken", "executionFailed"),
    ],
)
def test_the_kind_of_an_error_is_told_by_its_text(
    failing: stratagem.Stratagem, message: str, kind: str
) -> None:
    assert recover(failing, failedTool="write_file", errorMessage=message)["errorType"] == kind


SERVER = """
import json, sys
tools = [
    {"name": name, "description": text, "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": reads}}
    for name, text, reads in (
        ("write_note", "Write content to a note.", False),
        ("append_note", "Append content to a note.", False),
        ("read_note", "Read the content of a note.", True),
    )
]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "notes", "version": "1"}},
        "tools/list": {"tools": tools},
    }
    answer = answers.get(message["method"])
    body = {"result": answer} if answer else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""


@proves("recover:answer")
def test_a_tool_that_only_reads_is_no_way_round_one_that_failed_to_write(
    db: stratagem.Stratagem,
) -> None:
    db.call("server_add", {"name": "notes", "command": sys.executable, "args": ["-c", SERVER]})
    failed = {"errorMessage": "The disk is full.", "failedParameters": {}}

    after_writing = recover(db, failedTool="write_note", **failed)["alternatives"]
    after_reading = recover(db, failedTool="read_note", **failed)["alternatives"]

    assert [each["name"] for each in after_writing] == ["append_note"]
    assert "write_note" in [each["name"] for each in after_reading]
