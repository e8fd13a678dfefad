"""Converting text from one format to another.

JSON, YAML, TOML, CSV and XML hold data; Markdown and HTML are documents. Data becomes a document
as a table, where it is rows, or as nested lists; a document becomes data by the table in it.
`CONVERTS` says what each conversion means. XLSX is data, DOCX and PDF are documents that are read
as Markdown; their bytes are given as base64, and they are read in a process of their own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any, Final, Literal, NoReturn

import orjson
from pydantic import Field

from stratagem import limits
from stratagem.engine import values
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin import html_text, office_files, tables, xml_text
from stratagem.gateway.definitions.argument_models import Given, plain_schema, read
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.threads import Threads
from stratagem.gateway.outbound.results import decode_base64
from stratagem.gateway.pipelines.expressions import count_nodes

__all__ = ["CONVERTS", "TOOL", "convert_text", "run"]

Source = Literal["json", "yaml", "toml", "csv", "xml", "markdown", "html", "xlsx", "docx", "pdf"]
Target = Literal["json", "yaml", "toml", "csv", "xml", "markdown", "html", "text", "xlsx", "docx"]
DATA: Final = ("json", "yaml", "toml", "csv", "xml")
DOCUMENTS: Final = ("markdown", "html")
# Given and returned as base64; what is read from each is converted on as if it were the other.
OFFICE: Final = {"xlsx": "json", "docx": "markdown", "pdf": "markdown"}

# What YAML's aliases may multiply a text to.
_NODES_MAX: Final = limits.CONVERTED_CHARS_MAX


def _required_form(source: str, target: str) -> str | None:
    if source in DATA and target in DATA:
        needs = {
            "csv": "rows of flat objects or lists",
            "toml": "an object or a list, without nulls",
        }
        return f"the data, which must be {needs[target]}" if target in needs else "the data"
    if source in DATA:
        return "a table of the rows, or nested lists"
    if target in DATA:
        return "the rows of the table in it"
    return "the document" if source != target else None


CONVERTS: Final[dict[tuple[str, str], str]] = {
    (source, target): meaning
    for source in (*DATA, *DOCUMENTS)
    for target in (*DATA, *DOCUMENTS)
    if (meaning := _required_form(source, target)) is not None
}


class _Options(Given):
    delimiter: str = Field(",", min_length=1, max_length=1, description="Of CSV")
    header: bool = Field(default=True, description="The first row of a table names its columns")
    infer_types: bool = Field(
        default=False, description="Read numbers, true, false and empty cells of a table as such"
    )
    sheet: str | None = Field(None, max_length=64, description="Of XLSX; the first by default")
    table: int | None = Field(
        None, ge=0, description="Which table of a document, from 0; needed where it has several"
    )
    compact: bool = Field(default=False, description="JSON on one line")
    root: str = Field(
        "root",
        min_length=1,
        max_length=64,
        description="Name of a list in TOML, and of the root in XML that has none",
    )


class _Input(Given):
    content: str = Field(
        max_length=limits.DOCUMENT_BASE64_CHARS_MAX,
        description="The text to convert; of XLSX, DOCX and PDF the bytes as base64",
    )
    source: Source = Field(alias="from", description="Format of the content")
    target: Target = Field(alias="to", description="Format to convert to")
    options: _Options = Field(default_factory=_Options)


TOOL: Final[dict[str, Any]] = {
    "name": "file_converter",
    "description": (
        "Convert between JSON, YAML, TOML, CSV, XML, Markdown, HTML, XLSX and DOCX, and any of "
        "them or a PDF to plain text."
    ),
    "longDescription": (
        "Data formats (JSON, YAML, TOML, CSV, XML) convert into each other; in Markdown "
        "and HTML, rows become a table and other data nested lists. Markdown and HTML "
        "convert "
        "into each other, and into data by the table in them. CSV takes rows without nested "
        "values, TOML no nulls. XML: @name is an attribute, #text the text beside "
        "children; document types and entities are refused. YAML is 1.2, where no is "
        "text. Cells of tables stay text unless options.inferTypes is true. XLSX, DOCX "
        "and PDF are given and "
        "returned as base64 (`encoding` says so): XLSX is the rows of one sheet, DOCX and PDF are "
        "documents; a PDF can only be read, and one of scanned pages has no text."
    ),
    "category": "utility",
    "tags": ["convert", "json", "yaml", "toml", "csv", "xml", "markdown", "html"],
    "inputSchema": plain_schema(_Input),
    "outputSchema": {
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "format": {"type": "string"},
            "encoding": {"type": "string", "enum": ["base64"]},
        },
        "required": ["content", "format"],
    },
    "examples": [
        {
            "input": {"content": '[{"name": "Ada", "age": 36}]', "from": "json", "to": "csv"},
            "output": {"content": "name,age\nAda,36\n", "format": "csv"},
        },
        {
            "input": {"content": "server:\n  port: 80\n", "from": "yaml", "to": "toml"},
            "output": {"content": "[server]\nport = 80\n", "format": "toml"},
        },
        {
            "input": {"content": "# Hello\n\nA *small* page.", "from": "markdown", "to": "html"},
            "output": {
                "content": "<h1>Hello</h1>\n<p>A <em>small</em> page.</p>\n",
                "format": "html",
            },
        },
        {
            "input": {
                "content": "| name | age |\n|---|---|\n| Ada | 36 |\n",
                "from": "markdown",
                "to": "json",
                "options": {"inferTypes": True, "compact": True},
            },
            "output": {"content": '[{"name":"Ada","age":36}]', "format": "json"},
        },
    ],
    "cacheable": True,
    "idempotent": True,
    "requirements": {},
}


def convert_text(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a text.

    Raises:
        ValidationFailed: It is not in the format it is said to be, or has no meaning in the other.
    """
    given = read(_Input, arguments)
    if len(given.content) > limits.CONVERTED_CHARS_MAX:
        raise ValidationFailed(
            f"`content` has more than {limits.CONVERTED_CHARS_MAX:,} characters.",
            field="content",
            limit=limits.CONVERTED_CHARS_MAX,
        )
    if given.target == "text":
        return {"content": _plain_text(given), "format": "text"}
    if (given.source, given.target) not in CONVERTS:
        raise ValidationFailed(f"The content is {given.target} already.", field="to")
    if given.source in DOCUMENTS and given.target in DOCUMENTS:
        content = _between_documents(given)
    else:
        content = _write(_data(given), given)
    return {"content": content, "format": given.target}


