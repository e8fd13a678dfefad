"""Results are readable in a Python session, and as HTML in a notebook."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from stratagem.debugging.curation import CuratedDebugging
from stratagem.display import DisplayableResult
from stratagem.knowledge.service import Knowledge
from stratagem.memory.models import Change, Diff, Entry, History, VersionInfo
from stratagem.memory.service import Memory


@dataclass(slots=True, repr=False)
class Row(DisplayableResult):
    name: str
    value: Any = None
    note: str | None = None
    deleted: bool = False


@dataclass(slots=True, repr=False)
class Table(DisplayableResult):
    title: str
    results: list[Row] = field(default_factory=list)
    next: str | None = None


def test_a_single_result_is_one_line_without_what_is_empty() -> None:
    entry = Entry("city", "Oslo", 2, "2026-03-04T14:00:00Z", "default", [])

    assert repr(entry) == (
        "Entry(key='city', value='Oslo', version=2, timestamp='2026-03-04T14:00:00Z', "
        "namespace='default')"
    )


def test_a_list_of_results_is_a_table_with_the_columns_that_say_something() -> None:
    shown = repr(Table("two", [Row("a", 1), Row("b", "1")]))

    assert shown.splitlines() == [
        "Table(title='two', results=2)",
        "  name  value",
        "  a     1",
        "  b     '1'",
    ]


def test_what_is_long_is_cut_and_says_so() -> None:
    rows = [Row(f"k{number}", "x\n" * 100) for number in range(25)]

    lines = repr(Table("many", rows)).splitlines()

    assert len(lines) == 23
    assert lines[-1] == "  … 5 more"
    assert max(map(len, lines)) < 80
    assert len(repr(Entry("k", "x" * 10_000, 1, "t", "n", []))) < 400


def test_html_is_escaped_whatever_the_values_hold() -> None:
    attack = "<script>alert(1)</script>"
    table = Table(attack, [Row(attack, {attack: attack}, attack)])

    shown = table._repr_html_() + Row(attack, attack)._repr_html_()

    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "<table>" in shown


def test_diffs_and_histories_show_their_changes() -> None:
    diff = Diff("default", "risky", 0, 0, 1, 0, 0, 0, 0, [Change("k", "default", "changed", 1, 2)])
    history = History([VersionInfo(1, 2, "t", [])], truncated=False, next=None)

    assert "changed  1       2" in repr(diff)
    assert "<td" in diff._repr_html_()
    assert "version" in repr(history)


@pytest.mark.parametrize("service", [Memory, CuratedDebugging, Knowledge])
def test_everything_that_a_method_returns_is_displayed_so(service: type) -> None:
    methods = [each for name, each in inspect.getmembers(service) if not name.startswith("_")]
    hints = [get_type_hints(each)["return"] for each in methods if inspect.isfunction(each)]
    models = {
        model
        for hint in hints
        for each in (hint, *get_args(hint))
        if is_dataclass(model := getattr(each, "__origin__", each)) and isinstance(model, type)
    }

    assert models
    assert [model.__name__ for model in models if not issubclass(model, DisplayableResult)] == []
    assert all(model.__repr__ is DisplayableResult.__repr__ for model in models)
