"""Calls in the words of whoever reads of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stratagem import errors
from stratagem.call_forms import CallForm, reword
from stratagem.errors import StratagemError
from stratagem.operations import TABLE

SOURCES = Path(errors.__file__).parent
NAME = re.compile(r"(?<![\w'\"-])[a-z]+(?:_[a-z]+)+(?![\w'\"])")


def hints() -> Iterator[str]:
    """Yield every text of the package that is a hint of an error."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (isinstance(node, ast.keyword) and node.arg == "hint") or (
                isinstance(node, ast.Assign) and "hint" in ast.unparse(node.targets[0])
            ):
                yield from _texts(node.value)


def _texts(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def operations_in(text: str) -> list[str]:
    return [name for name in NAME.findall(text) if name in TABLE]


@pytest.mark.parametrize("form", ["command", "method"])
def test_no_hint_names_a_tool_where_there_are_none(form: CallForm) -> None:
    naming = [hint for hint in hints() if operations_in(hint)]

    reworded = {hint: reword(hint, form) for hint in naming}

    assert len(naming) > 5
    for said in reworded.values():
        # As a method or as an argument of `call` an operation may keep its name.
        left = re.sub(r"\b\w+\.\w+\([^)]*\)|call\(\"\w+\"\)|`[^`]*`", "", said)
        assert not operations_in(left), said


@pytest.mark.parametrize(
    ("text", "command", "method"),
    [
        (
            'List the branches with strata_branch, action "list".',
            "List the branches with `stratagem branch list`.",
            "List the branches with memory.branches().",
        ),
        (
            "strata_branch with action \"restore\" and name 'a b' restores it.",
            "`stratagem branch restore 'a b'` restores it.",
            "memory.restore('a b') restores it.",
        ),
        (
            "strata_recall with prefix 'user' lists them.",
            "`stratagem list user` lists them.",
            "memory.list('user') lists them.",
        ),
        (
            "Search for one with tools_discover.",
            "Search for one with `stratagem tools discover`.",
            "Search for one with gateway.discover().",
        ),
        (
            "Call ranked_solutions; as_of '@5' shows it.",
            "Call `stratagem ranked-solutions`; --as-of @5 shows it.",
            "Call debugging.ranked_solutions(); as_of '@5' shows it.",
        ),
        ("The key 'strata_store' is near.", "The key 'strata_store' is near.", None),
        ("Nothing to call.", "Nothing to call.", None),
    ],
)
def test_a_call_is_written_as_it_is_made(text: str, command: str, method: str | None) -> None:
    assert reword(text, "command") == command
    assert reword(text, "method") == (method or text)


def test_a_reworded_hint_is_the_one_that_a_traceback_shows() -> None:
    error = StratagemError("No.", hint="Call strata_status.")

    error.reword_hint(lambda hint: reword(hint, "method"))

    assert error.hint == "Call memory.status()."
    assert error.__notes__ == ["Call memory.status()."]
