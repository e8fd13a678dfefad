"""Parsing of arguments into a model, which accepts only declared fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from stratagem.errors import MissingRequired, ValidationFailed

__all__ = ["Given", "plain_schema", "read", "refusal", "strip_titles"]

_MESSAGE_CHARS_MAX: Final = 300


class Given(BaseModel):
    """The base of what is read: names in camel case, nothing unknown, nothing converted."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True, frozen=True
    )


GivenType = TypeVar("GivenType", bound=Given)


def read(model: type[GivenType], arguments: Mapping[str, Any]) -> GivenType:
    """Read arguments into a model.

    Raises:
        MissingRequired: One is missing.
        ValidationFailed: One is unknown, or has a value that it cannot have.
    """
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        names = [field.alias or name for name, field in model.model_fields.items()]
        raise refusal(error, names) from error


def refusal(
    error: ValidationError, names: Iterable[str] = ()
) -> MissingRequired | ValidationFailed:
    """Return the first thing that is wrong, as an error of ours that names the field."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = _place(first["loc"])
    if first["type"] == "missing":
        return MissingRequired(f"`{field}` is missing.", field=field)
    if first["type"] == "extra_forbidden":
        near = get_close_matches(field, list(names), n=2)
        return ValidationFailed(
            f"There is no `{field}` here.",
            field=field,
            hint=f"Did you mean {' or '.join(near)}?" if near else None,
        )
    message = first["msg"].removeprefix("Value error, ").rstrip(".")[:_MESSAGE_CHARS_MAX]
    return ValidationFailed(f"`{field}`: {message}.", field=field)


def _place(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "arguments"


def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON Schema without what only a program would read."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    shown: dict[str, Any] = _simplify_schema(schema, definitions)
    return shown


def strip_titles(node: Any) -> Any:
    """Return a schema without the titles that pydantic makes of names."""
    if isinstance(node, list):
        return [strip_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    named = {"properties", "$defs"}
    return {
        name: {key: strip_titles(each) for key, each in value.items()}
        if name in named and isinstance(value, dict)
        else strip_titles(value)
        for name, value in node.items()
        if name != "title"
    }


def _simplify_schema(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplify_schema(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _simplify_schema(definitions[node["$ref"].rpartition("/")[2]], definitions)
    choices = [each for each in node.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1 and len(node["anyOf"]) > 1:
        # Leaving it out says null.
        node = {name: value for name, value in node.items() if name != "anyOf"} | choices[0]
    return {
        name: _simplify_properties(value, definitions)
        if name == "properties"
        else _simplify_schema(value, definitions)
        for name, value in node.items()
        if name not in {"title", "discriminator"} and not (name == "default" and value is None)
    }


def _simplify_properties(
    properties: Mapping[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    # A parameter may be called "title" or "default".
    return {name: _simplify_schema(value, definitions) for name, value in properties.items()}
