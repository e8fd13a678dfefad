"""Bringing the read models up to date with events.

The same code runs when an event is appended and when everything is rebuilt, so the two
cannot differ. Rows are gathered for a whole group of events and written together: one
event at a time costs several times as much.

The projection of a fact may depend on others of the same group, which are in no table yet. Three
lookups therefore check the group before the database: the version that a fact replaces (`_newest`),
the tally that it changes (`_tallies`), and the messages that give it context (`_Rows.turns`).

A version row is never changed once it is written, but for `seq_to`: the sequence of the
version that replaced it on its own branch. A version that replaces one of an ancestor leaves
that row alone, because the ancestor still shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.lineage import Branch, Cut, Lineage
from stratagem.engine.records import FACET_MARK, Link, Projection, Text
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import IndexedText, Indexer
from stratagem.storage.relational.branches import (
    BRANCH_CREATED,
    BRANCH_DELETED,
    BRANCH_MERGED,
    BRANCH_RESTORED,
)
from stratagem.storage.relational.cache import UnindexedText
from stratagem.storage.relational.catalogue import group_tally
from stratagem.storage.relational.log import LogRow
from stratagem.storage.relational.session import NUMBER, Parameter, Shape
from stratagem.storage.relational.verification import verify
from stratagem.storage.relational.writer import SqlWriter

__all__ = ["BRANCH_EVENTS", "CONTENT_PURGED", "Fact", "Projector", "fact_of"]

_VERSION_ROW = Shape[tuple[int, int, int, int | None]]()
# The same, after the number of its subject.
_SUBJECT_VERSION_ROW = Shape[tuple[int, int, int, int, int | None]]()
# From so many on, versions that are replaced are looked up together.
_TOGETHER_MIN = 4

CONTENT_PURGED: Final = "ContentPurged"
BRANCH_EVENTS: Final = frozenset(
    {BRANCH_CREATED, BRANCH_DELETED, BRANCH_RESTORED, BRANCH_MERGED, CONTENT_PURGED}
)


class Fact(NamedTuple):
    """An event as the read models need it. `content` is None once it was purged.

    `is_new`: it is known to be the first event of its subject, so that it replaces no version.
    """

    sequence: int
    branch: int
    kind: str
    space_id: int | None
    space: Space | None
    subject: int | None
    key: str | None
    is_new: bool
    content: Mapping[str, Any] | None


def fact_of(row: LogRow) -> Fact:
    """Return a row of the log as the read models need it, once it was found to be genuine."""
    verify(row.content_row, row.space, row.key)
    content = orjson.loads(row.payload) if row.payload is not None else None
    # Whether it was the first event of its subject is looked up.
    return Fact(
        row.sequence, row.branch, row.kind, row.space_id, row.space, row.subject, row.key,
        is_new=False, content=content,
    )  # fmt: skip


class _ReplacedVersion(NamedTuple):
    """The version that a fact replaces."""

    sequence: int
    branch: int
    deleted: bool
    expires_at: int | None


# A purged event leaves a version that shows nothing.
_PURGED: Final = Projection(deleted=True)


# What reading an event raises that was altered, or is not there.
_ALTERED: Final = (DatabaseCorrupt, IndexError, UnicodeDecodeError, orjson.JSONDecodeError)


class _Rows:
    """The rows that a group of events adds to each table."""

    def __init__(self) -> None:
        self.versions: list[tuple[Parameter, ...]] = []
        self.superseded: list[tuple[int, int]] = []
        self.tags: list[tuple[str, int]] = []
        self.links: list[tuple[int, bool, str, float, int, int]] = []
        self.numbers: list[tuple[int, str, float, int]] = []
        self.turns: list[tuple[int, str, int, int]] = []
        self.texts: list[UnindexedText] = []
        self.vectors: list[tuple[int, str]] = []


class Projector:
    """Writes the projections of events into the read models.

    `embed`: texts get their vectors at once, where the embedder is loaded; otherwise they are
    queued for them. `unindexed` are texts that are left for a later commit all the same.
    """

    def __init__(
        self, writer: SqlWriter, *, embed: bool = True, unindexed: Collection[int] = ()
    ) -> None:
        self._writer = writer
        self._queries = writer.queries
        self._kinds = writer.kinds
        self._branches = writer.branches
        self._records = writer.records
        self._indexer = writer.indexer
        self._embed = embed
        self._unindexed = unindexed
        self._backlog = None if unindexed else writer.backlog
        # Live records by branch and kind, as changed by the transaction so far.
        self._tallies: dict[tuple[int, str], int] = {}
        # The newest versions of the group at hand, by branch and subject: those that are not in the
        # table yet, and those that were looked up for all of the group.
        self._newest: dict[tuple[int, int], _ReplacedVersion | None] = {}
        # Whether several facts of the group at hand may be about one subject.
        self._repeats_subjects = False

    def begin_transaction(self) -> None:
        """Drop the state of a transaction that failed."""
        self._tallies.clear()
        self._newest.clear()

    def apply(
        self, facts: Sequence[Fact], wall: int, repeated: Mapping[int, int] | None = None
    ) -> list[int | None]:
        """Bring the read models up to date; return the version each replaced that was visible.

        `wall` is the clock time; it decides what has expired. `repeated`: for some facts, by
        sequence, the earlier event with the same content.
        """
        rows = _Rows()
        self._repeats_subjects = len(facts) > 1 and len({fact.subject for fact in facts}) < len(
            facts
        )
        if len(facts) >= _TOGETHER_MIN:
            self._look_up_versions(facts)
        replaced = [self._project(fact, rows, wall) for fact in facts]
        self._write(rows, repeated or {})
        self._newest.clear()
        return replaced

    def end_transaction(self, sequence: int) -> None:
        """Record the tallies that the transaction ending at a sequence changed.

        One row for each branch, kind and transaction: a view of the past sees the log at the end of
        some transaction, never in the middle of one.
        """
        known = self._writer.cache.tallies
        for of, live in self._tallies.items():
            self._queries.run("keep_tally", *of, sequence, live)
            known[of] = live
        self._tallies.clear()

    def _project(self, fact: Fact, rows: _Rows, wall: int) -> int | None:
        """Gather the rows of one fact; return the visible version that it replaced."""
        # Unpacked: reading the fields one by one takes several times as long.
        sequence, branch, kind, space_id, space, subject, key, _, content = fact
        if kind in BRANCH_EVENTS:
            self._project_branch(fact)
            return None
        if space_id is None or space is None:
            return None
        meaning = self._kinds.project(kind, content, key) if content is not None else _PURGED
        deleted, expires_at, tags, facets, session, text, links, numbers, _, vector = meaning
        before = self._replace(fact, space, meaning, rows)
        # How long a text is matters for ranking where it is parted.
        chars = len(text.body) if text is not None and text.parted else None
        rows.versions.append((sequence, subject, branch, space_id, deleted, expires_at, chars))
        if tags or facets:
            rows.tags += [(tag, sequence) for tag in tags]
            rows.tags += [(FACET_MARK + facet, sequence) for facet in facets]
        if links:
            rows.links += self._links(fact, links)
        if numbers:
            rows.numbers += [(space_id, *number, sequence) for number in numbers]
        if vector is not None:
            rows.vectors.append((sequence, vector))
        if text is not None:
            context = () if session is None else self._add_turn(fact, session, text, rows)
            rows.texts.append((sequence, text, context))
        if before is None or (before.expires_at is not None and before.expires_at <= wall):
            return None
        return before.sequence

    def _replace(
        self, fact: Fact, space: Space, meaning: Projection, rows: _Rows
    ) -> _ReplacedVersion | None:
        """Close the version that a fact replaces, and count; return it unless it was a deletion."""
        sequence, branch, _, _, _, subject, _, is_new, _ = fact
        before = None if subject is None or is_new else self._version_before(fact)
        live = before if before and not before.deleted else None
        # +1 where a record appears, -1 where it is deleted, 0 where it is only changed. Whether the
        # version before has expired does not matter: tallies count expired records too.
        self._count(branch, space.kind, (not meaning.deleted) - (live is not None))
        kind = self._kinds.find_record(space.kind)
        if kind is not None and kind.grouped:
            self._regroup(fact, space, meaning, live)
        if before and before.branch == branch:
            rows.superseded.append((sequence, before.sequence))
        if self._repeats_subjects and subject is not None:
            self._newest[branch, subject] = _ReplacedVersion(
                sequence, branch, meaning.deleted, meaning.expires_at
            )
        return live

    def _look_up_versions(self, facts: Sequence[Fact]) -> None:
        """Look up what a group of facts replaces by one statement, where all are of one branch.

        One at a time they would cost a request to a server each.
        """
        known = [fact for fact in facts if fact.subject is not None and not fact.is_new]
        if len(known) < _TOGETHER_MIN or len({fact.branch for fact in facts}) > 1:
            return
        if any(fact.kind in BRANCH_EVENTS for fact in facts):
            return
        subjects = {fact.subject for fact in known if fact.subject is not None}
        self._newest = {(facts[0].branch, subject): None for subject in subjects}
        for row in self._queries.rows_through(
            _SUBJECT_VERSION_ROW, "newest_versions", self._lineage(facts[0]),
            self._queries.array(sorted(subjects)), subject="w.value",
        ):  # fmt: skip
            self._newest[facts[0].branch, row[0]] = _ReplacedVersion(
                row[1], row[2], bool(row[3]), row[4]
            )

    def _version_before(self, fact: Fact) -> _ReplacedVersion | None:
        """Return the newest version of a fact's subject that its branch shows."""
        assert fact.subject is not None, "only facts about a subject replace versions"
        if (fact.branch, fact.subject) in self._newest:
            return self._newest[fact.branch, fact.subject]
        row = self._queries.row_through(
            _VERSION_ROW, "newest_version", self._lineage(fact), fact.subject,
            subject=self._queries.statements.parameter(1),
        )  # fmt: skip
        return _ReplacedVersion(row[0], row[1], bool(row[2]), row[3]) if row else None

    def _lineage(self, fact: Fact) -> Lineage:
        """Return what the branch of a fact showed just before it."""
        return self._branches.lineage(self._branches.by_id(fact.branch), fact.sequence - 1)

    def _count(self, branch: int, kind: str, change: int) -> None:
        of = (branch, kind)
        live = self._tallies.get(of)
        if live is None:
            live = self._writer.cache.tallies.get(of)
        if live is None:
            # Of a branch that has none of its own yet, that of its parent at the fork.
            lineage = self._branches.lineage(self._branches.by_id(branch))
            live = self._records.tally(lineage, kind)
        self._tallies[of] = live + change

    def _regroup(
        self, fact: Fact, space: Space, meaning: Projection, before: _ReplacedVersion | None
    ) -> None:
        """Count a record in its group, and no longer in the one it was in before."""
        left = self._group_of(before.sequence, fact.key) if before else None
        for group, change in ((left, -1), (meaning.group, 1)):
            if group is not None and left != meaning.group:
                self._count(fact.branch, group_tally(space.kind, group), change)

    def _group_of(self, sequence: int, key: str | None) -> str | None:
        version = self._writer.log.versions([sequence])[sequence]
        if version.payload is None:
            return None
        return self._kinds.project(version.kind, orjson.loads(version.payload), key).group

    def _links(
        self, fact: Fact, links: Sequence[Link]
    ) -> Iterator[tuple[int, bool, str, float, int, int]]:
        """Return the rows by which two records are found from each other."""
        assert fact.subject is not None, "only records link others"
        for link in links:
            ends = self._records.subjects(link.space, (link.source, link.target))
            # A purge renames a subject, and a later record may take its old name. Only subjects
            # older than the linking record can be meant by it, so that a rebuild finds those that
            # were linked and no others.
            if len(ends) == len({link.source, link.target}) and max(ends.values()) < fact.subject:
                source, target = ends[link.source], ends[link.target]
                yield source, True, link.label, link.weight, fact.sequence, target
                yield target, False, link.label, link.weight, fact.sequence, source

    def _add_turn(self, fact: Fact, session: str, text: Text, rows: _Rows) -> Sequence[str]:
        """Add a text to its session, if it gives others context; return its own context."""
        assert fact.space_id is not None, "only records and logged events have texts"
        if self._indexer is None:
            return ()
        # Before its own turn is added: a message is no context of itself.
        context = self._context(fact, session, rows, self._indexer.context_window)
        kind = self._kinds.find_event(fact.kind)
        if kind is not None and kind.gives_context:
            rows.turns.append((fact.space_id, session, fact.branch, fact.sequence))
            self._writer.cache.turn_texts.add(fact.sequence, text.body)
        return context

    def _context(self, fact: Fact, session: str, rows: _Rows, wanted: int) -> list[str]:
        """Return the texts of the messages before this one in its session, nearest first."""
        assert fact.space is not None, "only records and logged events have texts"
        spaces = self._context_spaces(fact.space.namespace)
        texts: list[str] = []
        if rows.turns:
            pending = {
                sequence
                for space, of, branch, sequence in rows.turns
                if of == session and branch == fact.branch and space in spaces
            }
            texts = [text.body for at, text, _ in rows.texts if at in pending][::-1][:wanted]
        sequences: list[int] = []
        own, *ancestors = self._lineage(fact)
        missing = wanted - len(texts)
        if missing > 0:
            sequences += self._newest_turns(spaces, session, own, wanted)[:missing]
        for cut in ancestors:
            missing = wanted - len(texts) - len(sequences)
            if missing > 0:
                sequences += self._turns(spaces, session, cut, missing)
        return texts + self._texts_of(sequences)

    def _context_spaces(self, namespace: str) -> list[int]:
        """Return the spaces whose events give context to messages of a namespace."""
        return [
            number
            for kind in self._kinds.giving_context
            if (number := self._records.space_id(Space(kind, namespace))) is not None
        ]

    def _newest_turns(self, spaces: list[int], session: str, cut: Cut, limit: int) -> list[int]:
        """Return the newest messages of a session on a branch, which are remembered."""
        cache = self._writer.cache
        found: list[int] = []
        for space in spaces:
            newest = cache.turns.get((space, session, cut.branch))
            if newest is None:
                newest = self._turns([space], session, cut, limit)
                cache.add_turns((space, session, cut.branch), newest)
            found += newest
        return sorted(found, reverse=True)[:limit]

    def _turns(self, spaces: list[int], session: str, cut: Cut, limit: int) -> list[int]:
        found = [
            row[0]
            for space in spaces
            for row in self._queries.rows(NUMBER, "turns", space, session, *cut, limit)
        ]
        return sorted(found, reverse=True)[:limit]

    def _texts_of(self, sequences: list[int]) -> list[str]:
        cache = self._writer.cache.turn_texts
        texts = {sequence: cache.get(sequence) for sequence in sequences}
        if missing := [sequence for sequence, text in texts.items() if text is None]:
            texts |= (read := self._read_texts(missing))
            for sequence, text in read.items():
                cache.add(sequence, text)
        return [text for text in texts.values() if text is not None]

    def _read_texts(self, sequences: list[int]) -> dict[int, str]:
        """Return the texts of events, but for those that were purged."""
        texts = {}
        for sequence, version in self._writer.log.versions(sequences).items():
            if version.payload is not None:
                text = self._kinds.project(version.kind, orjson.loads(version.payload)).text
                texts[sequence] = text.body if text else ""
        return texts

    def _remember_newest(self, turns: Sequence[tuple[int, str, int, int]]) -> None:
        """Add messages that were written to those that are remembered of their sessions."""
        for space, session, branch, sequence in turns:
            known = self._writer.cache.turns.get((space, session, branch))
            if known is not None and self._indexer is not None:
                known.insert(0, sequence)
                del known[self._indexer.context_window :]

    def _write(self, rows: _Rows, repeated: Mapping[int, int]) -> None:
        run_many = self._queries.run_many
        if rows.versions:
            run_many("insert_version", rows.versions)
        if rows.superseded:
            run_many("supersede", rows.superseded)
        if rows.tags:
            run_many("insert_tag", rows.tags)
        if rows.links:
            run_many("insert_link", rows.links)
        if rows.numbers:
            run_many("insert_number", rows.numbers)
        if rows.turns:
            run_many("insert_turn", rows.turns)
            self._remember_newest(rows.turns)
        if rows.vectors:
            self._writer.documents.add_own_vectors(rows.vectors)
        if rows.texts and self._indexer is not None:
            if self._unindexed:
                rows.texts = self._leave(rows.texts)
            self._index(self._indexer, rows.texts, repeated)

    def index_backlog(self) -> None:
        """Index the texts that earlier commits have left."""
        if self._indexer is not None:
            self._index(self._indexer, (), {})

    def _index(
        self, indexer: Indexer, texts: Sequence[UnindexedText], repeated: Mapping[int, int]
    ) -> None:
        """Index texts, after those that earlier commits have left, or leave them as well."""
        backlog = self._backlog
        if backlog is not None:
            if texts and not repeated and backlog.add(texts):
                return
            waiting = backlog.take(self._read_unindexed)
            if waiting and repeated:
                # Their vectors may be those to be copied.
                self._write_texts(indexer, waiting, {})
            elif waiting:
                texts = [*waiting, *texts]
        if texts:
            self._write_texts(indexer, texts, repeated)

    def _leave(self, texts: list[UnindexedText]) -> list[UnindexedText]:
        """Note which texts are left for a later commit, and return the others."""
        left = [(text[0],) for text in texts if text[0] in self._unindexed]
        if left:
            self._queries.run_many("insert_unindexed", left)
        return [text for text in texts if text[0] not in self._unindexed]

    def _read_unindexed(self, sequence: int) -> UnindexedText | None:
        """Return a text that another writer has left, with the context that it was given."""
        try:
            fact = fact_of(self._writer.log.page(sequence - 1, 1)[0])
        except _ALTERED:
            # What was altered is found by nobody, and `doctor` says so; others write on.
            return None
        if fact.sequence != sequence or fact.content is None:
            return None
        meaning = self._kinds.project(fact.kind, fact.content, fact.key)
        if meaning.text is None:
            return None
        try:
            context = self._context_of(fact, meaning.session)
        except _ALTERED:
            context = ()
        return sequence, meaning.text, context

    def _context_of(self, fact: Fact, session: str | None) -> Sequence[str]:
        """Return the texts of the messages before one that was written earlier, nearest first."""
        if session is None or fact.space is None or self._indexer is None:
            return ()
        spaces = self._context_spaces(fact.space.namespace)
        sequences: list[int] = []
        for cut in self._lineage(fact):
            missing = self._indexer.context_window - len(sequences)
            if missing > 0:
                sequences += self._turns(spaces, session, cut, missing)
        return self._texts_of(sequences)

    def _write_texts(
        self, indexer: Indexer, texts: Sequence[UnindexedText], repeated: Mapping[int, int]
    ) -> None:
        # Another process may have chosen another embedder: vectors of two cannot be compared.
        usable = self._embed and self._writer.settings.text("embedder") == indexer.embedder_name
        copied: Collection[int] = ()
        if repeated and usable and indexer.embedder_name is not None:
            pairs = [(at, repeated[at]) for at, _, _ in texts if at in repeated]
            copied = self._writer.documents.copy_vectors(pairs)
        documents = self._documents(indexer, texts, copied)
        self._writer.documents.add_texts(documents)
        vectors: list[tuple[int, bytes]] = []
        waiting: list[tuple[int]] = []
        for at, document in documents:
            if usable and document.vector is not None:
                vectors.append((at, document.vector))
            elif at not in copied:
                waiting.append((at,))
        if vectors:
            self._writer.documents.add_vectors(vectors)
        if waiting:
            self._queries.run_many("insert_unembedded", waiting)

    def _documents(
        self, indexer: Indexer, texts: Sequence[UnindexedText], copied: Collection[int]
    ) -> list[tuple[int, IndexedText]]:
        """Return the documents of some texts, by sequence; no vector is made for copied ones."""
        fresh = [row for row in texts if row[0] not in copied] if copied else texts
        documents = indexer.documents([row[1:] for row in fresh], embed=self._embed)
        found = list(zip([row[0] for row in fresh], documents, strict=True))
        if copied:
            others = [row for row in texts if row[0] in copied]
            documents = indexer.documents([row[1:] for row in others], embed=False)
            found += zip([row[0] for row in others], documents, strict=True)
            found.sort(key=itemgetter(0))
        return found

    def _project_branch(self, fact: Fact) -> None:
        self._writer.cache.branches_by_name.clear()
        self._writer.cache.branches.clear()
        content = fact.content or {}
        if fact.kind == BRANCH_CREATED:
            branch = Branch(
                fact.sequence, content["name"], content["parent"], content["fork_sequence"]
            )
            self._queries.run(
                "insert_branch", branch.id, branch.name, branch.parent, branch.fork_sequence
            )
        elif fact.kind == BRANCH_DELETED:
            self._queries.run("set_branch_deleted", fact.branch, fact.sequence)
        elif fact.kind == BRANCH_RESTORED:
            self._queries.run("set_branch_deleted", fact.branch, None)
        elif fact.kind == BRANCH_MERGED:
            vector = orjson.dumps(content["knows"]).decode()
            self._queries.run("insert_knowledge", fact.branch, fact.sequence, vector)
