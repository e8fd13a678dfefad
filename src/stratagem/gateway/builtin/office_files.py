"""XLSX, DOCX and PDF: read in a process of their own, which is killed when it takes too long.

All three are containers that can be made to expand without end (archives in archives, cells by the
million, references to themselves), so they are never opened in the server's own process.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.errors import ToolUnavailable
from stratagem.gateway.handlers.child_processes import run_worker

__all__ = ["OfficeFormat", "read_file", "read_text", "write_file"]

OfficeFormat = Literal["xlsx", "docx", "pdf"]

_READER: Final = Path(__file__).parent / "workers" / "office_reader.py"
_WRITER: Final = Path(__file__).parent / "workers" / "office_writer.py"
_PACKAGES: Final = {"xlsx": "openpyxl", "docx": "docx", "pdf": "pypdf"}
_SECONDS_MAX: Final = limits.DOCUMENT_SECONDS_MAX


async def read_file(
    data: bytes, format_: OfficeFormat, *, seconds: float, sheet: str | None = None
) -> dict[str, Any]:
    """Return what a file holds: `{"text": …}` of a document, `{"sheet": …, "rows": …}` of a table.

    Raises:
        ToolUnavailable: The library that reads it is not installed.
        ValidationFailed: It is no such file, is locked by a password, or expands to too much.
        ExecutionTimeout: It takes too long.
    """
    _require(format_)
    order = {
        "format": format_,
        "sheet": sheet,
        "chars_max": limits.CONVERTED_CHARS_MAX,
        "expanded_max": limits.DOCUMENT_EXPANDED_BYTES_MAX,
        "rows_max": limits.DOCUMENT_ROWS_MAX,
    }
    found: dict[str, Any] = await run_worker(
        _READER, order, data=data, seconds=min(seconds, _SECONDS_MAX)
    )
    return found


async def read_text(data: bytes, format_: OfficeFormat, *, seconds: float) -> str:
    """Return the text of a document, as Markdown where it has headings and tables."""
    return str((await read_file(data, format_, seconds=seconds))["text"])


async def write_file(content: Any, format_: OfficeFormat, *, seconds: float) -> bytes:
    """Return a file: rows as XLSX, blocks of a document as DOCX or PDF."""
    import base64

    _require(format_, writes=True)
    order = {"format": format_, "content": content}
    made: str = await run_worker(
        _WRITER,
        order,
        seconds=min(seconds, _SECONDS_MAX),
        # The library for XLSX writes each sheet to a temporary file first.
        file_bytes_max=limits.DOCUMENT_EXPANDED_BYTES_MAX,
    )
    return base64.b64decode(made)


def _require(format_: OfficeFormat, *, writes: bool = False) -> None:
    package = "fpdf" if writes and format_ == "pdf" else _PACKAGES[format_]
    if find_spec(package) is None:
        raise ToolUnavailable(
            f"{format_} needs {package}, which is not installed.",
            hint="Install it: pip install 'stratagem[catalogue]'",
        )
