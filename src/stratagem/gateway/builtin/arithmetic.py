"""Reading and evaluating the calculator's expressions, by precedence climbing.

An ambiguous expression is refused with both readings: `200 + 10%` (200.1 or 220?), `7 % -3` (a
remainder or a subtraction?), `log(2)`. A wrong number looks just like a right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.builtin import numerics
from stratagem.gateway.builtin.numerics import CONSTANTS, FUNCTIONS, Number, check_size, refusal

__all__ = ["evaluate", "number"]

_TOKEN: Final = re.compile(
    r"\s*(?:"
    r"(?P<based>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+)(?!\w)"
    r"|(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<mark>\*\*|//|[-+*/^%!(),×÷·−])"
    r")"
)
_SPELLINGS: Final = {"**": "^", "×": "*", "·": "*", "÷": "/", "−": "-"}
_DIGITS_MAX: Final = int(limits.CALCULATION_BITS_MAX * 0.301)

_Binary = Callable[[Number, Number], Number]
_SUM, _PRODUCT, _SIGN, _POWER = 10, 20, 25, 30
_BINARY: Final[dict[str, tuple[int, _Binary]]] = {
    "+": (_SUM, numerics.add),
    "-": (_SUM, numerics.subtract),
    "*": (_PRODUCT, numerics.multiply),
    "of": (_PRODUCT, numerics.multiply),
    "/": (_PRODUCT, numerics.divide),
    "//": (_PRODUCT, numerics.floor_divide),
    "mod": (_PRODUCT, numerics.remainder),
    "^": (_POWER, numerics.power),
}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    # Whether a blank stands before it.
    apart: bool


class _Value(NamedTuple):
    number: Number
    # Written as a percentage, with nothing done to it yet.
    percent: bool = False


def evaluate(expression: str, variables: Mapping[str, Number]) -> Number:
    """Return the value of an expression.

    Raises:
        ValidationFailed: It cannot be read, means two things, or has no value.
    """
    reader = _Reader(_tokens(expression), {**CONSTANTS, **variables})
    value = reader.value(0, 0)
    reader.end()
    return value.number


def number(text: str) -> Fraction:
    """Return a number as it is written in decimals, exactly."""
    digits = text.replace("_", "")
    mantissa, _, exponent = digits.lower().partition("e")
    if len(mantissa) > _DIGITS_MAX or abs(int(exponent or 0)) > _DIGITS_MAX:
        raise refusal("has a number that is too long or too large")
    value = Fraction(digits)
    check_size(value)
    return value


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise refusal(f"cannot be read from {text[position : position + 20].strip()!r} on")
        kind = found.lastgroup or ""
        start = found.start(kind)
        written = found[kind]
        tokens.append(_Token(kind, _SPELLINGS.get(written, written), start, start > position))
        position = found.end()
    return [*tokens, _Token("end", "", len(text), apart=False)]


class _Reader:
    """Reads one expression, evaluating it on the way."""

    def __init__(self, tokens: list[_Token], names: Mapping[str, Number]) -> None:
        self._tokens = tokens
        self._names = names
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def end(self) -> None:
        """Refuse what is left over."""
        token = self._next
        if token.kind == "end":
            return
        hint = "Write * between two numbers that are multiplied."
        if token.text == ",":
            hint = "Write numbers without commas: 1000 or 1_000."
        raise refusal(
            f"has {token.text!r} at position {token.start}, where an operator is expected", hint
        )

    def value(self, least: int, depth: int) -> _Value:
        """Read operands as long as the operators between them bind at least so tightly."""
        if depth > limits.CALCULATION_DEPTH_MAX:
            raise refusal("is nested too deeply")
        left = self._postfix(self._operand(depth))
        while (operator := self._operator()) is not None:
            binding, run = _BINARY[operator]
            if binding < least:
                break
            self._at += 1
            # A power binds to the right: 2^3^2 is 2^9.
            right = self.value(binding if operator == "^" else binding + 1, depth + 1)
            # Added to 1 it means the same either way.
            if binding == _SUM and right.percent and not left.percent and left.number != 1:
                raise _two_meanings()
            left = _Value(run(left.number, right.number), left.percent and binding == _SUM)
        return left

    def _operator(self) -> str | None:
        token = self._next
        if token.text == "%":
            # A remainder: `_postfix` has taken every percentage.
            return "mod" if token.kind == "mark" else None
        return token.text if token.text in _BINARY else None

    def _postfix(self, value: _Value) -> _Value:
        while self._next.text in {"!", "%"}:
            if self._next.text == "!":
                value = _Value(numerics.factorial(value.number))
            elif self._is_remainder():
                break
            else:
                value = _Value(numerics.divide(value.number, Fraction(100)), percent=True)
            self._at += 1
        return value

    def _is_remainder(self) -> bool:
        """Tell whether a % stands between two numbers."""
        sign, after = self._next, self._tokens[self._at + 1]
        if after.text in {"+", "-"} and sign.apart:
            raise refusal(
                "has a % before a sign, which may mean a remainder or a percentage",
                "Write mod(a, -b) for the remainder, 10% - 3 for the percentage.",
            )
        is_operand = after.kind in {"number", "based", "name"} and after.text not in _BINARY
        return is_operand or after.text == "("

    def _operand(self, depth: int) -> _Value:
        token = self._take()
        if token.text == "-":
            value = self.value(_SIGN, depth + 1)
            return _Value(-value.number, value.percent)
        if token.text == "+":
            return self.value(_SIGN, depth + 1)
        if token.text == "(":
            value = self.value(0, depth + 1)
            self._expect(")")
            return _Value(value.number)
        if token.kind == "number":
            return _Value(number(token.text))
        if token.kind == "based":
            return _Value(check_size(Fraction(int(token.text, 0))))
        if token.kind == "name":
            return _Value(self._constant(token.text, depth))
        found = repr(token.text) if token.text else "its end"
        raise refusal(f"has {found} at position {token.start}, where a number is expected")

    def _constant(self, name: str, depth: int) -> Number:
        called = self._next.text == "("
        if called and name in FUNCTIONS:
            self._at += 1
            return self._call(name, depth)
        if name in self._names and not called:
            return self._names[name]
        known = [*FUNCTIONS] if called else [*self._names, *FUNCTIONS]
        near = get_close_matches(name, known, n=2)
        what = "function" if called else "number"
        raise refusal(
            f"has no {what} called {name!r}",
            f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}.",
        )

    def _call(self, name: str, depth: int) -> Number:
        arguments: list[Number] = []
        if self._next.text != ")":
            arguments.append(self.value(0, depth + 1).number)
            while self._next.text == ",":
                self._at += 1
                arguments.append(self.value(0, depth + 1).number)
        self._expect(")")
        function = FUNCTIONS[name]
        most = len(arguments) if function.arguments_max is None else function.arguments_max
        if not function.arguments_min <= len(arguments) <= most:
            raise refusal(f"calls {name} with {len(arguments)} numbers, which it does not accept")
        return check_size(function.run(*arguments))

    def _expect(self, text: str) -> None:
        token = self._take()
        if token.text != text:
            found = repr(token.text) if token.text else "the end"
            raise refusal(f"has {found} at position {token.start}, where {text!r} is expected")


def _two_meanings() -> Exception:
    return refusal(
        "adds a percentage to a number, which may mean a part of 1 or a part of that number",
        "Write 200 * (1 + 10%) for 220, or 200 + 0.1 for 200.1.",
    )
