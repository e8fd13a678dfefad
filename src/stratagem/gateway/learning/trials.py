"""Trying corrections out: given cases, scenarios made from a tool's schema, named suites."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.calls.history import percentile
from stratagem.gateway.correction import Correction
from stratagem.gateway.learning.answers import TestPerformance, TestResult, TestTotals
from stratagem.gateway.learning.inputs import TestCase
from stratagem.gateway.learning.insights import mean, rate
from stratagem.gateway.registry.tools import Tool

__all__ = [
    "ERROR_TYPES",
    "SUITES",
    "CorrectionTrial",
    "SuiteCase",
    "make_faulty_arguments",
    "overall",
    "performance",
    "run",
]

_FILE: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "append": {"type": "boolean", "default": False},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}
_SEARCH: Final = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "max_results": {"type": "integer", "minimum": 1, "maximum": 50},
        "order": {"type": "string", "enum": ["newest", "oldest", "relevance"]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "since": {"type": "string", "format": "date"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


class SuiteCase(NamedTuple):
    """One case. `meant` None: it is not to be corrected."""

    name: str
    schema: Mapping[str, Any]
    given: Any
    error: str
    meant: Mapping[str, Any] | None


_TYPES: Final = (
    SuiteCase(
        "number_for_text",
        _FILE,
        {"path": "/test/file.txt", "content": 12345},
        "typeMismatch",
        {"path": "/test/file.txt", "content": "12345"},
    ),
    SuiteCase(
        "text_for_number",
        _SEARCH,
        {"query": "x", "max_results": "10"},
        "typeMismatch",
        {"query": "x", "max_results": 10},
    ),
    SuiteCase(
        "text_for_boolean",
        _FILE,
        {"path": "p", "content": "c", "append": "true"},
        "typeMismatch",
        {"path": "p", "content": "c", "append": True},
    ),
    SuiteCase(
        "fraction_for_integer", _SEARCH, {"query": "x", "max_results": "3.7"}, "typeMismatch", None
    ),
)
_NAMES: Final = (
    SuiteCase(
        "name_in_another_style",
        _SEARCH,
        {"query": "x", "maxResults": 10},
        "unknownProperties",
        {"query": "x", "max_results": 10},
    ),
    SuiteCase("name_misspelt", _SEARCH, {"qurey": "x"}, "unknownProperties", {"query": "x"}),
    SuiteCase(
        "name_of_nothing",
        _SEARCH,
        {"query": "x", "colour_depth": 8},
        "unknownProperties",
        None,
    ),
)
_MISSING: Final = (
    SuiteCase("required_without_default", _FILE, {"path": "p"}, "missingRequired", None),
    SuiteCase("nothing_given", _SEARCH, {}, "missingRequired", None),
)
_SHAPES: Final = (
    SuiteCase(
        "wrapped_arguments",
        _SEARCH,
        {"arguments": {"query": "x"}},
        "unknownProperties",
        {"query": "x"},
    ),
    SuiteCase("arguments_as_text", _SEARCH, '{"query": "x"}', "malformedJson", {"query": "x"}),
    SuiteCase(
        "one_for_a_list",
        _SEARCH,
        {"query": "x", "tags": "a"},
        "typeMismatch",
        {"query": "x", "tags": ["a"]},
    ),
)
_VALUES: Final = (
    SuiteCase(
        "listed_value_in_another_case",
        _SEARCH,
        {"query": "x", "order": "Newest"},
        "enumViolation",
        {"query": "x", "order": "newest"},
    ),
    SuiteCase(
        "value_beyond_a_limit",
        _SEARCH,
        {"query": "x", "max_results": 500},
        "constraintViolation",
        None,
    ),
)

SUITES: Final[Mapping[str, tuple[SuiteCase, ...]]] = {
    "validation_errors": (*_TYPES, *_NAMES, *_MISSING, *_SHAPES, *_VALUES),
    "type_conversion": _TYPES,
    "unknown_properties": _NAMES,
    "missing_parameters": _MISSING,
    "wrappers_and_lists": _SHAPES,
    "listed_values_and_limits": _VALUES,
}


# The document has these in the singular.
_TYPE_NAMES: Final = {
    "missingParameter": "missingRequired",
    "unknownProperty": "unknownProperties",
    "typeConversion": "typeMismatch",
}
# The errors that can be made from a schema, where it has room for them.
ERROR_TYPES: Final = ("typeMismatch", "missingRequired", "unknownProperties", "malformedJson")
_SAMPLES: Final[Mapping[str, Any]] = {
    "string": "text", "integer": 12, "number": 12.5, "boolean": True, "null": None,
    "array": [], "object": {},
}  # fmt: skip


class CorrectionTrial(NamedTuple):
    """One case, ready to be tried."""

    name: str
    given: Any
    evaluate: Callable[[Any], Correction]
    error: str | None = None
    # What the corrected arguments must have in them; None where nothing was said.
    meant: Mapping[str, Any] | None = None
    success: bool | None = None


def run(trial: CorrectionTrial) -> TestResult:
    """Try a case; return the document's form."""
    started = time.perf_counter()
    found = trial.evaluate(trial.given)
    took = (time.perf_counter() - started) * 1000
    best = found.candidates[0] if found.candidates else None
    types = sorted({fault.type.value for fault in found.errors})
    applied = found.corrected
    matched = _matches(trial, found) if applied else False
    expected = True if trial.success is None else trial.success
    passed = (
        _is_detected(trial, types)
        and applied == expected
        and (matched if expected and trial.meant is not None else True)
    )
    result: TestResult = {
        "testName": trial.name,
        "passed": passed,
        "executionTime": round(took, 3),
        "errorDetected": bool(types),
        "errorTypes": types,
        "correctionApplied": applied,
        "correctionMatched": matched if trial.meant is not None else None,
        "confidence": round(best.confidence, 4) if best else None,
        "details": {
            "originalParameters": trial.given,
            "correctedParameters": found.applied if applied else None,
            "correctionType": best.strategy.value if best else None,
        },
    }
    if not applied:
        result["reason"] = _reason(found)
        result["suggestions"] = _suggestions(found)
    return result


