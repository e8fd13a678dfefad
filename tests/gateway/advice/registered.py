"""A real database with tools that are really called."""

from __future__ import annotations

from typing import Any

import stratagem

__all__ = ["add", "fail", "give"]


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
