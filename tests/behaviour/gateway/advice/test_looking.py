"""tools_validate, tools_discover and tools_compare."""

from __future__ import annotations

import pytest

import stratagem
from tests.behaviour.gateway.advice.registered import add, fail
from tests.manifest import proves


@proves("advice:validate")
def test_validation_says_for_each_tool_whether_it_can_be_called(db: stratagem.Stratagem) -> None:
    db.call("tool_update", {"toolId": "read_file", "status": "disabled"})

    answer = db.call(
        "tools_validate", {"toolNames": ["get_weather", "calculator", "read_file", "nothing"]}
    )

    assert answer["totalChecked"] == 4
    assert answer["availableCount"] == 2
    assert answer["unavailableCount"] == 2
    assert answer["allAvailable"] is False
    by_name = {each["toolName"]: each for each in answer["results"]}
    assert by_name["get_weather"] == {
        "toolName": "get_weather",
        "available": True,
        "category": "weather",
        "description": "Current weather and temperature of a city.",
        "source": "external",
    }
    assert by_name["calculator"]["source"] == "internal"
    assert by_name["read_file"]["available"] is False
    assert by_name["nothing"]["available"] is False


@proves("advice:validate")
def test_validation_checks_the_configuration_when_asked(db: stratagem.Stratagem) -> None:
    handler = {
        "type": "webhook",
        "url": "https://api.example.com/x",
        "headers": {"Authorization": "Bearer ${EXAMPLE_KEY}"},
    }
    add(db, "remote", "Ask a service.", handler=handler)
    request = {"toolNames": ["remote"], "checkConfiguration": True}

    before = db.call("tools_validate", request)["results"][0]
    grant = {"tool": "remote", "name": "EXAMPLE_KEY", "origin": "https://api.example.com"}
    db.call("secret_grant", grant)
    after = db.call("tools_validate", request)["results"][0]

    assert before["available"] is False
    assert before["configuration"]["errors"] == ["The secret EXAMPLE_KEY was not granted."]
    assert after["available"] is True


@proves("advice:discover")
def test_discovery_filters_and_groups(db: stratagem.Stratagem) -> None:
    answer = db.call(
        "tools_discover",
        {"source": "external", "namePattern": "file", "includeSchema": True, "limit": 10},
    )

    assert [each["name"] for each in answer["tools"]] == ["read_file"]
    assert answer["tools"][0]["inputSchema"]["required"] == ["path"]
    assert answer["filteredCount"] == 1
    assert answer["totalAvailable"] > 50
    assert answer["filters"] == {"source": "external", "namePattern": "file"}
    assert answer["categoryGroups"] == {"utility": ["read_file"]}


@proves("advice:discover")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [("get_*", True), ("GET_", True), ("*weather", True), ("weather*", False), ("?", False)],
)
def test_a_pattern_is_a_part_of_a_name_or_has_stars(
    db: stratagem.Stratagem, pattern: str, found: bool
) -> None:
    answer = db.call("tools_discover", {"namePattern": pattern})

    assert ("get_weather" in str(answer["categoryGroups"])) is found


@proves("advice:compare")
def test_comparison_shows_parameters_evidence_and_difference(db: stratagem.Stratagem) -> None:
    add(
        db,
        "weather_now",
        "Current weather of a city.",
        {"city": {"type": "string"}},
        handler=fail(),
    )
    for tool in ("get_weather", "weather_now"):
        try:
            db.call("tool_execute", {"toolName": tool, "arguments": {"city": "Oslo"}})
        except stratagem.StratagemError:
            continue

    answer = db.call(
        "tools_compare",
        {"toolNames": ["get_weather", "weather_now"], "intent": "weather of Oslo in celsius"},
    )

    first, second = answer["tools"]
    assert first["evidence"]["successRate"] == 1.0
    assert second["evidence"]["successRate"] == 0.0
    assert first["evidence"]["avgLatency"] > 0
    assert answer["sharedParameters"] == ["city"]
    assert answer["differences"][0]["difference"]["lacks"] == ["unit"]
    assert answer["best"]["reliability"] == "get_weather"
    assert answer["best"]["relevance"] == "get_weather"


@proves("advice:compare")
def test_an_untried_tool_leads_nowhere(db: stratagem.Stratagem) -> None:
    answer = db.call("tools_compare", {"toolNames": ["get_weather", "send_email"]})

    assert answer["best"] == {"reliability": None, "latency": None, "relevance": None}
    assert answer["tools"][0]["evidence"]["successRate"] is None
    assert answer["tools"][0]["evidence"]["reliability"] is None


@proves("advice:compare")
def test_comparing_with_what_is_not_there_is_an_error(db: stratagem.Stratagem) -> None:
    with pytest.raises(stratagem.StratagemError, match="get_wether"):
        db.call("tools_compare", {"toolNames": ["get_weather", "get_wether"]})


@proves("advice:compare")
def test_a_tool_that_never_worked_leads_nowhere(db: stratagem.Stratagem) -> None:
    add(db, "weather_now", "Current weather of a city.", handler=fail())
    with pytest.raises(stratagem.StratagemError):
        db.call("tool_execute", {"toolName": "weather_now", "arguments": {}})

    answer = db.call("tools_compare", {"toolNames": ["weather_now", "send_email"]})

    assert answer["tools"][0]["evidence"]["successRate"] == 0.0
    assert answer["best"] == {"reliability": None, "latency": None, "relevance": None}
