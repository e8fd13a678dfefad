"""What branches changed, in any database that speaks SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import orjson

from stratagem.engine.ancestry import Vector
from stratagem.engine.events import Space
from stratagem.engine.lineage import Cut, Lineage
from stratagem.storage.contract import ComparedSubject, ShownVersion, StreamEvent, VersionOrigin
from stratagem.storage.relational.session import NUMBER, Queries, Shape
from stratagem.storage.relational.verification import verified_version

__all__ = ["SqlChanges"]

_THREE_NUMBERS = Shape[tuple[int, int, int]]()
_VERSION_ORIGIN_ROW = Shape[tuple[int, int, int | None, int | None]]()

_COMPARED_ROW = Shape[ComparedSubject]()
_SHOWN_ROW = Shape[tuple[int, int, int, bool, int | None]]()

# A content row, after its branch, its origin and its space.
_STREAM_ROW = Shape[tuple[
    int, int | None, str, str, int, int, str, bytes | None, str, bytes | None, bytes
]]()  # fmt: skip


class SqlChanges:
    """See `stratagem.storage.contract.ChangeReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def compared_subjects(self, cut: Cut, after: int, other: Lineage) -> list[ComparedSubject]:
        return self._queries.rows_through(
            _COMPARED_ROW, "compared_subjects", other, cut.branch, after, cut.limit,
            subject="v.subject",
        )  # fmt: skip

    def shown_versions(
        self, lineage: Lineage, subjects: Sequence[int]
    ) -> dict[int, tuple[int, ShownVersion]]:
        rows = self._queries.rows_through(
            _SHOWN_ROW, "shown_versions", lineage, self._queries.array(subjects), subject="w.value"
        )
        return {row[0]: (row[1], row[2:]) for row in rows}

    def subjects(self, cut: Cut, after: int) -> list[int]:
        rows = self._queries.rows(NUMBER, "changed_subjects", cut.branch, after, cut.limit)
        return [row[0] for row in rows]

    def expired_subjects(self, after: int, upto: int) -> list[int]:
        rows = self._queries.rows(NUMBER, "expired_subjects", after, upto)
        return [row[0] for row in rows]

    def last_expiry(self, time: int) -> int | None:
        return self._queries.value(int, "last_expiry", time)

    def stream_events(self, cut: Cut, after: int) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        for row in self._queries.rows(_STREAM_ROW, "changed_stream", cut.branch, after, cut.limit):
            branch, origin, space = row[0], row[1], Space(row[2], row[3])
            version = verified_version(row[4:], space, None)
            found.append(
                StreamEvent(version.sequence, branch, version.kind, origin, space, version.payload)
            )
        return found

    def known_versions(self, subjects: Sequence[int], vector: Vector) -> dict[int, list[Cut]]:
        rows = self._queries.rows(
            _THREE_NUMBERS, "known_versions", self._queries.array(subjects), _vector_json(vector)
        )
        found: dict[int, list[Cut]] = defaultdict(list)
        for subject, branch, sequence in rows:
            found[subject].append(Cut(branch, sequence))
        return found

    def doubtful_versions(
        self, sequences: Sequence[int], known: Vector, covering: Vector
    ) -> set[int]:
        vectors = _vector_json(known), _vector_json(covering)
        array = self._queries.array(sequences)
        return {row[0] for row in self._queries.rows(NUMBER, "doubtful_versions", array, *vectors)}

    def versions_of(self, subject: int) -> list[VersionOrigin]:
        rows = self._queries.rows(_VERSION_ORIGIN_ROW, "versions_of", subject)
        return [VersionOrigin(*row) for row in rows]


def _vector_json(vector: Vector) -> str:
    return orjson.dumps(vector, option=orjson.OPT_NON_STR_KEYS).decode()