async def run(
    arguments: Mapping[str, Any], run: Run, threads: Threads | None = None
) -> dict[str, Any]:
    """Convert a text or a file, away from the event loop."""
    threads = threads or Threads()
    given = read(_Input, arguments)
    if given.source == given.target:
        raise ValidationFailed(f"The content is {given.target} already.", field="to")
    if given.source in OFFICE:
        arguments = await _open_file(given, arguments, run.seconds)
        if arguments["from"] == arguments["to"]:
            return {"content": arguments["content"], "format": given.target}
    if given.target in OFFICE:
        return await _as_file(read(_Input, arguments), run.seconds)
    return await threads.call(lambda: convert_text(arguments), name=run.tool)


async def _open_file(given: _Input, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the arguments with what a file holds in the place of its bytes."""
    data = decode_base64(given.content)
    if data is None:
        raise ValidationFailed(
            f"`content` is not the base64 of a {given.source}.",
            field="content",
            hint="Encode the bytes of the file as base64.",
        )
    office: Any = given.source
    found = await office_files.read_file(data, office, seconds=seconds, sheet=given.options.sheet)
    if given.source == "xlsx":
        value = _from_cells(found["rows"], header=given.options.header)
        return {**arguments, "content": orjson.dumps(value).decode(), "from": "json"}
    # The text of a PDF has lines and no marks: as Markdown, lines would run into each other.
    as_is = given.source == "pdf" and given.target in {"text", "markdown"}
    return {**arguments, "content": found["text"], "from": given.target if as_is else "markdown"}


def _from_cells(rows: list[list[Any]], *, header: bool) -> list[Any]:
    """Return the rows of a sheet, whose cells have types of their own."""
    if not header or not rows:
        return rows
    first, *rest = rows
    names = [
        f"column_{at}" if each in {None, ""} else tables.scalar_text(each)
        for at, each in enumerate(first, start=1)
    ]
    if len(set(names)) < len(names):
        raise ValidationFailed(
            "Two columns of the sheet have the same name.",
            field="content",
            hint="Read it with options.header false.",
        )
    return [dict(zip(names, row, strict=True)) for row in rest]


async def _as_file(given: _Input, seconds: float) -> dict[str, Any]:
    """Return rows as XLSX, or a document as DOCX."""
    office: Any = given.target
    if given.target == "xlsx":
        content: Any = {"rows": _to_cells(_data(given)), "sheet": given.options.sheet}
    else:
        html = given.content if given.source == "html" else _html(_markdown(given))
        content = html_text.document_blocks(html_text.parse(html))
    made = await office_files.write_file(content, office, seconds=seconds)
    return {
        "content": base64.b64encode(made).decode(),
        "format": given.target,
        "encoding": "base64",
    }


def _to_cells(value: Any) -> list[list[Any]]:
    try:
        names, rows = tables.rows_of(value)
    except tables.TableFault as error:
        raise ValidationFailed(
            f"The content cannot be written as xlsx: {error}.", field="to", hint=_HINTS["csv"]
        ) from error
    return rows if names is None else [names, *rows]


def _markdown(given: _Input) -> str:
    if given.source == "markdown":
        return given.content
    return html_text.markdown_of(_data(given))


def _plain_text(given: _Input) -> str:
    """Return what a reader would read: no markup, data as a table or as lists."""
    if given.source in DATA:
        return html_text.markdown_of(_data(given))
    html = given.content if given.source == "html" else _html(given.content)
    return html_text.plain_text(html_text.parse(html))


def _between_documents(given: _Input) -> str:
    if given.source == "markdown":
        return _html(given.content)
    try:
        return html_text.to_markdown(html_text.parse(given.content))
    except ValueError as error:
        raise ValidationFailed(f"`content` is not HTML: {error}.", field="content") from error


def _html(markdown: str) -> str:
    from markdown_it import MarkdownIt

    # Markup within Markdown is shown as text: it may come from anywhere.
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return str(reader.render(markdown))


def _data(given: _Input) -> Any:
    """Return what the content holds, as plain JSON."""
    try:
        value = _READERS[given.source](given)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValidationFailed(
            f"`content` is not valid {given.source}: {reason[:300].rstrip('.')}.",
            field="content",
        ) from error
    if count_nodes(value, _NODES_MAX) > _NODES_MAX:
        raise ValidationFailed(
            "`content` expands too much: its aliases multiply it.",
            field="content",
            limit=_NODES_MAX,
        )
    plain = _plain(value, 0)
    values.encode(plain, field="content", bytes_max=limits.VALUE_BYTES_MAX * 2)
    return plain


def _plain(value: Any, depth: int) -> Any:
    """Return a value with the dates that TOML and YAML know as texts."""
    if depth > limits.VALUE_DEPTH_MAX:
        raise ValidationFailed(
            "`content` is nested too deeply.", field="content", limit=limits.VALUE_DEPTH_MAX
        )
    if isinstance(value, dict):
        return {name: _plain(child, depth + 1) for name, child in value.items()}
    if isinstance(value, list):
        return [_plain(child, depth + 1) for child in value]
    return value.isoformat() if isinstance(value, datetime | date | time) else value


def _write(value: Any, given: _Input) -> str:
    try:
        return _WRITERS[given.target](value, given)
    except (ValueError, TypeError) as error:
        raise ValidationFailed(
            f"The content cannot be written as {given.target}: {str(error)[:300].rstrip('.')}.",
            field="to",
            hint=_HINTS.get(given.target),
        ) from error


def _read_json(given: _Input) -> Any:
    return json.loads(given.content, object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _read_yaml(given: _Input) -> Any:
    from stratagem.gateway.builtin import yaml_text

    return yaml_text.load(given.content)


def _read_toml(given: _Input) -> Any:
    import tomllib

    return tomllib.loads(given.content)


def _read_csv(given: _Input) -> Any:
    options = given.options
    return tables.from_csv(
        given.content,
        delimiter=options.delimiter,
        header=options.header,
        infer=options.infer_types,
    )


def _read_xml(given: _Input) -> Any:
    return xml_text.load(given.content)


def _read_document(given: _Input) -> Any:
    html = given.content if given.source == "html" else _html(given.content)
    found = html_text.tables(html_text.parse(html))
    options = given.options
    if not found:
        raise tables.TableFault("there is no table in it")
    if options.table is None and len(found) > 1:
        raise tables.TableFault(f"it has {len(found)} tables; choose one with options.table")
    if (options.table or 0) >= len(found):
        raise tables.TableFault(f"it has only {len(found)} tables")
    rows = [row for row in found[options.table or 0] if row]
    return tables.objects(rows, header=options.header, infer=options.infer_types)


def _write_json(value: Any, given: _Input) -> str:
    if given.options.compact:
        return orjson.dumps(value).decode()
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _write_yaml(value: Any, given: _Input) -> str:  # noqa: ARG001 -- a writer's parameter
    from stratagem.gateway.builtin import yaml_text

    return yaml_text.dump(value)


def _write_toml(value: Any, given: _Input) -> str:
    import tomli_w

    if isinstance(value, list):
        value = {given.options.root: value}
    if not isinstance(value, dict):
        raise TypeError("it is neither an object nor a list")
    return tomli_w.dumps(value)


def _write_csv(value: Any, given: _Input) -> str:
    return tables.csv_text(value, delimiter=given.options.delimiter)


def _write_xml(value: Any, given: _Input) -> str:
    return xml_text.dump(value, root=given.options.root)


_HINTS: Final = {
    "csv": "Flatten the data with data_transformer, or pick the list of rows first.",
    "toml": "TOML has no null; it needs an object or a list.",
    "xml": "Rename the fields: a name begins with a letter and has no spaces.",
}
_READERS: Final[dict[str, Callable[[_Input], Any]]] = {
    "json": _read_json,
    "yaml": _read_yaml,
    "toml": _read_toml,
    "csv": _read_csv,
    "xml": _read_xml,
    "markdown": _read_document,
    "html": _read_document,
}
_WRITERS: Final[dict[str, Callable[[Any, _Input], str]]] = {
    "json": _write_json,
    "yaml": _write_yaml,
    "toml": _write_toml,
    "csv": _write_csv,
    "xml": _write_xml,
    "markdown": lambda value, _given: html_text.markdown_of(value),
    "html": lambda value, _given: html_text.from_value(value),
}
