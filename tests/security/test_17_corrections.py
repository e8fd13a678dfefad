"""17. No text makes a correction slow: what reads the texts of models, attacked as a whole."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stratagem.gateway.correction import correct

SCHEMA = {
    "type": "object",
    "properties": {
        "expression": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "when": {"type": "string", "format": "date-time"},
        "at": {"type": "object", "properties": {"a": {"type": "number"}}},
    },
    "required": ["expression"],
}
# Each opens something, again and again, that nothing closes, or nearly is what some reader takes.
ATTACKS = [
    '\\"', "'a", '"""', "  \\", "[1,", '{"a":', "[]", "a,", "a=1,", "a: 1\n", "- a\n", "<a>",
    "</a>", "```json\n", "/*", "[a](", "&a=", "1.", "T12:", "\r",
]  # fmt: skip


def _seconds(arguments: Any) -> float:
    began = time.thread_time()
    correct(SCHEMA, arguments)
    return time.thread_time() - began


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_takes_more_than_its_length(attack: str) -> None:
    def all_places(length: int) -> float:
        text = attack * (length // len(attack))
        one = [{"expression": "1", name: text} for name in ("tags", "when", "at")]
        return sum(map(_seconds, [text, *one]))

    # Eight times as long; what is quadratic takes 64 times as much, however often it is measured.
    assert any(all_places(16_000) < 24 * all_places(2_000) + 0.1 for _ in range(5))
