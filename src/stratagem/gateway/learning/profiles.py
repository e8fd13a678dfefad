"""What a tool is usually called with: counted from the calls that worked, without their values.

A profile knows which parameters were given, of which types, in which forms. The only values it
names are those that the schema itself lists: of these it knows the usual one. It is read from the
records of executions, so it is as old, as branched and as merged as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stratagem import limits
from stratagem.engine.lineage import OPEN_END, View
from stratagem.gateway.calls import history
from stratagem.gateway.learning.lessons import belief_of
from stratagem.storage.contract import Reader

__all__ = ["Parameter", "Profile", "profile_of", "read_profile"]

_DEPTH_MAX: Final = 8
_ELEMENTS_MAX: Final = 20
_FORMS: Final = (
    ("number", re.compile(r"[+-]?\d+(\.\d+)?")),
    ("date", re.compile(r"\d{4}-\d{2}-\d{2}")),
    ("date-time", re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")),
    ("address", re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://\S++", re.IGNORECASE)),
    ("email", re.compile(r"(?<![^@\s])[^@\s]++@[^@\s][^@\s.]*+\.[^@\s]++")),
    ("path", re.compile(r"[~.]{0,2}/\S*")),
    ("word", re.compile(r"[\w.-]+")),
)
_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string",
    list: "array", dict: "object", type(None): "null",
}  # fmt: skip


@dataclass(slots=True)
class Parameter:
    """How often a place of the arguments was given, and what stood there."""

    given: int = 0
    types: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    constants: Counter[Any] = field(default_factory=Counter)


@dataclass(slots=True)
class Profile:
    """The parameters of a tool, by path, in the calls that worked."""

    calls: int = 0
    parameters: dict[str, Parameter] = field(default_factory=dict)

    def usual(self, path: str) -> tuple[Any, float] | None:
        """Return the listed value that stands mostly at a place, and how far it may be expected."""
        parameter = self.parameters.get(path)
        if parameter is None or not parameter.constants:
            return None
        value, count = parameter.constants.most_common(1)[0]
        return value, belief_of(count, parameter.constants.total() - count).mean

    def plain(self) -> dict[str, Any]:
        """Return the profile as JSON, the parameters that are given most often first."""
        ordered = sorted(self.parameters.items(), key=lambda item: (-item[1].given, item[0]))
        return {
            "calls": self.calls,
            "parameters": [self._shown(path, each) for path, each in ordered],
        }

    def _shown(self, path: str, parameter: Parameter) -> dict[str, Any]:
        usual = self.usual(path)
        return {
            "path": path,
            "given": parameter.given,
            "share": round(parameter.given / self.calls, 4),
            "types": dict(parameter.types),
            "forms": dict(parameter.forms),
            **({"usual": usual[0], "confidence": round(usual[1], 4)} if usual else {}),
        }


def read_profile(reader: Reader, view: View, tool: str, schema: Any) -> Profile:
    """Read the profile of a tool from the newest of its executions that a view shows."""
    records, _next = history.history(
        reader,
        view,
        tool=tool,
        agent=None,
        status="success",
        since=None,
        until=None,
        before=OPEN_END,
        limit=limits.PROFILE_CALLS_MAX,
    )
    return profile_of((record.get("arguments") for record in records), schema)


def profile_of(calls: Iterable[Any], schema: Any) -> Profile:
    """Count what stood where in the arguments of calls."""
    profile = Profile()
    for arguments in calls:
        if not isinstance(arguments, Mapping):
            continue
        profile.calls += 1
        seen: set[str] = set()
        for path, value, part in _places(arguments, schema, "$", 0):
            parameter = profile.parameters.get(path)
            if parameter is None:
                if len(profile.parameters) >= limits.PROFILE_PATHS_MAX:
                    continue
                parameter = profile.parameters[path] = Parameter()
            _count(parameter, value, part, first=path not in seen)
            seen.add(path)
    return profile


def _count(parameter: Parameter, value: Any, part: Any, *, first: bool) -> None:
    parameter.given += first
    parameter.types[_TYPES.get(type(value), "string")] += 1
    if _listed(value, part):
        parameter.constants[value] += 1
    elif isinstance(value, str):
        parameter.forms[_form(value)] += 1


def _listed(value: Any, part: Any) -> bool:
    """Whether a value is one that the schema names, so that it is nobody's own."""
    if isinstance(value, bool):
        return True
    options = part.get("enum") if isinstance(part, Mapping) else None
    return isinstance(options, list) and isinstance(value, str | int | float) and value in options


def _places(
    value: Mapping[str, Any], schema: Any, path: str, depth: int
) -> Iterator[tuple[str, Any, Any]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    known = properties if isinstance(properties, Mapping) else {}
    for name, item in value.items():
        # A name that the schema does not have may be a caller's own.
        if name not in known:
            continue
        part = known[name]
        yield f"{path}.{name}", item, part
        if depth < _DEPTH_MAX:
            yield from _within(item, part, f"{path}.{name}", depth + 1)


def _within(item: Any, part: Any, path: str, depth: int) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(item, Mapping):
        yield from _places(item, part, path, depth)
    elif isinstance(item, list):
        inner = part.get("items") if isinstance(part, Mapping) else None
        for each in item[:_ELEMENTS_MAX]:
            yield f"{path}[*]", each, inner
            if isinstance(each, Mapping):
                yield from _places(each, inner, f"{path}[*]", depth)


def _form(text: str) -> str:
    for name, shape in _FORMS:
        if shape.fullmatch(text):
            return name
    return "text"
