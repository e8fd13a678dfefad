"""The language of references: what it reads, what it gives, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.pipelines.expressions import compile_expression, is_truthy
from stratagem.gateway.pipelines.templates import references, resolve

SCOPE: dict[str, Any] = {
    "input": {"city": "Oslo", "days": [1, 2, 3], "deep": {"a b": {"c": None}}},
    "steps": {"fetch": {"result": {"items": [{"name": "x", "n": 2}, {"name": "y", "n": 1}]}}},
}


def search(text: str, scope: Any = None) -> Any:
    return compile_expression(text, field="here").search(SCOPE if scope is None else scope)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("input.city", "Oslo"),
        ("input.days[-1]", 3),
        ("steps.fetch.result.items[*].name", ["x", "y"]),
        ("sort_by(steps.fetch.result.items, &n)[0].name", "y"),
        ("steps.fetch.result.items[?n > `1`].name | [0]", "x"),
        ("{town: input.city, count: length(input.days)}", {"town": "Oslo", "count": 3}),
        ("input.nothing.here", None),
        ("$.input.city", "Oslo"),
        ("$.input['deep']['a b'].c", None),
        ("$.input.days[0]", 1),
        ("$.input.days[1:]", [2, 3]),
        ("$.input.days[::-1]", [3, 2, 1]),
        ("$.input.days[0,2]", [1, 3]),
        ("$.steps.fetch.result.items[*].name", ["x", "y"]),
        ("$..name", ["x", "y"]),
        ("$.input.days.*", [1, 2, 3]),
        ("$.input..c", [None]),
        ("$.input.days[9]", None),
        ("$.input.days[9:]", []),
    ],
)
def test_an_expression_finds(text: str, found: Any) -> None:
    assert search(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "input.",
        "input.days[?",
        "nonsense(@)",
        "sum(input.city)",
        "abs('x')",
        "$.items[?(@.n>1)]",
        "$.items[",
        "$.items[::0]",
        "$x",
        "!" * 1_900 + "a",
        "a|" * 900 + "a",
        "a" * 3_000,
    ],
)
def test_an_expression_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        search(text)

    assert refused.value.details["field"] == "here"


@pytest.mark.parametrize(
    "text",
    [
        "`[1]` | " + " | ".join(["[@, @][]"] * 60),
        " | ".join(["[@, @]"] * 60),
        f"to_string({'|'.join(['[@, @]'] * 60)})",
        f"({'|'.join(['[@, @]'] * 60)}) == ({'|'.join(['[@,@]'] * 60)})",
        "join('', [@, @])" + " | join('', [@, @])" * 60,
        "$" + "[*,*,*]" * 40,
    ],
)
def test_an_expression_that_multiplies_is_stopped(text: str) -> None:
    scope: Any = "word" * 10
    for _ in range(0 if text.startswith("join") else 50):
        scope = [scope]

    with pytest.raises(ValidationFailed, match="more work"):
        search(text, scope)


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("steps.a.result.x[0].y", {("steps", "a", "result", "x")}),
        ("steps.a.result[*].{n: name, m: @}", {("steps", "a", "result")}),
        (
            "input.x == steps.b.status && !previous",
            {("input", "x"), ("steps", "b", "status"), ("previous",)},
        ),
        ("map(&foo, item.z)", {("item", "z")}),
        ("steps | a.result", {("steps",)}),
        ("steps.*.result", {("steps",)}),
        ("@.steps.a", {("steps", "a")}),
        ("[input, `1`]", {("input",)}),
        ("$.steps.a[0].b", {("steps", "a")}),
        ("$..x", {()}),
    ],
)
def test_what_an_expression_reads_is_known_beforehand(
    text: str, roots: set[tuple[str, ...]]
) -> None:
    found = set(compile_expression(text, field="x").roots)

    # A shorter root is a weaker promise, never a wrong one.
    assert len(found) == len(roots)
    assert all(any(root[: len(each)] == each for root in roots) for each in found)
    assert all(each == () or len(each) >= 1 for each in found)


def test_truth_is_that_of_jmespath() -> None:
    empty: tuple[Any, ...] = (None, False, "", [], {})
    assert [is_truthy(value) for value in empty] == [False] * 5
    assert [is_truthy(value) for value in (0, 0.0, True, "no", [None], {"a": None})] == [True] * 6


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${{ input.days }}", [1, 2, 3]),
        (" ${{input.city}} ", "Oslo"),
        ("In ${{ input.city }}: ${{ input.days }}", "In Oslo: [1,2,3]"),
        ({"$ref": "input.days[0]"}, 1),
        ({"a": [{"$ref": "$.input.city"}, "plain"]}, {"a": ["Oslo", "plain"]}),
        ("${{ input.nothing }}", None),
        ("$${{ input.city }}", "${{ input.city }}"),
        ({"$literal": {"$ref": "input.city"}}, {"$ref": "input.city"}),
        ("${{ {a: {b: input.city} } }}", {"a": {"b": "Oslo"}}),
        ("costs $5 {{x}} ${NAME}", "costs $5 {{x}} ${NAME}"),
        (7, 7),
    ],
)
def test_a_template_becomes(template: Any, value: Any) -> None:
    assert resolve(template, SCOPE, field="arguments") == value


def test_a_result_cannot_bring_a_reference_of_its_own() -> None:
    scope = {"previous": {"text": "${{ input.secret }}", "object": {"$ref": "input.secret"}}}

    made = resolve(
        {"a": "${{ previous.text }}", "b": {"$ref": "previous.object"}}, scope, field="a"
    )

    assert made == {"a": "${{ input.secret }}", "b": {"$ref": "input.secret"}}


def test_a_text_with_a_hole_in_it_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="it has no value"):
        resolve("Dear ${{ input.name }}", SCOPE, field="arguments")


@pytest.mark.parametrize("template", [{"$ref": 3}, {"$ref": "a", "b": 1}, {"$literal": 1, "b": 1}])
def test_a_malformed_reference_is_refused(template: Any) -> None:
    with pytest.raises(ValidationFailed):
        list(references(template, field="arguments"))
