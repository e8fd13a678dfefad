"""Models on loopback that speak the documented wire formats, and made-up data."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves
from tests.surfaces.serving import Service, as_json

PRICES = {"inputPerMillion": 1.0, "outputPerMillion": 10.0, "perImage": 0.04}


def streams(*events: tuple[str | None, Any]) -> Any:
    """Return what writes server-sent events to a connection."""

    def write(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.send_header("connection", "close")
        request.end_headers()
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            request.wfile.write(f"{head}data: {text}\n\n".encode())
        request.close_connection = True

    return write


def chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "tiny-1", "choices": [choice]}


OPENAI = streams(
    (None, chunk("Events ")),
    (None, chunk("are facts.", "stop")),
    (None, {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 4}}),
    (None, "[DONE]"),
)
ANTHROPIC = streams(
    (
        "message_start",
        {
            "type": "message_start",
            "message": {"model": "claude-tiny", "usage": {"input_tokens": 9}},
        },
    ),
    (
        "content_block_start",
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ),
    ("ping", {"type": "ping"}),
    (
        "content_block_delta",
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Hello."},
        },
    ),
    ("content_block_stop", {"type": "content_block_stop", "index": 0}),
    (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3},
        },
    ),
    ("message_stop", {"type": "message_stop"}),
)


def configure(desk: Desk, provider: str, **config: Any) -> None:
    desk.database.call("provider_configure", {"provider": provider, "config": config})


@proves("standard:generation")
def test_a_text_streams_from_an_openai_server_with_progress_and_cost(
    desk: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_SECRET_MODEL_KEY", "model-key-0123456789")
    service.raw["/v1/chat/completions"] = OPENAI
    configure(
        desk,
        "openai",
        model="tiny-1",
        baseUrl=service.url("/v1"),
        apiKey="${MODEL_KEY}",
        maxTokens=50,
        pricing=PRICES,
    )
    desk.grant("text_generation", "MODEL_KEY", service.url(""))
    seen: list[Any] = []
    gateway = desk.database.runtime.gateway
    gateway.events.subscribe(lambda what, data: seen.append(data) if what == "progress" else None)

    told = desk.call(
        "text_generation", prompt="What are events?", system="Be brief.", temperature=0
    )

    assert told["text"] == "Events are facts."
    assert told["finishReason"] == "stop"
    assert told["model"] == "tiny-1"
    assert told["usage"] == {"inputTokens": 12, "outputTokens": 4, "cost": 0.000052}
    sent = json.loads(service.received[-1]["body"])
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What are events?"},
    ]
    assert (sent["max_tokens"], sent["temperature"], sent["stream"]) == (50, 0, True)
    assert service.received[-1]["headers"]["authorization"] == "Bearer model-key-0123456789"
    assert any("Events" in str(each) for each in seen)


@proves("standard:generation")
def test_a_text_streams_from_anthropic(desk: Desk, service: Service) -> None:
    service.raw["/v1/messages"] = ANTHROPIC
    configure(desk, "anthropic", model="claude-tiny", baseUrl=service.url(""))

    told = desk.call("text_generation", prompt="Say hello.", maxTokens=20)

    assert (told["text"], told["finishReason"]) == ("Hello.", "end_turn")
    assert told["usage"] == {"inputTokens": 9, "outputTokens": 3, "cost": None}
    assert service.received[-1]["headers"]["anthropic-version"] == "2023-06-01"
    assert json.loads(service.received[-1]["body"])["max_tokens"] == 20


@proves("standard:generation")
def test_a_server_that_does_not_stream_is_read_all_the_same(desk: Desk, service: Service) -> None:
    message = {"role": "assistant", "content": "Here:\n```python\nprint(1)\n```\nIt prints one."}
    whole = {
        "model": "tiny-1",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    service.answers["/v1/chat/completions"] = lambda _said: as_json(whole)
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    told = desk.call("code_generation", prompt="Print one.", language="python")

    assert told["code"] == "print(1)\n"
    assert "It prints one." in told["notes"]
    assert told["usage"]["outputTokens"] == 2


@proves("standard:generation")
def test_images_come_as_content(desk: Desk, service: Service) -> None:
    picture = base64.b64encode(b"\x89PNG picture").decode()
    service.answers["/v1/images/generations"] = lambda _said: as_json(
        {"created": 1, "data": [{"b64_json": picture, "revised_prompt": "A fog."}]}
    )
    configure(
        desk, "openai", model="m", imageModel="paint-1", baseUrl=service.url("/v1"), pricing=PRICES
    )

    answer = desk.database.call(
        "tool_execute",
        {"toolName": "image_generation", "arguments": {"prompt": "Fog", "size": "512x512"}},
    )

    assert answer["result"]["images"][0]["revisedPrompt"] == "A fog."
    assert answer["result"]["usage"]["cost"] == 0.04
    assert answer["mcp"]["content"] == [{"type": "image", "data": picture, "mimeType": "image/png"}]
    assert json.loads(service.received[-1]["body"]) == {
        "model": "paint-1",
        "prompt": "Fog",
        "n": 1,
        "size": "512x512",
    }


@proves("standard:generation")
def test_failures_of_a_provider_say_what_to_do(desk: Desk, service: Service) -> None:
    service.answers["/v1/chat/completions"] = lambda _said: as_json(
        {"error": {"message": "Incorrect API key provided"}}, 401
    )
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    refused = desk.refusal("text_generation", prompt="x")

    assert refused.code == "execution_error"
    assert "secret" in refused.hint


@proves("standard:generation")
def test_an_answer_that_breaks_off_is_an_error(desk: Desk, service: Service) -> None:
    service.raw["/v1/chat/completions"] = streams(
        (None, chunk("Half")), (None, {"error": {"message": "overloaded"}})
    )
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    assert "overloaded" in desk.refusal("text_generation", prompt="x").message


def one_after_another(*answers: Any) -> Any:
    """Return what gives each answer once, in order; an error is a status and a head."""
    left = list(answers)

    def write(request: BaseHTTPRequestHandler) -> None:
        answer = left.pop(0)
        if callable(answer):
            answer(request)
            return
        status, headers = answer
        request.send_response(status)
        for name, value in {"content-length": "0", **headers}.items():
            request.send_header(name, value)
        request.end_headers()

    return write


BROKEN = streams((None, {"error": {"message": "overloaded"}}))
CUT = streams((None, chunk("Half")))


@proves("standard:generation")
@pytest.mark.parametrize(
    "answers",
    [[(503, {}), (529, {}), OPENAI], [(429, {"retry-after": "0"}), OPENAI], [BROKEN, OPENAI]],
)
def test_a_provider_that_wrote_nothing_is_asked_again(
    desk: Desk, service: Service, answers: list[Any]
) -> None:
    service.raw["/v1/chat/completions"] = one_after_another(*answers)
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    told = desk.call("text_generation", prompt="x")

    assert told["text"] == "Events are facts."
    assert service.count("/v1/chat/completions") == len(answers)


@proves("standard:generation")
@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        # A wrong key stays wrong, and what was written once is paid for.
        ([(401, {})], 1),
        ([CUT], 1),
        ([streams((None, chunk("Half")), (None, {"error": {"message": "overloaded"}}))], 1),
        # It says to come back when the call is long over.
        ([(429, {"retry-after": "3600"})], 1),
        ([(503, {}), (503, {}), (503, {})], 3),
    ],
)
def test_a_provider_is_not_asked_again_in_vain(
    desk: Desk, service: Service, answers: list[Any], asked: int
) -> None:
    service.raw["/v1/chat/completions"] = one_after_another(*answers)
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    refused = desk.refusal("text_generation", prompt="x")

    assert refused.code == "execution_error"
    assert service.count("/v1/chat/completions") == asked


@proves("standard:generation")
def test_images_are_asked_for_again_too(desk: Desk, service: Service) -> None:
    picture = base64.b64encode(b"\x89PNG picture").decode()
    left = [({"error": {"message": "busy"}}, 503), ({"data": [{"b64_json": picture}]}, 200)]
    service.answers["/v1/images/generations"] = lambda _said: as_json(*left.pop(0))
    configure(desk, "openai", model="m", imageModel="paint-1", baseUrl=service.url("/v1"))

    assert len(desk.call("image_generation", prompt="Fog")["images"]) == 1
    assert service.count("/v1/images/generations") == 2


@proves("standard:generation")
def test_a_whole_message_of_anthropic_is_read_all_the_same(desk: Desk, service: Service) -> None:
    message = {
        "type": "message",
        "model": "claude-tiny",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }
    service.answers["/v1/messages"] = lambda _said: as_json(message)
    configure(desk, "anthropic", model="claude-tiny", baseUrl=service.url(""))

    told = desk.call("text_generation", prompt="Say hello.")

    assert (told["text"], told["finishReason"]) == ("Hello.", "max_tokens")
    assert told["usage"] == {"inputTokens": 9, "outputTokens": 3, "cost": None}


@proves("standard:generation")
def test_a_model_whose_price_is_not_known_is_not_asked(desk: Desk, service: Service) -> None:
    service.raw["/v1/chat/completions"] = OPENAI
    prices = {**PRICES, "models": {"large-1": {"outputPerMillion": 100.0}}}
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"), pricing=prices)

    refused = desk.refusal("text_generation", prompt="x", model="huge-1")
    told = desk.call("text_generation", prompt="x", model="large-1")

    assert refused.details["field"] == "model"
    assert refused.details["allowed"] == ["tiny-1", "large-1"]
    assert told["usage"]["cost"] == 0.0004


@proves("standard:generation")
def test_a_budget_counts_what_a_call_can_cost(desk: Desk, service: Service) -> None:
    service.raw["/v1/chat/completions"] = OPENAI
    configure(
        desk,
        "openai",
        model="tiny-1",
        baseUrl=service.url("/v1"),
        maxTokens=100_000,
        pricing=PRICES,
    )

    # 100,000 tokens of an answer, and 200 around the prompt.
    assert desk.shown("text_generation")["pricing"] == {"model": "per_token", "cost": 1.0002}


@proves("standard:summary")
def test_a_model_summarizes_where_one_is_configured(desk: Desk, service: Service) -> None:
    service.raw["/v1/chat/completions"] = OPENAI
    configure(desk, "openai", model="tiny-1", baseUrl=service.url("/v1"))

    told = desk.call("summarization", text="A long text about events.", method="model")

    assert told["summary"] == "Events are facts."
    assert told["model"] == "tiny-1"


@proves("standard:synthesis")
def test_rows_are_made_up_alike_by_seed(desk: Desk) -> None:
    fields = [
        {"name": "id", "type": "sequence", "minimum": 100},
        {"name": "first", "type": "first_name"},
        {"name": "mail", "type": "template", "template": "{first}@example.com"},
        {"name": "code", "type": "integer", "minimum": 1, "maximum": 20, "unique": True},
        {"name": "level", "type": "choice", "values": ["low", "high"], "nullShare": 0.3},
    ]

    one = desk.call("data_synthesis", fields=fields, count=20, seed=5)["rows"]
    two = desk.call("data_synthesis", fields=fields, count=20, seed=5)["rows"]
    other = desk.call("data_synthesis", fields=fields, count=20, seed=6)["rows"]

    assert one == two != other
    assert [row["id"] for row in one] == list(range(100, 120))
    assert all(row["mail"] == f"{row['first'].casefold()}@example.com" for row in one)
    assert sorted(row["code"] for row in one) == list(range(1, 21))
    assert {row["level"] for row in one} == {"low", "high", None}


@proves("standard:synthesis")
def test_tables_refer_to_each_other(desk: Desk) -> None:
    tables = [
        {"name": "users", "count": 3, "fields": [{"name": "id", "type": "uuid", "unique": True}]},
        {
            "name": "orders",
            "count": 10,
            "fields": [
                {"name": "user", "type": "reference", "reference": "users.id"},
                {"name": "day", "type": "date", "from": "2026-01-01", "to": "2026-01-31"},
            ],
        },
    ]

    made = desk.call("data_synthesis", tables=tables)["tables"]

    assert {row["user"] for row in made["orders"]} <= {row["id"] for row in made["users"]}
    assert all("2026-01-01" <= row["day"] <= "2026-01-31" for row in made["orders"])


@proves("standard:synthesis")
def test_rows_of_a_schema_fit_it(desk: Desk) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "email": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 18, "maximum": 21},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
        },
        "required": ["email", "age", "tags"],
    }

    rows = desk.call("data_synthesis", schema=schema, count=30)["rows"]

    assert all("@example." in row["email"] and 18 <= row["age"] <= 21 for row in rows)
    flat = {
        **schema,
        "properties": {key: schema["properties"][key] for key in ("email", "age")},
        "required": ["email", "age"],
    }
    text = desk.call("data_synthesis", schema=flat, count=2, format="csv")["csv"]
    assert text.splitlines()[0] == "email,age"


@proves("standard:synthesis")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "fields"),
        ({"fields": [{"name": "a", "type": "choice", "values": [1], "unique": True}]}, "fields[0]"),
        ({"fields": [{"name": "a", "type": "template", "template": "{b}"}]}, "fields[0].template"),
        (
            {"fields": [{"name": "a", "type": "reference", "reference": "b.c"}]},
            "fields[0].reference",
        ),
        ({"fields": [{"name": "a", "type": "word"}], "locale": "xx_XX"}, "locale"),
        ({"schema": {"type": "string", "pattern": "^[A-Z]{9}$"}}, "schema"),
    ],
)
def test_what_cannot_be_made_up_is_refused(desk: Desk, given: dict[str, Any], field: str) -> None:
    assert desk.refusal("data_synthesis", **given).details["field"] == field
