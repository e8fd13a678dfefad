"""Bringing the read models up to date with events.

The same code runs when an event is appended and when everything is rebuilt, so the two
cannot differ. Rows are gathered for a whole group of events and written together: one
event at a time costs several times as much.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from stratagem.engine.events import Space
from stratagem.engine.lineage import Branch, Lineage
from stratagem.engine.records import FACET_MARK, Link, Projection, Text
from stratagem.storage.contract import Document, Indexer
from stratagem.storage.relational.cataloguing import group_tally
from stratagem.storage.relational.reading import SqlReader
from stratagem.storage.relational.sessions import Session

__all__ = ["BRANCH_EVENTS", "Fact", "Projector"]

BRANCH_CREATED = "BranchCreated"
BRANCH_DELETED = "BranchDeleted"
BRANCH_RESTORED = "BranchRestored"
BRANCH_MERGED = "BranchMerged"
CONTENT_PURGED = "ContentPurged"
BRANCH_EVENTS = frozenset(
    {BRANCH_CREATED, BRANCH_DELETED, BRANCH_RESTORED, BRANCH_MERGED, CONTENT_PURGED}
)


class Fact(NamedTuple):
    """An event as the read models need it. `content` is None once it was purged."""

    sequence: int
    branch: int
    kind: str
    space_id: int | None
    space: Space | None
    subject: int | None
    key: str | None
    fresh: bool
    content: Mapping[str, Any] | None


class _Before(NamedTuple):
    """The version that a fact replaces."""

    sequence: int
    branch: int
    deleted: bool
    expires_at: int | None


class _Rows:
    """What a group of events adds to each table."""

    def __init__(self) -> None:
        self.versions: list[tuple[Any, ...]] = []
        self.superseded: list[tuple[int, int]] = []
        self.tags: list[tuple[str, int]] = []
        self.links: list[tuple[int, bool, str, float, int, int]] = []
        self.numbers: list[tuple[int, str, float, int]] = []
        self.turns: list[tuple[int, str, int, int]] = []
        self.texts: list[tuple[int, Text, list[str]]] = []


class Projector(ABC):
    """Writes what events mean into the read models."""

    def __init__(
        self,
        session: Session,
        reader: SqlReader,
        indexer: Indexer | None,
        *,
        embed: bool = True,
    ) -> None:
        self._embed = embed
        self._session = session
        self._reader = reader
        self._sql = reader.statements.queries
        self._indexer = indexer
        self._tallies: dict[tuple[int, str], int] = {}
        # Versions of the group at hand, which are not in the table yet.
        self._newest: dict[tuple[int, int], _Before] = {}

    def apply(self, facts: Sequence[Fact], wall: int) -> list[int | None]:
        """Bring the read models up to date; return the version each replaced that was visible.

        `wall` is what the clock says; it decides what has expired.
        """
        rows = _Rows()
        replaced = [self._project(fact, rows, wall) for fact in facts]
        self._write(rows)
        self._newest.clear()
        return replaced

    def end_transaction(self, sequence: int) -> None:
        """Record the tallies that the transaction ending at a sequence changed."""
        for (branch, kind), live in self._tallies.items():
            self._session.execute(self._sql["keep_tally"], (branch, kind, sequence, live))
            self._reader.tallied(branch, kind, live)
        self._tallies.clear()

    def _project(self, fact: Fact, rows: _Rows, wall: int) -> int | None:
        if fact.kind in BRANCH_EVENTS:
            self._project_branch(fact)
            return None
        if fact.space_id is None or fact.space is None:
            return None
        # A purged event leaves a version that shows nothing.
        meaning = (
            self._reader.kinds.project(fact.kind, fact.content, fact.key)
            if fact.content is not None
            else Projection(deleted=True)
        )
        before = self._replace(fact, meaning, rows)
        rows.versions.append(
            (fact.sequence, fact.subject, fact.branch, fact.space_id, meaning.deleted,
             meaning.expires_at)
        )  # fmt: skip
        if meaning.tags or meaning.facets:
            rows.tags += [(tag, fact.sequence) for tag in meaning.tags]
            rows.tags += [(FACET_MARK + facet, fact.sequence) for facet in meaning.facets]
        if meaning.links:
            rows.links += self._links(fact, meaning.links)
        if meaning.numbers:
            rows.numbers += [(fact.space_id, *number, fact.sequence) for number in meaning.numbers]
        if meaning.text is not None:
            self._index(fact, meaning, meaning.text, rows)
        if before is None or (before.expires_at is not None and before.expires_at <= wall):
            return None
        return before.sequence

    def _replace(self, fact: Fact, meaning: Projection, rows: _Rows) -> _Before | None:
        """Close the version that a fact replaces; return it if it was not a deletion."""
        assert fact.space is not None
        before = None if fact.subject is None or fact.fresh else self._version_before(fact)
        live = before if before and not before.deleted else None
        self._count(fact.branch, fact.space.kind, (not meaning.deleted) - (live is not None))
        if fact.space.kind in self._reader.kinds.grouped:
            self._regroup(fact, meaning, live)
        if before and before.branch == fact.branch:
            rows.superseded.append((fact.sequence, before.sequence))
        if fact.subject is not None:
            self._newest[fact.branch, fact.subject] = _Before(
                fact.sequence, fact.branch, meaning.deleted, meaning.expires_at
            )
        return live

    def _version_before(self, fact: Fact) -> _Before | None:
        assert fact.subject is not None
        if (pending := self._newest.get((fact.branch, fact.subject))) is not None:
            return pending
        lineage = self._lineage(fact)
        row = self._session.execute(
            self._newest_of(len(lineage)),
            (fact.subject, *lineage.numbers),
        ).fetchone()
        return _Before(row[0], row[1], bool(row[2]), row[3]) if row else None

    def _newest_of(self, depth: int) -> str:
        statements = self._reader.statements
        return statements.statement("newest_version", depth, 2, subject=statements.parameter(1))

    def _lineage(self, fact: Fact) -> Lineage:
        return self._reader.lineage(self._reader.branch_by_id(fact.branch), fact.sequence - 1)

    def _count(self, branch: int, kind: str, change: int) -> None:
        live = self._tallies.get((branch, kind))
        if live is None:
            lineage = self._reader.lineage(self._reader.branch_by_id(branch))
            live = self._reader.tally_of(lineage, kind)
        self._tallies[branch, kind] = live + change

    def _regroup(self, fact: Fact, meaning: Projection, before: _Before | None) -> None:
        """Count a record in its group, and no longer in the one it was in before."""
        assert fact.space is not None
        left = self._group_of(before.sequence, fact.key) if before else None
        for group, change in ((left, -1), (meaning.group, 1)):
            if group is not None and left != meaning.group:
                self._count(fact.branch, group_tally(fact.space.kind, group), change)

    def _group_of(self, sequence: int, key: str | None) -> str | None:
        version = self._reader.payloads([sequence])[sequence]
        if version.payload is None:
            return None
        return self._reader.kinds.project(version.kind, orjson.loads(version.payload), key).group

    def _links(
        self, fact: Fact, links: Sequence[Link]
    ) -> Iterator[tuple[int, bool, str, float, int, int]]:
        """Return what two records are found by from each other."""
        assert fact.subject is not None
        for link in links:
            ends = self._reader.subjects(link.space, (link.source, link.target))
            # A subject that took a purged one's name is younger, and is not what was linked.
            if len(ends) == len({link.source, link.target}) and max(ends.values()) < fact.subject:
                source, target = ends[link.source], ends[link.target]
                yield source, True, link.label, link.weight, fact.sequence, target
                yield target, False, link.label, link.weight, fact.sequence, source

    def _index(self, fact: Fact, meaning: Projection, text: Text, rows: _Rows) -> None:
        assert fact.space_id is not None
        context: list[str] = []
        if meaning.session is not None and self._indexer is not None:
            context = self._context(fact, meaning.session, rows)
            if self._reader.kinds.events[fact.kind].gives_context:
                rows.turns.append((fact.space_id, meaning.session, fact.branch, fact.sequence))
        rows.texts.append((fact.sequence, text, context))

    def _context(self, fact: Fact, session: str, rows: _Rows) -> list[str]:
        """Return the texts of the messages before this one in its session, nearest first."""
        assert self._indexer is not None
        assert fact.space is not None
        wanted = self._indexer.context_window
        namespace_spaces = self._event_spaces(fact.space.namespace)
        pending = {
            sequence
            for space, of, branch, sequence in rows.turns
            if of == session and branch == fact.branch and space in namespace_spaces
        }
        texts = [text.body for at, text, _ in rows.texts if at in pending][::-1][:wanted]
        sequences: list[int] = []
        for cut in self._lineage(fact):
            missing = wanted - len(texts) - len(sequences)
            if missing > 0:
                sequences += self._turns(namespace_spaces, session, cut, missing)
        return texts + self._texts_of(sequences)

    def _event_spaces(self, namespace: str) -> list[int]:
        """Return the spaces whose events give context to messages of a namespace."""
        return [
            number
            for kind in self._reader.kinds.records.values()
            if any(event.gives_context for event in kind.events)
            and (number := self._reader.space_id(Space(kind.name, namespace))) is not None
        ]

    def _turns(self, spaces: list[int], session: str, cut: Any, limit: int) -> list[int]:
        found = [
            row[0]
            for space in spaces
            for row in self._session.execute(self._sql["turns"], (space, session, *cut, limit))
        ]
        return sorted(found, reverse=True)[:limit]

    def _texts_of(self, sequences: list[int]) -> list[str]:
        versions = self._reader.payloads(sequences) if sequences else {}
        texts = []
        for sequence in sequences:
            version = versions[sequence]
            if version.payload is not None:
                text = self._reader.kinds.project(version.kind, orjson.loads(version.payload)).text
                texts.append(text.body if text else "")
        return texts

    def _write(self, rows: _Rows) -> None:
        many = self._session.executemany
        if rows.versions:
            many(self._sql["insert_version"], rows.versions)
        if rows.superseded:
            many(self._sql["supersede"], rows.superseded)
        if rows.tags:
            many(self._sql["insert_tag"], rows.tags)
        if rows.links:
            many(self._sql["insert_link"], rows.links)
        if rows.numbers:
            many(self._sql["insert_number"], rows.numbers)
        if rows.turns:
            many(self._sql["insert_turn"], rows.turns)
        if rows.texts and self._indexer is not None:
            texts = [(text, near) for _, text, near in rows.texts]
            documents = self._indexer.documents(texts, embed=self._embed)
            self._write_documents([row[0] for row in rows.texts], documents)

    def _write_documents(self, sequences: list[int], documents: list[Document]) -> None:
        many = self._session.executemany
        pairs = list(zip(sequences, documents, strict=True))
        self._write_texts(pairs)
        ours = self._embed and self._reader.setting("embedder") == self._indexer_embedder()
        vectors = [(at, doc.vector) for at, doc in pairs if ours and doc.vector is not None]
        waiting = [(at,) for at, doc in pairs if not ours or doc.vector is None]
        if vectors:
            self._write_vectors(vectors)
        if waiting:
            many(self._sql["insert_unembedded"], waiting)

    @abstractmethod
    def _write_texts(self, texts: Sequence[tuple[int, Document]]) -> None:
        """Put analysed texts into the store's own index."""

    @abstractmethod
    def _write_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep the vectors of some texts."""

    def _indexer_embedder(self) -> str | None:
        return self._indexer.embedder_name if self._indexer else None

    def _project_branch(self, fact: Fact) -> None:
        self._reader.branch_changed()
        content = fact.content or {}
        execute = self._session.execute
        if fact.kind == BRANCH_CREATED:
            branch = Branch(
                fact.sequence, content["name"], content["parent"], content["fork_sequence"]
            )
            execute(
                self._sql["insert_branch"],
                (branch.id, branch.name, branch.parent, branch.fork_sequence),
            )
        elif fact.kind == BRANCH_DELETED:
            execute(self._sql["set_branch_deleted"], (fact.branch, fact.sequence))
        elif fact.kind == BRANCH_RESTORED:
            execute(self._sql["set_branch_deleted"], (fact.branch, None))
        elif fact.kind == BRANCH_MERGED:
            vector = orjson.dumps(content["knows"]).decode()
            execute(self._sql["insert_knowledge"], (fact.branch, fact.sequence, vector))
