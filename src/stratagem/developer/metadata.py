"""The metadata of vectors: what is indexed of it, and the filters that choose by it.

Every field whose value is a text, a number, true, false or a list of these has a facet for each
value, and a number also a place among the numbers of the collection. So `eq`, `in`, `contains` of a
list and the comparisons of numbers are answered by the store's indexes. What these cannot say (a
part of a text, the order of texts) is read from the metadata itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_modules import hashlib
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ValidationFailed

__all__ = [
    "OPERATORS",
    "FilterCondition",
    "check_metadata",
    "facet",
    "facets_of",
    "matches",
    "number_name",
    "numbers_of",
    "parse_filter",
    "text_facet",
]

OPERATORS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains")
_COMPARISONS: Final = frozenset({"gt", "gte", "lt", "lte"})
# A longer one is known by its hash.
_FACET_CHARS_MAX: Final = 120
_EXAMPLE: Final = '{"year": {"gte": 2020}, "lang": "en"} or {"tags": {"contains": "red"}}'


class FilterCondition(NamedTuple):
    """What a field of the metadata has to be."""

    field: str
    operator: str
    value: Any

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it holds of some metadata.

        A field that is not there differs from everything, and fulfils nothing else.
        """
        if self.field not in metadata:
            return self.operator == "ne"
        return _TESTS[self.operator](metadata[self.field], self.value)


def _same(one: Any, other: Any) -> bool:
    # In Python true is 1; in JSON it is not.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, list):
        return any(_same(each, wanted) for each in found)
    return isinstance(found, str) and isinstance(wanted, str) and wanted in found


def _compare(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda found, wanted: _comparable(found, wanted) and compare(found, wanted)


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _same,
    "ne": lambda found, wanted: not _same(found, wanted),
    "in": lambda found, wanted: any(_same(found, each) for each in wanted),
    "contains": _contains,
    "gt": _compare(operator.gt),
    "gte": _compare(operator.ge),
    "lt": _compare(operator.lt),
    "lte": _compare(operator.le),
}


def parse_filter(given: Any) -> list[FilterCondition]:
    """Read a filter: fields with the value they have, or with operators and what these compare to.

    All conditions have to hold.

    Raises:
        ValidationFailed: It is no filter.
    """
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise _refusal("`filter` must be an object of fields.")
    conditions: list[FilterCondition] = []
    for field, wanted in given.items():
        operators = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
        if not operators:
            raise _refusal(f"The filter gives no operator for {str(field)!r}.")
        conditions += [_condition(str(field), name, value) for name, value in operators.items()]
    if len(conditions) > limits.FILTER_CONDITIONS_MAX:
        raise ValidationFailed(
            f"A filter has at most {limits.FILTER_CONDITIONS_MAX} conditions.",
            field="filter",
            limit=limits.FILTER_CONDITIONS_MAX,
        )
    return conditions


def matches(conditions: Sequence[FilterCondition], metadata: Mapping[str, Any]) -> bool:
    """Whether all conditions hold of some metadata."""
    return all(each.holds(metadata) for each in conditions)


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Return metadata that can be stored.

    Raises:
        ValidationFailed: It is no object, or has too many fields.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise ValidationFailed("`metadata` must be an object.", field="metadata")
    if len(metadata) > limits.METADATA_FIELDS_MAX:
        raise ValidationFailed(
            f"`metadata` has at most {limits.METADATA_FIELDS_MAX} fields.",
            field="metadata",
            limit=limits.METADATA_FIELDS_MAX,
        )
    return dict(metadata)


def facet(field: str, value: Any, *, element: bool = False) -> str:
    """Return the facet of vectors one of whose fields is a value, or a list with that element."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = f"{field}{':' if element else '='}{orjson.dumps(value).decode()}"
    if len(text) > _FACET_CHARS_MAX:
        text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"meta:{text}"


def text_facet(field: str) -> str:
    """Return the facet of vectors one of whose fields is a text."""
    return f"text:{field}"


def number_name(field: str) -> str:
    """Return the name under which the numbers of a field are in order."""
    return f"meta:{field}"


def facets_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facets of metadata."""
    found: dict[str, None] = {}
    for field, value in metadata.items():
        if isinstance(value, list):
            found |= {facet(field, each, element=True): None for each in value if _is_scalar(each)}
        elif _is_scalar(value):
            found[facet(field, value)] = None
        if isinstance(value, str):
            found[text_facet(field)] = None
    return tuple(found)


def numbers_of(metadata: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the numbers of metadata."""
    return tuple(
        (number_name(field), float(value))
        for field, value in metadata.items()
        if _is_number(value) and abs(value) <= limits.METADATA_NUMBER_MAX
    )


def _condition(field: str, given: str, value: Any) -> FilterCondition:
    name = given.removeprefix("$")
    if name not in OPERATORS:
        raise _refusal(f"There is no filter operator {given!r}.", allowed=list(OPERATORS))
    if name == "in":
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise _refusal("`in` takes a list of values.")
        if len(value) > limits.FILTER_VALUES_MAX:
            raise ValidationFailed(
                f"`in` takes at most {limits.FILTER_VALUES_MAX} values.",
                field="filter",
                limit=limits.FILTER_VALUES_MAX,
            )
    elif name in _COMPARISONS and not _is_number(value) and not isinstance(value, str):
        raise _refusal(f"`{name}` compares with a number or a text.")
    elif isinstance(value, Mapping | list):
        raise _refusal(f"`{name}` compares with a text, a number, true, false or null.")
    return FilterCondition(field, name, value)


def _refusal(message: str, **details: Any) -> ValidationFailed:
    return ValidationFailed(message, field="filter", hint=f"Write {_EXAMPLE}.", **details)


def _comparable(one: Any, other: Any) -> bool:
    texts = isinstance(one, str) and isinstance(other, str)
    return texts or (_is_number(one) and _is_number(other))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
