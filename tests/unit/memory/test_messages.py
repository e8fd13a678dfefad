"""A message is known by who said it and what was said."""

from __future__ import annotations

import pytest

from stratagem.memory.messages import is_message, role_of, words_of


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
