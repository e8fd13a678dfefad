"""Reading a log in PostgreSQL: the shared reader, ranking by BM25, and pgvector."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from stratagem.engine.lineage import View
from stratagem.storage.contract import Found, VectorRow
from stratagem.storage.postgres.connection import StoredVector
from stratagem.storage.postgres.statements import SQL, STATEMENTS, statement
from stratagem.storage.postgres.texts import asked, query
from stratagem.storage.relational.reading import Held, Names, SqlReader

__all__ = ["VECTOR_INDEX", "Held", "Names", "PostgresReader"]

# The setting that says for how many dimensions the workspace has an index of its own.
VECTOR_INDEX = "vector_index"


class PostgresReader(SqlReader):
    """See `stratagem.storage.contract.Reader`."""

    statements = STATEMENTS
    _session: Any

    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int,
    ) -> list[Found]:
        terms = asked(expression)
        if not terms:
            return []
        sql = _matches(len(view.lineage), len(terms), spaces=spaces is not None, tags=bool(tags))
        parameters = (
            view.time,
            limit,
            *_filters(spaces, tags),
            query(self._session.workspace, terms),
            *map(float, weights),
            *view.lineage.numbers,
            *terms,
        )
        return [Found(*row) for row in self._execute(sql, parameters)]

    def term_documents(self, term: str) -> int:
        return int(self._one("term_documents", query(self._session.workspace, [term])))

    def text_count(self) -> int:
        return self._one("text_totals") or 0

    def vectors_after(self, last: int, limit: int) -> list[VectorRow]:
        rows = self._session.execute(self._sql["vectors_after"], (last, limit), binary=True)
        return [
            VectorRow(number, at, branch, space, to, _stored(vector))
            for number, at, branch, space, to, vector in rows
        ]

    def nearest(
        self,
        view: View,
        query: bytes,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> list[Found]:
        filters = {"spaces": spaces is not None, "tags": bool(tags)}
        vector = StoredVector(query)
        parameters = (view.time, depth, *_filters(spaces, tags), vector, *view.lineage.numbers)
        dimensions = len(vector) // 4
        if self.setting(VECTOR_INDEX) == dimensions:
            sql = statement("nearest_indexed", len(view.lineage), 7, **filters)
            sql = sql.replace("{workspace}", str(self._session.workspace))
            sql = sql.replace("{dimensions}", str(dimensions))
            found = [Found(*row) for row in self._execute(sql, parameters)]
            if len(found) >= depth:
                return found
            # The filters leave little: the index gave up looking for it, and comparing is quick.
        sql = statement("nearest_exact", len(view.lineage), 7, **filters)
        return [Found(*row) for row in self._execute(sql, parameters)]

    def cosines(self, sequences: Sequence[int], query: bytes) -> dict[int, float]:
        rows = self._execute(self._sql["cosines"], (list(sequences), StoredVector(query)))
        return dict(rows)

    @staticmethod
    def _array(items: Sequence[Any]) -> list[Any]:
        return list(items)


@cache
def _matches(depth: int, terms: int, *, spaces: bool, tags: bool) -> str:
    """Return the statement that ranks texts by some number of terms."""
    sql = statement("matches", depth, 10, spaces=spaces, tags=tags)
    first = 10 + 2 * depth
    numbers = range(terms)
    frequencies = (
        SQL["term_frequency"].format(number=at, term=STATEMENTS.parameter(first + at))
        for at in numbers
    )
    rarities = (SQL["term_rarity"].format(number=at) for at in numbers)
    scores = (
        SQL["term_score"].format(number=at, weight=SQL["term_weight"].format(number=at))
        for at in numbers
    )
    sql = sql.replace("{frequencies}", ", ".join(frequencies))
    sql = sql.replace("{rarities}", ", ".join(rarities))
    return sql.replace("{score}", " + ".join(scores))


def _filters(spaces: Sequence[int] | None, tags: Sequence[str]) -> tuple[Any, Any, int]:
    """Return the parameters of the filters; a number where there is none, which has a type."""
    wanted = sorted(set(tags))
    return (0 if spaces is None else list(spaces), wanted or 0, len(wanted))


def _stored(sent: bytes) -> bytes:
    """Return a vector as this machine keeps it, from the form that pgvector sends it in."""
    count = (len(sent) - 4) // 4
    return StoredVector(struct.pack(f"={count}f", *struct.unpack(f">4x{count}f", sent)))
