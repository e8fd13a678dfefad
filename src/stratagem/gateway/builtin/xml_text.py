"""XML in and out, by a simple rule.

An element is its text; with attributes or children it is an object: `@name` for an attribute, the
child's name for a child (a list where there are several), `#text` for the text between them. A
document type is refused, and with it every entity but the five of XML itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from stratagem import limits
from stratagem.gateway.builtin.tables import scalar_text

__all__ = ["XmlFault", "dump", "load"]

_NAME: Final = re.compile(r"[A-Za-z_:][\w:.\-]*")
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TEXT: Final = "#text"


class XmlFault(ValueError):
    """The text is not XML that is accepted, or the value cannot be written as XML."""


class _Builder:
    """Makes a value from what the parser tells."""

    def __init__(self) -> None:
        # The outermost is the document: its only child is the root.
        self.stack: list[tuple[dict[str, Any], list[str]]] = [({}, [])]

    def start(self, _name: str, attributes: dict[str, str]) -> None:
        if len(self.stack) > limits.VALUE_DEPTH_MAX - 2:
            raise XmlFault("it is nested too deeply")
        self.stack.append(({f"@{key}": value for key, value in attributes.items()}, []))

    def text(self, data: str) -> None:
        self.stack[-1][1].append(data)

    def end(self, name: str) -> None:
        fields, pieces = self.stack.pop()
        text = "".join(pieces)
        value: Any = fields or text
        if fields and text.strip():
            value = fields | {_TEXT: text.strip()}
        parent = self.stack[-1][0]
        if name not in parent:
            parent[name] = value
        elif isinstance(parent[name], _Several):
            parent[name].append(value)
        else:
            parent[name] = _Several([parent[name], value])


class _Several(list[Any]):
    """Several children of one name."""


def _refuse_doctype(*_: Any) -> None:
    raise XmlFault("it has a document type, which is not allowed")


def load(text: str) -> Any:
    """Read a document: an object whose only field is the root element.

    Raises:
        XmlFault: It is no XML, or declares entities.
    """
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.EntityDeclHandler = _refuse_doctype
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)  # noqa: FBT003 -- the last piece
    except expat.ExpatError as error:
        raise XmlFault(str(error)) from error
    return _plain(builder.stack[0][0])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(child) for name, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list) else value


def dump(value: Any, *, root: str = "root", item: str = "item") -> str:
    """Write a value; one that has no single root of its own is put into one.

    Raises:
        XmlFault: A name cannot be one in XML, or a text has a character XML has no place for.
    """
    if isinstance(value, dict) and len(value) == 1:
        name, child = next(iter(value.items()))
        if not name.startswith(("@", "#")) and not isinstance(child, list):
            root, value = name, child
    lines = _element(root, value, item, 0)
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *lines]) + "\n"


def _element(name: str, value: Any, item: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if not _NAME.fullmatch(name):
        raise XmlFault(f"{name[:64]!r} cannot be the name of an element")
    if isinstance(value, list):
        value = {item: value}
    if not isinstance(value, dict):
        text = _element_text(value)
        yield f"{indent}<{name}>{text}</{name}>" if text else f"{indent}<{name}/>"
        return
    attributes = "".join(
        f" {_attribute(key)}={quoteattr(_raw(child))}"
        for key, child in value.items()
        if key.startswith("@")
    )
    children = {key: child for key, child in value.items() if not key.startswith(("@", "#"))}
    text = _element_text(value.get(_TEXT))
    if not children:
        end = f">{text}</{name}>" if text else "/>"
        yield f"{indent}<{name}{attributes}{end}"
        return
    yield f"{indent}<{name}{attributes}>"
    if text:
        yield f"{indent}  {text}"
    for key, child in children.items():
        for each in child if isinstance(child, list) else [child]:
            yield from _element(key, each, item, depth + 1)
    yield f"{indent}</{name}>"


def _attribute(key: str) -> str:
    if not _NAME.fullmatch(key[1:]):
        raise XmlFault(f"{key[1:65]!r} cannot be the name of an attribute")
    return key[1:]


def _raw(value: Any) -> str:
    if isinstance(value, dict | list):
        raise XmlFault("an attribute or #text holds a single value")
    text = scalar_text(value)
    if _FORBIDDEN.search(text):
        raise XmlFault("a text has a character that XML does not allow")
    return text


def _element_text(value: Any) -> str:
    return escape(_raw(value))
