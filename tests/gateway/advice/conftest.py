from __future__ import annotations

from collections.abc import Iterator

import pytest

import stratagem
from tests.gateway.advice.registered import add, give

TEXT = {"type": "string"}


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", durability="fast") as opened:
        add(
            opened,
            "get_weather",
            "Current weather and temperature of a city.",
            {"city": TEXT, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            ("city",),
            outputSchema={
                "type": "object",
                "properties": {"temperature": {"type": "number"}, "summary": TEXT},
            },
            handler=give({"temperature": 7, "summary": "cold"}),
            category="weather",
        )
        add(
            opened,
            "send_email",
            "Send an email with a subject and a text to somebody.",
            {"recipient": TEXT, "subject": TEXT, "summary": TEXT},
            ("recipient", "summary"),
            category="mail",
        )
        add(opened, "read_file", "Read the contents of a file.", {"path": TEXT}, ("path",))
        yield opened
