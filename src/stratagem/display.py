"""How results look in a Python session: a line or a small table, in a notebook as HTML.

Both are made from the fields of the dataclass, so that a new field or model needs nothing here.
Empty fields are left out, long values are cut, and a list of results becomes a table whose columns
are the fields that any of its rows has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

__all__ = ["DisplayableResult", "html_table"]

_ROWS_MAX: Final = 20
_CELL_CHARS_MAX: Final = 48
_VALUE_CHARS_MAX: Final = 200
# In a table these say little, and take the room of what does.
_ASIDE: Final = frozenset({"snippet"})
# Columns of values, where text is told from a number by its quotes.
_VALUES: Final = frozenset({"value", "before", "after", "base", "ours", "theirs"})


class DisplayableResult:
    """The base of what operations return: readable by `repr`, and as HTML in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        told, rows = _shown_fields(self), _rows(self)
        head = f"{type(self).__name__}({', '.join(f'{name}={each}' for name, each in told)})"
        if not rows:
            return head
        columns = _columns(rows)
        table = [columns, *([_cell(row, name) for name in columns] for row in rows[:_ROWS_MAX])]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        return "\n".join([head, *lines, *_note_of_more(rows, "  ")])

    def _repr_html_(self) -> str:
        from html import escape

        told, rows = _shown_fields(self), _rows(self)
        head = " · ".join(f"{escape(name)} <b>{escape(each)}</b>" for name, each in told)
        title = f"<div><code>{escape(type(self).__name__)}</code> {head}</div>"
        if not rows:
            return title
        columns = _columns(rows)
        cells = [[_cell(row, name) for name in columns] for row in rows[:_ROWS_MAX]]
        more = "".join(f"<div>{escape(each)}</div>" for each in _note_of_more(rows, ""))
        return title + html_table(columns, cells) + more


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; whatever its cells hold is text."""
    # For notebooks alone: nothing else waits for its tables of characters.
    from html import escape

    head = "".join(f"<th>{escape(each)}</th>" for each in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left">{escape(each)}</td>' for each in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown_fields(result: Any) -> list[tuple[str, str]]:
    """Return the fields of a result that say something, but for its rows."""
    shown = []
    for each in fields(result):
        value = getattr(result, each.name)
        if _is_rows(value):
            shown.append((each.name, str(len(value))))
        elif not _is_empty(value):
            shown.append((each.name, _shorten(repr(value), _VALUE_CHARS_MAX)))
    return shown


def _rows(result: Any) -> list[Any]:
    """Return the list of results that a result holds: the first of its lists."""
    held = (getattr(result, each.name) for each in fields(result))
    return next((list(each) for each in held if _is_rows(each)), [])


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_result, value))


def _is_result(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _columns(rows: Sequence[Any]) -> list[str]:
    """Return the fields that any of the rows has something in."""
    names = dict.fromkeys(each.name for row in rows for each in fields(row))
    return [
        name
        for name in names
        if name not in _ASIDE and any(_says(getattr(row, name, None)) for row in rows[:_ROWS_MAX])
    ]


def _cell(row: Any, name: str) -> str:
    value = getattr(row, name, None)
    if _is_empty(value):
        return ""
    if isinstance(value, str) and name not in _VALUES:
        return _shorten(value, _CELL_CHARS_MAX)
    return _shorten(repr(value), _CELL_CHARS_MAX)


def _shorten(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def _is_empty(value: Any) -> bool:
    """Whether a value says nothing; a zero and a False do."""
    return value is None or (isinstance(value, str | list | dict | tuple) and not value)


def _says(value: Any) -> bool:
    """Whether a value is worth a column: one that is False in every row is not."""
    return value is not False and not _is_empty(value)


def _note_of_more(rows: Sequence[Any], indent: str) -> list[str]:
    left = len(rows) - _ROWS_MAX
    return [f"{indent}… {left} more"] if left > 0 else []
