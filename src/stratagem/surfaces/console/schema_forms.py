"""Forms made from the JSON Schema of a tool, and what was filled in as arguments.

Plain properties get a field of their kind; whatever is deeper is written as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
from stratagem.errors import ValidationFailed

__all__ = ["FormField", "form_fields", "read_form"]

FieldKind = Literal["text", "long", "number", "boolean", "choice", "json"]
_PREFIX: Final = "arg:"
_LONG_CHARS: Final = 300
_PLAIN: Final[Mapping[str, FieldKind]] = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
}


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form. `input` is its name there, `value` what it holds."""

    name: str
    input: str
    kind: FieldKind
    required: bool
    description: str
    value: str
    choices: tuple[str, ...] = ()
    whole: bool = False


def form_fields(schema: Mapping[str, Any], given: Mapping[str, str]) -> list[FormField]:
    """Return the fields for the properties of a schema, the required ones first."""
    required = set(schema.get("required", ()))
    fields = [
        _field(name, each, given, required=name in required)
        for name, each in schema.get("properties", {}).items()
        if isinstance(each, Mapping)
    ]
    return sorted(fields, key=lambda field: not field.required)


def _field(
    name: str, schema: Mapping[str, Any], given: Mapping[str, str], *, required: bool
) -> FormField:
    plain = _without_null(schema)
    choices = tuple(str(each) for each in plain.get("enum", ()) if isinstance(each, str))
    kind: FieldKind = "choice" if choices else _kind(plain)
    default = schema.get("default")
    shown = "" if default in (None, [], {}) else _to_text(default)
    return FormField(
        name,
        _PREFIX + name,
        kind,
        required,
        str(schema.get("description", "")),
        given.get(_PREFIX + name, shown),
        choices,
        plain.get("type") == "integer",
    )


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the one thing that a property is besides null; itself where it may be several."""
    choices = [
        each
        for each in schema.get("anyOf", ())
        if isinstance(each, Mapping) and each.get("type") != "null"
    ]
    return choices[0] if len(choices) == 1 else schema


def _kind(schema: Mapping[str, Any]) -> FieldKind:
    kind = schema.get("type")
    found = _PLAIN.get(kind, "json") if isinstance(kind, str) else "json"
    longest = schema.get("maxLength", 0)
    return "long" if found == "text" and longest > _LONG_CHARS else found


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def read_form(schema: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments that were filled in; an empty field is left out.

    Raises:
        ValidationFailed: A field holds no number, or no JSON.
    """
    arguments: dict[str, Any] = {}
    for field in form_fields(schema, {}):
        text = fields.get(field.input, "").replace("\r\n", "\n")
        if text != "":
            arguments[field.name] = _read(field, text)
    return arguments


def _read(field: FormField, text: str) -> Any:
    if field.kind in {"text", "long", "choice"}:
        return text
    try:
        return values.read(text.encode("utf-8", "surrogatepass"))
    except orjson.JSONDecodeError as error:
        words = {"number": "a number", "boolean": "true or false"}.get(field.kind, "JSON")
        raise ValidationFailed(
            f"`{field.name}` must be {words}.",
            field=field.name,
            hint=f"Such as {_example(field.kind)}.",
        ) from error


def _example(kind: FieldKind) -> str:
    return {"number": "42", "boolean": "true"}.get(kind, '{"a": 1} or ["a", "b"]')
