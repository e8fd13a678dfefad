"""The SQL of a store, read from its files and fitted to a lineage.

A statement that reads through a lineage has one arm for each branch in it. The arms come
from fragments in `queries.sql`; only their number and their parameter numbers are decided
here, so each depth is prepared once and then reused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

__all__ = ["Statements"]

_NAMED = re.compile(
    r"^-- name: (\w+)\n((?:--[^\n]*\n)+)(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL
)


class Statements:
    """The statements of one kind of store.

    `mark` is what its parameters begin with, and `shift` how many of them the store puts
    before those that the shared code counts.
    """

    def __init__(self, package: str, *, mark: str, shift: int = 0) -> None:
        # `importlib.resources` would do as well, and takes longer to import than the SQL to read.
        self._files = Path(import_module(package).__path__[0]) / "sql"
        self._mark = mark
        self._shift = shift
        # On one line: the driver hashes and compares the text each time it looks one up.
        self.queries: dict[str, str] = {
            name: " ".join(body.split())
            for name, _purpose, body in _NAMED.findall(self.script("queries.sql"))
        }
        self.statement = cache(self._fit)

    def script(self, name: str) -> str:
        """Return a file of statements that are run together."""
        return (self._files / name).read_text("utf-8")

    def migrations(self) -> list[tuple[int, str]]:
        """Return the numbered changes to the tables, in order."""
        names = sorted(path.name for path in (self._files / "migrations").iterdir())
        return [
            (int(name[:4]), self.script(f"migrations/{name}"))
            for name in names
            if name[:4].isdecimal()
        ]

    def parameter(self, place: int) -> str:
        """Return a parameter as the statements write it."""
        return f"{self._mark}{place + self._shift}"

    def _fit(
        self,
        name: str,
        depth: int,
        first: int,
        *,
        subject: str = "",
        spaces: bool = False,
        tags: bool = False,
    ) -> str:
        """Return a statement for lineages of one depth, whose cuts begin at parameter `first`."""
        sql = self.queries
        text = sql[name]
        if "{visible}" in text:
            text = text.replace("{visible}", sql["visible"])
        text = text.replace("{arms}", self._arms(depth, first))
        probes = self._probes(subject, depth, first)
        # Of one branch there is nothing to choose from.
        chosen = probes if depth == 1 else f"coalesce({probes})"
        text = text.replace("coalesce(NULL, {probes})", chosen)
        text = text.replace("{probes}", probes)
        text = text.replace("{spaces}", sql["spaces_filter"] if spaces else "")
        return text.replace("{tags}", sql["tags_filter"] if tags else "")

    def _probes(self, subject: str, depth: int, first: int) -> str:
        return ", ".join(
            self.queries["probe"].format(
                subject=subject, branch=self.parameter(at), limit=self.parameter(at + 1)
            )
            for at in range(first, first + 2 * depth, 2)
        )

    def _arms(self, depth: int, first: int) -> str:
        probes = self._probes("v.subject", depth, first)
        return "\n".join(
            self.queries["own" if at == first else "borrowed"].format(
                branch=self.parameter(at), limit=self.parameter(at + 1), probes=probes
            )
            for at in range(first, first + 2 * depth, 2)
        )
