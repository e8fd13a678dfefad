"""OpenAPI documents: every operation a tool, and each call what the service expects."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stratagem.errors import (
    ExecutionFailed,
    MissingRequired,
    PermissionDenied,
    RequestTooLarge,
    StratagemError,
    ValidationFailed,
)
from stratagem.gateway.definitions import schemas
from stratagem.gateway.definitions.contract import ListedTool
from stratagem.gateway.handlers.openapi import OpenApiRunner
from stratagem.gateway.openapi import DocumentTools, list_tools, load_document, parse_document
from stratagem.gateway.outbound import Outbound
from tests.unit.gateway.attempts import Granted, attempt
from tests.unit.gateway.outbound.serving import Received, Server, guarded, json_reply, serve

SERVER = "https://api.example.com/v1"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(lambda _: json_reply({"ok": True})) as served:
        yield served


@pytest.fixture
async def runner() -> AsyncIterator[OpenApiRunner]:
    async with guarded("127.0.0.1:*") as outbound:
        yield OpenApiRunner(outbound)


def document(paths: Mapping[str, Any], version: str = "3.1.0", **fields: Any) -> dict[str, Any]:
    return {
        "openapi": version,
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": SERVER}],
        "paths": paths,
        **fields,
    }


def listed(paths: Mapping[str, Any], version: str = "3.1.0", **fields: Any) -> DocumentTools:
    listing = list_tools(parse_document(document(paths, version, **fields)))
    for tool in listing.tools:
        schemas.check(tool.input_schema, field="inputSchema")
        if tool.output_schema is not None:
            schemas.check(tool.output_schema, field="outputSchema")
        OpenApiRunner(Outbound()).check(tool.handler)
    return listing


def only(paths: Mapping[str, Any], version: str = "3.1.0", **fields: Any) -> ListedTool:
    (tool,) = listed(paths, version, **fields).tools
    return tool


def operation(*parameters: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"operationId": "op", "parameters": list(parameters), "responses": {}, **fields}


def parameter(name: str, place: str = "query", **fields: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {}, **fields}


def body_of(schema: Mapping[str, Any], kind: str = "application/json", **fields: Any) -> Any:
    return {"content": {kind: {"schema": schema}}, **fields}


def answering(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}


PETS: dict[str, Any] = {
    "/pets/{petId}": {
        "parameters": [
            {"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}
        ],
        "get": {
            "operationId": "getPet",
            "summary": "Find a pet",
            "description": "By its number.",
            "tags": ["pets"],
            "responses": {
                "200": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    }
                }
            },
        },
        "put": {
            "operationId": "update pet!",
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            },
            "responses": {"204": {"description": "done"}},
        },
        "delete": {"deprecated": True, "responses": {}},
    },
}
PET_SCHEMAS = {
    "schemas": {
        "Pet": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {"type": "integer", "readOnly": True},
                "name": {"type": "string", "minLength": 1},
                "owner": {"$ref": "#/components/schemas/Owner"},
                "password": {"type": "string", "writeOnly": True},
            },
        },
        "Owner": {
            "type": "object",
            "properties": {
                "pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}
            },
        },
    }
}


def test_every_operation_is_a_tool() -> None:
    listing = listed(PETS, components=PET_SCHEMAS)

    get, put, delete = listing.tools
    assert [tool.name for tool in listing.tools] == ["getPet", "update_pet", "delete_pets_by_petId"]
    assert get.title == "Find a pet"
    assert get.description == "Find a pet\n\nBy its number."
    assert get.tags == ["pets"]
    assert delete.description.startswith("Deprecated.")
    assert get.input_schema == {
        "type": "object",
        "properties": {"petId": {"type": "integer"}},
        "required": ["petId"],
        "additionalProperties": False,
    }
    assert get.annotations is not None
    assert get.annotations["readOnlyHint"] is True
    assert delete.annotations is not None
    assert delete.annotations["destructiveHint"] is True
    assert put.handler["url"] == f"{SERVER}/pets/{{petId}}"
    assert listing.title == "Test"


def test_what_the_service_gives_is_no_argument_and_the_other_way_round() -> None:
    get, put, _ = listed(PETS, components=PET_SCHEMAS).tools

    assert set(put.input_schema["properties"]) == {"petId", "name", "owner", "password"}
    assert put.input_schema["required"] == ["petId", "name"]
    assert get.output_schema is not None
    assert set(get.output_schema["properties"]) == {"id", "name", "owner"}


def test_a_schema_that_comes_round_to_itself_still_validates() -> None:
    get, put, _ = listed(PETS, components=PET_SCHEMAS).tools

    good = {"petId": 1, "name": "Rex", "owner": {"pets": [{"name": "A", "owner": {"pets": []}}]}}
    bad = {"petId": 1, "name": "Rex", "owner": {"pets": [{"name": "", "owner": {}}]}}
    assert schemas.Schema(put.input_schema).accepts(good)
    assert not schemas.Schema(put.input_schema).accepts(bad)
    assert get.output_schema is not None
    assert "Pet" in get.output_schema["$defs"]


def test_names_that_clash_get_their_place_as_an_ending() -> None:
    tool = only(
        {
            "/x/{id}": {
                "post": operation(
                    parameter("id", "path"),
                    parameter("id", "query"),
                    parameter("id", "header"),
                    parameter("id", "cookie"),
                    parameter("filter[name]"),
                    parameter("filter_name"),
                    requestBody=body_of({"type": "object", "properties": {"id": {}, "name": {}}}),
                )
            }
        }
    )

    assert list(tool.input_schema["properties"]) == [
        "id",
        "id_query",
        "filter_name",
        "filter_name_query",
        "id_header",
        "id_cookie",
        "id_body",
        "name",
    ]


def test_names_of_tools_are_valid_and_unique() -> None:
    ids = ["list items", "list_items", "LIST_ITEMS", "123", "", "é", "a" * 100, "a" * 99]
    paths = {f"/p{at}": {"get": {"operationId": each}} for at, each in enumerate(ids)}

    names = [tool.name for tool in listed(paths).tools]

    assert names[:3] == ["list_items", "list_items_2", "LIST_ITEMS_3"]
    assert names[3] == "get_123"
    assert names[4] == "get_p4"
    assert len({name.casefold() for name in names}) == len(ids)
    assert all(len(name) <= 64 and name[0].isalpha() for name in names)


def test_schemas_of_3_0_become_json_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "nullable": True, "enum": ["x"], "example": "x"},
            "b": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            "c": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/C"}]},
            "d": {"$ref": "#/components/schemas/C", "description": "ignored in 3.0"},
        },
    }
    tool = only(
        {"/x": {"post": operation(requestBody=body_of(schema))}},
        "3.0.3",
        components={"schemas": {"C": {"type": "object", "xml": {}, "x-thing": 1}}},
    )

    properties = tool.input_schema["properties"]
    assert properties["a"] == {"type": ["string", "null"], "enum": ["x", None], "examples": ["x"]}
    assert properties["b"] == {"type": "integer", "exclusiveMinimum": 0}
    assert properties["c"] == {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}
    assert properties["d"] == {"type": "object"}


def test_odd_keywords_cost_a_keyword_and_not_a_tool() -> None:
    schema = {
        "type": "object",
        "required": "name",
        "properties": {
            "a": {"type": "int", "minimum": "0", "required": True},
            "b": {"type": ["string", "whatever"], "pattern": "(", "enum": []},
            "c": {"type": "date", "items": "x", "default": None},
            "d": "not a schema",
            "e": {"properties": []},
            "f": {"$ref": "#/components/schemas/Missing"},
            "g": {"$ref": "https://elsewhere.test/schema.json"},
            "h": {"$ref": 5},
            "i": {"oneOf": [], "allOf": "x", "multipleOf": 0},
            "j": True,
        },
    }
    listing = listed({"/x": {"post": operation(requestBody=body_of(schema))}})

    properties = listing.tools[0].input_schema["properties"]
    assert properties["a"] == {"type": "integer"}
    assert properties["b"] == {"type": "string"}
    assert properties["c"] == {"type": "string", "default": None}
    assert properties["f"] == {}
    assert [text for text in listing.warnings if "elsewhere.test" in text]
    assert [text for text in listing.warnings if "Missing" in text]


@pytest.mark.parametrize(
    "paths",
    [
        None,
        [],
        {"/x": None},
        {"/x": {"get": []}},
        {"x": {"get": {}}},
        {"/x": {"$ref": "#/paths/~1x"}},
        {"/x": {"parameters": [None]}},
    ],
)
def test_a_document_without_operations_is_no_error(paths: Any) -> None:
    listing = listed(paths)

    assert listing.tools == []
    assert listing.warnings == ["The document has no operation that can be called."]


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": "x"},
        {"parameters": [None, {}, {"name": 1, "in": "query"}, {"name": "a", "in": "body"}]},
        {"parameters": [{"name": "Authorization", "in": "header"}]},
        {"requestBody": []},
        {"requestBody": {"content": {}}},
        {"requestBody": {"content": {"application/json": None}}},
        {"responses": []},
        {"responses": {"200": None, "default": 5}},
        {"tags": "x", "summary": 5, "description": [], "operationId": 7},
        {"security": "x"},
        {"security": [{"missing": []}]},
        {"servers": "x"},
        {"servers": [{}]},
        {"parameters": [{"name": "a", "in": "query", "content": {"application/json": {}}}]},
    ],
)
def test_odd_operations_are_taken_as_far_as_they_go(fields: dict[str, Any]) -> None:
    listing = listed({"/x": {"get": {"operationId": "op", **fields}}, "/y": {"get": {}}})

    assert "get_y" in [tool.name for tool in listing.tools]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (b"", ValidationFailed),
        (b"[]", ValidationFailed),
        (b"{", ValidationFailed),
        (b"a: [", ValidationFailed),
        (b"\xff\xfe\x00", ValidationFailed),
        (b"openapi: 2.0.0", ValidationFailed),
        (b'{"openapi": 3}', ValidationFailed),
        (b'{"openapi": "4.0.0"}', ValidationFailed),
        (b'{"swagger": "2.0"}', ValidationFailed),
        (b"openapi: !!python/object/apply:os.system [id]", ValidationFailed),
        (b"x: &x [*x, *x]", RequestTooLarge),
        (b"[" * 100_000, StratagemError),
        (b"{" * 100_000, StratagemError),
        (b"openapi: 3.1.0\nx: " + b"[" * 300 + b"]" * 300, RequestTooLarge),
    ],
)
def test_what_is_no_document_is_refused(given: bytes, error: type[StratagemError]) -> None:
    with pytest.raises(error):
        parse_document(given)


def test_a_document_that_multiplies_is_refused_quickly() -> None:
    lines = ["openapi: 3.1.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(RequestTooLarge):
        parse_document("\n".join(lines))


def test_yaml_is_read_by_the_rules_of_today() -> None:
    text = """
