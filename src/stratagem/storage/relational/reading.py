"""Reading a log in a database that speaks SQL: every look-up the systems need.

One statement each. The statements are the store's own (`statements`), alike in what they take
and give; what only one store can do lies in its own reader.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Sequence
from typing import Any, ClassVar

import numpy as np
import orjson
from numpy.typing import NDArray

from stratagem.engine.ancestry import Vector
from stratagem.engine.events import GENESIS, Head, Space
from stratagem.engine.lineage import OPEN_END, Branch, Cut, Lineage, View, trace
from stratagem.engine.records import FACET_MARK, Kinds
from stratagem.errors import DatabaseCorrupt, ValidationFailed
from stratagem.storage.contract import (
    Found,
    Hit,
    Record,
    Remembered,
    StreamEvent,
    VectorRow,
    Version,
)
from stratagem.storage.outbox import Registration
from stratagem.storage.relational.cataloguing import SqlCatalogue
from stratagem.storage.relational.outboxing import SqlOutboxReader
from stratagem.storage.relational.sessions import Session
from stratagem.storage.relational.verification import missing, verify

__all__ = ["Held", "Names", "SqlReader"]


# Of a row that is a tuple already; calling the class takes it apart and puts it together again.
_new = tuple.__new__


class Names:
    """What never changes once it is committed, kept between reads.

    A space keeps its number and a branch its place for the life of the database, so other
    processes can add to these but never make them wrong.
    """

    def __init__(self) -> None:
        self.spaces: dict[Space, int] = {}
        self.branches: dict[int, Branch] = {}

    def forget(self) -> None:
        """Forget everything: some of it was undone."""
        self.spaces.clear()
        self.branches.clear()


class Held(Names):
    """What a writer knows besides, for as long as nobody else can write."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {}
        self.tallies: dict[tuple[int, str], int] = {}
        self.subject_last: int | None = None
        self.named: dict[str, Branch] = {}
        self.projections: list[Registration] | None = None

    def forget(self) -> None:
        super().forget()
        self.settings.clear()
        self.tallies.clear()
        self.subject_last = None
        self.named.clear()
        self.projections = None


