"""The formats of providers: their own examples, round trips, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.errors import ExecutionFailed, ValidationFailed
from stratagem.gateway.providers import PROVIDERS, ProviderCall, provider_name
from stratagem.gateway.providers.openai import OpenAIChat

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Say the weather",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
        "required": ["city"],
        "additionalProperties": False,
        "anyOf": [{"required": ["city"]}],
    },
    "outputSchema": {"type": "object"},
}
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
    "required": ["city"],
    "additionalProperties": False,
}
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.\-]{0,79}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)
ARGUMENTS = st.dictionaries(st.text(max_size=10), JSON, max_size=4)
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=6)


def described(**fields: Any) -> dict[str, Any]:
    return {"name": "get_weather", "description": "Say the weather", **fields}


TOOLS: dict[str, Any] = {
    "anthropic": [described(input_schema=PARAMETERS)],
    "openai": [{"type": "function", "function": described(parameters=PARAMETERS)}],
    "openai_responses": [{"type": "function", "strict": False, **described(parameters=PARAMETERS)}],
    "xai": [{"type": "function", "function": described(parameters=PARAMETERS)}],
    "gemini": [
        {
            "functionDeclarations": [
                described(
                    parameters={
                        "type": "object",
                        "properties": {
                            "city": {"type": "string"},
                            "days": {"type": "integer", "nullable": True},
                        },
                        "required": ["city"],
                    }
                )
            ]
        }
    ],
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_are_written_as_the_provider_takes_them(provider: str) -> None:
    # Providers accept no alternatives at the top; Gemini is told of them by its own converter.
    tool = WEATHER if provider != "gemini" else {**WEATHER, "inputSchema": PARAMETERS}

    assert PROVIDERS[provider].tools([tool]) == TOOLS[provider]


def chat_call(id_: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def use(id_: str, name: str, given_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given_}


def item(id_: str, name: str, arguments: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": id_,
        "name": name,
        "arguments": arguments,
    }


def part(id_: str | None, name: str, args: Any) -> dict[str, Any]:
    call = {"name": name, "args": args}
    return {"functionCall": call if id_ is None else {"id": id_, **call}, "thoughtSignature": "x"}


OSLO = '{"city": "Oslo"}'
ONE = [ProviderCall("a", "get_weather", {"city": "Oslo"}, "get_weather")]
ANSWERS: list[tuple[str, Any]] = [
    (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see"},
                use("a", "get_weather", {"city": "Oslo"}),
            ],
        },
    ),
    (
        "anthropic",
        [{"type": "server_tool_use", "id": "s"}, use("a", "get_weather", {"city": "Oslo"})],
    ),
    ("anthropic", use("a", "get_weather", {"city": "Oslo"})),
    (
        "openai",
        {
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "tool_calls": [chat_call("a", "get_weather", OSLO)],
                    },
                }
            ]
        },
    ),
    (
        "openai",
        {"role": "assistant", "content": None, "tool_calls": [chat_call("a", "get_weather", OSLO)]},
    ),
    ("openai", [chat_call("a", "get_weather", OSLO)]),
    ("openai", chat_call("a", "get_weather", OSLO)),
    (
        "xai",
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [chat_call("a", "get_weather", {"city": "Oslo"})],
                    }
                }
            ]
        },
    ),
    (
        "openai_responses",
        {
            "id": "resp",
            "output": [{"type": "reasoning", "summary": []}, item("a", "get_weather", OSLO)],
        },
    ),
    ("openai_responses", [item("a", "get_weather", OSLO)]),
    ("openai_responses", item("a", "get_weather", OSLO)),
    (
        "gemini",
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [{"text": "so"}, part("a", "get_weather", {"city": "Oslo"})],
                    }
                }
            ]
        },
    ),
    ("gemini", {"role": "model", "parts": [part("a", "get_weather", {"city": "Oslo"})]}),
    ("gemini", [part("a", "get_weather", {"city": "Oslo"})]),
    ("gemini", part("a", "get_weather", {"city": "Oslo"})),
]


@pytest.mark.parametrize(("provider", "payload"), ANSWERS)
def test_calls_are_found_in_any_part_of_an_answer(provider: str, payload: Any) -> None:
    assert PROVIDERS[provider].calls(payload) == ONE


@pytest.mark.parametrize(
    ("provider", "payload"),
    [
        ("anthropic", {"role": "assistant", "content": "Only words"}),
        ("openai", {"role": "assistant", "content": "Only words"}),
        ("openai", {"role": "assistant", "content": "Words", "tool_calls": None}),
        ("openai_responses", {"output": [{"type": "message", "content": []}]}),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "Only words"}]}}]}),
    ],
)
def test_an_answer_without_calls_has_none(provider: str, payload: Any) -> None:
    assert PROVIDERS[provider].calls(payload) == []


def test_results_are_written_as_the_provider_takes_them() -> None:
    outcomes = [(ONE[0], {"sky": "clear"})]
    text = '{"sky":"clear"}'

    assert PROVIDERS["anthropic"].results(outcomes) == [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": text}]}
    ]
    message = {"role": "tool", "tool_call_id": "a", "content": text}
    assert PROVIDERS["openai"].results(outcomes) == [message]
    assert PROVIDERS["xai"].results(outcomes) == [message]
    assert PROVIDERS["openai_responses"].results(outcomes) == [
        {"type": "function_call_output", "call_id": "a", "output": text}
    ]
    response = {"id": "a", "name": "get_weather", "response": {"output": {"sky": "clear"}}}
    assert PROVIDERS["gemini"].results(outcomes) == [
        {"role": "user", "parts": [{"functionResponse": response}]}
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_failure_is_told_as_one_and_an_unexpected_one_gives_nothing_away(provider: str) -> None:
    failed = PROVIDERS[provider].results([(ONE[0], ExecutionFailed("No such city."))])
    broken = PROVIDERS[provider].results([(ONE[0], RuntimeError("/home/me/secret.py line 5"))])

    assert "No such city." in json.dumps(failed)
    assert "execution_error" in json.dumps(failed)
    assert "secret" not in json.dumps(broken)
    if provider == "anthropic":
        assert failed[0]["content"][0]["is_error"] is True


def test_the_older_function_call_of_openai_is_taken_and_answered() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "add", "arguments": ""},
    }

    calls = PROVIDERS["openai"].calls(message)

    assert calls == [ProviderCall(None, "add", {}, "add")]
    assert PROVIDERS["openai"].results([(calls[0], 3)]) == [
        {"role": "function", "name": "add", "content": "3"}
    ]
    assert OpenAIChat().functions([WEATHER])[0]["parameters"] == PARAMETERS
    assert PROVIDERS["xai"].calls(message) == []


@pytest.mark.parametrize("text", ["{'city': 'Oslo'}", '{"city": "Oslo"', "[1]", "Oslo"])
def test_arguments_that_are_no_object_are_kept_as_text(text: str) -> None:
    for provider, payload in (
        ("openai", [chat_call("a", "get_weather", text)]),
        ("openai_responses", [item("a", "get_weather", text)]),
    ):
        assert PROVIDERS[provider].calls(payload)[0].arguments == text


WRONG: list[tuple[str, Any, str]] = [
    ("anthropic", 5, "content"),
    ("anthropic", {"content": [5]}, "content[0]"),
    ("anthropic", [{"id": "a"}], "content[0].type"),
    ("anthropic", [{"type": "tool_use", "name": "x", "input": {}}], "content[0].id"),
    ("anthropic", [use("a", "", {})], "content[0].name"),
    ("anthropic", [use("a", "x", "text")], "content[0].input"),
    ("anthropic", [use("a", "x", {}), use("a", "y", {})], "payload"),
    ("openai", "text", "payload"),
    ("openai", {"object": "other"}, "payload"),
    ("openai", {"choices": [{}]}, "choices[0].message"),
    ("openai", {"tool_calls": {}}, "tool_calls"),
    ("openai", [{"id": "a", "type": "custom", "custom": {}}], "tool_calls[0].type"),
    ("openai", [{"id": "a", "type": "function"}], "tool_calls[0].function"),
    ("openai", [chat_call("", "x", "{}")], "tool_calls[0].id"),
    ("openai", [chat_call("a", "x", 5)], "tool_calls[0].function.arguments"),
    ("openai", [chat_call("a", "x", "{}"), chat_call("a", "x", "{}")], "payload"),
    ("openai_responses", [{"type": "function_call", "name": "x"}], "output[0].call_id"),
    ("openai_responses", {"output": [None]}, "output[0]"),
    ("gemini", {"other": 1}, "payload"),
    ("gemini", {"candidates": {}}, "candidates"),
    ("gemini", [{"functionCall": "x"}], "parts[0].functionCall"),
    ("gemini", [part("a", "x", [1])], "parts[0].functionCall.args"),
    ("gemini", [{"functionCall": {"args": {}}}], "parts[0].functionCall.name"),
    ("gemini", [part("a", "x", {}), part("a", "x", {})], "payload"),
]


@pytest.mark.parametrize(("provider", "payload", "field"), WRONG)
def test_what_no_provider_sends_is_refused_with_its_place(
    provider: str, payload: Any, field: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        PROVIDERS[provider].calls(payload)

    assert refused.value.details["field"] == field


@pytest.mark.parametrize("provider", PROVIDERS)
@given(JSON)
def test_any_payload_is_read_or_refused(provider: str, payload: Any) -> None:
    try:
        PROVIDERS[provider].calls(payload)
    except ValidationFailed as refused:
        assert refused.details["field"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ("get_weather", "tools"),
        ([5], "tools[0]"),
        ([{"name": ""}], "tools[0].name"),
        ([{"name": "a", "description": 5}], "tools[0].description"),
        ([{"name": "a", "inputSchema": {"type": "array"}}], "tools[0].inputSchema"),
        ([{"name": "a"}, {"name": "a"}], "tools[1].name"),
        ([{"name": f"tool{at}"} for at in range(10_001)], "tools"),
    ],
)
def test_what_is_no_list_of_tools_is_refused(provider: str, tools: Any, field: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        PROVIDERS[provider].tools(tools)

    assert refused.value.details["field"] == field


def sent(provider: str, calls: list[tuple[str, dict[str, Any]]]) -> Any:
    """Return an answer of a model that calls tools by the names it was given."""
    named = [
        (f"call_{at}", provider_name(name), arguments) for at, (name, arguments) in enumerate(calls)
    ]
    match provider:
        case "anthropic":
            return {"role": "assistant", "content": [use(*call) for call in named]}
        case "openai" | "xai":
            listed = [chat_call(id_, name, json.dumps(args)) for id_, name, args in named]
            return {"choices": [{"message": {"role": "assistant", "tool_calls": listed}}]}
        case "openai_responses":
            return {"output": [item(id_, name, json.dumps(args)) for id_, name, args in named]}
        case _:
            return {"candidates": [{"content": {"parts": [part(*call) for call in named]}}]}


def answered(provider: str, results: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the id and the result in each piece of what goes back."""
    match provider:
        case "anthropic":
            return [
                (block["tool_use_id"], json.loads(block["content"]))
                for block in results[0]["content"]
            ]
        case "openai" | "xai":
            return [
                (message["tool_call_id"], json.loads(message["content"])) for message in results
            ]
        case "openai_responses":
            return [(each["call_id"], json.loads(each["output"])) for each in results]
        case _:
            responses = [each["functionResponse"] for each in results[0]["parts"]]
            return [(each["id"], each["response"]["output"]) for each in responses]


