"""What is generated from the code is what is checked in, and has words for everything."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import pytest

import stratagem
from scripts import generate
from stratagem import parameters, schemas
from stratagem.operations import TABLE

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "default", "description", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength",
    "minItems", "maxItems", "pattern",
    *parameters.OWN_KEYWORDS,
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


@pytest.mark.parametrize("system", ["memory", "debugging", "knowledge", "gateway"])
def test_help_of_a_method_has_every_parameter_with_its_words(system: str) -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        methods = inspect.getmembers(getattr(db, system), inspect.ismethod)
    pages = {name: pydoc.render_doc(method) for name, method in methods if name[0] != "_"}

    assert pages
    silent = [
        f"{name}: {parameter}"
        for name, method in methods
        if name in pages
        for parameter in inspect.signature(method).parameters
        if not re.search(rf"^ +{parameter}: \S", pages[name], re.MULTILINE)
    ]
    assert silent == []


def described(schema: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an object and each of its parameters, those of inner objects too."""
    yield place, schema
    for choice in (schema, *schema.get("anyOf", ())):
        for each, inner in choice.get("properties", {}).items():
            yield from described(inner, f"{place}.{each}")
