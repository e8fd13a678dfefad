"""tools_recommend: the right tool, why, and what records say of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import stratagem
from stratagem import limits
from stratagem.operation import Caller
from tests.behaviour.gateway.advice.registered import add, fail
from tests.behaviour.gateway.workshop import Gateway
from tests.manifest import proves

DOCUMENTED = {
    "agentId",
    "intent",
    "recommendedTools",
    "totalAvailableTools",
    "processingTime",
    "llmProvider",
    "confidence",
    "validationInsights",
    "patternRecommendations",
    "fallbackMode",
    "serviceStatus",
}
OF_A_TOOL = {
    "name",
    "description",
    "category",
    "relevanceScore",
    "reasoning",
    "usageHint",
    "validationInsights",
    "parameterExamples",
    "toolChains",
}


def ask(db: stratagem.Stratagem, intent: str, **more: Any) -> dict[str, Any]:
    # Executions are recorded a moment after they end; reading them waits for that.
    db.call("tool_executions", {})
    return db.call("tools_recommend", {"intent": intent, **more})


def names(answer: dict[str, Any]) -> list[str]:
    return [each["name"] for each in answer["recommendedTools"]]


def run(db: stratagem.Stratagem, tool: str, **arguments: Any) -> None:
    try:
        db.call("tool_execute", {"toolName": tool, "arguments": arguments})
    except stratagem.StratagemError:
        return


@proves("recommend:answer")
def test_the_answer_has_every_documented_field(db: stratagem.Stratagem) -> None:
    answer = ask(db, "weather in Oslo", context={"agentId": "agent-123", "channelId": "c"})

    assert set(answer) >= DOCUMENTED
    assert set(answer["recommendedTools"][0]) >= OF_A_TOOL
    assert answer["agentId"] == "agent-123"
    assert answer["llmProvider"] is None
    assert answer["fallbackMode"] is False


@proves("recommend:found")
@pytest.mark.parametrize(
    ("intent", "tool"),
    [
        ("how warm is it in Oslo, in celsius?", "get_weather"),
        ("mail my boss", "send_email"),
        ("what is in /tmp/notes.txt, that file", "read_file"),
        ("2 + 2 * 17", "calculator"),
    ],
)
def test_registered_and_built_in_tools_are_found(
    db: stratagem.Stratagem, intent: str, tool: str
) -> None:
    assert tool in names(ask(db, intent))[:3]


@proves("recommend:languages")
def test_other_languages_are_understood_by_the_words_that_tools_use(
    db: stratagem.Stratagem,
) -> None:
    add(db, "wetter", "Das Wetter einer Stadt abfragen.", {"stadt": {"type": "string"}})
    add(db, "tianqi", "查询城市的天气预报", {"城市": {"type": "string"}})

    assert names(ask(db, "Wie wird das Wetter in Köln?"))[0] == "wetter"
    assert names(ask(db, "北京的天气怎么样"))[0] == "tianqi"


@proves("recommend:found")
def test_a_tool_that_cannot_be_called_is_not_recommended(db: stratagem.Stratagem) -> None:
    db.call("tool_update", {"toolId": "get_weather", "status": "disabled"})

    assert "get_weather" not in names(ask(db, "weather in Oslo"))


@proves("recommend:found")
def test_a_tool_that_is_given_a_rest_is_not_recommended(db: stratagem.Stratagem) -> None:
    def tide_table() -> str:
        """Times of the tide at a harbour."""
        raise RuntimeError("The sea is closed.")

    db.gateway.add(tide_table)
    before = names(ask(db, "times of the tide"))
    for _ in range(limits.BREAKER_FAILURES):
        run(db, "tide_table")

    assert before[0] == "tide_table"
    assert "tide_table" not in names(ask(db, "times of the tide"))
    assert db.call("tools_validate", {"toolNames": ["tide_table"]})["allAvailable"] is False


@proves("recommend:none")
@pytest.mark.parametrize(
    "intent",
    [
        "make coffee",
        "asdf qwer",
        "tell me a joke",
        "who are you",
        "it has been raining since Tuesday and I am in a bad mood",
        "remind me tomorrow at nine",
        "print two copies",
    ],
)
def test_nonsense_is_answered_with_no_tool(db: stratagem.Stratagem, intent: str) -> None:
    answer = ask(db, intent)

    assert answer["recommendedTools"] == []
    assert answer["confidence"] is None
    assert answer["note"].startswith("No tool fits.")


@proves("recommend:none")
def test_a_weak_match_is_called_one(db: stratagem.Stratagem) -> None:
    weak, sure = ask(db, "mail my boss"), ask(db, "send an email")

    assert names(weak) == ["send_email"]
    assert weak["note"].startswith("Only weak matches")
    assert weak["confidence"] < 0.25
    assert sure["note"] is None
    assert sure["confidence"] > 0.5


@proves("recommend:own")
def test_own_operations_are_recommended_only_when_asked_for(db: stratagem.Stratagem) -> None:
    intent = "store a value in memory under a key"

    unasked, asked = ask(db, intent), ask(db, intent, includeOwn=True)

    assert names(asked)[0] == "strata_store"
    assert "strata_store" not in names(unasked)
    assert asked["totalAvailableTools"] > unasked["totalAvailableTools"] > 3


@proves("recommend:deprecated")
def test_deprecated_tools_come_last(db: stratagem.Stratagem) -> None:
    text = {"path": {"type": "string"}}
    add(db, "read_text", "Read the complete contents of a text file from disk.", text, ("path",))
    add(db, "slurp", "DEPRECATED: Use read_text. Read a text file from disk.", text, ("path",))
    add(db, "cat", "Read a text file from disk.", text, ("path",), status="deprecated")
    # As the filesystem server of MCP writes it.
    add(db, "type", "Read a text file from disk. DEPRECATED: Use read_text.", text, ("path",))

    told = ask(db, "read a text file from disk", maxRecommendations=limits.RECOMMENDED_MAX)

    assert names(told)[0] in {"read_text", "read_file"}
    ours = [
        each
        for each in told["recommendedTools"]
        if each["name"] in {"read_text", "slurp", "cat", "type"}
    ]
    assert {each["name"] for each in ours[1:]} == {"slurp", "cat", "type"}
    assert {*names(told)[-3:]} == {"slurp", "cat", "type"}
    assert "it is deprecated" in ours[-1]["reasoning"]


@proves("recommend:branch")
def test_a_change_is_seen_at_once_and_on_its_branch_only(db: stratagem.Stratagem) -> None:
    ask(db, "translate")
    db.call("strata_branch", {"action": "fork", "name": "trial"})
    add(db, "translate_text", "Translate a text into a language.", branch="trial")

    assert names(ask(db, "translate a text", branch="trial"))[0] == "translate_text"
    assert "translate_text" not in names(ask(db, "translate a text"))

    db.call("tool_remove", {"toolId": "translate_text", "branch": "trial"})

    assert "translate_text" not in names(ask(db, "translate a text", branch="trial"))


@proves("recommend:figures")
def test_figures_come_from_records_and_are_null_without_any(db: stratagem.Stratagem) -> None:
    before = ask(db, "weather in Oslo")
    for city in ("Oslo", "Oslo", "Rome"):
        run(db, "get_weather", city=city)

    after = ask(db, "weather in Oslo")

    assert before["recommendedTools"][0]["validationInsights"]["successRate"] is None
    assert before["validationInsights"]["agentPerformanceScore"] is None
    first = after["recommendedTools"][0]
    assert first["validationInsights"]["successRate"] == 1.0
    assert first["parameterExamples"][0]["example"] == {"city": "Oslo"}
    assert first["parameterExamples"][0]["usageCount"] == 2
    assert 0.5 < after["validationInsights"]["agentPerformanceScore"] < 1


@proves("recommend:answer")
def test_why_a_tool_is_recommended_is_true(db: stratagem.Stratagem) -> None:
    told = {each["name"]: each["reasoning"] for each in ask(db, "emailing")["recommendedTools"]}
    far = ask(db, "tell me a joke")["recommendedTools"]

    # In the words of the request, not in stems of them.
    assert told["send_email"] == "It mentions emailing; its subject is similar."
    # The nearest of what is far is still far.
    assert all(each["relevanceScore"] < 0.2 for each in far)
    assert not any("nearly the same" in each["reasoning"] for each in far)


@proves("recommend:answer")
def test_a_hint_names_what_has_to_be_given(db: stratagem.Stratagem) -> None:
    add(db, "ring_bell", "Ring the bell.")
    either = {
        "type": "object",
        "properties": {"iron": {"type": "string"}, "steel": {"type": "integer"}},
        "anyOf": [{"required": ["steel"]}, {"required": ["iron"]}],
    }
    add(db, "forge_nail", "Forge a nail.", inputSchema=either)
    told = {
        each["name"]: each
        for intent in ("ring the bell", "forge a nail", "send an email")
        for each in ask(db, intent)["recommendedTools"]
    }

    hints = {name: each["usageHint"] for name, each in told.items()}
    assert hints["ring_bell"] == "tool_execute 'ring_bell'; its schema requires no argument."
    assert hints["send_email"] == "tool_execute 'send_email' with recipient, summary."
    assert (
        hints["forge_nail"] == "tool_execute 'forge_nail'; tool_help forge_nail shows "
        "its parameters."
    )
    assert told["forge_nail"]["parameterExamples"][0]["example"] == {"steel": 0}


@proves("recommend:learned")
def test_what_worked_elsewhere_does_not_push_others_back(db: stratagem.Stratagem) -> None:
    for name in ("a_climate", "b_climate"):
        add(db, name, "Climate of a region.", {"region": {"type": "string"}})
    before = names(ask(db, "climate of a region"))
    for _ in range(5):
        ask(db, "read a file")
        run(db, "b_climate", region="north")

    assert names(ask(db, "climate of a region")) == before


@proves("recommend:branch")
def test_a_branch_begins_with_what_its_parent_shows(db: stratagem.Stratagem) -> None:
    ask(db, "weather")
    db.call("strata_branch", {"action": "fork", "name": "trial"})
    db.call("tool_remove", {"toolId": "get_weather", "branch": "trial"})

    assert "get_weather" not in names(ask(db, "weather in Oslo", branch="trial"))
    assert names(ask(db, "weather in Oslo"))[0] == "get_weather"


@proves("recommend:privacy")
def test_nobody_sees_the_values_of_another_caller(db: stratagem.Stratagem) -> None:
    other = Caller(actor="somebody else")
    db.runtime.call(
        "tool_execute", {"toolName": "get_weather", "arguments": {"city": "Atlantis"}}, other
    )

    answer = ask(db, "weather in Oslo")

    assert "Atlantis" not in str(answer)
    assert answer["recommendedTools"][0]["parameterExamples"][0]["example"] == {"city": "<text>"}
    assert answer["recommendedTools"][0]["validationInsights"]["successRate"] == 1.0


@proves("recommend:privacy")
def test_secrets_in_a_request_are_not_kept(db: stratagem.Stratagem) -> None:
    ask(db, "weather for api_key=sk-live-0123456789abcdef0123456789")
    gateway = Gateway(db)

    assert "ToolsRecommended" in gateway.event_kinds()
    assert "0123456789abcdef" not in gateway.written()


@proves("recommend:learned")
def test_what_worked_after_a_similar_request_is_preferred(db: stratagem.Stratagem) -> None:
    add(
        db,
        "climate_now",
        "Current weather and temperature of a city.",
        {"city": {"type": "string"}},
    )
    before = ask(db, "weather in Oslo please")
    loser = names(before)[1]
    for _ in range(3):
        ask(db, "weather in Oslo please")
        run(db, loser, city="Oslo")

    after = ask(db, "tell me the weather in Oslo please")

    assert {names(before)[0], loser} == {"climate_now", "get_weather"}
    assert names(after)[0] == loser
    assert "similar requests" in after["recommendedTools"][0]["reasoning"]
    assert after["patternRecommendations"][0]["toolName"] == loser
    assert after["confidence"] > 0.5


@proves("recommend:learned")
def test_what_worked_after_a_like_request_comes_close_to_the_best(
    db: stratagem.Stratagem,
) -> None:
    for name in ("a_flights", "b_flights", "c_flights"):
        add(db, name, "Find flights to a place.", {"place": {"type": "string"}})
    add(db, "flights_to_oslo_tomorrow", "Find flights to Oslo tomorrow.")
    best, *others = names(ask(db, "flights to Oslo tomorrow"))[:4]
    for _ in range(3):
        ask(db, "find cheap flights to Oslo", maxRecommendations=10)
        run(db, others[-1], place="Oslo")

    after = names(ask(db, "flights to Oslo tomorrow"))

    assert {*others} == {"a_flights", "b_flights", "c_flights"}
    # It is before its lookalikes, and not before what says much more.
    assert after[:2] == [best, others[-1]]


@proves("recommend:learned")
def test_what_failed_after_a_similar_request_is_not(db: stratagem.Stratagem) -> None:
    add(db, "climate_now", "Current weather of a city, and its temperature.", handler=fail())
    ask(db, "the climate of a city now")
    first = names(ask(db, "the climate of a city now"))[0]
    for _ in range(4):
        ask(db, "the climate of a city now")
        run(db, "climate_now")

    after = names(ask(db, "the climate of a city now"))

    assert first == "climate_now"
    assert after[0] != "climate_now"


@proves("recommend:learned")
def test_learning_is_rebuilt_from_the_log(tmp_path: Any) -> None:
    path = str(tmp_path / "kept.db")
    with stratagem.open(path) as db:
        add(db, "a_weather", "Weather of a city.", {"city": {"type": "string"}})
        add(db, "b_weather", "Weather of a city.", {"city": {"type": "string"}})
        assert names(ask(db, "weather of a city"))[0] == "a_weather"
        run(db, "b_weather", city="Oslo")
        learned = names(ask(db, "weather of a city"))

    with stratagem.open(path) as again:
        assert (
            names(ask(again, "weather of a city"))[:2] == learned[:2] == ["b_weather", "a_weather"]
        )


@proves("recommend:twins")
def test_lookalikes_are_grouped_and_told_apart(db: stratagem.Stratagem) -> None:
    text = {"type": "string"}
    grade = {"type": "string", "enum": ["economy", "business"]}
    trip = {"origin": text, "destination": text}
    add(db, "flights_a", "Search flights between two airports.", trip | {"when": text})
    add(
        db,
        "flights_b",
        "Search flights between two airports.",
        trip | {"grade": grade, "when": text},
    )

    plain = ask(db, "flights between two airports")
    asked = ask(db, "flights between two airports in business")

    assert names(plain)[0] == "flights_a"
    assert names(asked)[0] == "flights_b"
    (twin,) = asked["recommendedTools"][0]["twins"]
    assert twin == {
        "name": "flights_a",
        "recommended": True,
        "difference": {"lacks": ["grade"]},
    }


@proves("recommend:chains")
def test_chains_are_those_that_were_called(db: stratagem.Stratagem) -> None:
    for _ in range(3):
        run(db, "get_weather", city="Oslo")
        run(db, "send_email", recipient="ada", summary="cold")

    chain = ask(db, "weather in Oslo")["recommendedTools"][0]["toolChains"][0]

    assert chain["sequence"] == ["get_weather", "send_email"]
    assert chain["successRate"] == 1.0


@proves("recommend:answer")
def test_it_is_the_same_as_a_tool(db: stratagem.Stratagem) -> None:
    call = {"toolName": "tools_recommend", "arguments": {"intent": "weather", "context": "Oslo"}}

    answer = db.call("tool_execute", call)["result"]

    assert names(answer)[0] == "get_weather"


@proves("recommend:found")
def test_many_may_ask_while_tools_and_records_change(db: stratagem.Stratagem) -> None:
    def work(number: int) -> list[bool]:
        told = []
        for turn in range(6):
            if number == 0:
                add(db, f"extra_{turn}", "Weather of another city.")
            run(db, "get_weather", city="Oslo")
            answer = db.call("tools_recommend", {"intent": f"weather in city {turn}"})
            told.append(answer["fallbackMode"] or "get_weather" not in names(answer))
        return told

    with ThreadPoolExecutor(4) as pool:
        assert not any(any(told) for told in pool.map(work, range(4)))


@proves("recommend:bad-input")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"intent": ""}, {"intent": "x" * 10_001}, {"intent": "x", "maxRecommendations": 0}],
)
def test_bad_input_is_refused(db: stratagem.Stratagem, arguments: dict[str, Any]) -> None:
    with pytest.raises(stratagem.StratagemError):
        db.call("tools_recommend", arguments)


@proves("recommend:answer")
def test_a_parameter_of_several_forms_is_shown_in_its_first(db: stratagem.Stratagem) -> None:
    answer = db.gateway.recommend(
        "add an incident with the fix that was tried", max_recommendations=10, include_own=True
    )

    found = {tool["name"]: tool for tool in answer["recommendedTools"]}["add_incident"]
    examples = found["parameterExamples"]
    assert examples is not None
    shown = examples[0]
    assert shown["example"]["steps"] == []
    assert shown["example"]["env"] == {}
