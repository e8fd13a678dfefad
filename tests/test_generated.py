"""What is generated from the code is what is checked in, and has words for everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scripts import generate
from stratagem import parameters, schemas
from stratagem.operations import TABLE

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "default", "description", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength",
    "minItems", "maxItems", "pattern",
    parameters.QUIET, parameters.STRICT, parameters.ADVERTISED,
}  # fmt: skip


def test_the_generated_files_are_not_stale() -> None:
    stale = [path.name for path, text in generate.generated().items() if path.read_bytes() != text]

    assert not stale, "run `make generate`"


@pytest.mark.parametrize("name", list(TABLE))
def test_every_parameter_is_explained_and_every_keyword_is_checked(name: str) -> None:
    found = schemas.operation_schemas(name)

    assert found is not None
    for place, schema in described(found["input"], name):
        assert set(schema) <= KEYWORDS, place
        assert place == name or schema.get("description"), place


def described(schema: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an object and each of its parameters, those of inner objects too."""
    yield place, schema
    for choice in (schema, *schema.get("anyOf", ())):
        for each, inner in choice.get("properties", {}).items():
            yield from described(inner, f"{place}.{each}")
