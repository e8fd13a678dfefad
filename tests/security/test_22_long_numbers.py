"""Numbers of thousands of digits, in every parameter: refused as any other bad value.

Python raises `ValueError` where a text of more than 4,300 digits is read as a number, and
`OverflowError` where such a number becomes a float.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import schemas
from stratagem.operations import TABLE

DIGITS = "9" * 5_000
HUGE = 10**4_000
PLAIN = {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}


@pytest.fixture(scope="module")
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


@pytest.mark.parametrize("name", list(TABLE))
def test_a_long_number_in_a_parameter_is_a_bad_value(
    name: str, db: stratagem.Stratagem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = []

    for arguments in bad_arguments(name):
        try:
            db.call(name, arguments)
        except stratagem.StratagemError as error:
            if error.code == "internal_error":
                faults.append(repr(error)[:200])

    assert faults == []


def bad_arguments(name: str) -> Iterator[dict[str, Any]]:
    found = schemas.operation_schemas(name)
    assert found is not None
    properties = found["input"]["properties"]
    needed = {each: plain_value(properties[each]) for each in found["input"].get("required", ())}
    for parameter, schema in properties.items():
        kinds = {each.get("type") for each in (schema, *schema.get("anyOf", ()))}
        if kinds & {"integer", "number"}:
            yield from ({**needed, parameter: number} for number in (HUGE, -HUGE))
        if "string" in kinds:
            yield from (
                {**needed, parameter: text} for text in (DIGITS, f"@{DIGITS}", f"{DIGITS}KB")
            )


def plain_value(schema: dict[str, Any]) -> Any:
    return schema["enum"][0] if "enum" in schema else PLAIN.get(schema.get("type", ""), "x")


@pytest.fixture(scope="module")
def tool(db: stratagem.Stratagem) -> str:
    properties = {
        "list": {"type": "array", "items": {"type": "integer"}},
        "count": {"type": "integer"},
    }
    db.gateway.register(
        name="numbers",
        description="Takes numbers.",
        input_schema={"type": "object", "properties": properties, "additionalProperties": False},
        handler={"type": "webhook", "url": "https://example.invalid/"},
    )
    return "numbers"


@pytest.mark.parametrize(
    "arguments",
    [
        {"list": {DIGITS: 1}},
        {"list": {DIGITS: 1, "1": 2}},
        {"list": f"[{DIGITS}]"},
        {f"list[{DIGITS}]": 1},
        {"count": DIGITS},
        {"count": "0" * 5_000},
    ],
)
def test_arguments_of_long_numbers_stop_no_correction(
    arguments: dict[str, Any], db: stratagem.Stratagem, tool: str
) -> None:
    with pytest.raises(stratagem.ValidationFailed):
        db.call("tool_execute", {"toolName": tool, "arguments": arguments})

    assert set(db.call("auto_correction_status", {})["serviceStatus"].values()) == {"healthy"}


def test_a_bad_argument_does_not_make_a_service_of_corrections_unavailable(
    db: stratagem.Stratagem,
) -> None:
    with pytest.raises(stratagem.ValidationFailed):
        db.call("auto_correction_status", {"branch": "b" * 5_000})

    assert set(db.call("auto_correction_status", {})["serviceStatus"].values()) == {"healthy"}
