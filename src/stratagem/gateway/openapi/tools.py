"""Turns every operation of a document into a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final, TypeVar
from urllib.parse import urljoin

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError
from stratagem.gateway.definitions.contract import ListedTool
from stratagem.gateway.openapi.bodies import choose_media_type
from stratagem.gateway.openapi.document import Document
from stratagem.gateway.openapi.inputs import Inputs, input_schemas, inputs_of
from stratagem.gateway.openapi.schemas import Direction, SchemaCache, SchemaWriter
from stratagem.gateway.openapi.security import Credentials, credentials_for
from stratagem.gateway.openapi.sizes import Sizes
from stratagem.gateway.outbound.guard import check_url
from stratagem.gateway.outbound.results import is_json

__all__ = ["DocumentTools", "list_tools"]

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_READING: Final = frozenset({"get", "head", "options"})
# Idempotent by the standard of HTTP.
_REPEATABLE: Final = frozenset({"put", "delete"}) | _READING
_OUTPUTS_MAX: Final = 4

T = TypeVar("T")


@dataclass(slots=True)
class DocumentTools:
    """The tools of a document, the secrets they need, and warnings about the document.

    `secrets` describes each secret that the handlers refer to.
    """

    title: str
    tools: list[ListedTool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """Add a warning, once."""
        if text not in self.warnings and len(self.warnings) < limits.OPENAPI_WARNINGS_MAX:
            self.warnings.append(text)


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    path: str
    item: dict[str, Any]
    content: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class _SchemaContext:
    """The state shared by writing the schemas of all tools."""

    document: Document
    listing: DocumentTools
    sizes: Sizes
    cache: SchemaCache = field(default_factory=SchemaCache)

    def write(
        self, direction: Direction, roots: list[Any], build: Callable[[SchemaWriter], T]
    ) -> T:
        """Build something with a writer whose plan fits the given schemas."""
        writer = SchemaWriter(self.document, direction, self.sizes.plan(roots), self.cache)
        built = build(writer)
        for reference in sorted(writer.missing_references):
            self.listing.warn(
                f"{reference[:200]} is not in the document: any value is accepted there."
            )
        return built


def list_tools(
    document: Document,
    *,
    base_url: str | None = None,
    prefix: str = "",
    secret_prefix: str = "",
) -> DocumentTools:
    """Return each operation of a document as a tool.

    `base_url` overrides the servers of the document; `prefix` is prepended to the names of the
    tools, `secret_prefix` to those of the secrets. An operation that cannot be called is left out,
    with a warning.
    """
    info = document.content.get("info")
    title = info.get("title") if isinstance(info, dict) else None
    listing = DocumentTools(title if isinstance(title, str) else "")
    taken: set[str] = set()
    context = _SchemaContext(document, listing, Sizes(document))
    for count, operation in enumerate(_operations(document)):
        if count == limits.OPENAPI_OPERATIONS_MAX:
            listing.warn(f"Only the first {count:,} operations were used.")
            break
        server = base_url or _server_url(document, operation)
        if fault := _server_fault(server):
            listing.warn(f"{operation.label} was left out: {fault}")
            continue
        credentials = credentials_for(document, operation.content, secret_prefix)
        _note_credentials(listing, credentials, operation)
        name = _unique_name(_tool_name(operation, prefix), taken)
        listing.tools.append(_build_tool(context, operation, server, credentials, name))
    if not listing.tools:
        listing.warn("The document has no operation that can be called.")
    return listing


def _operations(document: Document) -> Iterator[_Operation]:
    paths = document.content.get("paths")
    for path, given in paths.items() if isinstance(paths, dict) else ():
        item, _ = document.follow(given)
        if not isinstance(item, dict) or not path.startswith("/"):
            continue
        for method in _METHODS:
            if isinstance(item.get(method), dict):
                yield _Operation(method, path, item, item[method])


def _server_url(document: Document, operation: _Operation) -> str:
    """Return the URL of the first server of the operation, path or document, with defaults."""
    for source in (operation.content, operation.item, document.content):
        servers = source.get("servers")
        if isinstance(servers, list) and servers and isinstance(servers[0], dict):
            server = servers[0]
            break
    else:
        server = {"url": "/"}
    url = server.get("url")
    variables = server.get("variables")
    for name, variable in variables.items() if isinstance(variables, dict) else ():
        default = variable.get("default") if isinstance(variable, dict) else None
        if isinstance(url, str) and isinstance(default, str | int):
            url = url.replace(f"{{{name}}}", str(default))
    return urljoin(document.source or "", url) if isinstance(url, str) else ""


def _server_fault(server: str) -> str | None:
    if "://" not in server:
        return "no server is named; give a base_url."
    try:
        check_url(urljoin(server, "/"))
    except StratagemError as error:
        return error.message
    return None


def _note_credentials(
    listing: DocumentTools, credentials: Credentials, operation: _Operation
) -> None:
    for name, meaning in credentials.secrets.items():
        if listing.secrets.setdefault(name, meaning) == meaning:
            listing.warn(f"${{{name}}} must be granted: {meaning}.")
    for name in credentials.unknown:
        listing.warn(f"{operation.label}: the security scheme {name!r} cannot be used.")


def _build_tool(
    context: _SchemaContext, operation: _Operation, server: str, credentials: Credentials, name: str
) -> ListedTool:
    inputs, schema = _build_input(context, operation)
    if _is_too_large(schema):
        # Huge examples or enumerations: only the names of the arguments are kept.
        schema = schema | {"properties": {name: {} for name in schema["properties"]}}
        schema.pop("$defs", None)
    output = _build_output(context, operation)
    output = None if output is None or _is_too_large(output) else output
    content = operation.content
    summary = content.get("summary")
    tags = content.get("tags")
    return ListedTool(
        name=name,
        description=_describe(operation),
        input_schema=schema,
        handler=_build_handler(
            operation, server, inputs, credentials, accepts_json=output is not None
        ),
        output_schema=output,
        title=summary if isinstance(summary, str) and summary else None,
        tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        annotations={
            "readOnlyHint": operation.method in _READING,
            "destructiveHint": operation.method == "delete",
            "idempotentHint": operation.method in _REPEATABLE,
            "openWorldHint": True,
        },
    )


def _is_too_large(schema: dict[str, Any]) -> bool:
    return len(orjson.dumps(schema)) > limits.SCHEMA_BYTES_MAX


def _build_input(context: _SchemaContext, operation: _Operation) -> tuple[Inputs, dict[str, Any]]:
    def build(writer: SchemaWriter) -> tuple[Inputs, dict[str, Any]]:
        inputs = inputs_of(
            context.document, operation.path, operation.item, operation.content, writer
        )
        return inputs, inputs.schema(writer.definitions())

    roots = input_schemas(context.document, operation.path, operation.item, operation.content)
    return context.write("request", roots, build)


def _build_output(context: _SchemaContext, operation: _Operation) -> dict[str, Any] | None:
    """Return the schema of the operation's responses, or None if one of them is not JSON."""
    found = _output_schemas(context.document, operation)
    if not found or len(found) > _OUTPUTS_MAX or None in found:
        return None

    def build(writer: SchemaWriter) -> dict[str, Any]:
        schemas: list[dict[str, Any]] = []
        for each in found:
            schema = writer.write(each)
            schemas += [] if schema in schemas else [schema]
        whole = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        definitions = writer.definitions()
        return whole | ({"$defs": definitions} if definitions else {})

    return context.write("response", found, build)


