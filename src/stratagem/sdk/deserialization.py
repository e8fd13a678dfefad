"""Deserialization of JSON answers to the models that methods return, or the errors they raise."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from stratagem import errors
from stratagem.errors import StratagemError

__all__ = ["deserialize", "error_of"]


def deserialize(kind: Any, answer: Any) -> Any:
    """Return an answer as the model that a method is annotated with."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return _deserialize_union(get_args(kind), answer)
    if origin is list and isinstance(answer, list):
        return [deserialize(get_args(kind)[0], each) for each in answer]
    model = origin if origin is not None else kind
    if isinstance(model, type) and is_dataclass(model) and isinstance(answer, Mapping):
        return _deserialize_model(kind, model, answer)
    return answer


def error_of(answer: Mapping[str, Any]) -> StratagemError:
    """Return the error that an answer contains."""
    told = answer.get("error")
    if isinstance(told, Mapping):
        code, body = str(told.get("code", "")).lower(), told
    else:
        code, body = str(told), answer
    kind = _errors().get(code, StratagemError)
    details = body.get("details")
    found = kind(str(body.get("message", "The server refused.")), hint=str(body.get("hint", "")))
    found.details = dict(details) if isinstance(details, Mapping) else {}
    return found


def _deserialize_union(choices: tuple[Any, ...], answer: Any) -> Any:
    """Return an answer as the first of several models that it has all fields of."""
    if answer is None:
        return None
    models = [each for each in choices if is_dataclass(get_origin(each) or each)]
    for each in models if isinstance(answer, Mapping) else ():
        if len(models) == 1 or _required_fields(get_origin(each) or each) <= set(answer):
            return deserialize(each, answer)
    lists = [each for each in choices if get_origin(each) is list]
    return deserialize(lists[0], answer) if lists and isinstance(answer, list) else answer


def _deserialize_model(kind: Any, model: type, answer: Mapping[str, Any]) -> Any:
    hints = _hints(model)
    given = dict(zip(getattr(model, "__parameters__", ()), get_args(kind), strict=False))
    values = {}
    for each in fields(model):
        if each.name in answer:
            values[each.name] = deserialize(
                _substitute_type_variables(hints[each.name], given), answer[each.name]
            )
        elif each.default is MISSING and each.default_factory is MISSING:
            # Empty optional fields are left out of answers.
            values[each.name] = None
    return model(**values)


def _substitute_type_variables(hint: Any, given: Mapping[Any, Any]) -> Any:
    """Put what a generic model was made with into the hint of one of its fields."""
    if isinstance(hint, TypeVar):
        return given.get(hint, Any)
    if get_origin(hint) is list and get_args(hint) and isinstance(get_args(hint)[0], TypeVar):
        return list[given.get(get_args(hint)[0], Any)]  # type: ignore[misc]
    return hint


@cache
def _hints(model: type) -> dict[str, Any]:
    return get_type_hints(model)


@cache
def _required_fields(model: type) -> frozenset[str]:
    hints = _hints(model)
    return frozenset(
        each.name
        for each in fields(model)
        if each.default is MISSING
        and each.default_factory is MISSING
        and type(None) not in get_args(hints[each.name])
        and get_origin(hints[each.name]) is not Literal
    )


@cache
def _errors() -> dict[str, type[StratagemError]]:
    found = {}
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, StratagemError):
            found[each.code] = each
    return found
