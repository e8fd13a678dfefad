"""What a tool says of itself, by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple

__all__ = ["FieldTexts", "field_texts", "listed_values", "parameters"]

# A schema nested deeper than this says no more about what a tool is for.
_DEPTH_MAX: Final = 4
_PARAMETERS_MAX: Final = 200
_CHOICES_MAX: Final = 20
_CHARS_MAX: Final = 8_000


class FieldTexts(NamedTuple):
    """The texts of a tool, in the order of `weights.FIELD_WEIGHTS`."""

    name: str
    description: str
    parameters: str
    meanings: str
    choices: str

    @property
    def purpose(self) -> str:
        """What it is for, in short."""
        return f"{self.name} {self.description} {self.parameters}"

    @property
    def everything(self) -> str:
        """All of it."""
        return " ".join(self)


def field_texts(content: Mapping[str, Any]) -> FieldTexts:
    """Return the texts of a tool's definition."""
    found = list(parameters(content.get("inputSchema")))[:_PARAMETERS_MAX]
    said = [str(content.get(name) or "") for name in ("description", "longDescription")]
    said += [str(each) for each in (*content.get("tags", ()), *content.get("capabilities", ()))]
    said += [
        str(example.get("description") or "")
        for example in content.get("examples") or ()
        if isinstance(example, Mapping)
    ]
    return FieldTexts(
        str(content.get("name") or ""),
        " ".join(filter(None, said))[:_CHARS_MAX],
        " ".join(name for name, _ in found)[:_CHARS_MAX],
        " ".join(str(each.get("description") or "") for _, each in found)[:_CHARS_MAX],
        " ".join(str(choice) for _, each in found for choice in listed_values(each)[:_CHOICES_MAX])[
            :_CHARS_MAX
        ],
    )


def parameters(schema: Any, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parameters of a schema by name, those inside of others too."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return
    properties = schema.get("properties")
    for name, parameter in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(parameter, Mapping):
            yield str(name), parameter
            yield from parameters(parameter, depth + 1)
            yield from parameters(parameter.get("items"), depth + 1)


def listed_values(parameter: Mapping[str, Any]) -> list[Any]:
    """Return the values that a parameter, or an element of it, can have."""
    items = parameter.get("items")
    for place in (parameter, items if isinstance(items, Mapping) else {}):
        choices = place.get("enum")
        if isinstance(choices, list):
            return choices
    return []
