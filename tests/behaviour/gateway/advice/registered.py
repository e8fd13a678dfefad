"""A real database with tools that are really called."""

from __future__ import annotations

from typing import Any

import stratagem

__all__ = ["add", "fail", "give", "register_weather_and_mail"]

TEXT = {"type": "string"}


def give(output: Any) -> dict[str, Any]:
    """Return a handler that calculates something and gives an output."""
    steps = [{"id": "sum", "tool": "calculator", "arguments": {"expression": "1 + 1"}}]
    return {"type": "pipeline", "definition": {"name": "given", "steps": steps, "output": output}}


def fail() -> dict[str, Any]:
    """Return a handler whose calculation has no result."""
    steps = [{"id": "sum", "tool": "calculator", "arguments": {"expression": "1 / 0"}}]
    return {"type": "pipeline", "definition": {"name": "failing", "steps": steps}}


def add(
    db: stratagem.Stratagem,
    name: str,
    description: str,
    parameters: dict[str, Any] | None = None,
    required: tuple[str, ...] = (),
    **more: Any,
) -> None:
    """Register a tool."""
    schema = {"type": "object", "properties": parameters or {}, "required": list(required)}
    definition = {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "handler": give({"done": True}),
        **more,
    }
    db.call("tool_register", definition)


def register_weather_and_mail(db: stratagem.Stratagem) -> None:
    """Register the three tools that most tests ask about."""
    add(
        db,
        "get_weather",
        "Current weather and temperature of a city.",
        {"city": TEXT, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        ("city",),
        outputSchema={
            "type": "object",
            "properties": {"temperature": {"type": "number"}, "summary": TEXT},
            "required": ["temperature", "summary"],
        },
        handler=give({"temperature": 7, "summary": "cold"}),
        category="weather",
    )
    add(
        db,
        "send_email",
        "Send an email with a subject and a text to somebody.",
        {"recipient": TEXT, "subject": TEXT, "summary": TEXT},
        ("recipient", "summary"),
        category="mail",
    )
    add(db, "read_file", "Read the contents of a file.", {"path": TEXT}, ("path",))