def _output_schemas(document: Document, operation: _Operation) -> list[Any]:
    """Return the schemas of the successful responses; None for one that is not JSON."""
    responses = operation.content.get("responses")
    found: list[Any] = []
    for status, given in responses.items() if isinstance(responses, dict) else ():
        if not re.fullmatch(r"2(\d\d|XX)", status, re.IGNORECASE):
            continue
        response, _ = document.follow(given)
        content = response.get("content") if isinstance(response, dict) else None
        kind = choose_media_type(content)
        if kind is None:
            found.append({"type": "null"})
        elif is_json(kind.partition(";")[0].strip().lower()) and isinstance(content, dict):
            media = content[kind]
            found.append(media.get("schema") if isinstance(media, dict) else None)
        else:
            found.append(None)
    return found if any(each != {"type": "null"} for each in found) else []


def _build_handler(
    operation: _Operation,
    server: str,
    inputs: Inputs,
    credentials: Credentials,
    *,
    accepts_json: bool,
) -> dict[str, Any]:
    handler: dict[str, Any] = {
        "type": "openapi",
        "method": operation.method.upper(),
        "url": server.rstrip("/") + operation.path,
        "parameters": inputs.parameters,
        "idempotent": operation.method in _REPEATABLE,
        "accept": "application/json" if accepts_json else "*/*",
    }
    if inputs.body is not None:
        handler["body"] = inputs.body
    for name in ("headers", "query", "cookies"):
        if given := getattr(credentials, name):
            handler[name] = given
    return handler


def _describe(operation: _Operation) -> str:
    parts = [operation.content.get("summary"), operation.content.get("description")]
    texts = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
    if len(texts) > 1 and texts[1].startswith(texts[0]):
        texts = texts[1:]
    if operation.content.get("deprecated") is True:
        texts = ["Deprecated.", *texts]
    text = "\n\n".join(texts) or operation.label
    limit = limits.OPENAPI_DESCRIPTION_CHARS_MAX
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _tool_name(operation: _Operation, prefix: str) -> str:
    given = operation.content.get("operationId")
    if not isinstance(given, str) or not given.strip():
        path = re.sub(r"\{([^{}/]+)\}", r"by_\1", operation.path)
        given = f"{operation.method}_{path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{prefix}{given}").strip("_-")
    name = re.sub(r"_{2,}", "_", name)
    name = name if name[:1].isalpha() else f"{operation.method}_{name}".strip("_")
    return name[: limits.TOOL_NAME_CHARS_MAX]


def _unique_name(name: str, taken: set[str]) -> str:
    unique, count = name, 2
    while unique.casefold() in taken:
        ending = f"_{count}"
        unique = name[: limits.TOOL_NAME_CHARS_MAX - len(ending)] + ending
        count += 1
    taken.add(unique.casefold())
    return unique
