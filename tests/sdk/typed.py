"""Answers held against their types: no field more, no field less, and each of its type."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)


def misfits(kind: Any, value: Any, path: str = "$") -> list[str]:
    """Return where a value is not what its type says."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _misfits_of_fields(kind, value, path)
    if origin in {Union, types.UnionType}:
        found = [misfits(each, value, path) for each in parts]
        return [] if [] in found else min(found, key=len)
    if origin is Literal:
        return [] if value in parts else [f"{path} is {value!r}"]
    if origin in {list, dict}:
        return _misfits_of_items(kind, value, path)
    return [] if _is_plain(kind, value) else [f"{path} is {value!r}, not {kind}"]


def _misfits_of_items(kind: Any, value: Any, path: str) -> list[str]:
    if not isinstance(value, get_origin(kind)):
        return [f"{path} is {value!r}, not {kind}"]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    inner = get_args(kind)[-1]
    return [each for at, item in items for each in misfits(inner, item, f"{path}[{at}]")]


def _misfits_of_fields(kind: Any, value: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path} is {value!r}, not {kind.__name__}"]
    hints = get_type_hints(kind)
    declared = get_type_hints(kind, include_extras=True)
    required = {
        name for name in kind.__required_keys__ if get_origin(declared[name]) is not NotRequired
    }
    found = [f"{path}.{name} is missing" for name in required - set(value)]
    found += [f"{path}.{name} is in no type" for name in set(value) - set(hints)]
    for name in set(hints) & set(value):
        found += misfits(hints[name], value[name], f"{path}.{name}")
    return found


def _is_plain(kind: Any, value: Any) -> bool:
    if kind is Any or kind is type(None):
        return kind is Any or value is None
    if isinstance(value, bool):
        return kind is bool
    # A whole number is a number.
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
