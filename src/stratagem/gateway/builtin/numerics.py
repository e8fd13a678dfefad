"""The numbers of the calculator, and its functions.

A number is a fraction as long as it can be, so that 0.1 + 0.2 is 0.3 and 1/3 * 3 is 1. Roots that
do not come out even, logarithms and angles make it a float, and a float stays one. Every result
is checked to be finite and of a size that can be written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ValidationFailed

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Function",
    "Number",
    "add",
    "check_size",
    "divide",
    "factorial",
    "floor_divide",
    "multiply",
    "power",
    "refusal",
    "remainder",
    "round_to",
    "subtract",
]

Number: TypeAlias = Fraction | float

# Roots of a higher degree are looked for as floats at once.
_ROOT_DEGREE_MAX: Final = 64
_HALF: Final = Fraction(1, 2)
# A result smaller than the rounding of the angle it came from is zero.
_ROUNDING: Final = 2.0**-52


class Function(NamedTuple):
    """A function of so many arguments; `arguments_max` None is any number."""

    arguments_min: int
    arguments_max: int | None
    run: Callable[..., Number]


def refusal(why: str, hint: str | None = None) -> ValidationFailed:
    """Return the error for an expression that has no value."""
    return ValidationFailed(f"`expression` {why}.", field="expression", hint=hint)


def check_size(value: Number) -> Number:
    """Return a number that is finite and of a size that can be written.

    Raises:
        ValidationFailed: It is not.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refusal("is too large or not a number")
        return value
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > limits.CALCULATION_BITS_MAX:
        raise _too_large()
    return value


def add(one: Number, other: Number) -> Number:
    """Return the sum."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return check_size(one + other)
    return check_size(_float(one) + _float(other))


def subtract(one: Number, other: Number) -> Number:
    """Return the difference."""
    return add(one, -other)


def multiply(one: Number, other: Number) -> Number:
    """Return the product."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return check_size(one * other)
    return check_size(_float(one) * _float(other))


def divide(one: Number, other: Number) -> Number:
    """Return the quotient."""
    if other == 0:
        raise refusal("divides by zero")
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return check_size(one / other)
    return check_size(_float(one) / _float(other))


def floor_divide(one: Number, other: Number) -> Number:
    """Return the quotient, rounded down."""
    return _floor(divide(one, other))


def remainder(one: Number, other: Number) -> Number:
    """Return what is left of a division rounded down; it has the sign of the divisor."""
    if other == 0:
        raise refusal("divides by zero")
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return check_size(one % other)
    return check_size(_float(one) % _float(other))


def power(base: Number, exponent: Number) -> Number:
    """Return a power, exactly where that is possible."""
    if base == 0 and exponent < 0:
        raise refusal("divides by zero")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        found = _exact_power(base, exponent)
        if found is not None:
            return found
    if base < 0 and not (isinstance(exponent, Fraction) and exponent.denominator == 1):
        raise refusal(
            "takes a fractional power of a negative number", "Write root(x, n) for odd roots."
        )
    try:
        return check_size(math.pow(_float(base), _float(exponent)))
    except (OverflowError, ValueError):
        raise _too_large() from None


def factorial(value: Number) -> Number:
    """Return n!"""
    return check_size(Fraction(math.factorial(_whole(value, "factorial", limits.FACTORIAL_MAX))))


def round_to(value: Number, places: int) -> Fraction:
    """Return a number rounded to so many places; halves go away from zero."""
    exact = value if isinstance(value, Fraction) else Fraction(repr(value))
    scale = Fraction(10) ** places
    whole = math.floor(abs(exact) * scale + _HALF)
    return Fraction(whole if exact >= 0 else -whole) / scale


def _too_large() -> ValidationFailed:
    digits = int(limits.CALCULATION_BITS_MAX * math.log10(2))
    return ValidationFailed(
        f"`expression` gives a number of more than {digits:,} digits.",
        field="expression",
        limit=digits,
    )


