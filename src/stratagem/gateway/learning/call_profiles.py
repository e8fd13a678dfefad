"""What a tool is usually called with: its parameters, their types and their listed values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.lineage import OPEN_END, View
from stratagem.gateway.calls import history
from stratagem.gateway.correction import (
    Candidate,
    Correction,
    CorrectionStep,
    FaultType,
    Risk,
    Strategy,
)
from stratagem.gateway.learning.answers import ParameterUsage, ToolProfile
from stratagem.gateway.learning.lessons import belief_of
from stratagem.gateway.registry.tools import Tool
from stratagem.storage.contract import Reader

__all__ = ["CallProfile", "ParameterProfile", "profile_of", "read_profile", "usual_values"]

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
class ParameterProfile:
    """How often a place of the arguments was given, and what stood there."""

    given: int = 0
    types: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    constants: Counter[Any] = field(default_factory=Counter)


@dataclass(slots=True)
class CallProfile:
    """The parameters of a tool, by path, in the calls that worked."""

    calls: int = 0
    parameters: dict[str, ParameterProfile] = field(default_factory=dict)

    def usual_value(self, path: str) -> tuple[Any, float] | None:
        """Return the listed value that stands mostly at a place, and how far it may be expected."""
        parameter = self.parameters.get(path)
        if parameter is None or not parameter.constants:
            return None
        value, count = parameter.constants.most_common(1)[0]
        return value, belief_of(count, parameter.constants.total() - count).mean

    def to_json(self) -> ToolProfile:
        """Return the profile as JSON, the parameters that are given most often first."""
        ordered = sorted(self.parameters.items(), key=lambda item: (-item[1].given, item[0]))
        return {
            "calls": self.calls,
            "parameters": [self._usage(path, each) for path, each in ordered],
        }

    def _usage(self, path: str, parameter: ParameterProfile) -> ParameterUsage:
        usage: ParameterUsage = {
            "path": path,
            "given": parameter.given,
            "share": round(parameter.given / self.calls, 4),
            "types": dict(parameter.types),
            "forms": dict(parameter.forms),
        }
        if (usual := self.usual_value(path)) is not None:
            usage["usual"] = usual[0]
            usage["confidence"] = round(usual[1], 4)
        return usage


def read_profile(reader: Reader, view: View, tool: str, schema: Any) -> CallProfile:
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


def profile_of(calls: Iterable[Any], schema: Any) -> CallProfile:
    """Count the types and values at each place of the arguments of calls."""
    profile = CallProfile()
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
                parameter = profile.parameters[path] = ParameterProfile()
            _count(parameter, value, part, first=path not in seen)
            seen.add(path)
    return profile


def _count(parameter: ParameterProfile, value: Any, part: Any, *, first: bool) -> None:
    parameter.given += first
    parameter.types[_TYPES.get(type(value), "string")] += 1
    if _is_listed(value, part):
        parameter.constants[value] += 1
    elif isinstance(value, str):
        parameter.forms[_form(value)] += 1


def _is_listed(value: Any, part: Any) -> bool:
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
            yield from _nested_places(item, part, f"{path}.{name}", depth + 1)


def _nested_places(item: Any, part: Any, path: str, depth: int) -> Iterator[tuple[str, Any, Any]]:
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


PATTERN: Final = "usual_value_for_missing"
_CALLS_MIN: Final = 5
_CONFIDENCE_MAX: Final = 0.9


def usual_values(
    tool: Tool, arguments: Any, found: Correction, profile: CallProfile
) -> Candidate | None:
    """Return arguments completed by the usual values of the tool, if that makes them valid."""
    missing = [fault for fault in found.errors if fault.type is FaultType.MISSING_REQUIRED]
    if not isinstance(arguments, dict) or len(missing) != len(found.errors) or not missing:
        return None
    if profile.calls < _CALLS_MIN or any(fault.path != "$" for fault in missing):
        return None
    filled, changes = dict(arguments), []
    for name in (name for fault in missing for name in fault.names):
        usual = profile.usual_value(f"$.{name}")
        if usual is None:
            return None
        filled[name] = usual[0]
        changes.append(_change(name, usual))
    if not tool.input.accepts(filled):
        return None
    return Candidate(filled, tuple(changes), min(each.confidence for each in changes))


def _change(name: str, usual: tuple[Any, float]) -> CorrectionStep:
    value, confidence = usual
    return CorrectionStep(
        path=f"$.{name}",
        strategy=Strategy.MISSING_PARAMETERS,
        pattern=PATTERN,
        before=None,
        after=value,
        confidence=min(confidence, _CONFIDENCE_MAX),
        risk=Risk.HIGH,
        certain=False,
        reasoning=f"$.{name}: calls of this tool that worked mostly had this value.",
    )
