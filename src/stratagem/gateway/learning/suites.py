"""Named sets of test cases: mistakes that calls are known to make, and what should become of them.

Each case brings its own schema, so a suite says how the engine does under the present policy,
whatever tools are registered. A case without `meant` must be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

__all__ = ["SUITES", "Case"]

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


class Case(NamedTuple):
    """One case. `meant` None: it is not to be corrected."""

    name: str
    schema: Mapping[str, Any]
    given: Any
    error: str
    meant: Mapping[str, Any] | None


_TYPES: Final = (
    Case(
        "number_for_text",
        _FILE,
        {"path": "/test/file.txt", "content": 12345},
        "typeMismatch",
        {"path": "/test/file.txt", "content": "12345"},
    ),
    Case(
        "text_for_number",
        _SEARCH,
        {"query": "x", "max_results": "10"},
        "typeMismatch",
        {"query": "x", "max_results": 10},
    ),
    Case(
        "text_for_boolean",
        _FILE,
        {"path": "p", "content": "c", "append": "true"},
        "typeMismatch",
        {"path": "p", "content": "c", "append": True},
    ),
    Case(
        "fraction_for_integer", _SEARCH, {"query": "x", "max_results": "3.7"}, "typeMismatch", None
    ),
)
_NAMES: Final = (
    Case(
        "name_in_another_style",
        _SEARCH,
        {"query": "x", "maxResults": 10},
        "unknownProperties",
        {"query": "x", "max_results": 10},
    ),
    Case("name_misspelt", _SEARCH, {"qurey": "x"}, "unknownProperties", {"query": "x"}),
    Case(
        "name_of_nothing",
        _SEARCH,
        {"query": "x", "colour_depth": 8},
        "unknownProperties",
        None,
    ),
)
_MISSING: Final = (
    Case("required_without_default", _FILE, {"path": "p"}, "missingRequired", None),
    Case("nothing_given", _SEARCH, {}, "missingRequired", None),
)
_SHAPES: Final = (
    Case(
        "wrapped_arguments",
        _SEARCH,
        {"arguments": {"query": "x"}},
        "unknownProperties",
        {"query": "x"},
    ),
    Case("arguments_as_text", _SEARCH, '{"query": "x"}', "malformedJson", {"query": "x"}),
    Case(
        "one_for_a_list",
        _SEARCH,
        {"query": "x", "tags": "a"},
        "typeMismatch",
        {"query": "x", "tags": ["a"]},
    ),
)
_VALUES: Final = (
    Case(
        "listed_value_in_another_case",
        _SEARCH,
        {"query": "x", "order": "Newest"},
        "enumViolation",
        {"query": "x", "order": "newest"},
    ),
    Case(
        "value_beyond_a_limit",
        _SEARCH,
        {"query": "x", "max_results": 500},
        "constraintViolation",
        None,
    ),
)

SUITES: Final[Mapping[str, tuple[Case, ...]]] = {
    "validation_errors": (*_TYPES, *_NAMES, *_MISSING, *_SHAPES, *_VALUES),
    "type_conversion": _TYPES,
    "unknown_properties": _NAMES,
    "missing_parameters": _MISSING,
    "wrappers_and_lists": _SHAPES,
    "listed_values_and_limits": _VALUES,
}
