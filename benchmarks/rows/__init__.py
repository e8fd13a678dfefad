"""One row for each promise, by name, in the order in which they are measured."""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Row
from benchmarks.rows import (
    branching,
    debugging,
    gateway,
    hooks,
    opening,
    protocol,
    recalling,
    searching,
    storing,
    vectors,
)

__all__ = ["ROWS"]

ROWS: Final[dict[str, Row]] = {
    row.name: row
    for row in (
        recalling.ROW,
        storing.STORE,
        storing.BULK,
        branching.FORK,
        branching.DIFF,
        branching.MERGE,
        searching.SEARCH,
        searching.LEXICAL,
        vectors.ROW,
        hooks.HOOKS,
        opening.OPEN,
        opening.MEMORY,
        protocol.ROW,
        debugging.ROW,
        gateway.ROW,
    )
}