class SqlReader(SqlCatalogue, SqlOutboxReader):
    """See `stratagem.storage.contract.Reader`.

    `faults` are errors of the driver that single look-ups have to translate, because no
    snapshot around them does.
    """

    faults: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, session: Session, kinds: Kinds, names: Names) -> None:
        self._session = session
        # The driver's rows are tuples of anything; the statements say what is in them.
        self._execute: Any = session.execute
        self._sql = self.statements.queries
        self._fit = self.statements.statement
        self._names = names
        self.kinds = kinds

    def head(self) -> Head:
        row = self._execute(self._sql["head"]).fetchone()
        return Head(*row) if row else Head(0, 0, GENESIS)

    def branch(self, name: str) -> Branch | None:
        row = self._execute(self._sql["branch_by_name"], (name,)).fetchone()
        return Branch(*row) if row else None

    def branch_by_id(self, branch: int) -> Branch:
        """Return a branch as it was first read: only whether it is deleted may be stale."""
        known = self._names.branches.get(branch)
        if known is None:
            row = self._execute(self._sql["branch_by_id"], (branch,)).fetchone()
            if row is None:
                raise DatabaseCorrupt(f"The branch {branch} is referred to, but not there.")
            known = self._names.branches[branch] = Branch(*row)
        return known

    def deleted_branch(self, name: str) -> Branch | None:
        row = self._execute(self._sql["branch_deleted"], (name,)).fetchone()
        return Branch(*row) if row else None

    def branches(self) -> list[Branch]:
        return [Branch(*row) for row in self._execute(self._sql["branches"])]

    def branch_count(self) -> int:
        return int(self._one("branch_count"))

    def lineage(self, branch: Branch, limit: int = OPEN_END) -> Lineage:
        return trace(branch, self.branch_by_id, limit)

    def sequence_at(self, at: int) -> int:
        return self._one("sequence_at", at) or 0

    def end_of(self, sequence: int) -> int | None:
        at = self.time_of(sequence)
        return None if at is None else self.sequence_at(at)

    def time_of(self, sequence: int) -> int | None:
        at: int | None = self._one("time_of", sequence)
        return at

    def wall_of(self, sequence: int) -> int | None:
        wall: int | None = self._one("wall_of", sequence)
        return wall

    def sequence_ahead(self, wall: int) -> int | None:
        sequence: int | None = self._one("sequence_ahead", wall)
        return sequence

    def hash_of(self, sequence: int) -> bytes | None:
        found: bytes | None = self._one("hash_of", sequence)
        return found

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        try:
            number = self._names.spaces.get(space) or self.space_id(space)
            if number is None:
                return None
            row = self._execute(
                self._fit("recall", len(lineage), 3, subject="s.id"),
                (number, key, *lineage.numbers),
            ).fetchone()
        except self.faults as error:
            raise self._translation(error) from error
        if row is None:
            return None
        verify(row, space, key)
        if row[2] in self.kinds.deletions or row[3] is None:
            return None
        return _new(Version, row[:5])

    def current_many(self, lineage: Lineage, subjects: Sequence[int]) -> dict[int, Record]:
        rows = self._execute(
            self._fit("current_many", len(lineage), 2, subject="s.id"),
            (self._array(subjects), *lineage.numbers),
        )
        found = {}
        for subject, kind, namespace, key, *row in rows:
            space = Space(kind, namespace)
            version = _version(row, space, key)
            if version.kind not in self.kinds.deletions and version.payload is not None:
                found[subject] = Record(subject, space, key, version)
        return found

    def names(self, subjects: Sequence[int]) -> dict[int, tuple[Space, str]]:
        rows = self._execute(self._sql["subject_names"], (self._array(subjects),))
        return {row[0]: (Space(row[1], row[2]), row[3]) for row in rows}

    def history(
        self, lineage: Lineage, space: Space, key: str, *, before: int, limit: int
    ) -> list[Version]:
        number = self.space_id(space)
        found: list[Version] = []
        for branch, end in lineage:
            if number is not None and len(found) < limit:
                parameters = (number, key, branch, min(end, before - 1), limit - len(found))
                rows = self._execute(self._sql["history"], parameters)
                found += [_version(row, space, key) for row in rows]
        return found

    def records(
        self, lineage: Lineage, space: Space, *, after: str = "", limit: int = 1000
    ) -> tuple[list[tuple[str, Version]], str | None]:
        sql = self._fit("records", len(lineage), 4, subject="s.id")
        rows = self._execute(sql, (self.space_id(space), after, limit, *lineage.numbers)).fetchall()
        found = [(row[0], _version(row[1:], space, row[0])) for row in rows]
        page = [
            (key, version)
            for key, version in found
            if version.kind not in self.kinds.deletions and version.payload is not None
        ]
        return page, rows[-1][0] if len(rows) == limit else None

    def stream(
        self, lineage: Lineage, space: Space, *, after: int = 0, limit: int = 1000
    ) -> list[Version]:
        number = self.space_id(space)
        found: list[Version] = []
        # The farthest ancestor has the oldest events: each branch begins after its fork.
        for branch, end in reversed(lineage):
            if number is not None and len(found) < limit and end > after:
                parameters = (branch, after, end, number, limit - len(found))
                rows = self._execute(self._sql["stream"], parameters)
                found += [_version(row, space, None) for row in rows]
        return [version for version in found if version.payload is not None]

    def spaces(self, kind: str | None = None) -> dict[int, Space]:
        return {
            number: Space(of, namespace)
            for number, of, namespace in self._execute(self._sql["spaces"])
            if kind is None or of == kind
        }

    def span(self, lineage: Lineage) -> tuple[Cut, Cut] | None:
        firsts = [self._row("first_event", cut.branch, cut.limit) for cut in lineage]
        lasts = [self._row("last_event", cut.branch, cut.limit) for cut in lineage]
        first, last = (
            min(filter(None, firsts), default=None),
            max(filter(None, lasts), default=None),
        )
        return (Cut(*first), Cut(*last)) if first and last else None

    def tally(self, view: View, kind: str) -> int:
        expired = self._execute(
            self._fit("expired", len(view.lineage), 3), (view.time, kind, *view.lineage.numbers)
        ).fetchone()
        return self.tally_of(view.lineage, kind) - int(expired[0])

    def tally_of(self, lineage: Lineage, kind: str) -> int:
        """Return how many records of a kind a lineage shows, expired ones included."""
        for cut in lineage:
            live = self._one("tally", cut.branch, kind, cut.limit)
            if live is not None:
                return int(live)
        return 0

    @abstractmethod
    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int,
    ) -> list[Found]: ...

    @abstractmethod
    def text_count(self) -> int: ...

    def tallied(self, branch: int, kind: str, live: int) -> None:
        """Hear of a new tally; only a writer has a use for it."""

    def branch_changed(self) -> None:
        """Hear that a branch came or went; only a writer has a use for it."""

    def visible_among(self, view: View, sequences: Sequence[int]) -> set[int]:
        sql = self._fit("visible_among", len(view.lineage), 3)
        rows = self._execute(sql, (view.time, self._array(sequences), *view.lineage.numbers))
        return {row[0] for row in rows}

    def tagged(self, tags: Sequence[str]) -> NDArray[np.int64]:
        wanted = sorted(set(tags))
        rows = self._execute(self._sql["tagged"], (self._array(wanted), len(wanted)))
        return np.fromiter((row[0] for row in rows), np.int64)

    def faceted(
        self, view: View, facet: str, *, limit: int = -1, before: int = OPEN_END
    ) -> list[int]:
        sql = self._fit("faceted", len(view.lineage), 5)
        values = (view.time, FACET_MARK + facet, limit, before, *view.lineage.numbers)
        rows = self._execute(sql, values)
        return [row[0] for row in rows][::-1]

    def term_documents(self, term: str) -> int:
        return self._one("term_documents", term) or 0

    def hits(self, sequences: Sequence[int]) -> dict[int, Hit]:
        rows = self._execute(self._sql["hits"], (self._array(sequences),))
        found = {}
        for kind, namespace, key, *row in rows:
            space = Space(kind, namespace)
            verify(row, space, key)
            sequence, at, event, payload, actor, *_ = row
            found[sequence] = Hit(sequence, at, event, space, key, payload, actor)
        _refuse_missing(found, sequences)
        return found

    def changed_subjects(self, cut: Cut, after: int) -> list[int]:
        rows = self._execute(self._sql["changed_subjects"], (cut.branch, after, cut.limit))
        return [row[0] for row in rows]

    def changed_stream(self, cut: Cut, after: int) -> list[StreamEvent]:
        rows = self._execute(self._sql["changed_stream"], (cut.branch, after, cut.limit))
        found = []
        for branch, origin, kind, namespace, *row in rows:
            space = Space(kind, namespace)
            version = _version(row, space, None)
            event = (version.sequence, branch, version.kind, origin, space, version.payload)
            found.append(StreamEvent(*event))
        return found

    def branch_of(self, sequence: int) -> int:
        return int(self._one("branch_of", sequence))

    def known_versions(self, subjects: Sequence[int], vector: Vector) -> dict[int, list[Cut]]:
        found: dict[int, list[Cut]] = {}
        known = orjson.dumps(vector, option=orjson.OPT_NON_STR_KEYS).decode()
        for subject, branch, sequence in self._execute(
            self._sql["known_versions"], (self._array(subjects), known)
        ):
            found.setdefault(subject, []).append(Cut(branch, sequence))
        return found

    def payloads(self, sequences: Sequence[int]) -> dict[int, Version]:
        rows = self._execute(self._sql["payloads"], (self._array(sequences),))
        found = {}
        for kind, namespace, key, *row in rows:
            space = None if kind is None else Space(kind, namespace)
            found[row[0]] = _version(row, space, key)
        _refuse_missing(found, sequences)
        return found

    def knowledge(self, branch: int, sequence: int) -> Vector:
        merged = self._one("knows", branch, sequence)
        if merged is not None:
            known = {int(of): upto for of, upto in orjson.loads(merged).items()}
        else:
            parent, fork = self._parentage(branch)
            known = self.knowledge(parent, min(fork, sequence)) if parent is not None else {}
        return {**known, branch: sequence}

    def vectors_after(self, last: int, limit: int) -> list[VectorRow]:
        return [VectorRow(*row) for row in self._execute(self._sql["vectors_after"], (last, limit))]

    def superseded_after(self, sequence: int) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]]
        rows = self._execute(self._sql["superseded_after"], (sequence,)).fetchall()
        return rows

    def unembedded(self, limit: int) -> list[int]:
        try:
            return [row[0] for row in self._execute(self._sql["unembedded"], (limit,))]
        except self.faults as error:
            raise self._translation(error) from error

    def unembedded_count(self) -> int:
        return int(self._one("unembedded_count"))

    def vector_count(self) -> int:
        return int(self._one("vector_count"))

    def vector_last(self) -> int | None:
        last: int | None = self._one("vector_last")
        return last

    def requests(self, after: tuple[str, str], limit: int) -> list[Remembered]:
        rows = self._execute(self._sql["requests_after"], (*after, limit))
        return [Remembered(*row) for row in rows]

    def setting(self, name: str) -> Any:
        return self._one("setting", name)

    def log_page(self, after: int, limit: int) -> list[Any]:
        """Return some events after a sequence, each with the names and numbers it speaks of."""
        rows: list[Any] = self._execute(self._sql["log_page"], (after, limit)).fetchall()
        return rows

    def doomed(
        self, subject: int | None, sequence: int | None, sequences: Sequence[int] = ()
    ) -> list[int]:
        """Return the events that a purge erases: a subject's, or events with their copies."""
        if sequences:
            found = set(sequences)
        elif subject is not None:
            found = {row[0] for row in self._execute(self._sql["subject_events"], (subject,))}
        elif sequence is not None:
            row = self._execute(self._sql["origin_of"], (sequence,)).fetchone()
            if row is None:
                raise ValidationFailed(
                    f"No logged event has sequence {sequence}.", field="sequence", sequence=sequence
                )
            found = {row[0] or sequence}
        else:
            return []
        copies = self._execute(self._sql["copies"], (self._array(sorted(found)),))
        return sorted(found | {row[0] for row in copies})

    def _parentage(self, branch: int) -> tuple[int | None, int]:
        found = self.branch_by_id(branch)
        return found.parent, found.fork_sequence or 0

    def space_id(self, space: Space) -> int | None:
        known = self._names.spaces.get(space)
        if known is None:
            known = self._one("event_space", *space)
            if known is not None:
                self._names.spaces[space] = known
        return known

    def _row(self, name: str, *parameters: Any) -> Any:
        # Single look-ups are made outside of any snapshot, which would translate.
        try:
            return self._execute(self._sql[name], parameters).fetchone()
        except self.faults as error:
            raise self._translation(error) from error

    def _one(self, name: str, *parameters: Any) -> Any:
        row = self._row(name, *parameters)
        return row[0] if row else None

    def _translation(self, error: Exception) -> Exception:
        """Return our error for one of the driver's, where its session has not done so already."""
        return error

    @staticmethod
    @abstractmethod
    def _array(items: Sequence[Any]) -> Any:
        """Return items as the one parameter that the statements take them by."""


def _version(row: Sequence[Any], space: Space | None, key: str | None) -> Version:
    """Return a row of the log as a version, once it was found to be what was written."""
    verify(row, space, key)
    return Version(*row[:5])


def _refuse_missing(found: Container[int], sequences: Sequence[int]) -> None:
    """Refuse events that a read model refers to and the log does not have."""
    for sequence in sequences:
        if sequence not in found:
            raise missing(sequence)
