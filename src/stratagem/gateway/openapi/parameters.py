"""Arguments as OpenAPI writes them into a request: by place, style and explode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import orjson

from stratagem.gateway.outbound.templates import text_of

__all__ = ["DEFAULT_STYLES", "in_cookie", "in_header", "in_path", "in_query"]

DEFAULT_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_SEPARATORS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# What RFC 3986 lets stand in a query, for parameters that ask to be left as they are.
_RESERVED: Final = ":/?@!$'()*,;[]"
_DEPTH_MAX: Final = 16

# A parameter of a handler: argument, name, in, style, explode, and what makes it special.
Parameter = Mapping[str, Any]


def in_path(parameter: Parameter, value: Any) -> str:
    """Return a value as a piece of a path."""
    if parameter.get("json"):
        return _encoded(orjson.dumps(value).decode())
    name, explode = _encoded(parameter["name"]), parameter["explode"]
    style = parameter["style"]
    if style == "matrix":
        return _matrix(name, value, explode=explode)
    separator = "." if style == "label" and explode else ","
    joined = separator.join(_flat(value, explode=explode))
    return f".{joined}" if style == "label" else joined


def in_query(parameter: Parameter, value: Any) -> Iterator[str]:
    """Yield a value as pairs of a query."""
    safe = _RESERVED if parameter.get("reserved") else ""
    name, style = _encoded(parameter["name"]), parameter["style"]
    if parameter.get("json"):
        yield f"{name}={_encoded(orjson.dumps(value).decode())}"
    elif style == "deepObject" and isinstance(value, Mapping | list):
        yield from _deep(name, value, safe, 0)
    elif parameter["explode"] and isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{_encoded(key)}={_encoded(text_of(each), safe)}"
    elif parameter["explode"] and isinstance(value, list):
        for each in value:
            yield f"{name}={_encoded(text_of(each), safe)}"
    else:
        separator = _SEPARATORS.get(style, ",")
        yield f"{name}={separator.join(_flat(value, explode=False, safe=safe))}"


def in_header(parameter: Parameter, value: Any) -> str:
    """Return a value as that of a header, which is not encoded."""
    if parameter.get("json"):
        return orjson.dumps(value).decode()
    return ",".join(_pieces(value, explode=parameter["explode"]))


def in_cookie(parameter: Parameter, value: Any) -> str:
    """Return a value as a cookie: name and all."""
    if parameter.get("json"):
        text = _encoded(orjson.dumps(value).decode())
    else:
        # A cookie has one value, whatever explode says.
        text = _encoded(",".join(_pieces(value, explode=False)))
    return f"{parameter['name']}={text}"


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    if isinstance(value, Mapping) and explode:
        return "".join(f";{_encoded(key)}={_encoded(text_of(each))}" for key, each in value.items())
    if isinstance(value, list) and explode:
        return "".join(f";{name}={_encoded(text_of(each))}" for each in value)
    return f";{name}={','.join(_flat(value, explode=False))}"


def _deep(name: str, value: Any, safe: str, depth: int) -> Iterator[str]:
    """Yield `name[key]=value` pairs; objects within objects go on in the same way."""
    if isinstance(value, Mapping) and depth < _DEPTH_MAX:
        for key, each in value.items():
            yield from _deep(f"{name}[{_encoded(key)}]", each, safe, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH_MAX:
        for each in value:
            yield from _deep(
                f"{name}[]" if isinstance(each, Mapping) else name, each, safe, depth + 1
            )
    else:
        yield f"{name}={_encoded(text_of(value), safe)}"


def _flat(value: Any, *, explode: bool, safe: str = "") -> list[str]:
    if isinstance(value, Mapping) and explode:
        return [f"{_encoded(key)}={_encoded(text_of(each))}" for key, each in value.items()]
    return [_encoded(piece, safe) for piece in _pieces(value, explode=False)]


def _pieces(value: Any, *, explode: bool) -> list[str]:
    if isinstance(value, Mapping):
        if explode:
            return [f"{key}={text_of(each)}" for key, each in value.items()]
        return [text for key, each in value.items() for text in (key, text_of(each))]
    return [text_of(each) for each in value] if isinstance(value, list) else [text_of(value)]


def _encoded(text: str, safe: str = "") -> str:
    return quote(text, safe=safe)
