"""A message is known by who said it and what was said."""

from __future__ import annotations

import pytest

from stratagem.memory.kinds import event_text
from stratagem.memory.messages import is_message, role_of, side_of, words_of


def test_a_message_says_its_role_and_its_words() -> None:
    assert role_of({"role": " User "}) == "user"
    assert role_of("text") is role_of({"role": 1}) is None
    assert words_of({"content": "hello", "role": "user"}) == words_of("hello") == "hello"
    assert words_of({"role": "user"}) == words_of(1) == ""


@pytest.mark.parametrize(
    "data",
    [
        {"role": "user", "text": "hello"},
        {"role": "Ann", "text": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "look_up"}]},
    ],
)
def test_data_of_a_speaker_is_a_message(data: object) -> None:
    assert is_message(data)


@pytest.mark.parametrize("data", ["hello", {"text": "hello"}, {"role": "admin", "name": "Kim"}])
def test_data_without_a_speaker_is_no_message(data: object) -> None:
    assert not is_message(data)


@pytest.mark.parametrize(
    "data",
    [
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
        {"role": "user", "content": {"type": "text", "text": "hello"}},
        {"role": "model", "parts": [{"text": "hello"}]},
        {"role": "user", "parts": ["hello"]},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "data": "aGVsbG8="}},
            ],
        },
        {"role": "user", "parts": [{"text": "hello"}, {"inlineData": {"data": "aGVsbG8="}}]},
    ],
)
def test_the_blocks_of_a_message_are_its_words(data: object) -> None:
    assert words_of(data) == event_text(data) == "hello"
    assert side_of(data) is not None


def test_several_blocks_are_a_line_each() -> None:
    blocks = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]

    assert words_of({"role": "user", "content": blocks}) == "One.\nTwo."


def test_what_nobody_said_is_found_and_is_no_words() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    thought = {"type": "thinking", "thinking": "Rain, perhaps.", "signature": "EqQB"}
    data = {"role": "assistant", "content": [thought, {"type": "text", "text": "A moment."}, call]}

    assert words_of(data) == "A moment."
    assert (
        event_text(data) == "A moment.\nthinking: Rain, perhaps.\nname: weather\ninput city: Oslo"
    )


@pytest.mark.parametrize(
    "data",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "Always use tabs."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]},
    ],
)
def test_a_call_of_a_tool_and_its_result_neither_ask_nor_answer(data: object) -> None:
    assert side_of(data) is None
    assert words_of(data) == ""


@pytest.mark.parametrize(
    "data",
    [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Rain, perhaps."}]},
        {"role": "assistant", "content": [{"type": "reasoning"}, {"type": "text", "text": ""}]},
        {"role": "model", "parts": [{"text": "Rain, perhaps.", "thought": True}]},
        {"role": "assistant", "content": [{"type": "thinking"}, {"type": "text", "text": "\n\n"}]},
        {"role": "assistant", "content": "", "reasoning_content": "Rain, perhaps."},
        {"role": "assistant", "content": None, "refusal": None},
        {"role": "assistant", "content": ""},
        {"role": "user", "text": " "},
    ],
)
def test_thoughts_alone_and_messages_without_words_neither_ask_nor_answer(data: object) -> None:
    assert side_of(data) is None


@pytest.mark.parametrize(
    ("data", "side"),
    [
        ({"role": "assistant", "content": {"answer": 42}}, "answering"),
        ({"role": "assistant", "answer": 42}, "answering"),
        ({"role": "assistant", "content": None, "refusal": "I can't."}, "answering"),
        ({"role": "user", "content": [{"type": "image", "source": {}}]}, "asking"),
    ],
)
def test_what_is_said_in_other_fields_or_by_a_picture_is_said(data: object, side: str) -> None:
    assert side_of(data) == side


def test_the_result_of_a_tool_is_found_by_its_text() -> None:
    picture = {"type": "image", "source": {"data": "aGVsbG8="}}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "clear sky"}, picture]}

    assert event_text({"role": "user", "content": [result]}) == "clear sky"


def test_a_text_beside_blocks_is_what_was_said() -> None:
    data = {"role": "user", "text": "hello", "content": [{"type": "text", "text": "world"}]}

    assert words_of(data) == "hello"
    assert event_text(data) == "hello\nworld"


def test_lists_without_a_speaker_are_no_words() -> None:
    assert words_of({"content": ["Always use tabs."]}) == ""


@pytest.mark.parametrize("kind", [1, None, [], {}, True])
def test_a_block_of_any_type_is_read(kind: object) -> None:
    data = {"role": "user", "content": [{"type": kind, "note": "fjord"}, 1, None, []]}

    assert side_of(data) == "asking"
    assert event_text(data) == "note: fjord\n1"
