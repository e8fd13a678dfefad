"""The JSON Schemas of every operation and method, generated from the code by `make generate`.

They are read from files, so that checking arguments and listing tools needs neither models nor
the inspection of signatures.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

__all__ = ["SYSTEMS", "method_schema", "operation_schemas"]

SYSTEMS: Final = ("memory", "debugging", "knowledge", "gateway", "developer", "review")


@cache
def _read(system: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(Path(__file__).with_name(f"{system}.json").read_bytes())
    return document


@cache
def operation_schemas(name: str) -> dict[str, Any] | None:
    """Return the `input` and `output` schemas of an operation; None if none were generated."""
    return next((found for each in SYSTEMS if (found := _read(each)["operations"].get(name))), None)


@cache
def method_schema(system: str, name: str) -> dict[str, Any]:
    """Return the schema of the parameters of a method of a system."""
    schema: dict[str, Any] = _read(system)["methods"][name]
    return schema
