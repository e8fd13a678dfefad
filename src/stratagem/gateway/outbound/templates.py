"""Templates: texts and JSON with placeholders for arguments and secrets.

A template is parsed before anything is filled in, so that a value is never parsed as a template:
an argument `${TOKEN}` stays those eight characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import MissingRequired

__all__ = ["ABSENT", "Segment", "Template", "fill_json", "json_arguments", "text_of"]

# `{name}` in URLs and headers; `{{name}}` in JSON, where single braces are common.
_SINGLE: Final = re.compile(
    r"\$\{(?P<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\{(?P<argument>[A-Za-z_][\w.-]*)\}"
)
_DOUBLE: Final = re.compile(
    r"\$\{(?P<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\{\{ *(?P<argument>\*|[A-Za-z_][\w.-]*) *\}\}"
)

ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a template: plain text, or the name of a secret or argument."""

    kind: Literal["text", "secret", "argument"]
    value: str


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template."""

    segments: tuple[Segment, ...]

    @classmethod
    def parse(cls, text: str, *, double: bool = False) -> Template:
        """Parse a text; `double` for placeholders in double braces."""
        return cls(tuple(_split(text, _DOUBLE if double else _SINGLE)))

    def names(self, kind: Literal["secret", "argument"]) -> list[str]:
        """Return the distinct names of its arguments or secrets, in order."""
        return list(
            dict.fromkeys(segment.value for segment in self.segments if segment.kind == kind)
        )

    @property
    def only_argument(self) -> str | None:
        """Return the argument's name if the template is a single placeholder, else None."""
        if len(self.segments) == 1 and self.segments[0].kind == "argument":
            return self.segments[0].value
        return None

    def fill(
        self,
        arguments: Mapping[str, Any],
        secret: Callable[[str], str],
        encode: Callable[[str], str] = str,
    ) -> str:
        """Return the text with every placeholder replaced by its encoded value.

        Raises:
            MissingRequired: An argument of the template is missing.
        """
        filled = []
        for segment in self.segments:
            if segment.kind == "text":
                filled.append(segment.value)
            elif segment.kind == "secret":
                filled.append(encode(secret(segment.value)))
            else:
                filled.append(encode(text_of(_require_argument(arguments, segment.value))))
        return "".join(filled)


def text_of(value: Any) -> str:
    """Return an argument as text: itself if it is one, else its JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def fill_json(template: Any, arguments: Mapping[str, Any], secret: Callable[[str], str]) -> Any:
    """Return a JSON template with its placeholders filled in.

    A text that is a single placeholder becomes the argument itself, whatever its type. If the
    argument is missing, its field or element is left out; for a whole template, the result is
    `ABSENT`.
    """
    if isinstance(template, str):
        read = Template.parse(template, double=True)
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
        yield from Template.parse(template, double=True).names("argument")
    elif isinstance(template, Mapping):
        for each in template.values():
            yield from json_arguments(each)
    elif isinstance(template, list):
        for each in template:
            yield from json_arguments(each)


def _split(text: str, places: re.Pattern[str]) -> Iterator[Segment]:
    at = 0
    for found in places.finditer(text):
        if found.start() > at:
            yield Segment("text", text[at : found.start()])
        if found["secret"] is not None:
            yield Segment("secret", found["secret"])
        else:
            yield Segment("argument", found["argument"])
        at = found.end()
    if at < len(text):
        yield Segment("text", text[at:])


def _require_argument(arguments: Mapping[str, Any], name: str) -> Any:
    value = dict(arguments) if name == "*" else arguments.get(name)
    if value is None:
        raise MissingRequired(f"`{name}` is needed for this call.", field=name)
    return value
