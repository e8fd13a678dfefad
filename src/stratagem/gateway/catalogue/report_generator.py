"""`report_generator`: a report as Markdown, HTML, PDF, DOCX or text, from Markdown or data."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin import html_text, office_files
from stratagem.gateway.builtin.file_converter import convert_text
from stratagem.gateway.catalogue.folders import open_folder
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples

__all__ = ["TOOLS"]

_TYPES: Final = {
    "markdown": "text/markdown",
    "html": "text/html",
    "text": "text/plain",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}"
    "td,th{border:1px solid #bbb;padding:.3rem .6rem;text-align:left}"
    "pre{background:#f4f4f4;padding:.6rem;overflow:auto}"
)


async def _generate(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    format_ = given.get("format", "markdown")
    markdown = await run.in_thread(lambda: _markdown(given))
    data = await _write(run, markdown, format_, given.get("title"))
    answer: dict[str, Any] = {
        "format": format_,
        "contentType": _TYPES[format_],
        "bytes": len(data),
    }
    if given.get("path"):
        folder = open_folder(run, given.get("folder"), writes=True)
        overwrite = given.get("overwrite", False)
        await run.in_thread(lambda: folder.write_bytes(given["path"], data, overwrite=overwrite))
        return {**answer, "path": given["path"]}
    if format_ in {"pdf", "docx"}:
        return {**answer, "base64": base64.b64encode(data).decode()}
    return {**answer, "report": data.decode()}


def _markdown(given: Mapping[str, Any]) -> str:
    content = given["content"]
    text = content if isinstance(content, str) else html_text.markdown_of(content)
    for section in given.get("sections") or ():
        body = section["content"]
        shown = body if isinstance(body, str) else html_text.markdown_of(body)
        text += f"\n\n## {section['title']}\n\n{shown}"
    if len(text) > limits.CONVERTED_CHARS_MAX:
        raise ValidationFailed(
            f"The report has more than {limits.CONVERTED_CHARS_MAX:,} characters.",
            field="content",
            limit=limits.CONVERTED_CHARS_MAX,
        )
    title = given.get("title")
    return f"# {title}\n\n{text}" if title and not text.startswith("# ") else text


async def _write(run: ToolRun, markdown: str, format_: str, title: str | None) -> bytes:
    if format_ == "markdown":
        return markdown.encode()
    html: str = await run.in_thread(
        lambda: convert_text({"content": markdown, "from": "markdown", "to": "html"})["content"]
    )
    if format_ == "html":
        return _page(html, title or "Report").encode()
    tree = html_text.parse(html)
    if format_ == "text":
        return html_text.plain_text(tree).encode()
    office: Any = format_
    return await office_files.write_file(
        html_text.document_blocks(tree), office, seconds=run.seconds
    )


def _page(body: str, title: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )


_CONTENT: Final = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}, {"type": "array"}],
    "description": "Markdown, or data: rows become a table, objects nested lists",
}

TOOLS: Final = (
    StandardTool(
        define(
            "report_generator",
            "Write a report as PDF, DOCX, HTML, Markdown or plain text, from Markdown or data.",
            category="generation",
            details=(
                "`content` is Markdown, or data: a list of rows becomes a table. As the "
                "last step of a pipeline it takes the `content` of the previous step, such "
                "as that of "
                "security_scanner or data_analyzer. PDF and DOCX come as base64, or are written "
                "to `path` in a granted folder. Letters that the standard fonts of PDF do not "
                "have become question marks; choose DOCX or HTML for other scripts."
            ),
            takes={
                "content": _CONTENT,
                "title": {"type": "string", "maxLength": 300},
                "sections": {
                    "type": "array",
                    "maxItems": 50,
                    "items": {
                        "type": "object",
                        "properties": {"title": {"type": "string"}, "content": _CONTENT},
                        "required": ["title", "content"],
                        "additionalProperties": False,
                    },
                    "description": "Further parts",
                },
                "format": {"type": "string", "enum": list(_TYPES), "default": "markdown"},
                "path": {"type": "string", "maxLength": limits.FILE_PATH_CHARS_MAX},
                "folder": {"type": "string", "description": "Which folder connection"},
                "overwrite": {"type": "boolean", "default": False},
            },
            required=("content",),
            gives={
                "format": {"type": "string"},
                "contentType": {"type": "string"},
                "bytes": {"type": "integer"},
                "report": {"type": "string"},
                "base64": {"type": "string"},
                "path": {"type": "string"},
            },
            gives_always=("format", "contentType", "bytes"),
            tags=("report", "pdf", "document", "write"),
            shown=examples(
                ("A page", {"title": "Status", "content": "All is *well*.", "format": "html"}),
                (
                    "A PDF",
                    {"title": "Sales", "content": [{"month": "May", "sum": 12}], "format": "pdf"},
                ),
            ),
            changes=True,
            seconds=60,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _generate,
        packages=("fpdf", "docx"),
        connection="folder",
        optional=True,
    ),
)
