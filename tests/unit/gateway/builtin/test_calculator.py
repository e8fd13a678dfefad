"""The calculator is right, exact where it says so, and refuses what means two things."""

from __future__ import annotations

import asyncio
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway.builtin import calculator
from stratagem.gateway.builtin.arithmetic import evaluate
from tests.unit.gateway.attempts import attempt


def calculate(expression: str, **rest: Any) -> dict[str, Any]:
    return asyncio.run(calculator.run({"expression": expression, **rest}, attempt()))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2^2", -4),
        ("2^3^2", 512),
        ("2**-1", 0.5),
        ("2 - -2", 4),
        ("0.1 + 0.2", 0.3),
        ("1/7 * 7", 1),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("17 mod 5", 2),
        ("-5 mod 3", 1),
        ("10 % 3", 1),
        ("(7)%(4)", 3),
        ("15% of 80", 12),
        ("10% - 3", -2.9),
        ("10% + 5%", 0.15),
        ("200 * (1 + 10%)", 220),
        ("-10%", -0.1),
        ("5!", 120),
        ("3!!", 720),
        ("0xff + 0b11 + 0o7", 265),
        ("1_000 × 2 ÷ 4 − 1", 499),
        ("1e3", 1000),
        (".5 + 5.", 5.5),
        ("0^0", 1),
        ("8^(1/3)", 2),
        ("4^-0.5", 0.5),
        ("root(-8, 3)", -2),
        ("cbrt(27)", 3),
        ("sqrt(2)", 1.4142135623731),
        ("sqrt(16/9)", 1.3333333333333333),
        ("hypot(3, 4)", 5),
        ("log(8, 2)", 3),
        ("log10(1000)", 3),
        ("log2(1/8)", -3),
        ("ln(e)", 1),
        ("ln(1)", 0),
        ("sin(pi)", 0),
        ("cos(pi/2)", 0),
        ("sin(π/6)", 0.5),
        ("tan(pi/4)", 1),
        ("tan(0)", 0),
        ("atan2(1, 1)", 0.785398163397448),
        ("degrees(pi)", 180),
        ("round(2.675, 2)", 2.68),
        ("round(-2.5)", -3),
        ("round(1234, -2)", 1200),
        ("floor(-1.5) + ceil(-1.5) + trunc(-1.5)", -4),
        ("max(1, 2, 3) - min(1, 2)", 2),
        ("sum(1, 2, 3) + mean(1, 2) + median(1, 9, 5)", 12.5),
        ("median(1, 2, 3, 4)", 2.5),
        ("variance(1, 2, 3, 4)", 1.6666666666666667),
        ("stdev(2, 4)", 1.4142135623731),
        ("gcd(12, 18) + lcm(4, 6)", 18),
        ("comb(5, 2) + perm(5, 2)", 30),
        ("sign(-3) * abs(-3)", -3),
        ("(-1)^(10^3000)", 1),
        ("10^400", str(10**400)),
        ("1e-400", "0." + "0" * 399 + "1"),
    ],
)
def test_an_expression_is(expression: str, result: Any) -> None:
    found = calculate(expression)["result"]

    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("expression", "options", "text", "exact"),
    [
        ("1/3", {}, "0." + "3" * 34, False),
        ("1/3", {"format": "fraction"}, "1/3", True),
        ("6/3", {"format": "fraction"}, "2", True),
        ("0.125", {"format": "decimal"}, "0.125", True),
        ("2/3", {"format": "decimal", "places": 5}, "0.66667", False),
        ("10", {"format": "decimal", "places": 2}, "10.00", True),
        ("-1/8", {"places": 2}, "-0.13", False),
        ("2^100", {}, str(2**100), True),
        ("(1/3)^8000", {}, None, False),
        ("pi", {}, "3.14159265358979", False),
        ("-sin(pi)", {}, "0", False),
        ("255", {"format": "hex"}, "0xff", True),
        ("-5", {"format": "binary"}, "-0b101", True),
        ("8", {"format": "octal"}, "0o10", True),
        ("a * b", {"variables": {"a": 0.1, "b": 3}}, "0.3", True),
    ],
)
def test_the_text_is_exact_or_says_that_it_is_not(
    expression: str, options: dict[str, Any], text: str | None, exact: bool
) -> None:
    found = calculate(expression, **options)

    assert found["exact"] is exact
    assert text is None or found["text"] == text
    assert found["text"].strip("-0.") or text == "0"


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "(1",
        "1)",
        "()",
        "1 2",
        "2(3)",
        "2pi",
        "1,000",
        "x",
        "foo(1)",
        "sin",
        "pi()",
        "1 & 2",
        "__import__('os')",
        "200 + 10%",
        "200 - 10%",
        "10 % -3",
        "log(5)",
        "log(0, 2)",
        "log(2, 1)",
        "1/0",
        "1 // 0",
        "1 mod 0",
        "0^-1",
        "tan(pi/2)",
        "sqrt(-1)",
        "(-8)^(1/3)",
        "asin(2)",
        "ln(0)",
        "root(2, 0)",
        "root(2, 1.5)",
        "1.5!",
        "(-1)!",
        "sin(1, 2)",
        "round()",
        "max()",
        "stdev(1)",
        "gcd(1.5, 2)",
        "round(1, 2000)",
        "exp(1000)",
        "9^9^9",
        "2^13001",
        "(2^12999) * 2",
        "1001!",
        "comb(2000, 3)",
        "1e99999",
        "1e9999999999999999999",
        "1" * 3_000,
        "(10^400) * pi",
        "9.9^999999999",
        "(" * 60 + "1" + ")" * 60,
        "-" * 60 + "1",
        "1" + "^1" * 60,
    ],
)
def test_an_expression_without_a_clear_value_is_refused(expression: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        calculate(expression)

    assert refused.value.details["field"] == "expression"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"expression": 5}, "expression"),
        ({"expression": "1", "format": "roman"}, "format"),
        ({"expression": "1.5", "format": "hex"}, "format"),
        ({"expression": "pi", "format": "fraction"}, "format"),
        ({"expression": "1", "format": "hex", "places": 2}, "places"),
        ({"expression": "1", "places": -1}, "places"),
        ({"expression": "1", "precision": 3}, "precision"),
        ({"expression": "a", "variables": {"a": "1"}}, "variables.a"),
        ({"expression": "a", "variables": {"a": True}}, "variables.a"),
        ({"expression": "a", "variables": {"a": float("inf")}}, "expression"),
        ({"expression": "1", "variables": {"a-b": 1}}, "variables.a-b"),
        ({}, "expression"),
    ],
)
def test_bad_arguments_are_refused_with_their_field(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(StratagemError) as refused:
        asyncio.run(calculator.run(arguments, attempt()))

    assert refused.value.details["field"].startswith(field)


@given(
    st.recursive(
        st.integers(0, 99).map(str),
        lambda inner: st.builds(
            lambda a, o, b: f"({a}{o}{b})", inner, st.sampled_from("+-*/"), inner
        ),
        max_leaves=12,
    )
)
def test_arithmetic_is_that_of_fractions(expression: str) -> None:
    names = {"F": Fraction}
    python = "".join(f"F({part})" if part.isdigit() else part for part in _split(expression))
    try:
        expected = eval(python, names)  # noqa: S307 -- digits and operators that we made
    except ZeroDivisionError:
        with pytest.raises(ValidationFailed, match="divides by zero"):
            evaluate(expression, {})
        return

    assert evaluate(expression, {}) == expected


def _split(expression: str) -> list[str]:
    parts: list[str] = []
    for char in expression:
        if char.isdigit() and parts and parts[-1].isdigit():
            parts[-1] += char
        else:
            parts.append(char)
    return parts


@given(st.text("0123456789.+-*/^%!() ,xobepisqrtlnmd", max_size=30))
def test_any_text_is_answered_or_refused(expression: str) -> None:
    try:
        found = calculate(expression)
    except ValidationFailed:
        return

    assert isinstance(found["text"], str)
    assert isinstance(found["result"], str) or math.isfinite(found["result"])
