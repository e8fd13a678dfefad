"""Texts and JSON with places to fill in.

A template is read into its parts before anything is filled in, so that what is filled in is never
read as a template itself: an argument that says `${TOKEN}` stays those eight characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from stratagem.errors import MissingRequired

__all__ = ["ABSENT", "Part", "Template", "fill_json", "json_arguments", "text_of"]

# `{name}` in addresses and headers; `{{name}}` in JSON, where single braces are common.
_SINGLE: Final = re.compile(
    r"\$\{(?P<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\{(?P<argument>[A-Za-z_][\w.-]*)\}"
)
_DOUBLE: Final = re.compile(
    r"\$\{(?P<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\{\{ *(?P<argument>\*|[A-Za-z_][\w.-]*) *\}\}"
)

ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a template: plain text, or the name of what stands there."""

    kind: Literal["text", "secret", "argument"]
    value: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text with its places."""

    parts: tuple[Part, ...]

    @classmethod
    def read(cls, text: str, *, double: bool = False) -> Template:
        """Read a text; `double` for places in double braces."""
        return cls(tuple(_parts(text, _DOUBLE if double else _SINGLE)))

    def names(self, kind: Literal["secret", "argument"]) -> list[str]:
        """Return the names of its arguments or secrets, in order, each once."""
        return list(dict.fromkeys(part.value for part in self.parts if part.kind == kind))

    @property
    def only_argument(self) -> str | None:
        """Return the name of the argument that is all there is to it, if so."""
        if len(self.parts) == 1 and self.parts[0].kind == "argument":
            return self.parts[0].value
        return None

    def fill(
        self,
        arguments: Mapping[str, Any],
        secret: Callable[[str], str],
        encode: Callable[[str], str] = str,
    ) -> str:
        """Return the text with everything filled in; `encode` makes it fit its surroundings.

        Raises:
            MissingRequired: An argument that it needs is not there.
        """
        filled = []
        for part in self.parts:
            if part.kind == "text":
                filled.append(part.value)
            elif part.kind == "secret":
                filled.append(encode(secret(part.value)))
            else:
                filled.append(encode(text_of(_needed(arguments, part.value))))
        return "".join(filled)


def text_of(value: Any) -> str:
    """Return an argument as it is written into a text."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def fill_json(template: Any, arguments: Mapping[str, Any], secret: Callable[[str], str]) -> Any:
    """Return JSON with its places filled in.

    A text that is nothing but a place becomes the argument itself, whatever its type; where that
    is missing, the field or element is left out, and `ABSENT` stands for the whole.
    """
    if isinstance(template, str):
        read = Template.read(template, double=True)
        name = read.only_argument
        if name is None:
            return read.fill(arguments, secret)
        return dict(arguments) if name == "*" else arguments.get(name, ABSENT)
    if isinstance(template, Mapping):
        filled = ((key, fill_json(each, arguments, secret)) for key, each in template.items())
        return {key: each for key, each in filled if each is not ABSENT}
    if isinstance(template, list):
        elements = (fill_json(each, arguments, secret) for each in template)
        return [each for each in elements if each is not ABSENT]
    return template


def json_arguments(template: Any) -> Iterator[str]:
    """Yield the names of the arguments that a JSON template uses."""
    if isinstance(template, str):
        yield from Template.read(template, double=True).names("argument")
    elif isinstance(template, Mapping):
        for each in template.values():
            yield from json_arguments(each)
    elif isinstance(template, list):
        for each in template:
            yield from json_arguments(each)


def _parts(text: str, places: re.Pattern[str]) -> Iterator[Part]:
    at = 0
    for found in places.finditer(text):
        if found.start() > at:
            yield Part("text", text[at : found.start()])
        if found["secret"] is not None:
            yield Part("secret", found["secret"])
        else:
            yield Part("argument", found["argument"])
        at = found.end()
    if at < len(text):
        yield Part("text", text[at:])


def _needed(arguments: Mapping[str, Any], name: str) -> Any:
    value = dict(arguments) if name == "*" else arguments.get(name)
    if value is None:
        raise MissingRequired(f"`{name}` is needed for this call.", field=name)
    return value
