"""Arguments in markup: one element for each parameter, as some models write calls.

Only elements, attributes that name a parameter, and text are read. Text beside elements is no
argument, and what is not closed is not read: then the whole is left alone.
"""

from __future__ import annotations

import html
import re
from dataclasses import field
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.correction.json_text import Malformed
from stratagem.gateway.correction.words import normal

__all__ = ["arguments"]

_TAG: Final = re.compile(
    r"<(?P<closing>/?)(?P<name>[A-Za-z_][\w.-]*+)"
    r"(?P<attributes>(?:\s++[\w-]++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*)\s*+(?P<empty>/?)>"
)
_ATTRIBUTE: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_CHARS_MAX: Final = 64 * 1024
_DEPTH_MAX: Final = 16
# Elements whose attribute `name` says which parameter or tool they are.
_PARAMETERS: Final = frozenset({"parameter", "param", "arg", "argument", "field", "property"})
_CALLS: Final = frozenset({"invoke", "call", "function", "functioncall", "toolcall", "tool"})


@dataclass(slots=True)
class _Element:
    name: str
    called: str | None
    text: str = ""
    children: list[_Element] = field(default_factory=list)


def arguments(text: str) -> dict[str, Any]:
    """Read the elements of a text as names and values; the values are text or inner elements.

    Raises:
        Malformed: It is no markup, or has text beside its elements.
    """
    if len(text) > _CHARS_MAX or not text.lstrip().startswith("<"):
        raise Malformed("no markup")
    whole = _value(_tree(text))
    if not isinstance(whole, dict):
        raise Malformed("no elements")
    return whole


def _tree(text: str) -> _Element:
    open_elements = [_Element("", None)]
    end = 0
    for tag in _TAG.finditer(text):
        open_elements[-1].text += text[end : tag.start()]
        end = tag.end()
        if tag["closing"]:
            if len(open_elements) == 1 or open_elements.pop().name != tag["name"]:
                raise Malformed("closed by another name")
            continue
        element = _Element(tag["name"], _name_attribute(tag["attributes"]))
        open_elements[-1].children.append(element)
        if not tag["empty"]:
            open_elements.append(element)
        if len(open_elements) > _DEPTH_MAX:
            raise Malformed("too deep")
    open_elements[-1].text += text[end:]
    if len(open_elements) > 1:
        raise Malformed("not closed")
    return open_elements[0]


def _name_attribute(attributes: str) -> str | None:
    found = {name: one or other for name, one, other in _ATTRIBUTE.findall(attributes)}
    if set(found) - {"name", "type", "string"}:
        raise Malformed("attributes that may mean something")
    return html.unescape(found["name"]) if "name" in found else None


def _value(element: _Element) -> Any:
    if not element.children:
        if "<" in element.text:
            raise Malformed("not a valid tag")
        return html.unescape(element.text.strip())
    if element.text.strip():
        raise Malformed("text beside elements")
    found: dict[str, Any] = {}
    for child in element.children:
        name, value = _name_and_value(child)
        if name in found:
            # An element that is repeated is a list.
            listed = found[name] if isinstance(found[name], list) else [found[name]]
            found[name] = [*listed, value]
        else:
            found[name] = value
    return found


def _name_and_value(element: _Element) -> tuple[str, Any]:
    value = _value(element)
    if element.called is None:
        return element.name, value
    if normal(element.name) in _PARAMETERS:
        return element.called, value
    if normal(element.name) in _CALLS:
        return element.name, {"name": element.called, "arguments": value}
    raise Malformed("a name that may mean something")
