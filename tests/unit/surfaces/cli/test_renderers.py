"""What shows an answer at the command line reads what the operation answers, and nothing else.

An operation names its renderer by a text, which no type checker follows.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

from stratagem.operations import TABLE


def renderers() -> dict[str, list[str]]:
    """Return the operations of each renderer."""
    found: dict[str, list[str]] = {}
    for name, operation in TABLE.items():
        for hint in operation.commands:
            if hint.renderer:
                found.setdefault(hint.renderer, []).append(name)
    return found


RENDERERS = renderers()
# What an operation of several actions answers besides: which of them it was.
ACTION = {"action"}


def function_of(renderer: str) -> Any:
    module, name = renderer.split(".")
    return getattr(importlib.import_module(f"stratagem.surfaces.cli.{module}"), name)


def fields_read(function: Any) -> Iterator[str]:
    """Yield the fields that a function reads of the answer itself."""
    for node in ast.walk(ast.parse(inspect.getsource(function))):
        match node:
            case ast.Subscript(value=ast.Name(id="answer"), slice=ast.Constant(value=str(field))):
                yield field
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="answer"), attr="get"),
                args=[ast.Constant(value=str(field)), *_],
            ):
                yield field


def fields_answered(name: str) -> set[str]:
    """Return the fields of what the method of an operation returns, as JSON has them."""
    returned = get_type_hints(TABLE[name].method)["return"]
    kinds = get_args(returned) or (returned,)
    return {field for kind in kinds for field in get_type_hints(kind)}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_renderer_reads_fields_that_the_operation_answers(renderer: str) -> None:
    answered: set[str] = set().union(*map(fields_answered, RENDERERS[renderer]))

    assert set(fields_read(function_of(renderer))) <= answered | ACTION


@pytest.mark.parametrize(
    "renderer",
    [each for each, names in RENDERERS.items() if TABLE[names[0]].part == "gateway"],
)
def test_a_renderer_of_the_gateway_takes_what_the_operation_returns(renderer: str) -> None:
    """Its type, by which mypy knows what it may read of it."""
    returned = {
        TABLE[name].method.__annotations__["return"].rpartition(".")[2]
        for name in RENDERERS[renderer]
    }

    taken = set(re.findall(r"\w+", function_of(renderer).__annotations__["answer"]))

    assert taken == returned