openapi: 3.0.3
servers: [{url: https://api.example.com}]
paths:
  /x:
    get:
      operationId: op
      parameters:
        - {name: country, in: query, schema: {type: string, enum: [NO, SE, on, 2020-01-01, 012]}}
      responses:
        200: {description: fine, content: {application/json: {schema: {type: boolean}}}}
"""
    (tool,) = list_tools(parse_document(text)).tools

    enum = tool.input_schema["properties"]["country"]["enum"]
    assert enum == ["NO", "SE", "on", "2020-01-01", "012"]
    assert tool.output_schema == {"type": "boolean"}


@pytest.mark.parametrize(
    ("servers", "source", "url"),
    [
        ([{"url": "https://a.test/v1/"}], None, "https://a.test/v1/x"),
        ([{"url": "/v2"}], "https://b.test/docs/openapi.json", "https://b.test/v2/x"),
        ([{"url": "v3"}], "https://b.test/docs/openapi.json", "https://b.test/docs/v3/x"),
        (None, "https://b.test/docs/openapi.json", "https://b.test/x"),
        (
            [
                {
                    "url": "https://{region}.c.test:{port}",
                    "variables": {"region": {"default": "eu"}, "port": {"default": "8443"}},
                }
            ],
            None,
            "https://eu.c.test:8443/x",
        ),
    ],
)
def test_the_server_is_the_one_the_document_means(
    servers: Any, source: str | None, url: str
) -> None:
    content = document({"/x": {"get": {}}}, servers=servers)

    (tool,) = list_tools(parse_document(content, source=source)).tools

    assert tool.handler["url"] == url


def test_without_a_server_nothing_can_be_called_unless_one_is_given() -> None:
    content = parse_document(document({"/x": {"get": {}}}, servers=[]))

    assert list_tools(content).tools == []
    assert "base_url" in list_tools(content).warnings[0]
    (tool,) = list_tools(content, base_url="https://d.test/").tools
    assert tool.handler["url"] == "https://d.test/x"


SECURITY = {
    "securitySchemes": {
        "api key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
        "inCookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "basic": {"type": "http", "scheme": "Basic"},
        "bearer": {"type": "http", "scheme": "bearer"},
        "oauth": {"type": "oauth2", "flows": {}},
        "mutual": {"type": "mutualTLS"},
    }
}


@pytest.mark.parametrize(
    ("required", "fields", "secrets"),
    [
        ([{"api key": []}], {"headers": {"X-Key": "${API_KEY}"}}, ["API_KEY"]),
        ([{"basic": []}], {"headers": {"Authorization": "Basic ${BASIC}"}}, ["BASIC"]),
        ([{"oauth": ["read"]}], {"headers": {"Authorization": "Bearer ${OAUTH}"}}, ["OAUTH"]),
        (
            [{"inQuery": [], "inCookie": []}],
            {"query": {"key": "${INQUERY}"}, "cookies": {"sid": "${INCOOKIE}"}},
            ["INQUERY", "INCOOKIE"],
        ),
        (
            [{"mutual": []}, {"bearer": []}],
            {"headers": {"Authorization": "Bearer ${BEARER}"}},
            ["BEARER"],
        ),
        ([{"bearer": []}, {}], {}, []),
        ([], {}, []),
    ],
)
def test_credentials_are_names_of_secrets(
    required: Any, fields: dict[str, Any], secrets: list[str]
) -> None:
    listing = listed({"/x": {"get": {"security": required}}}, components=SECURITY)

    handler = listing.tools[0].handler
    named = {name: handler[name] for name in ("headers", "query", "cookies") if name in handler}
    assert named == fields
    assert list(listing.secrets) == secrets
    assert all(any(f"${{{name}}}" in text for text in listing.warnings) for name in secrets)


def test_answers_of_several_kinds_are_all_in_the_schema() -> None:
    json_answer = answering({"type": "object"})["200"]
    both = only({"/x": {"get": {"responses": {"200": json_answer, "204": {"description": ""}}}}})
    text = {"content": {"text/csv": {"schema": {"type": "string"}}}}
    mixed = only({"/x": {"get": {"responses": {"200": json_answer, "201": text}}}})

    assert both.output_schema == {"anyOf": [{"type": "object"}, {"type": "null"}]}
    assert mixed.output_schema is None


COLOURS = ["blue", "black"]
RGB = {"R": 100, "G": 200}


# The table of styles in the OpenAPI specification.
@pytest.mark.parametrize(
    ("place", "style", "explode", "value", "target"),
    [
        ("path", "simple", False, "blue", "/x/blue"),
        ("path", "simple", False, COLOURS, "/x/blue,black"),
        ("path", "simple", False, RGB, "/x/R,100,G,200"),
        ("path", "simple", True, RGB, "/x/R=100,G=200"),
        ("path", "label", False, "blue", "/x/.blue"),
        ("path", "label", False, COLOURS, "/x/.blue,black"),
        ("path", "label", True, COLOURS, "/x/.blue.black"),
        ("path", "label", True, RGB, "/x/.R=100.G=200"),
        ("path", "matrix", False, "blue", "/x/;c=blue"),
        ("path", "matrix", False, COLOURS, "/x/;c=blue,black"),
        ("path", "matrix", True, COLOURS, "/x/;c=blue;c=black"),
        ("path", "matrix", True, RGB, "/x/;R=100;G=200"),
        ("path", "simple", False, "a/b c", "/x/a%2Fb%20c"),
        ("query", "form", True, "a&b", "/x?c=a%26b"),
        ("query", "form", True, COLOURS, "/x?c=blue&c=black"),
        ("query", "form", False, COLOURS, "/x?c=blue,black"),
        ("query", "form", False, ["a,b", "c"], "/x?c=a%2Cb,c"),
        ("query", "form", True, RGB, "/x?R=100&G=200"),
        ("query", "form", False, RGB, "/x?c=R,100,G,200"),
        ("query", "form", True, True, "/x?c=true"),
        ("query", "form", True, "", "/x?c="),
        ("query", "spaceDelimited", False, COLOURS, "/x?c=blue%20black"),
        ("query", "pipeDelimited", False, COLOURS, "/x?c=blue%7Cblack"),
        ("query", "deepObject", True, RGB, "/x?c[R]=100&c[G]=200"),
        ("query", "deepObject", True, {"a": {"b": [1, 2]}}, "/x?c[a][b]=1&c[a][b]=2"),
    ],
)
@pytest.mark.anyio
async def test_parameters_are_written_in_their_style(
    runner: OpenApiRunner,
    server: Server,
    place: str,
    style: str,
    explode: bool,
    value: Any,
    target: str,
) -> None:
    path = "/x/{c}" if place == "path" else "/x"
    described = parameter("c", place, style=style, explode=explode)

    got = await sent(runner, server, {path: {"get": operation(described)}}, {"c": value})

    assert got.target.replace("%5B", "[").replace("%5D", "]") == target


async def sent(
    runner: OpenApiRunner,
    server: Server,
    paths: Mapping[str, Any],
    arguments: Mapping[str, Any],
    secrets: Granted | None = None,
    **fields: Any,
) -> Received:
    content = document(paths, **fields) | {"servers": [{"url": server.url("")}]}
    (tool,) = list_tools(parse_document(content)).tools
    runner.check(tool.handler)
    # As it comes back from where it is stored.
    handler = json.loads(json.dumps(tool.handler))
    await runner.run(handler, attempt(arguments, secrets=secrets))
    return server.received[-1]


@pytest.mark.anyio
async def test_headers_and_cookies_are_written(runner: OpenApiRunner, server: Server) -> None:
    described = operation(
        parameter("X-List", "header"),
        parameter("X-Object", "header", explode=True),
        parameter("one", "cookie"),
        parameter("two", "cookie", content={"application/json": {"schema": {}}}),
        parameter("json", "query", content={"application/json": {"schema": {}}}),
        parameter("reserved", "query", allowReserved=True),
        parameter("unset", "query"),
    )
    arguments = {"X-List": COLOURS, "X-Object": RGB, "one": "a;b", "two": {"a": 1}}
    arguments |= {"json": {"a": 1}, "reserved": "a/b?c&d"}

    got = await sent(runner, server, {"/x": {"get": described}}, arguments)

    assert got.headers["x-list"] == "blue,black"
    assert got.headers["x-object"] == "R=100,G=200"
    assert got.headers["cookie"] == "one=a%3Bb; two=%7B%22a%22%3A1%7D"
    assert got.target == "/x?json=%7B%22a%22%3A1%7D&reserved=a/b?c%26d"


@pytest.mark.anyio
async def test_credentials_are_sent_and_no_argument_replaces_them(
    runner: OpenApiRunner, server: Server
) -> None:
    place = f"http://127.0.0.1:{server.port}"
    described = operation(parameter("x-key", "header"), security=[{"api key": [], "inQuery": []}])
    secrets = Granted(place, API_KEY="k1", INQUERY="k&2")

    got = await sent(
        runner, server, {"/x": {"get": described}}, {"x-key": "mine"}, secrets, components=SECURITY
    )

    assert got.headers["x-key"] == "k1"
    assert got.target == "/x?key=k%262"
    with pytest.raises(PermissionDenied):
        await sent(runner, server, {"/x": {"get": described}}, {}, components=SECURITY)


FIELDS = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object"},
    },
}


@pytest.mark.parametrize(
    ("schema", "kind", "arguments", "body"),
    [
        (
            FIELDS,
            "application/json",
            {"name": "a", "more": {"x": 1}},
            b'{"name":"a","more":{"x":1}}',
        ),
        (FIELDS, "application/json", {"name": None}, b'{"name":null}'),
        (
            FIELDS,
            "application/x-www-form-urlencoded",
            {"name": "a b", "tags": ["x", "y"]},
            b"name=a+b&tags=x&tags=y",
        ),
        ({"type": "array"}, "application/json", {"body": [1]}, b"[1]"),
        ({"type": "string"}, "application/json", {"body": "x"}, b'"x"'),
        ({"type": "string"}, "text/plain", {"body": "x"}, b"x"),
        ({}, "application/xml", {"body": "<a/>"}, b"<a/>"),
        ({"type": "string", "format": "binary"}, "image/png", {"body": "iVBORw=="}, b"\x89PNG"),
        (
            {"oneOf": [FIELDS, {"type": "array"}]},
            "application/json",
            {"body": {"name": "a"}},
            b'{"name":"a"}',
        ),
        (
            {"allOf": [FIELDS, {"type": "object", "properties": {"b": {}}}]},
            "application/json",
            {"name": "a", "b": 1},
            b'{"name":"a","b":1}',
        ),
        (
            {**FIELDS, "additionalProperties": True},
            "application/json",
            {"name": "a", "z": 1, "q": 2},
            b'{"name":"a","z":1}',
        ),
        (FIELDS, "application/json", {}, b"{}"),
    ],
)
@pytest.mark.anyio
async def test_bodies_are_written_as_their_kind(
    runner: OpenApiRunner,
    server: Server,
    schema: Mapping[str, Any],
    kind: str,
    arguments: Mapping[str, Any],
    body: bytes,
) -> None:
    described = operation(parameter("q"), requestBody=body_of(schema, kind, required=True))

    got = await sent(runner, server, {"/x": {"post": described}}, arguments)

    assert got.body == body
    assert got.headers["content-type"] == kind
    assert got.headers["idempotency-key"] == "key-1"


@pytest.mark.anyio
async def test_files_are_sent_as_parts(runner: OpenApiRunner, server: Server) -> None:
    schema = {
        "type": "object",
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "title": {"type": "string"},
            "meta": {"type": "object"},
        },
    }
    data = base64.b64encode(b"\x00\r\n--x").decode()
    paths = {"/x": {"post": operation(requestBody=body_of(schema, "multipart/form-data"))}}

    got = await sent(runner, server, paths, {"file": data, "title": "é", "meta": {"a": 1}})

    from email import message_from_bytes

    head = f"Content-Type: {got.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + got.body)
    parts = {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in message.walk()
        if not part.is_multipart()
    }
    assert parts == {"file": b"\x00\r\n--x", "title": "é".encode(), "meta": b'{"a":1}'}
    with pytest.raises(ValidationFailed, match="base64"):
        await sent(runner, server, paths, {"file": "not base64!"})


@pytest.mark.anyio
async def test_a_body_that_nobody_gave_is_not_sent(runner: OpenApiRunner, server: Server) -> None:
    got = await sent(runner, server, {"/x": {"post": operation(requestBody=body_of(FIELDS))}}, {})

    assert got.body == b""
    assert "content-type" not in got.headers


@pytest.mark.parametrize("value", ["..", ".", ""])
@pytest.mark.anyio
async def test_an_argument_does_not_climb_out_of_its_path(
    runner: OpenApiRunner, server: Server, value: str
) -> None:
    with pytest.raises(ValidationFailed):
        await sent(runner, server, {"/x/{id}/y": {"get": operation()}}, {"id": value})
    with pytest.raises(MissingRequired):
        await sent(runner, server, {"/x/{id}/y": {"get": operation()}}, {})

    assert server.received == []


@pytest.mark.anyio
async def test_an_argument_cannot_add_a_header(runner: OpenApiRunner, server: Server) -> None:
    with pytest.raises(ValidationFailed):
        await sent(
            runner,
            server,
            {"/x": {"get": operation(parameter("X-A", "header"))}},
            {"X-A": "a\r\nb: c"},
        )

    assert server.received == []


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://{host}/x"},
        {"url": "ftp://a.test/"},
        {"url": "https://a.test/{missing}"},
        {"method": "get"},
        {"parameters": {}},
        {"parameters": [{"name": "a"}]},
        {
            "parameters": [
                {"argument": "a", "name": "a", "in": "body", "style": "x", "explode": True}
            ]
        },
        {"body": []},
        {"body": {"contentType": "x"}},
        {"body": {"contentType": "x", "fields": [1]}},
        {"headers": {"Host": "x"}},
        {"timeout": "x"},
    ],
)
def test_a_handler_that_cannot_work_is_refused(change: dict[str, Any]) -> None:
    handler = {"type": "openapi", "method": "GET", "url": "https://a.test/x", "parameters": []}

    OpenApiRunner(Outbound()).check(handler)
    with pytest.raises(ValidationFailed) as caught:
        OpenApiRunner(Outbound()).check({**handler, **change})

    assert caught.value.details["field"].startswith("handler.")


@pytest.mark.anyio
async def test_documents_come_from_addresses_files_and_objects(tmp_path: Path) -> None:
    content = document({"/x": {"get": operation()}}, servers=[{"url": "/api"}])
    path = tmp_path / "openapi.yaml"
    path.write_text(yaml.safe_dump(content))
    replies = {
        "/openapi.json": json_reply(content),
        "/openapi.yaml": (200, {"content-type": "text/yaml"}, path.read_bytes()),
        "/missing": (404, {}, b"no"),
        "/page": (200, {"content-type": "text/html"}, b"<html></html>"),
    }
    async with serve(lambda got: replies[got.target]) as server:
        async with guarded(f"127.0.0.1:{server.port}") as outbound:
            for name in ("/openapi.json", "/openapi.yaml"):
                loaded = await load_document(server.url(name), outbound)
                (tool,) = list_tools(loaded).tools
                assert tool.handler["url"] == server.url("/api/x")
            with pytest.raises(ExecutionFailed, match="404"):
                await load_document(server.url("/missing"), outbound)
            with pytest.raises(ValidationFailed):
                await load_document(server.url("/page"), outbound)
            assert (await load_document(path, outbound)).content == content
            assert (await load_document(content, outbound)).content == content
            assert (await load_document(path.read_text(), outbound)).content == content
            with pytest.raises(ValidationFailed):
                await load_document(tmp_path / "missing.json", outbound)
            # Over the network somebody else's text must not name a file of this machine.
            for text in (str(path), f"file://{path}"):
                with pytest.raises(ValidationFailed):
                    await load_document(text, outbound)
        async with guarded() as outbound:
            with pytest.raises(PermissionDenied):
                await load_document(server.url("/openapi.json"), outbound)


def huge(operations: int) -> dict[str, Any]:
    """A document in which everything refers to everything, as those of large services do."""
    count = 300
    names = [f"Thing{n}" for n in range(count)]
    things = {
        name: {
            "type": "object",
            "description": "A thing. " * 20,
            "properties": {
                f"field{m}": {"$ref": f"#/components/schemas/Thing{(n * 7 + m * 13 + 1) % count}"}
                if m % 2
                else {"type": "string", "description": "Some words about it. " * 4}
                for m in range(12)
            },
        }
        for n, name in enumerate(names)
    }
    paths = {
        f"/things{n}/{{id}}": {
            "post": {
                "operationId": f"op{n}",
                "description": "Does something. " * 90,
                "requestBody": body_of({"$ref": f"#/components/schemas/{names[n % count]}"}),
                "responses": answering({"$ref": f"#/components/schemas/{names[(n * 3) % count]}"}),
            }
        }
        for n in range(operations)
    }
    return document(paths, components={"schemas": things})


def test_a_huge_document_is_read_within_bounds() -> None:
    text = json.dumps(huge(1_000))
    assert len(text) > 2_000_000

    started = time.process_time()
    listing = list_tools(parse_document(text))

    assert time.process_time() - started < 60
    assert len(listing.tools) == 1_000
    sizes = [len(json.dumps(tool.input_schema)) for tool in listing.tools]
    assert max(sizes) < 256 * 1024
    for tool in listing.tools[::100]:
        schemas.check(tool.input_schema, field="inputSchema")
        # Cut evenly: each field of the body is still there.
        assert len(tool.input_schema["properties"]) == 13


def test_values_that_are_too_large_leave_the_names_of_the_arguments() -> None:
    wide = {"type": "string", "enum": [f"{n:0200}" for n in range(2_000)]}
    deep: dict[str, Any] = {"type": "object", "properties": {"x": {}}}
    for _ in range(60):
        deep = {"type": "object", "properties": {"x": deep}}
    many = {f"p{n}": {"type": "string", "description": "words " * 1_000} for n in range(3_000)}
    schema = {"type": "object", "properties": {"wide": wide, "deep": deep, **many}}

    tool = only({"/x": {"post": operation(requestBody=body_of(schema), responses=answering(wide))}})

    assert len(tool.input_schema["properties"]) == 3_002
    assert tool.output_schema is None


def test_a_chain_of_references_longer_than_anything_is_taken() -> None:
    chain = {
        f"C{n}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/components/schemas/C{n + 1}"}},
        }
        for n in range(5_000)
    }
    circle = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}

    listing = listed(
        {
            "/x": {"post": operation(requestBody=body_of({"$ref": "#/components/schemas/C0"}))},
            "/y": {"post": operation(requestBody=body_of({"$ref": "#/components/schemas/A"}))},
        },
        components={"schemas": chain | circle},
    )

    assert [list(tool.input_schema["properties"]) for tool in listing.tools] == [["next"], ["body"]]
