"""The manifest and the tests hold each other to account."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

from tests.manifest import MANIFEST

TESTS = Path(__file__).parent
FOLDER = TESTS / "behaviour"
# What a program that uses Stratagem imports, and what tests have beside that: bounds to come up
# against, and who calls.
PUBLIC = frozenset(
    {
        "stratagem",
        "stratagem.errors",
        "stratagem.limits",
        "stratagem.operation",
        "stratagem.sdk",
        "stratagem.sdk.answers",
    }
)
Test = ast.FunctionDef | ast.AsyncFunctionDef


def proved(folder: Path) -> dict[str, list[str]]:
    """Return the ids that each test below a folder names, by reading the files."""
    return {
        f"{path.relative_to(folder)}::{node.name}": ids_of(node)
        for path in sorted(folder.rglob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, Test) and node.name.startswith("test_")
    }


def ids_of(test: Test) -> list[str]:
    return [
        argument.value
        for decorator in test.decorator_list
        if isinstance(decorator, ast.Call)
        if isinstance(decorator.func, ast.Name) and decorator.func.id == "proves"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def imported(path: Path) -> set[str]:
    """Return the modules of ours that a file imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "stratagem":
            # A name of the package or a module in it, and only the latter can be a reach inside.
            inside = {f"stratagem.{each.name}" for each in node.names}
            found.update(name for name in inside if find_spec(name) is not None)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.partition(".")[0] == "stratagem"}


def test_every_behaviour_test_says_what_it_proves() -> None:
    assert [name for name, ids in proved(FOLDER).items() if not ids] == []


def test_every_promise_is_proved() -> None:
    shown = {each for ids in proved(TESTS).values() for each in ids}

    assert sorted(MANIFEST.keys() - shown) == []
    assert sorted(shown - MANIFEST.keys()) == []


def test_behaviour_is_tried_through_public_ways() -> None:
    reaching = {
        str(path.relative_to(FOLDER)): sorted(inside)
        for path in sorted(FOLDER.rglob("test_*.py"))
        if (inside := imported(path) - PUBLIC)
    }

    assert reaching == {}


def test_every_promise_is_one_sentence() -> None:
    assert [each for each, words in MANIFEST.items() if not words.endswith(".")] == []
    assert len(set(MANIFEST.values())) == len(MANIFEST)
