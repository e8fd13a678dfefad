"""Valid calls to damage: real ones from the data, and made-up ones for the catalogue's schemas."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from evals.suites import need

__all__ = ["Call", "made", "made_for", "real", "vocabulary"]

_TEXTS: Final = (
    "Oslo", "Los Angeles, CA", "Portland, Oregon", "jazz", "Hello, world", "blue", "Doe, Jane",
    "quarterly report", "The Good, the Bad and the Ugly", "AAPL", "2024-05-06", "March 5, 2024",
    "user@example.com", "https://example.com/a,b", "42", "007", "3.10", "true", "null", "red wine",
    "Is it open today?", "x = 1; y = 2", "Washington, D.C.", "Smith & Sons, Inc.", "äpfel", "north",
    "e4", "Earth, Wind & Fire", "yes", "low-fat", "C:\\new\\file.txt", "it's fine", 'say "hi"', "",
)  # fmt: skip
_WORDS: Final = (
    "parking", "wifi", "breakfast", "protein", "calories", "rock", "vegan", "price", "volume",
    "assists", "rebounds", "pool", "gym", "Comedy", "Drama", "Reading Room", "Free Parking",
)  # fmt: skip
_SCALARS: Final[dict[str, tuple[Any, ...]]] = {
    "integer": (0, 1, 2, 7, 12, 100, 1999, 2024, 12345, 1234567, -3),
    "number": (0.5, 3.7, 12, 0.05, 99.99, 1500, -2.25),
    "boolean": (True, False),
}
_OPTIONAL_SHARE: Final = 0.5


class Call(NamedTuple):
    """A tool's schema and arguments that it accepts."""

    tool: str
    schema: dict[str, Any]
    arguments: dict[str, Any]


def real(data: Path) -> list[Call]:
    """Return the right arguments of every call in the data, once each."""
    found: dict[bytes, Call] = {}
    for row in _rows(data / "tools" / "repair_dev.jsonl"):
        if isinstance(row["good_args"], dict):
            key = orjson.dumps([row["tool"], row["good_args"]])
            found[key] = Call(row["tool"], row["schema"], row["good_args"])
    return list(found.values())


def made(data: Path, count: int, seed: int) -> list[Call]:
    """Return made-up calls of tools drawn from the catalogue."""
    rng = random.Random(seed)
    tools = _rows(data / "tools" / "catalogue.jsonl")
    nested = [tool for tool in tools if _nests(tool["inputSchema"])]
    drawn = rng.sample(tools, count) + rng.sample(nested, min(len(nested), count // 4))
    return [
        Call(tool["name"], tool["inputSchema"], _object(tool["inputSchema"], rng))
        for tool in drawn
        if tool["inputSchema"].get("properties")
    ]


def made_for(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return made-up arguments for a schema."""
    return _object(schema, rng)


def vocabulary(data: Path) -> list[str]:
    """Return the parameter names that several tools of the catalogue share."""
    names: Counter[str] = Counter()
    for tool in _rows(data / "tools" / "catalogue.jsonl"):
        names.update(list(tool["inputSchema"].get("properties", {})))
    return sorted(name for name, count in names.items() if count > 1)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in need(path).read_bytes().splitlines()]


def _nests(schema: dict[str, Any]) -> bool:
    return any(part.get("properties") for part in schema.get("properties", {}).values())


def _object(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    required = set(schema.get("required", ()))
    return {
        name: _value(part, rng)
        for name, part in schema.get("properties", {}).items()
        if name in required or rng.random() < _OPTIONAL_SHARE
    }


def _value(schema: dict[str, Any], rng: random.Random) -> Any:
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, rng)
    if kind == "array":
        return _array(schema, rng)
    return rng.choice(_SCALARS.get(str(kind), _TEXTS))


def _array(schema: dict[str, Any], rng: random.Random) -> list[Any]:
    items = schema.get("items", {})
    if items.get("type", "string") == "string" and not items.get("enum"):
        pool = _WORDS if rng.random() < 0.7 else _TEXTS
        return rng.sample(pool, rng.randint(1, 3))
    least = max(1, schema.get("minItems", 1))
    return [_value(items, rng) for _ in range(rng.randint(least, least + 2))]
