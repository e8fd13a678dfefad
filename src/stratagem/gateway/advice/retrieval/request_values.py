"""Whether the values in a request are values that a tool takes.

Only what can be told without understanding the request is looked at: numbers, dates, and choices
that a schema lists.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from stratagem.gateway.advice.retrieval.texts import listed_values
from stratagem.search import analysis
from stratagem.search.stopwords import STOP_WORDS

__all__ = [
    "AcceptedValues",
    "EnumParameter",
    "RequestValues",
    "ValueFit",
    "accepted_values",
    "fit_values",
    "request_values",
]

_NUMBER: Final = re.compile(r"\d+(?:[.,:/\-]\d+)*")
# Dates as numbers, in any language; in words only those of English.
_DATE: Final = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}(?:st|nd|rd|th)\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|june|july|aug(?:ust)?|sept(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|today|tomorrow|yesterday|tonight"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_DATED: Final = re.compile(r"date|time|day", re.IGNORECASE)
_NUMBERS: Final = frozenset({"integer", "number"})
_CHOICES_MAX: Final = 200


class RequestValues(NamedTuple):
    """What a request holds."""

    numbers: int
    dated: bool
    terms: frozenset[str]


class EnumParameter(NamedTuple):
    """A parameter with a list of values, each as the terms that would name it."""

    name: str
    required: bool
    options: tuple[frozenset[str], ...]

    def named_in(self, terms: Collection[str]) -> bool:
        """Whether a request names one of the values."""
        return any(option and all(term in terms for term in option) for option in self.options)


class AcceptedValues(NamedTuple):
    """What can be told about the values that a tool takes."""

    numbers: tuple[str, ...]
    numbers_required: int
    number_list: bool
    dates: tuple[str, ...]
    date_required: bool
    choices: tuple[EnumParameter, ...]


_NOTHING: Final = AcceptedValues(
    numbers=(), numbers_required=0, number_list=False, dates=(), date_required=False, choices=()
)


class ValueFit(NamedTuple):
    """How the values of a request and the parameters of a tool go together."""

    matched: int
    unexplained: int
    missing: int
    names: tuple[str, ...]

    @property
    def score(self) -> float:
        """From -1, nothing goes together, to 1."""
        other = self.unexplained + self.missing
        return (self.matched - other) / (self.matched + other + 1)


def request_values(request: str) -> RequestValues:
    """Return the values that a request holds."""
    text = request[: 4 * 1024]
    dated = _DATE.search(text) is not None
    numbers = len(_NUMBER.findall(_DATE.sub(" ", text) if dated else text))
    return RequestValues(numbers, dated, frozenset(analysis.query_terms(text)))


def accepted_values(schema: Any) -> AcceptedValues:
    """Return what a tool takes, as far as it can be told from its schema."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return _NOTHING
    given = schema.get("required")
    required = {each for each in given if isinstance(each, str)} if isinstance(given, list) else ()
    numbers: list[str] = []
    dates: list[str] = []
    choices: list[EnumParameter] = []
    number_list = False
    for name, each in properties.items():
        if not isinstance(each, Mapping):
            continue
        items = each.get("items")
        if listed := listed_values(each):
            choices.append(EnumParameter(name, name in required, _options(listed)))
        elif _is_number(each):
            numbers.append(name)
        elif isinstance(items, Mapping) and _is_number(items):
            number_list = True
        elif _DATED.search(name):
            dates.append(name)
    return AcceptedValues(
        tuple(numbers),
        sum(name in required for name in numbers),
        number_list,
        tuple(dates),
        any(name in required for name in dates),
        tuple(choices),
    )


def fit_values(values: RequestValues, takes: AcceptedValues) -> ValueFit:
    """Return how a request and a tool go together."""
    matched = values.numbers if takes.number_list else min(values.numbers, len(takes.numbers))
    unexplained = values.numbers - matched
    missing = max(0, takes.numbers_required - values.numbers)
    names = list(takes.numbers[:matched])
    if values.dated and takes.dates:
        matched += 1
        names += takes.dates[:1]
    elif values.dated:
        unexplained += 1
    elif takes.date_required:
        missing += 1
    for choice in takes.choices:
        if choice.named_in(values.terms):
            matched += 1
            names.append(choice.name)
        elif choice.required:
            missing += 1
    return ValueFit(matched, unexplained, missing, tuple(names))


def _is_number(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind in _NUMBERS if isinstance(kind, str) else False


def _options(choices: list[Any]) -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(analysis.terms(str(choice))) - STOP_WORDS for choice in choices[:_CHOICES_MAX]
    )
