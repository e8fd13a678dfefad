"""Generating text with a model behind an OpenAI-compatible endpoint, once one is named."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.behaviour.conftest import Call, Opener
from tests.manifest import proves
from tests.surfaces.serving import Service, as_json

PATH = "/v1/chat/completions"
ANSWER = {
    "model": "tiny-1",
    "choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def call(opened: Opener, service: Service) -> Call:
    """Return calls of a database with a model, whose key is in the environment."""
    call = opened(allow_hosts=(service.host,))
    call.configure_model(endpoint=service.url("/v1"), model="tiny", api_key="${TINY_MODEL_KEY}")
    return call


@proves("developer:generation")
def test_a_configured_model_writes_a_text(
    call: Call, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_MODEL_KEY", "a-key-of-the-environment")
    service.answers[PATH] = lambda _said: as_json(ANSWER)

    written = call.generate(prompt="Greet.", system="Be brief.", max_tokens=9, stop=["!"])

    assert written == {
        "text": "Hello.",
        "model": "tiny-1",
        "stop_reason": "stop",
        "prompt_tokens": 5,
        "completion_tokens": 2,
    }
    (said,) = service.received
    assert said["headers"]["authorization"] == "Bearer a-key-of-the-environment"
    body = json.loads(said["body"])
    assert [each["content"] for each in body["messages"]] == ["Be brief.", "Greet."]
    assert (body["model"], body["max_tokens"], body["stop"]) == ("tiny", 9, ["!"])
    named = [each for each in call.models_list()["results"] if each["task"] == "generate"]
    assert [(each["name"], each["in_use"]) for each in named] == [("tiny", True)]


@proves("developer:generation")
@pytest.mark.parametrize(
    ("status", "answer"), [(500, {"error": "no"}), (200, {"other": "form"}), (200, ["no object"])]
)
def test_a_model_that_fails_is_said_to_and_its_words_are_not_taken_for_an_answer(
    call: Call, service: Service, monkeypatch: pytest.MonkeyPatch, status: int, answer: object
) -> None:
    monkeypatch.setenv("TINY_MODEL_KEY", "a-key-of-the-environment")
    service.answers[PATH] = lambda _said: as_json(answer, status)

    refused = call.failure("strata_generate", prompt="Greet.")

    assert refused["error"] == "generation_unavailable"
    assert "a-key-of-the-environment" not in json.dumps(refused)


@proves("developer:generation")
def test_a_key_that_is_not_set_is_named_and_nothing_is_sent(
    call: Call, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TINY_MODEL_KEY", raising=False)

    refused = call.failure("strata_generate", prompt="Greet.")

    assert "${TINY_MODEL_KEY}" in refused["message"]
    assert service.received == []
