"""The calculator: arithmetic without surprises, and without `eval`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin.arithmetic import evaluate
from stratagem.gateway.builtin.numerics import FUNCTIONS, Number, check_size, round_to
from stratagem.gateway.definitions.argument_models import Given, plain_schema, read
from stratagem.gateway.definitions.contract import Run

__all__ = ["TOOL", "run"]

Format = Literal["number", "decimal", "fraction", "hex", "octal", "binary"]

_EXACT_INTEGER_MAX: Final = 2**53
# A decimal that does not end is cut here unless more places are asked for.
_SIGNIFICANT_DIGITS: Final = 34
_CONTEXT: Final = Context(prec=_SIGNIFICANT_DIGITS, rounding=ROUND_HALF_UP)
_FLOAT_DIGITS: Final = 15
_BASES: Final = {"hex": "x", "octal": "o", "binary": "b"}
_Name = Annotated[str, Field(pattern=r"^[^\W\d]\w{0,63}$")]


class _Input(Given):
    expression: str = Field(
        min_length=1,
        max_length=limits.CALCULATION_CHARS_MAX,
        description="Such as (3 + 4) * 2^10, 15% of 80, 17 mod 5, round(2/3, 4), 0xff + 0b101, 5!",
    )
    variables: dict[_Name, float | int] = Field(
        default_factory=dict, description="Numbers that the expression uses by name"
    )
    format: Format = Field(
        "number",
        description="number: a JSON number; decimal: exact, as text; fraction: 1/3; "
        "hex, octal, binary: whole numbers",
    )
    places: int | None = Field(
        None,
        ge=0,
        le=limits.CALCULATION_PLACES_MAX,
        description="Round to this many decimal places",
    )


TOOL: Final[dict[str, Any]] = {
    "name": "calculator",
    "description": "Evaluate an arithmetic expression exactly: no rounding errors in 0.1 + 0.2.",
    "longDescription": (
        "Operators: + - * / // (rounded down) ^ or ** (power) mod ! and % for percentages; "
        "a % b between two numbers is the remainder. Constants: pi, e, tau, phi. Functions: "
        f"{', '.join(FUNCTIONS)}. Angles are in radians; a logarithm names its base. Numbers stay "
        "fractions as long as they can; `exact` tells whether `text` is the exact value; "
        "otherwise it is rounded to 15 digits. Ambiguous expressions are refused."
    ),
    "category": "utility",
    "tags": ["math", "arithmetic", "numbers", "percent", "square root"],
    "inputSchema": plain_schema(_Input),
    "outputSchema": {
        "type": "object",
        "properties": {
            "result": {
                "type": ["number", "string"],
                "description": "A number; text in another format, or where it does not fit "
                "a number",
            },
            "text": {"type": "string"},
            "exact": {"type": "boolean"},
        },
        "required": ["result", "text", "exact"],
    },
    "examples": [
        {
            "input": {"expression": "0.1 + 0.2"},
            "output": {"result": 0.3, "text": "0.3", "exact": True},
        },
        {
            "input": {"expression": "1/3 + 1/6", "format": "fraction"},
            "output": {"result": "1/2", "text": "1/2", "exact": True},
        },
        {
            "input": {"expression": "15% of price", "variables": {"price": 80}},
            "output": {"result": 12, "text": "12", "exact": True},
        },
        {
            "input": {"expression": "2^64 - 1", "format": "hex"},
            "output": {"result": "0xffffffffffffffff", "text": "0xffffffffffffffff", "exact": True},
        },
        {
            "input": {"expression": "sqrt(2)", "places": 4},
            "output": {"result": 1.4142, "text": "1.4142", "exact": False},
        },
    ],
    "cacheable": True,
    "idempotent": True,
    "requirements": {},
}


async def run(arguments: Mapping[str, Any], run: Run) -> dict[str, Any]:  # noqa: ARG001 -- needs none
    """Evaluate an expression."""
    given = read(_Input, arguments)
    variables: dict[str, Number] = {
        # As it is written: 0.1 is a tenth.
        name: check_size(Fraction(repr(value)))
        if math.isfinite(value)
        else check_size(float(value))
        for name, value in given.variables.items()
    }
    value = evaluate(given.expression, variables)
    if given.format in _BASES:
        return _whole(value, given)
    if given.format == "fraction":
        return _fraction(value, given)
    return _decimal(value, given)


def _answer(text: str, *, exact: bool, result: float | str | None = None) -> dict[str, Any]:
    return {"result": text if result is None else result, "text": text, "exact": exact}


def _whole(value: Number, given: _Input) -> dict[str, Any]:
    _no_places(given)
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ValidationFailed(
            f"`format` {given.format} is for whole numbers, and the result is not one.",
            field="format",
        )
    return _answer(format(int(value), f"#{_BASES[given.format]}"), exact=True)


def _fraction(value: Number, given: _Input) -> dict[str, Any]:
    _no_places(given)
    if not isinstance(value, Fraction):
        raise ValidationFailed(
            "`format` fraction is for exact numbers; this one is an approximation.", field="format"
        )
    return _answer(str(value), exact=True)


def _no_places(given: _Input) -> None:
    if given.places is not None:
        raise ValidationFailed(f"`places` has no meaning for {given.format}.", field="places")


def _decimal(value: Number, given: _Input) -> dict[str, Any]:
    if given.places is not None:
        cut = round_to(value, given.places)
        text, exact = _digits(cut, given.places), cut == value
    elif isinstance(value, float):
        # Added to zero, minus zero is zero.
        text, exact = format(value + 0.0, f".{_FLOAT_DIGITS}g"), False
    else:
        text, exact = _exact_text(value)
    return _answer(text, exact=exact, result=None if given.format == "decimal" else _json(text))


def _exact_text(value: Fraction) -> tuple[str, bool]:
    """Return a fraction in decimals, and whether they are all of it."""
    places = _places(value.denominator)
    if places is not None and places <= limits.CALCULATION_PLACES_MAX:
        return _digits(value, places), True
    quotient = _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))
    plain = abs(quotient.adjusted()) <= _SIGNIFICANT_DIGITS
    return format(quotient, "f") if plain else str(quotient).lower(), False


def _places(denominator: int) -> int | None:
    """Return how many decimal places 1/denominator has, None where they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest = denominator >> twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    return max(twos, fives) if rest == 1 else None


def _digits(value: Fraction, places: int) -> str:
    """Write a fraction that ends within so many places."""
    scaled = abs(value) * 10**places
    digits = str(scaled.numerator // scaled.denominator).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text


def _json(text: str) -> float | str:
    """Return the JSON number nearest to a text, or the text where there is none."""
    if "." not in text and "e" not in text and abs(int(text)) <= _EXACT_INTEGER_MAX:
        return int(text)
    number = float(text)
    if not math.isfinite(number) or (number == 0 and text.strip("-0.")):
        return text
    return int(number) if number.is_integer() and abs(number) <= _EXACT_INTEGER_MAX else number
