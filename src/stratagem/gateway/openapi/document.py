"""OpenAPI documents: loading, parsing, and resolving references.

Documents are untrusted. A parsed document is copied into plain JSON with bounds on its size and
depth, which also stops attacks with YAML aliases (exponential or cyclic). YAML is parsed by the
rules of version 1.2, in which `NO` and `on` are texts. Only references within the document are
resolved; nothing else is fetched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import orjson
import yaml

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import RequestTooLarge, ValidationFailed
from stratagem.gateway.outbound.client import Outbound
from stratagem.gateway.outbound.results import result_of

__all__ = ["Document", "load_document", "parse_document"]

_ACCEPT: Final = "application/json, application/yaml;q=0.9, text/yaml;q=0.9, */*;q=0.5"
_VERSION: Final = re.compile(r"3\.[01](\.\d+)?(-.*)?")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_REFERENCES_MAX: Final = 64
_NODES_FREE: Final = 10_000
_HINT: Final = "Give an OpenAPI document of version 3.0 or 3.1, as JSON or YAML."


@dataclass(frozen=True, slots=True)
class Document:
    """A document as plain JSON, and where it came from."""

    content: dict[str, Any]
    source: str | None = None

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas follow OpenAPI 3.0, not JSON Schema."""
        return str(self.content["openapi"]).startswith("3.0")

    def follow(self, node: Any) -> tuple[Any, str | None]:
        """Return what a node refers to, through a chain of references, and the last of them.

        A reference that is dangling, external or cyclic gives None.
        """
        name: str | None = None
        for _ in range(_REFERENCES_MAX):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                return node, name
            name = node["$ref"]
            node = self.at(name)
        return None, name

    def at(self, reference: str) -> Any:
        """Return the node at a reference such as `#/components/schemas/Pet`, or None."""
        if not reference.startswith("#"):
            return None
        node: Any = self.content
        for raw in filter(None, unquote(reference[1:]).split("/")):
            step = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
                node = node[int(step[:9])]
            else:
                return None
        return node


async def load_document(source: str | Path | Mapping[str, Any], outbound: Outbound) -> Document:
    """Load a document from a URL (through the guard), a file, its text, or an object.

    A text is a URL or the document itself: only code can name a file, as a `Path`.

    Raises:
        ValidationFailed: It is not an OpenAPI document of version 3.
        PermissionDenied: The address may not be called.
        ExecutionFailed: The address does not answer with it.
    """
    if isinstance(source, str) and _ADDRESS.match(source):
        response = await outbound.request(
            "GET", source, headers={"Accept": _ACCEPT}, bytes_max=limits.OPENAPI_BYTES_MAX
        )
        if not 200 <= response.status < 300:  # noqa: PLR2004 - success in HTTP
            result_of(response)
        return await asyncio.to_thread(parse_document, response.body, source=response.url)
    if isinstance(source, Path):
        return await asyncio.to_thread(_read_file, source)
    return await asyncio.to_thread(parse_document, source)


def _read_file(path: Path) -> Document:
    try:
        if path.stat().st_size > limits.OPENAPI_BYTES_MAX:
            raise _too_large(f"has {path.stat().st_size:,} bytes", limits.OPENAPI_BYTES_MAX)
        return parse_document(path.read_bytes())
    except OSError as error:
        raise ValidationFailed(
            f"The document cannot be read: {error.strerror}.", field="openapi", hint=_HINT
        ) from None


def parse_document(
    given: bytes | str | Mapping[str, Any], *, source: str | None = None
) -> Document:
    """Parse a document from its text or from an object.

    Raises:
        ValidationFailed: It is not an OpenAPI document of version 3.
        RequestTooLarge: It is larger or deeper than can be taken.
    """
    parsed = given if isinstance(given, Mapping) else _parse_text(given)
    nodes_max = limits.OPENAPI_NODES_MAX
    if not isinstance(given, Mapping):
        # A text has more values than characters only if YAML aliases multiply them.
        nodes_max = min(nodes_max, max(_NODES_FREE, len(given)))
    content = _copy_plain(parsed, nodes_max)
    if not isinstance(content, dict):
        raise ValidationFailed("The document is not an object.", field="openapi", hint=_HINT)
    if "swagger" in content:
        raise ValidationFailed(
            "This is a document of version 2 (Swagger).",
            field="openapi",
            hint="Convert it to OpenAPI 3 first; there are converters for that.",
        )
    if not _VERSION.fullmatch(str(content.get("openapi"))):
        raise ValidationFailed(
            "The document does not say that it is OpenAPI 3.0 or 3.1.", field="openapi", hint=_HINT
        )
    return Document(content, source)


def _parse_text(given: bytes | str) -> Any:
    data = given.encode() if isinstance(given, str) else given
    if len(data) > limits.OPENAPI_BYTES_MAX:
        raise _too_large(f"has {len(data):,} bytes", limits.OPENAPI_BYTES_MAX)
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        pass
    try:
        return yaml.load(data, Loader=_YamlLoader)  # noqa: S506 - it builds plain values only
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        raise ValidationFailed(
            "The document is neither JSON nor YAML.", field="openapi", hint=_HINT
        ) from None


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _YamlLoader(_SafeLoader):  # type: ignore[misc]
    """Loads YAML 1.2: no dates, and only `true` and `false` are booleans."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - filled below, once
    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Count the depth on the way down.

        The composer written in C recurses on its own stack: without this a text of brackets ends
        the whole process.
        """
        self._depth += 1
        if self._depth > limits.OPENAPI_DEPTH_MAX:
            raise _too_large("is too deep", limits.OPENAPI_DEPTH_MAX)
        super().descend_resolver(current_node, current_index)

    def ascend_resolver(self) -> None:
        """Count the depth on the way up."""
        self._depth -= 1
        super().ascend_resolver()


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]{1,3})?",
        list("-+.0123456789"),
    ),
):
    _YamlLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"\A(?:{_pattern})\Z"), _first
    )


def _copy_plain(value: Any, nodes_max: int) -> Any:
    """Copy a parsed document into plain JSON, with bounds on its values and depth."""
    counted = 0

    def copy_node(node: Any, depth: int) -> Any:
        nonlocal counted
        counted += 1
        if counted > nodes_max:
            raise _too_large("holds too many values", nodes_max)
        if depth > limits.OPENAPI_DEPTH_MAX:
            raise _too_large("is too deep", limits.OPENAPI_DEPTH_MAX)
        if isinstance(node, Mapping):
            return {_key_text(key): copy_node(each, depth + 1) for key, each in node.items()}
        if isinstance(node, list | tuple):
            return [copy_node(each, depth + 1) for each in node]
        if node is None or isinstance(node, str | int | float):
            return node
        return str(node)

    return copy_node(value, 0)


def _key_text(key: Any) -> str:
    """Return a key as text: YAML reads `200:` as a number."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _too_large(what: str, limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"The document {what}; the limit is {limit:,}.", limit=limit)
