"""Rows: what CSV, Markdown tables and HTML tables have in common with JSON."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, Final

from stratagem import limits

__all__ = ["TableFault", "csv_text", "from_csv", "is_tabular", "objects", "rows_of", "scalar_text"]

_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][-+]?\d{1,3})?")
_WORDS: Final[dict[str, Any]] = {"": None, "true": True, "false": False}


class TableFault(ValueError):
    """The text is not a table, or the value cannot be one."""


def is_tabular(value: Any) -> bool:
    """Tell whether a value is a list of flat objects, or of flat lists."""
    if not isinstance(value, list) or not value:
        return False
    for kind in (dict, list):
        if all(isinstance(row, kind) for row in value):
            cells = (row.values() if isinstance(row, dict) else row for row in value)
            return not any(isinstance(cell, dict | list) for row in cells for cell in row)
    return False


def rows_of(value: Any) -> tuple[list[str] | None, list[list[Any]]]:
    """Return the header, if there is one, and the rows of a value.

    Raises:
        TableFault: It is no list of flat objects or lists.
    """
    value = [value] if isinstance(value, dict) else value
    if value == []:
        return None, []
    if not is_tabular(value):
        raise TableFault("it is not a list of flat objects or lists")
    if isinstance(value[0], list):
        return None, value
    header = list(dict.fromkeys(name for row in value for name in row))
    return header, [[row.get(name) for name in header] for row in value]


def objects(rows: list[list[str]], *, header: bool, infer: bool) -> list[Any]:
    """Return rows of text as objects, named by the first row, or as lists.

    Raises:
        TableFault: A row has more or fewer cells than the header, or a name stands twice.
    """
    read = _infer_cell if infer else str
    if not header:
        return [[read(cell) for cell in row] for row in rows]
    if not rows:
        return []
    names, *rest = rows
    if len(set(names)) < len(names):
        raise TableFault("two columns have the same name")
    for number, row in enumerate(rest, start=2):
        if len(row) != len(names):
            raise TableFault(f"row {number} has {len(row)} cells, and the header {len(names)}")
    return [{name: read(cell) for name, cell in zip(names, row, strict=True)} for row in rest]


def from_csv(text: str, *, delimiter: str, header: bool, infer: bool) -> list[Any]:
    """Read CSV.

    Raises:
        TableFault: It is none.
    """
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise TableFault(str(error)) from error
    return objects(rows, header=header, infer=infer)


def csv_text(value: Any, *, delimiter: str) -> str:
    """Write a value as CSV.

    Raises:
        TableFault: It is no table.
    """
    header, rows = rows_of(value)
    target = io.StringIO()
    writer = csv.writer(target, delimiter=delimiter, lineterminator="\n")
    writer.writerows([] if header is None else [header])
    writer.writerows([scalar_text(cell) for cell in row] for row in rows)
    return target.getvalue()


def scalar_text(value: Any) -> str:
    """Return a value that is no object or list as the text of a cell or an element."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _infer_cell(text: str) -> Any:
    """Return a cell as the number or word that it would be written as again, else as text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and limits.INTEGER_MIN <= int(text) <= limits.INTEGER_MAX:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
