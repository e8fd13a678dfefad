"""Writes XLSX, DOCX and PDF: an order on standard input, the file as base64 in JSON.

A table is `{"rows": [[…]]}`. A document is a list of blocks: `{"heading": text, "level": 1}`,
`{"text": text}`, `{"items": [text, …]}`, `{"rows": [[text, …], …]}`, `{"code": text}`.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

__all__: list[str] = []

_Blocks = list[dict[str, Any]]
# What the standard fonts of PDF have no letters for is written as a question mark.
_PLAIN = str.maketrans(
    {0x2013: "-", 0x2014: "-", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2026: "..."}
)


def _write_xlsx(content: dict[str, Any]) -> bytes:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet(str(content.get("sheet") or "Sheet1")[:31])
    for row in content["rows"]:
        sheet.append([_harmless_cell(each) for each in row])
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def _harmless_cell(value: Any) -> Any:
    # A text that begins with = would be run as a formula by whoever opens the file.
    return f"'{value}" if isinstance(value, str) and value.startswith("=") else value


def _write_docx(blocks: _Blocks) -> bytes:
    import docx

    document = docx.Document()
    for block in blocks:
        if "heading" in block:
            document.add_heading(block["heading"], min(block.get("level", 1), 9))
        for item in block.get("items", ()):
            document.add_paragraph(item, style="List Bullet")
        for key in ("text", "code"):
            if key in block:
                document.add_paragraph(block[key])
        if block.get("rows"):
            _add_table(document, block["rows"])
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


def _add_table(document: Any, rows: list[list[str]]) -> None:
    width = max(map(len, rows))
    table = document.add_table(rows=0, cols=width)
    table.style = "Table Grid"
    for row in rows:
        cells = table.add_row().cells
        for at, each in enumerate(row):
            cells[at].text = str(each)


def _write_pdf(blocks: _Blocks) -> bytes:
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_margin(18)
    pdf.set_auto_page_break(auto=True, margin=18)
    pdf.add_page()
    for block in blocks:
        if "heading" in block:
            pdf.set_font("Helvetica", "B", {1: 18, 2: 14}.get(block.get("level", 1), 12))
            pdf.multi_cell(0, 9, _latin(block["heading"]), new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "", 10)
        for item in block.get("items", ()):
            pdf.multi_cell(0, 5.5, _latin(f"- {item}"), new_x="LMARGIN", new_y="NEXT")
        if "text" in block:
            pdf.multi_cell(0, 5.5, _latin(block["text"]), new_x="LMARGIN", new_y="NEXT")
            pdf.ln(2)
        if "code" in block:
            pdf.set_font("Courier", "", 8)
            pdf.multi_cell(0, 4.5, _latin(block["code"]), new_x="LMARGIN", new_y="NEXT")
        if block.get("rows"):
            _add_pdf_table(pdf, block["rows"])
    return bytes(pdf.output())


def _add_pdf_table(pdf: Any, rows: list[list[str]]) -> None:
    width = max(map(len, rows))
    pdf.set_font("Helvetica", "", 8)
    with pdf.table() as table:
        for row in rows:
            line = table.row()
            for each in [*row, *[""] * (width - len(row))]:
                line.cell(_latin(str(each)))
    pdf.ln(3)


def _latin(text: str) -> str:
    return text.translate(_PLAIN).encode("latin-1", "replace").decode("latin-1")


_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "xlsx": _write_xlsx,
    "docx": _write_docx,
    "pdf": _write_pdf,
}


def _main() -> NoReturn:
    order = json.loads(sys.stdin.buffer.readline())
    kind = order["format"]
    try:
        data = _WRITERS[kind](order["content"])
        answer = {"result": base64.b64encode(data).decode()}
    except Exception as error:  # noqa: BLE001 -- whatever a library raises is told, not printed
        words = f"{type(error).__name__}: {error}"[:300]
        answer = {"refused": f"It cannot be written as {kind}: {words}.", "field": "to"}
    sys.stdout.write(json.dumps(answer))
    sys.exit(0)


if __name__ == "__main__":
    _main()