def _float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        raise refusal("is too large to calculate with, except as a whole number") from None


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    root: Fraction | None = base
    if exponent.denominator != 1:
        if base < 0 or exponent.denominator > _ROOT_DEGREE_MAX:
            return None
        root = _exact_root(base, exponent.denominator)
    if root is None:
        return None
    bits = max(root.numerator.bit_length(), root.denominator.bit_length())
    if (
        root not in (0, 1, -1)
        and (bits - 1) * abs(exponent.numerator) > limits.CALCULATION_BITS_MAX
    ):
        raise _too_large()
    if root == -1:
        return Fraction(-1 if exponent.numerator % 2 else 1)
    result = root if root in (0, 1) and exponent else root**exponent.numerator
    check_size(result)
    return result


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    above, below = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(value: int, degree: int) -> int | None:
    """Return the whole root of a number that is not negative, or None if there is none."""
    if degree == 2:  # noqa: PLR2004 -- square roots have a way of their own
        found = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        found = low
    return found if found**degree == value else None


def _whole(value: Number, name: str, most: int | None = None) -> int:
    if (
        not isinstance(value, Fraction)
        or value.denominator != 1
        or (most is not None and value < 0)
    ):
        raise refusal(f"takes {name} of a number that is not whole")
    if most is not None and value > most:
        raise ValidationFailed(
            f"`expression` takes {name} of more than {most:,}.", field="expression", limit=most
        )
    return int(value)


def _floor(value: Number) -> Fraction:
    return Fraction(math.floor(value))


def _root(value: Number, degree: Number) -> Number:
    n = _whole(degree, "root")
    if n == 0:
        raise refusal("takes a root of degree 0")
    if value < 0:
        if n % 2 == 0:
            raise refusal("takes an even root of a negative number")
        return -_root(-value, degree)
    return power(value, Fraction(1, n))


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if value <= 0:
        raise refusal("takes the logarithm of a number that is not above zero")
    if base is None:
        raise refusal(
            "has a logarithm without a base, which means 10 to some and e to others",
            "Write ln(x), log10(x), log2(x) or log(x, base).",
        )
    if base <= 0 or base == 1:
        raise refusal("has a logarithm with an invalid base")
    if isinstance(value, Fraction) and isinstance(base, Fraction) and base.denominator == 1:
        whole = round(_ln(value) / _ln(base))
        if abs(whole) <= limits.CALCULATION_BITS_MAX and base**whole == value:
            return Fraction(whole)
    return _ln(value) / _ln(base)


def _ln(value: Number) -> float:
    if isinstance(value, float):
        return math.log(value)
    # Each half may be larger than any float; their logarithms are not.
    return math.log(value.numerator) - math.log(value.denominator)


def _natural(value: Number) -> Number:
    if value <= 0:
        raise refusal("takes the logarithm of a number that is not above zero")
    return Fraction(0) if value == 1 else _ln(value)


def _of_float(function: Callable[[float], float]) -> Callable[[Number], Number]:
    def run(value: Number) -> Number:
        try:
            return check_size(function(_float(value)))
        except OverflowError:
            raise refusal("is too large") from None
        except ValueError:
            raise refusal("calls a function outside its domain") from None

    return run


def _angular(function: Callable[[float], float]) -> Callable[[Number], Number]:
    """Return a function of an angle: what is below the angle's own rounding is zero."""

    def run(value: Number) -> Number:
        angle = _float(value)
        result = function(angle)
        return 0.0 if abs(result) <= abs(angle) * _ROUNDING else result

    return run


_SINE: Final = _angular(math.sin)
_COSINE: Final = _angular(math.cos)


def _tangent(value: Number) -> Number:
    if value == 0:
        return Fraction(0)
    return divide(_SINE(value), _COSINE(value))


def _combinations(n: Number, k: Number) -> Number:
    most = limits.FACTORIAL_MAX
    return check_size(Fraction(math.comb(_whole(n, "comb", most), _whole(k, "comb", most))))


