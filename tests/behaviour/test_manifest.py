"""The manifest and the tests hold each other to account."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.behaviour.manifest import MANIFEST

FOLDER = Path(__file__).parent


def proved() -> dict[str, list[str]]:
    """Return the ids that each behaviour test names, by reading the files."""
    named: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        if path == Path(__file__):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named[f"{path.name}::{node.name}"] = ids_of(node)
    return named


def ids_of(test: ast.FunctionDef) -> list[str]:
    return [
        argument.value
        for decorator in test.decorator_list
        if isinstance(decorator, ast.Call)
        if isinstance(decorator.func, ast.Name) and decorator.func.id == "proves"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_every_behaviour_test_says_what_it_proves() -> None:
    assert [name for name, ids in proved().items() if not ids] == []


def test_every_promise_is_proved() -> None:
    shown = {each for ids in proved().values() for each in ids}

    assert sorted(MANIFEST.keys() - shown) == []
    assert sorted(shown - MANIFEST.keys()) == []


def test_every_promise_is_one_sentence() -> None:
    assert [each for each, words in MANIFEST.items() if not words.endswith(".")] == []
    assert len(set(MANIFEST.values())) == len(MANIFEST)