@pytest.mark.parametrize("provider", PROVIDERS)
@given(CALLS)
def test_calls_and_results_go_there_and_back(
    provider: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    known = {name for name, _ in calls}
    format_ = PROVIDERS[provider]

    read = format_.calls(sent(provider, calls), known)
    results = format_.results([(call, {"echo": call.arguments}) for call in read])

    assert [(call.name, call.arguments) for call in read] == calls
    assert answered(provider, results) == [
        (f"call_{at}", {"echo": arguments}) for at, (_, arguments) in enumerate(calls)
    ]


@given(st.sets(NAMES | st.text(min_size=1, max_size=90), min_size=1, max_size=20))
def test_every_name_is_one_that_providers_take_and_leads_back(names: set[str]) -> None:
    written = PROVIDERS["openai"].tools([{"name": name} for name in names])

    for tool in written:
        name = tool["function"]["name"]
        assert 1 <= len(name) <= 64
        assert all(char.isascii() and (char.isalnum() or char in "_-") for char in name)
        assert not name[0].isdigit()
        call = PROVIDERS["openai"].calls([chat_call("a", name, "{}")], names)[0]
        assert call.name in names
        assert provider_name(call.name) == name


def test_a_name_that_is_allowed_stays_as_it_is() -> None:
    assert provider_name("get_weather-2") == "get_weather-2"
    assert provider_name("files.read").startswith("files_read_")
    assert provider_name("files.read") != provider_name("files:read")