def overall(results: Sequence[TestResult]) -> TestTotals:
    """Return how all cases went."""
    passed = sum(each["passed"] for each in results)
    return {
        "totalTests": len(results),
        "passed": passed,
        "failed": len(results) - passed,
        "successRate": rate(passed, len(results)),
        "averageExecutionTime": mean(each["executionTime"] for each in results),
    }


def performance(results: Sequence[TestResult]) -> TestPerformance:
    """Return how long the cases took, in milliseconds."""
    times = sorted(each["executionTime"] for each in results)
    return {
        "p50": percentile(times, 0.5),
        "p99": percentile(times, 0.99),
        "slowest": times[-1] if times else None,
    }


def make_faulty_arguments(tool: Tool, case: TestCase) -> Any:
    """Return a call of a tool with an error of a type, made from its examples or its schema.

    None, where the tool's schema has no room for the error.
    """
    kind = _TYPE_NAMES.get(case.type or "", case.type)
    good = _valid_arguments(tool)
    if good is None:
        return None
    schema = tool.content["inputSchema"]
    if kind == "missingRequired":
        required = [name for name in schema.get("required", ()) if name in good]
        return (
            {name: each for name, each in good.items() if name != required[0]} if required else None
        )
    if kind == "unknownProperties":
        return _rename_one(good)
    if kind == "typeMismatch":
        return _mistype_one(good)
    if kind == "malformedJson":
        return str(good)
    return None


def _valid_arguments(tool: Tool) -> dict[str, Any] | None:
    """Return arguments that a tool takes: of its first example, or made up from its schema."""
    for example in tool.content.get("examples") or ():
        for name in ("arguments", "input", "parameters"):
            given = example.get(name)
            if isinstance(given, Mapping) and tool.input.accepts(given):
                return dict(given)
    schema = tool.content["inputSchema"]
    properties = schema.get("properties") or {}
    made = {name: _sample(part) for name, part in properties.items()}
    least = {name: made[name] for name in schema.get("required", ()) if name in made}
    return next((each for each in (made, least) if each and tool.input.accepts(each)), None)


def _sample(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return "text"
    for name in ("const", "default"):
        if name in part:
            return part[name]
    if part.get("enum"):
        return part["enum"][0]
    kind = part.get("type", "string")
    value = _SAMPLES.get(kind[0] if isinstance(kind, list) else kind, "text")
    least = part.get("minimum")
    return least if isinstance(value, int | float) and isinstance(least, int | float) else value


def _rename_one(good: Mapping[str, Any]) -> dict[str, Any] | None:
    for name in good:
        other = "-".join(part.upper() for part in name.split("_"))
        if other != name:
            return {other if key == name else key: each for key, each in good.items()}
    return None


def _mistype_one(good: Mapping[str, Any]) -> dict[str, Any] | None:
    for name, each in good.items():
        if isinstance(each, bool | int | float):
            return {**good, name: str(each).lower() if isinstance(each, bool) else str(each)}
    for name, each in good.items():
        if isinstance(each, str):
            return {**good, name: 12345}
    return None


def _is_detected(trial: CorrectionTrial, types: Sequence[str]) -> bool:
    if trial.error is None:
        return bool(types)
    return _TYPE_NAMES.get(trial.error, trial.error) in types


def _matches(trial: CorrectionTrial, found: Correction) -> bool:
    applied, meant = found.applied or {}, trial.meant or {}
    return all(name in applied and applied[name] == each for name, each in meant.items())


def _reason(found: Correction) -> str:
    if found.withheld is not None:
        return found.withheld
    if not found.errors:
        return "The arguments fit as they are."
    return "There is no correction that the schema accepts."


def _suggestions(found: Correction) -> list[str]:
    said = [f"{each.path}: {each.question}" for each in found.ambiguous]
    if any(fault.type.value == "missingRequired" for fault in found.errors):
        said.append("A default in the schema would fill in what is missing.")
    return said
