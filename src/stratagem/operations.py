"""One table of everything that can be asked for, gathered from the systems.

Surfaces are translations of this table; none has an operation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from stratagem.debugging.operations import OPERATIONS as DEBUGGING
from stratagem.errors import InvalidInput, MissingRequired, OperationNotFound, ValidationFailed
from stratagem.knowledge.operations import OPERATIONS as KNOWLEDGE
from stratagem.memory.operations import OPERATIONS as MEMORY
from stratagem.operation import DEFAULT_TOOLSETS, Operation

__all__ = ["DEFAULT_TOOLSETS", "TABLE", "TOOLSETS", "find", "input_schema", "read_input"]

TABLE: dict[str, Operation] = {
    operation.name: operation for operation in (*MEMORY, *DEBUGGING, *KNOWLEDGE)
}
TOOLSETS: tuple[str, ...] = tuple(dict.fromkeys(each.toolset for each in TABLE.values()))


def find(name: str) -> Operation:
    """Return an operation by its name.

    Raises:
        OperationNotFound: There is none; similar names are suggested.
    """
    operation = TABLE.get(name)
    if operation is None:
        near = get_close_matches(name, TABLE, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else None
        raise OperationNotFound(f"There is no operation named {name!r}.", hint=hint, similar=near)
    return operation


def read_input(operation: Operation, arguments: Any) -> BaseModel:
    """Check arguments against an operation's parameters.

    Raises:
        InvalidInput: The arguments are no object.
        MissingRequired: A parameter is missing.
        ValidationFailed: A parameter is unknown or has a value it cannot have.
    """
    if not isinstance(arguments, Mapping):
        raise InvalidInput(
            f"The arguments of {operation.name} are a JSON object, not {type(arguments).__name__}."
        )
    try:
        return operation.input_model.model_validate(arguments)
    except ValidationError as error:
        raise _translation(operation, error) from error


@cache
def input_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an operation's parameters, in as few characters as will do."""
    operation = find(name)
    schema = operation.input_model.model_json_schema()
    required = schema.get("required")
    short: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: _short(parameter) for name, parameter in schema.get("properties", {}).items()
        },
    }
    return short | ({"required": required} if required else {})


def _short(parameter: dict[str, Any]) -> dict[str, Any]:
    """Drop titles, lower bounds and the null of optional parameters: leaving one out says it."""
    dropped = {"title", "anyOf", "minimum"}
    short = {name: value for name, value in parameter.items() if name not in dropped}
    choices = [each for each in parameter.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        # Some clients know one type only; the first choice is the one that can say everything.
        short |= choices[0]
    if short.get("default", 0) is None:
        del short["default"]
    if short.get("additionalProperties") is True:
        del short["additionalProperties"]
    if isinstance(short.get("items"), dict):
        short["items"] = _short(short["items"])
    return short


def _translation(
    operation: Operation, error: ValidationError
) -> MissingRequired | ValidationFailed:
    first = error.errors(include_url=False, include_context=True)[0]
    field = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function"))
    root = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return MissingRequired(f"{operation.name} needs `{field}`.", field=field)
    if first["type"] == "extra_forbidden":
        known = list(operation.input_model.model_fields)
        near = get_close_matches(root, known, n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"It takes: {', '.join(known)}."
        return ValidationFailed(
            f"{operation.name} has no parameter `{root}`.", hint=hint, field=root
        )
    details: dict[str, Any] = {"field": root}
    if limit := _limit(first.get("ctx") or {}):
        details["limit"] = limit
    return ValidationFailed(f"`{root}`: {first['msg']}.", **details)


def _limit(context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in context.items() if isinstance(value, int | float | str)}
