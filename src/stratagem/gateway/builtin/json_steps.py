"""The steps of the data_transformer: each takes a value and gives a new one, and changes neither.

Order is total, so that any list can be sorted: null, false, true, numbers, texts, lists, objects.
Two values are the same where they are the same JSON, whatever the order of their keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.argument_models import Given
from stratagem.gateway.pipelines.expressions import (
    EvaluationBudget,
    Expression,
    compile_expression,
    is_truthy,
)

__all__ = ["Step", "apply_step"]

_Path = Annotated[
    str,
    Field(
        min_length=1, max_length=limits.EXPRESSION_CHARS_MAX, description="JMESPath, or JSONPath"
    ),
]
_Names = Annotated[list[str], Field(min_length=1, max_length=limits.KEYS_MAX)]
_Separator = Annotated[str, Field(min_length=1, max_length=8)]


class Pick(Given):
    """Give what an expression finds; with `each`, of every element of a list."""

    op: Literal["pick"]
    path: _Path
    each: bool = False


class Filter(Given):
    """Keep the elements for which an expression is true."""

    op: Literal["filter"]
    where: _Path


class SortKey(Given):
    """What to sort by."""

    path: _Path
    order: Literal["ascending", "descending"] = "ascending"


class Sort(Given):
    """Sort a list; equal elements keep their order."""

    op: Literal["sort"]
    by: list[SortKey] = Field(default_factory=list, max_length=10)
    order: Literal["ascending", "descending"] = "ascending"


class Group(Given):
    """Gather elements with an equal key: [{key, items}], in the order of their first element."""

    op: Literal["group"]
    by: _Path


class Metric(Given):
    """A figure over the elements of a group; count needs no path."""

    metric: Literal[
        "count", "sum", "mean", "median", "min", "max", "first", "last", "list", "distinct"
    ]
    path: _Path | None = None


class Aggregate(Given):
    """Compute figures over all elements, or over each group of them."""

    op: Literal["aggregate"]
    by: _Path | None = None
    metrics: dict[str, Metric] = Field(min_length=1, max_length=50)


class Rename(Given):
    """Rename fields of an object, or of every object of a list."""

    op: Literal["rename"]
    names: dict[str, str] = Field(min_length=1, max_length=limits.KEYS_MAX)


class Select(Given):
    """Keep only these fields, in this order."""

    op: Literal["select"]
    fields: _Names


class Omit(Given):
    """Drop these fields."""

    op: Literal["omit"]
    fields: _Names


class Flatten(Given):
    """Make nested objects and lists flat: {"a": {"b": 1}} becomes {"a.b": 1}."""

    op: Literal["flatten"]
    separator: _Separator = "."


class Unflatten(Given):
    """Undo flatten."""

    op: Literal["unflatten"]
    separator: _Separator = "."


class Merge(Given):
    """Merge an object into the data, or a list of objects into one; later values win."""

    op: Literal["merge"]
    other: dict[str, Any] | None = Field(None, alias="with")
    deep: bool = True


class Deduplicate(Given):
    """Keep the first of equal elements, or of those with an equal key."""

    op: Literal["deduplicate"]
    by: _Path | None = None


class Limit(Given):
    """Keep so many elements, after leaving out some."""

    op: Literal["limit"]
    count: int = Field(ge=0)
    skip: int = Field(0, ge=0)


Step = Annotated[
    Pick
    | Filter
    | Sort
    | Group
    | Aggregate
    | Rename
    | Select
    | Omit
    | Flatten
    | Unflatten
    | Merge
    | Deduplicate
    | Limit,
    Field(discriminator="op"),
]


def apply_step(step: Any, data: Any, *, field: str) -> Any:
    """Return the data after a step.

    Raises:
        ValidationFailed: The step cannot be applied to it; `field` says which one it is.
    """
    return _STEPS[type(step)](step, data, field)


def _rows(data: Any, field: str) -> list[Any]:
    if not isinstance(data, list):
        raise ValidationFailed(
            f"`{field}` needs a list, but got {_kind(data)}.",
            field=field,
            hint="Select the list first.",
        )
    return data


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")


class _Finder:
    """Finds the same thing in many values, at the cost of one expression over all of them."""

    def __init__(self, path: str, field: str) -> None:
        self._expression: Expression = compile_expression(path, field=field)
        self._work = EvaluationBudget(field)

    def __call__(self, value: Any) -> Any:
        return self._expression.search(value, self._work)


def _same(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    return (3, value) if isinstance(value, str) else (4 + isinstance(value, dict), _same(value))


def _pick(step: Pick, data: Any, field: str) -> Any:
    find = _Finder(step.path, f"{field}.path")
    return [find(row) for row in _rows(data, field)] if step.each else find(data)


def _filter(step: Filter, data: Any, field: str) -> Any:
    find = _Finder(step.where, f"{field}.where")
    return [row for row in _rows(data, field) if is_truthy(find(row))]


def _sort(step: Sort, data: Any, field: str) -> Any:
    rows = _rows(data, field)
    if not step.by:
        return sorted(rows, key=_rank, reverse=step.order == "descending")
    # Sorting is stable: by the least key first, by the greatest last.
    for index, key in reversed(list(enumerate(step.by))):
        find = _Finder(key.path, f"{field}.by[{index}].path")
        found = [(_rank(find(row)), row) for row in rows]
        ranked = sorted(found, key=lambda pair: pair[0], reverse=key.order == "descending")
        rows = [row for _, row in ranked]
    return rows


def _group_rows(path: str, rows: Iterable[Any], field: str) -> list[tuple[Any, list[Any]]]:
    find = _Finder(path, f"{field}.by")
    groups: dict[bytes, tuple[Any, list[Any]]] = {}
    for row in rows:
        key = find(row)
        groups.setdefault(_same(key), (key, []))[1].append(row)
    return list(groups.values())


def _group(step: Group, data: Any, field: str) -> Any:
    groups = _group_rows(step.by, _rows(data, field), field)
    return [{"key": key, "items": items} for key, items in groups]


def _aggregate(step: Aggregate, data: Any, field: str) -> Any:
    rows = _rows(data, field)
    if step.by is None:
        return _metrics(step, rows, field)
    groups = _group_rows(step.by, rows, field)
    return [{"key": key, **_metrics(step, items, field)} for key, items in groups]


def _metrics(step: Aggregate, rows: list[Any], field: str) -> dict[str, Any]:
    return {
        name: _metric(metric, rows, f"{field}.metrics.{name}")
        for name, metric in step.metrics.items()
    }


def _metric(metric: Metric, rows: list[Any], field: str) -> Any:
    find = _Finder(metric.path, f"{field}.path") if metric.path is not None else None
    # What is not there counts for nothing.
    found = rows if find is None else [each for each in map(find, rows) if each is not None]
    if metric.metric in _COLLECTING:
        return _COLLECTING[metric.metric](found)
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in found):
        raise ValidationFailed(
            f"`{field}`: {metric.metric} is for numbers.",
            field=field,
            hint="Name the numbers with `path`, or filter the others out.",
        )
    try:
        return _COMPUTING[metric.metric](found) if found or metric.metric == "sum" else None
    except OverflowError:
        raise ValidationFailed(f"`{field}` is larger than any number.", field=field) from None


def _sum(numbers: list[Any]) -> float:
    if all(isinstance(number, int) for number in numbers):
        return int(sum(numbers))
    return math.fsum(numbers)


def _distinct(values: list[Any]) -> list[Any]:
    return list({_same(value): value for value in reversed(values)}.values())[::-1]


_COLLECTING: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "count": len,
    "first": lambda found: found[0] if found else None,
    "last": lambda found: found[-1] if found else None,
    "min": lambda found: min(found, key=_rank, default=None),
    "max": lambda found: max(found, key=_rank, default=None),
    "list": lambda found: found,
    "distinct": _distinct,
}
_COMPUTING: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "sum": _sum,
    "mean": lambda found: _sum(found) / len(found),
    "median": median,
}


def _each_object(
    data: Any, field: str, change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Any:
    """Return an object changed, or a list with each of its objects changed."""
    if isinstance(data, dict):
        return change(data)
    rows = _rows(data, field)
    if not all(isinstance(row, dict) for row in rows):
        raise ValidationFailed(f"`{field}` needs objects.", field=field)
    return [change(row) for row in rows]


def _rename(step: Rename, data: Any, field: str) -> Any:
    def rename_fields(row: Mapping[str, Any]) -> dict[str, Any]:
        made = {step.names.get(name, name): value for name, value in row.items()}
        if len(made) < len(row):
            raise ValidationFailed(
                f"`{field}` gives two fields the same name.", field=f"{field}.names"
            )
        return made

    return _each_object(data, field, rename_fields)


def _select(step: Select, data: Any, field: str) -> Any:
    return _each_object(
        data, field, lambda row: {name: row[name] for name in step.fields if name in row}
    )


def _omit(step: Omit, data: Any, field: str) -> Any:
    dropped = set(step.fields)
    return _each_object(
        data, field, lambda row: {name: row[name] for name in row if name not in dropped}
    )


def _flatten(step: Flatten, data: Any, field: str) -> Any:
    def flat(row: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        _flat_into(made, "", row, step.separator)
        return made

    return _each_object(data, field, flat)


def _flat_into(made: dict[str, Any], place: str, value: Any, separator: str) -> None:
    # An empty one has no leaves, and would be lost.
    if not isinstance(value, dict | list) or not value:
        if place:
            made[place] = value
        return
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, child in pairs:
        _flat_into(made, f"{place}{separator}{name}" if place else str(name), child, separator)


def _unflatten(step: Unflatten, data: Any, field: str) -> Any:
    def deep(row: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in row.items():
            _put(made, name.split(step.separator), value, field)
        return {name: _restore_list(value) for name, value in made.items()}

    return _each_object(data, field, deep)


def _put(made: dict[str, Any], names: list[str], value: Any, field: str) -> None:
    if len(names) > limits.VALUE_DEPTH_MAX:
        raise ValidationFailed(
            f"`{field}`: a name has more than {limits.VALUE_DEPTH_MAX} parts.",
            field=field,
            limit=limits.VALUE_DEPTH_MAX,
        )
    here: Any = made
    for name in names[:-1]:
        here = here.setdefault(name, _Branch())
        if not isinstance(here, _Branch):
            break
    if not isinstance(here, dict) or names[-1] in here:
        raise ValidationFailed(
            f"`{field}`: {'.'.join(names)[:64]!r} overwrites another field.",
            field=field,
        )
    here[names[-1]] = value


class _Branch(dict[str, Any]):
    """An object made by unflatten; one that was in the data is a leaf."""


def _restore_list(value: Any) -> Any:
    """Return an object whose names are 0, 1, 2 … as the list it was."""
    if not isinstance(value, _Branch):
        return value
    children = {name: _restore_list(child) for name, child in value.items()}
    if set(children) == {str(index) for index in range(len(children))}:
        return [children[str(index)] for index in range(len(children))]
    return children


def _merge(step: Merge, data: Any, field: str) -> Any:
    objects = [data, step.other] if step.other is not None else _rows(data, field)
    if not all(isinstance(each, dict) for each in objects):
        raise ValidationFailed(f"`{field}` merges objects.", field=field)
    merged: dict[str, Any] = {}
    for each in objects:
        merged = _merge_objects(merged, each) if step.deep else {**merged, **each}
    return merged


def _merge_objects(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(one)
    for name, value in other.items():
        both = isinstance(value, dict) and isinstance(made.get(name), dict)
        made[name] = _merge_objects(made[name], value) if both else value
    return made


def _deduplicate(step: Deduplicate, data: Any, field: str) -> Any:
    find = _Finder(step.by, f"{field}.by") if step.by is not None else None
    seen: set[bytes] = set()
    kept = []
    for row in _rows(data, field):
        key = _same(row if find is None else find(row))
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return kept


def _limit(step: Limit, data: Any, field: str) -> Any:
    return _rows(data, field)[step.skip : step.skip + step.count]


_STEPS: Final[dict[type[Given], Callable[[Any, Any, str], Any]]] = {
    Pick: _pick,
    Filter: _filter,
    Sort: _sort,
    Group: _group,
    Aggregate: _aggregate,
    Rename: _rename,
    Select: _select,
    Omit: _omit,
    Flatten: _flatten,
    Unflatten: _unflatten,
    Merge: _merge,
    Deduplicate: _deduplicate,
    Limit: _limit,
}