def _permutations(n: Number, k: Number) -> Number:
    most = limits.FACTORIAL_MAX
    return check_size(Fraction(math.perm(_whole(n, "perm", most), _whole(k, "perm", most))))


def _whole_numbers(name: str, function: Callable[..., int]) -> Callable[..., Number]:
    def run(*values: Number) -> Number:
        return check_size(Fraction(function(*(_whole(value, name) for value in values))))

    return run


def _sum(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total = add(total, value)
    return total


def _mean(*values: Number) -> Number:
    return divide(_sum(*values), Fraction(len(values)))


def _median(*values: Number) -> Number:
    ranked: Sequence[Number] = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else _mean(ranked[middle - 1], ranked[middle])


def _variance(*values: Number) -> Number:
    middle = _mean(*values)
    squares = (power(subtract(value, middle), Fraction(2)) for value in values)
    return divide(_sum(*squares), Fraction(len(values) - 1))


def _round(value: Number, places: Number = Fraction(0)) -> Number:
    digits = _whole(places, "round")
    if abs(digits) > limits.CALCULATION_PLACES_MAX:
        raise refusal(f"rounds to more than {limits.CALCULATION_PLACES_MAX:,} places")
    return check_size(round_to(value, digits))


CONSTANTS: Final[dict[str, Number]] = {
    "pi": math.pi,
    "π": math.pi,
    "e": math.e,
    "tau": math.tau,
    "phi": (1 + math.sqrt(5)) / 2,
}
FUNCTIONS: Final[dict[str, Function]] = {
    "abs": Function(1, 1, abs),
    "acos": Function(1, 1, _of_float(math.acos)),
    "asin": Function(1, 1, _of_float(math.asin)),
    "atan": Function(1, 1, _of_float(math.atan)),
    "atan2": Function(2, 2, lambda y, x: math.atan2(_float(y), _float(x))),
    "cbrt": Function(1, 1, lambda value: _root(value, Fraction(3))),
    "ceil": Function(1, 1, lambda value: Fraction(math.ceil(value))),
    "comb": Function(2, 2, _combinations),
    "cos": Function(1, 1, _COSINE),
    "cosh": Function(1, 1, _of_float(math.cosh)),
    "degrees": Function(1, 1, _of_float(math.degrees)),
    "exp": Function(1, 1, _of_float(math.exp)),
    "factorial": Function(1, 1, factorial),
    "floor": Function(1, 1, _floor),
    "gcd": Function(1, None, _whole_numbers("gcd", math.gcd)),
    "hypot": Function(1, None, lambda *sides: power(_sum(*(side * side for side in sides)), _HALF)),
    "lcm": Function(1, None, _whole_numbers("lcm", math.lcm)),
    "ln": Function(1, 1, _natural),
    "log": Function(1, 2, _logarithm),
    "log10": Function(1, 1, lambda value: _logarithm(value, Fraction(10))),
    "log2": Function(1, 1, lambda value: _logarithm(value, Fraction(2))),
    "max": Function(1, None, max),
    "mean": Function(1, None, _mean),
    "median": Function(1, None, _median),
    "min": Function(1, None, min),
    "mod": Function(2, 2, remainder),
    "perm": Function(2, 2, _permutations),
    "pow": Function(2, 2, power),
    "radians": Function(1, 1, _of_float(math.radians)),
    "root": Function(2, 2, _root),
    "round": Function(1, 2, _round),
    "sign": Function(1, 1, lambda value: Fraction((value > 0) - (value < 0))),
    "sin": Function(1, 1, _SINE),
    "sinh": Function(1, 1, _of_float(math.sinh)),
    "sqrt": Function(1, 1, lambda value: _root(value, Fraction(2))),
    "stdev": Function(2, None, lambda *values: power(_variance(*values), _HALF)),
    "sum": Function(1, None, _sum),
    "tan": Function(1, 1, _tangent),
    "tanh": Function(1, 1, _of_float(math.tanh)),
    "trunc": Function(1, 1, lambda value: Fraction(math.trunc(value))),
    "variance": Function(2, None, _variance),
}
