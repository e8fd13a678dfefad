"""The SQL of this store, read from its files and fitted to a lineage.

A statement that reads through a lineage has one arm for each branch in it. The arms come
from fragments in `queries.sql`; only their number and their parameter numbers are decided
here, so each depth is prepared once and then reused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

__all__ = ["SQL", "migrations", "script", "statement"]

_FILES = resources.files(__package__) / "sql"
_NAMED = re.compile(
    r"^-- name: (\w+)\n((?:--[^\n]*\n)+)(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL
)


def script(name: str) -> str:
    """Return a file of statements that are run together."""
    return (_FILES / name).read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    """Return the numbered changes to the log's tables, in order."""
    names = sorted(path.name for path in (_FILES / "migrations").iterdir())
    return [(int(name[:4]), script(f"migrations/{name}")) for name in names if name[:4].isdigit()]


# On one line: the driver hashes and compares the text each time it looks a statement up.
SQL: dict[str, str] = {
    name: " ".join(body.split()) for name, _purpose, body in _NAMED.findall(script("queries.sql"))
}


@cache
def statement(
    name: str,
    depth: int,
    first: int,
    *,
    subject: str = "",
    spaces: bool = False,
    tags: bool = False,
) -> str:
    """Return a statement for lineages of one depth, whose cuts begin at parameter `first`."""
    text = SQL[name]
    if "{visible}" in text:
        text = text.replace("{visible}", SQL["visible"])
    text = text.replace("{arms}", _arms(depth, first))
    probes = _probes(subject, depth, first)
    # Of one branch there is nothing to choose from.
    text = text.replace("coalesce(NULL, {probes})", probes if depth == 1 else f"coalesce({probes})")
    text = text.replace("{probes}", probes)
    text = text.replace("{spaces}", SQL["spaces_filter"] if spaces else "")
    return text.replace("{tags}", SQL["tags_filter"] if tags else "")


def _probes(subject: str, depth: int, first: int) -> str:
    return ", ".join(
        SQL["probe"].format(subject=subject, branch=f"?{at}", limit=f"?{at + 1}")
        for at in range(first, first + 2 * depth, 2)
    )


def _arms(depth: int, first: int) -> str:
    probes = _probes("v.subject", depth, first)
    return "\n".join(
        SQL["own" if at == first else "borrowed"].format(
            branch=f"?{at}", limit=f"?{at + 1}", probes=probes
        )
        for at in range(first, first + 2 * depth, 2)
    )
