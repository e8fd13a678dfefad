"""Reads XLSX, DOCX and PDF: an order and the file on standard input, JSON on standard output."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, NoReturn

__all__: list[str] = []

_HEADINGS = {"Title": "#", **{f"Heading {level}": "#" * level for level in range(1, 7)}}


_ENTRIES_MAX = 10_000


class _Refused(Exception):
    """The file cannot be taken."""


def _check_archive(data: bytes, expanded_max: int) -> None:
    """Refuse an archive that expands to far more than any document does."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise _Refused(f"it is not a valid archive: {error}") from error
    if len(entries) > _ENTRIES_MAX or sum(each.file_size for each in entries) > expanded_max:
        raise _Refused(f"it expands to more than {expanded_max:,} bytes")


def _read_xlsx(data: bytes, order: Mapping[str, Any]) -> dict[str, Any]:
    from openpyxl import load_workbook

    _check_archive(data, order["expanded_max"])
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    names = book.sheetnames
    wanted = order.get("sheet")
    if wanted is not None and wanted not in names:
        raise _Refused(f"it has no sheet {wanted!r}; there are {', '.join(names)}")
    name = wanted or names[0]
    rows: list[list[Any]] = []
    for row in book[name].iter_rows(values_only=True):
        cells = [_cell(each) for each in row]
        while cells and cells[-1] is None:
            cells.pop()
        rows.append(cells)
        if len(rows) > order["rows_max"]:
            raise _Refused(f"the sheet has more than {order['rows_max']:,} rows")
    while rows and not rows[-1]:
        rows.pop()
    width = max(map(len, rows), default=0)
    return {
        "sheet": name,
        "sheets": names,
        "rows": [row + [None] * (width - len(row)) for row in rows],
    }


def _cell(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _read_docx(data: bytes, order: Mapping[str, Any]) -> dict[str, Any]:
    import docx
    from docx.table import Table

    _check_archive(data, order["expanded_max"])
    document = docx.Document(io.BytesIO(data))
    blocks = [
        _table(each) if isinstance(each, Table) else _paragraph(each)
        for each in document.iter_inner_content()
    ]
    text = "\n\n".join(block for block in blocks if block)
    # Items of one list stand together.
    return {"text": text.replace("\n\n- ", "\n- ").replace("\n\n1. ", "\n1. ")}


def _paragraph(paragraph: Any) -> str:
    text = paragraph.text.strip()
    style = paragraph.style.name if paragraph.style is not None else ""
    if not text:
        return ""
    if style in _HEADINGS:
        return f"{_HEADINGS[style]} {text}"
    if style.startswith("List Bullet"):
        return f"- {text}"
    return f"1. {text}" if style.startswith("List Number") else text


def _table(table: Any) -> str:
    rows = [[cell.text.strip().replace("\n", " ") for cell in row.cells] for row in table.rows]
    return "\n".join(_markdown_rows(rows))


def _markdown_rows(rows: list[list[str]]) -> Iterator[str]:
    for at, row in enumerate(rows):
        cells = " | ".join(cell.replace("|", "\\|") for cell in row)
        yield f"| {cells} |"
        if at == 0:
            yield f"|{'---|' * len(row)}"


def _read_pdf(data: bytes, order: Mapping[str, Any]) -> dict[str, Any]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _Refused("it is locked by a password")
        pages: list[str] = []
        length = 0
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            length += len(pages[-1])
            if length > order["chars_max"]:
                raise _Refused(f"its text has more than {order['chars_max']:,} characters")
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _Refused(f"it cannot be read as PDF: {error}") from error
    text = "\n\n".join(each for each in pages if each)
    if not text:
        raise _Refused("it has no text, only images of pages")
    return {"text": text, "pages": len(pages)}


_READERS = {"xlsx": _read_xlsx, "docx": _read_docx, "pdf": _read_pdf}


def _read(data: bytes, order: Mapping[str, Any]) -> dict[str, Any]:
    found = _READERS[order["format"]](data, order)
    if len(found.get("text", "")) > order["chars_max"]:
        raise _Refused(f"its text has more than {order['chars_max']:,} characters")
    return found


def _main() -> NoReturn:
    order = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    kind = order["format"]
    try:
        answer: dict[str, Any] = {"result": _read(data, order)}
    except _Refused as error:
        answer = {"refused": f"`content` is not valid {kind}: {error}."}
    except MemoryError:
        answer = {"refused": f"`content` is a {kind} that takes too much memory."}
    except Exception as error:  # noqa: BLE001 -- libraries raise anything at files made to break them
        words = f"{type(error).__name__}: {error}"[:300]
        answer = {"refused": f"`content` is not valid {kind}: {words}."}
    sys.stdout.write(json.dumps(answer))
    sys.exit(0)


if __name__ == "__main__":
    _main()
