"""Figures, and how they are shown and kept."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw
import orjson
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["Figure", "report", "save", "seconds"]

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. `passed` is None where nothing is promised."""

    row: str
    case: str
    size: int
    ours: float
    unit: str
    plain: float | None = None
    promise: str = ""
    cpu_ratio: float | None = None
    passed: bool | None = None
    beside: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as much as the yardstick; for a rate, how many times as slow."""
        if not self.plain or self.unit == "chars":
            return None
        return self.plain / self.ours if self.unit == "/s" else self.ours / self.plain


def seconds(value: float) -> str:
    """Write a duration in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def report(figures: Sequence[Figure]) -> RenderableType:
    """Return the figures as a table, promise beside measurement, and the notes below it."""
    beside = any(figure.beside is not None for figure in figures)
    table = Table(title="Promises, and what was measured", title_justify="left")
    table.add_column("work")
    table.add_column("entries", justify="right", no_wrap=True)
    for column in ("ours", "plain", "ratio", "of CPU", *(("stratadb",) if beside else ())):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("promise")
    table.add_column("", no_wrap=True)
    last = figures[0].row if figures else ""
    for figure in figures:
        if figure.row != last:
            table.add_section()
            last = figure.row
        table.add_row(*_cells(figure, beside=beside))
    return Group(table, *(Text(note, style="dim") for note in _notes(figures)))


def save(figures: Sequence[Figure]) -> Path:
    """Write the figures and the machine they were measured on to a file."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    document = {
        "at": now.isoformat(timespec="seconds"),
        "machine": _machine(),
        "figures": [asdict(figure) | {"ratio": figure.ratio} for figure in figures],
    }
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return path


def _cells(figure: Figure, *, beside: bool) -> list[str]:
    cells = [
        f"{figure.row}: {figure.case}",
        f"{figure.size:,}" if figure.size else "",
        _value(figure.ours, figure.unit),
        _value(figure.plain, figure.unit),
        _times(figure.ratio),
        _times(figure.cpu_ratio),
    ]
    if beside:
        cells.append(_value(figure.beside, figure.unit))
    return [*cells, figure.promise, _verdict(figure)]


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s":
        return seconds(value)
    return f"{value:,.0f}{unit}" if unit == "/s" else f"{value:,.0f} {unit}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f} ×"


def _verdict(figure: Figure) -> str:
    if figure.passed is None:
        return ""
    return "[green]passed[/green]" if figure.passed else "[red]missed[/red]"


def _notes(figures: Sequence[Figure]) -> list[str]:
    notes = [f"{figure.row}: {figure.note}" for figure in figures if figure.note]
    if any(figure.beside is not None for figure in figures):
        notes.append("stratadb: as it opens by default, without an index of texts")
    return list(dict.fromkeys(notes))


def _machine() -> dict[str, object]:
    return {
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
