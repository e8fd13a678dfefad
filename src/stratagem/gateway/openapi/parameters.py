"""Serialization of parameters as OpenAPI defines it: by location, style and explode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import orjson

from stratagem.gateway.outbound.templates import text_of

__all__ = [
    "DEFAULT_STYLES",
    "serialize_cookie",
    "serialize_header",
    "serialize_path",
    "serialize_query",
]

DEFAULT_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_SEPARATORS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# Characters that RFC 3986 allows in a query, for parameters with `allowReserved`.
_RESERVED: Final = ":/?@!$'()*,;[]"
_DEPTH_MAX: Final = 16

# A parameter of a handler: argument, name, in, style, explode, and the flags json and reserved.
Parameter = Mapping[str, Any]


def serialize_path(parameter: Parameter, value: Any) -> str:
    """Return a value as part of a path."""
    if parameter.get("json"):
        return _percent_encode(orjson.dumps(value).decode())
    name, explode = _percent_encode(parameter["name"]), parameter["explode"]
    style = parameter["style"]
    if style == "matrix":
        return _serialize_matrix(name, value, explode=explode)
    separator = "." if style == "label" and explode else ","
    joined = separator.join(_encode_values(value, explode=explode))
    return f".{joined}" if style == "label" else joined


def serialize_query(parameter: Parameter, value: Any) -> Iterator[str]:
    """Yield a value as `name=value` pairs of a query."""
    safe = _RESERVED if parameter.get("reserved") else ""
    name, style = _percent_encode(parameter["name"]), parameter["style"]
    if parameter.get("json"):
        yield f"{name}={_percent_encode(orjson.dumps(value).decode())}"
    elif style == "deepObject" and isinstance(value, Mapping | list):
        yield from _serialize_deep_object(name, value, safe, 0)
    elif parameter["explode"] and isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{_percent_encode(key)}={_percent_encode(text_of(each), safe)}"
    elif parameter["explode"] and isinstance(value, list):
        for each in value:
            yield f"{name}={_percent_encode(text_of(each), safe)}"
    else:
        separator = _SEPARATORS.get(style, ",")
        yield f"{name}={separator.join(_encode_values(value, explode=False, safe=safe))}"


def serialize_header(parameter: Parameter, value: Any) -> str:
    """Return a value as that of a header, which is not percent-encoded."""
    if parameter.get("json"):
        return orjson.dumps(value).decode()
    return ",".join(_list_values(value, explode=parameter["explode"]))


def serialize_cookie(parameter: Parameter, value: Any) -> str:
    """Return a value as a cookie, including its name."""
    if parameter.get("json"):
        text = _percent_encode(orjson.dumps(value).decode())
    else:
        # A cookie has a single value, so `explode` is ignored.
        text = _percent_encode(",".join(_list_values(value, explode=False)))
    return f"{parameter['name']}={text}"


def _serialize_matrix(name: str, value: Any, *, explode: bool) -> str:
    if isinstance(value, Mapping) and explode:
        return "".join(
            f";{_percent_encode(key)}={_percent_encode(text_of(each))}"
            for key, each in value.items()
        )
    if isinstance(value, list) and explode:
        return "".join(f";{name}={_percent_encode(text_of(each))}" for each in value)
    return f";{name}={','.join(_encode_values(value, explode=False))}"


def _serialize_deep_object(name: str, value: Any, safe: str, depth: int) -> Iterator[str]:
    """Yield `name[key]=value` pairs, recursively for nested objects."""
    if isinstance(value, Mapping) and depth < _DEPTH_MAX:
        for key, each in value.items():
            yield from _serialize_deep_object(
                f"{name}[{_percent_encode(key)}]", each, safe, depth + 1
            )
    elif isinstance(value, list) and depth < _DEPTH_MAX:
        for each in value:
            yield from _serialize_deep_object(
                f"{name}[]" if isinstance(each, Mapping) else name, each, safe, depth + 1
            )
    else:
        yield f"{name}={_percent_encode(text_of(value), safe)}"


def _encode_values(value: Any, *, explode: bool, safe: str = "") -> list[str]:
    if isinstance(value, Mapping) and explode:
        return [
            f"{_percent_encode(key)}={_percent_encode(text_of(each))}"
            for key, each in value.items()
        ]
    return [_percent_encode(piece, safe) for piece in _list_values(value, explode=False)]


def _list_values(value: Any, *, explode: bool) -> list[str]:
    if isinstance(value, Mapping):
        if explode:
            return [f"{key}={text_of(each)}" for key, each in value.items()]
        return [text for key, each in value.items() for text in (key, text_of(each))]
    return [text_of(each) for each in value] if isinstance(value, list) else [text_of(value)]


def _percent_encode(text: str, safe: str = "") -> str:
    return quote(text, safe=safe)
