"""What an evaluation is, and what it answers with.

A suite reads its part of the data, asks the product through its public interface and returns
figures. A figure with a threshold decides whether the suite passed. New suites join the table
in `__main__`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

__all__ = ["DataMissing", "Figure", "Options", "Outcome", "Suite", "need"]


class DataMissing(Exception):
    """The data of a suite is not there."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked for."""

    data: Path
    form: str = "message"
    compare: bool = False
    size: int = 100_000
    png: Path | None = None
    half: str = "report"
    save: Path | None = None
    against: Path | None = None
    embedder: str = "static"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, and what it must not fall below, or must not exceed."""

    name: str
    value: float
    threshold: float | None = None
    most: float | None = None

    @property
    def passed(self) -> bool:
        """Whether it is where it should be."""
        enough = self.threshold is None or self.value >= self.threshold
        return enough and (self.most is None or self.value <= self.most)

    @property
    def wanted(self) -> str:
        """What it should be, in words."""
        if self.threshold is not None:
            return f"at least {self.threshold:g}"
        return "" if self.most is None else f"at most {self.most:g}"


@dataclass(slots=True)
class Outcome:
    """What a suite found."""

    figures: list[Figure]
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every figure is where it should be."""
        return all(figure.passed for figure in self.figures)


@dataclass(frozen=True, slots=True)
class Suite:
    """One evaluation."""

    name: str
    about: str
    run: Callable[[Options], Outcome]


def need(path: Path) -> Path:
    """Return a path that is there."""
    if not path.exists():
        raise DataMissing(
            f"There is no evaluation data at {path}. Name the folder that holds it with --data."
        )
    return path
