"""Import and export of concepts and relationships.

An import is one transaction: all of it is written, or nothing. It can be repeated: an existing
concept is left alone or updated, and a relationship is created once. A concept is identified by its
id where the format has one, else by its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments, values
from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused, ValidationFailed
from stratagem.knowledge import certainty, forms
from stratagem.knowledge.capture import type_draft
from stratagem.knowledge.evidence_records import evidence_draft
from stratagem.knowledge.forms import (
    FORMAT,
    Bundle,
    ConceptToImport,
    Form,
    RelationshipToImport,
    note_text,
)
from stratagem.knowledge.graph import BuiltInGraph
from stratagem.knowledge.records import ConceptRecords, content_of
from stratagem.knowledge.spaces import (
    CONCEPT_CREATED,
    CONCEPT_LEARNT,
    CONCEPT_UPDATED,
    CONCEPTS,
    EVIDENCE,
    KNOWN_CONCEPTS,
    NAME_FACET,
    PREREQUISITE,
    RELATIONSHIP_CREATED,
    RELATIONSHIPS,
    TYPES,
    fold_name,
    known_key,
    relationship_key,
)
from stratagem.note_files import Skipped
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction, Version

__all__ = ["GraphExport", "GraphImport", "export_to", "import_from"]

_PAGE: Final = 1_000
# Fields that the certainty of other concepts depends on.
_WEIGHING: Final = ("certainty_score", "valid_from", "valid_to")
_UNSAFE = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')


@dataclass(slots=True)
class GraphImport:
    """What an import did, or would do."""

    file: str
    format: Form
    branch: str
    preview: bool
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    related: int = 0
    known: int = 0
    dangling: int = 0
    # Types of relationship that were declared, and prerequisites that close a cycle: a merge may
    # have made one, and get_prerequisites shows it.
    declared: int = 0
    circular: int = 0
    facts: int = 0
    # Files of a folder that were not taken.
    skipped: tuple[Skipped, ...] = ()


@dataclass(slots=True)
class GraphExport:
    """What an export wrote."""

    file: str
    format: Form
    branch: str
    concepts: int
    relationships: int
    # What the format cannot express and was left out, and how often it was there.
    left_out: dict[str, int] = field(default_factory=dict)


def import_from(
    foundation: Foundation,
    caller: Caller,
    path: Path,
    *,
    form: Form | None = None,
    preview: bool = False,
) -> GraphImport:
    """Read concepts and relationships from a file or folder into the caller's branch.

    `preview` does everything and takes it back.

    Raises:
        ImportRefused: Something cannot be taken. Nothing was written.
    """
    if not path.exists():
        raise ImportRefused(f"There is nothing at {path}.", file=str(path), hint="Check the path.")
    chosen = form or forms.form_of(path)
    bundle = forms.read(path, chosen)
    done = GraphImport(str(path), chosen, caller.branch, preview, dangling=bundle.dangling)
    done.skipped = tuple(bundle.skipped)

    def work(transaction: Transaction) -> None:
        view = foundation.views.view(transaction, caller.branch)
        _Import(transaction, ConceptRecords(transaction, view), done).run(bundle)
        if preview:
            raise _PreviewDone

    with suppress(_PreviewDone):
        foundation.write(caller, work)
        foundation.external.written()
    return done


class _PreviewDone(Exception):
    """Takes back what a preview wrote."""


class _Import:
    """One import, within its transaction."""

    def __init__(
        self, transaction: Transaction, records: ConceptRecords, done: GraphImport
    ) -> None:
        self._transaction = transaction
        self._records = records
        self._done = done
        # Names that differ in case alone are different ones where the file has both.
        self._names: set[str] = set()

    def run(self, bundle: Bundle) -> None:
        self._names = {each.fields["name"] for each in bundle.items.values()}
        ids = {ref: self._id(ref, item) for ref, item in bundle.items.items()}
        touched: set[str] = set()
        self._declare(bundle)
        for page in _pages(bundle.items.items()):
            touched |= self._write([(ids[ref], item) for ref, item in page])
        for page in _pages(bundle.relations):
            touched |= self._relate(page, ids)
        touched |= self._add_facts(bundle)
        certainty.refresh(self._transaction, self._records.view, touched)

    def _id(self, ref: str, item: ConceptToImport) -> str:
        """Return the id that a concept has, or is to have."""
        if item.concept_id is not None:
            return item.concept_id
        reader, view = self._transaction, self._records.view
        name = item.fields["name"]
        named = reader.catalogue.with_facet(view, NAME_FACET + fold_name(name))
        known = self._records.by_version(named)
        exact = next((each.id for each in known if each.name == name), None)
        others = [each.id for each in known if each.name not in self._names]
        if exact or others:
            return exact or others[0]
        digest = hashlib.sha256(f"{self._done.format}:{ref}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))

    def _write(self, page: Sequence[tuple[str, ConceptToImport]]) -> set[str]:
        """Write concepts; return those whose certainty hangs on one that came back or changed."""
        ids = [concept_id for concept_id, _ in page]
        there = self._records.by_id(ids)
        changed = self._transaction.records.subjects(CONCEPTS, ids).keys() - there.keys()
        drafts: list[Draft] = []
        for concept_id, item in page:
            known = there.get(concept_id)
            if known is None:
                self._done.created += 1
                content = {"created_at": item.created_at or self._transaction.at, **item.fields}
                drafts.append(Draft(CONCEPT_CREATED, content, CONCEPTS, concept_id))
                if "certainty_score" not in content:
                    drafts.append(certainty.draft(concept_id, certainty.UNTRIED))
                continue
            content = {**known.content, **item.fields}
            if values.same(content, dict(known.content)):
                self._done.unchanged += 1
            else:
                self._done.updated += 1
                if any(content.get(name) != known.content.get(name) for name in _WEIGHING):
                    changed |= {concept_id}
                drafts.append(Draft(CONCEPT_UPDATED, content, CONCEPTS, concept_id))
        if drafts:
            self._transaction.append(self._records.view.branch, drafts)
        near = (
            certainty.neighbours(self._transaction, self._records.view, each) for each in changed
        )
        return changed.union(*near)

    def _relate(self, page: Sequence[RelationshipToImport], ids: Mapping[str, str]) -> set[str]:
        """Write the relationships that are not there yet; return the concepts they relate."""
        touched: set[str] = set()
        for each in page:
            source, target = ids[each.source], ids[each.target]
            key = relationship_key(source, target, each.label)
            if (
                self._transaction.records.current(self._records.view.lineage, RELATIONSHIPS, key)
                is not None
            ):
                self._done.known += 1
                continue
            if each.label == PREREQUISITE and self._closes_cycle(source, target):
                self._done.circular += 1
            content: dict[str, Any] = {
                "source_id": source,
                "target_id": target,
                "relationship_type": each.label,
                "strength": each.strength,
            }
            if each.notes is not None:
                content["notes"] = each.notes
            content |= each.period
            draft = Draft(RELATIONSHIP_CREATED, content, RELATIONSHIPS, key)
            self._transaction.append(self._records.view.branch, [draft])
            self._done.related += 1
            touched |= {source, target}
        return touched

    def _closes_cycle(self, source: str, target: str) -> bool:
        graph = BuiltInGraph(self._transaction, self._records.view)
        return graph.cycle(source, target) is not None

    def _declare(self, bundle: Bundle) -> None:
        """Declare the types of relationship that the file declares, or uses."""
        used = {each.label: None for each in bundle.relations}
        known = self._records.labels()
        for label, description in ({**used, **bundle.labels}).items():
            if label not in known:
                draft = type_draft(label, description)
                self._transaction.append(self._records.view.branch, [draft])
                self._done.declared += 1

    def _add_facts(self, bundle: Bundle) -> set[str]:
        """Write what sources say about concepts, and what learners know of them."""
        drafts = [
            evidence_draft(
                each["concept_id"],
                each["verdict"],
                each["source"],
                each.get("note"),
                said_at=each.get("said_at"),
            )
            for each in bundle.evidence
        ]
        drafts += [
            Draft(
                CONCEPT_LEARNT, each, KNOWN_CONCEPTS, known_key(each["learner"], each["concept_id"])
            )
            for each in bundle.known
        ]
        lineage, records = self._records.view.lineage, self._transaction.records
        fresh = []
        for draft in drafts:
            assert draft.space is not None
            there = records.current(lineage, draft.space, draft.key or "")
            if there is None or not _says_the_same(there, draft):
                fresh.append(draft)
        for page in _pages(fresh):
            self._transaction.append(self._records.view.branch, page)
        self._done.facts += len(fresh)
        return {draft.content["concept_id"] for draft in fresh}


def _says_the_same(there: Version, draft: Draft) -> bool:
    """Whether a record says what a file says of it, and since then, where the file knows."""
    times = {"said_at", "since"}
    content = dict.fromkeys(times, there.at) | content_of(there.payload)
    return all(content.get(name) == value for name, value in draft.content.items()) and (
        content.keys() - draft.content.keys() <= times
    )


def export_to(
    foundation: Foundation,
    path: Path,
    *,
    branch: str,
    as_of: str | int | None = None,
    form: Form = "jsonl",
    overwrite: bool = False,
) -> GraphExport:
    """Write all concepts that a view shows, and the relationships between them.

    Raises:
        ValidationFailed: There is something at the path already, and it may not be replaced.
    """
    if path.exists() and not overwrite:
        raise ValidationFailed(
            f"{path} exists already.", field="file", hint="Choose another name, or pass --force."
        )
    with foundation.store.snapshot() as reader:
        records = ConceptRecords(reader, foundation.views.view(reader, branch, as_of))
        concepts = dict(records.stream_contents(CONCEPTS))
        relations = [
            content
            for _, content in records.stream_contents(RELATIONSHIPS)
            if content["source_id"] in concepts and content["target_id"] in concepts
        ]
        facts = list(_fact_lines(records, concepts))
    if form == "markdown":
        _write_notes(path, concepts, relations)
    else:
        told = (
            chain(_own_lines(concepts, relations), facts)
            if form == "jsonl"
            else _server_lines(concepts, relations)
        )
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in told))
    left_out = _left_out(form, concepts, relations, facts)
    return GraphExport(str(path), form, branch, len(concepts), len(relations), left_out)


Contents = Mapping[str, dict[str, Any]]
Relations = Sequence[dict[str, Any]]


def _own_lines(concepts: Contents, relations: Relations) -> Iterator[dict[str, Any]]:
    yield {
        "format": FORMAT,
        "version": 1,
        "concepts": len(concepts),
        "relationships": len(relations),
    }
    for concept_id, content in concepts.items():
        told = content | {"created_at": moments.iso(content["created_at"])}
        yield {"type": "concept", "concept_id": concept_id, **told}
    for content in relations:
        yield {"type": "relationship", **content}


def _left_out(
    form: Form, concepts: Contents, relations: Relations, facts: Sequence[dict[str, Any]]
) -> dict[str, int]:
    """Count the items that a format cannot express."""
    if form == "jsonl":
        return {}
    counts = Counter(each["type"] for each in facts)
    if form == "mcp-memory":
        kept = {"name", "explanation", "topic", "created_at"}
        counts.update(name for each in concepts.values() for name in each.keys() - kept)
        kept = {"source_id", "target_id", "relationship_type", "strength"}
        counts.update(name for each in relations for name in each.keys() - kept)
        counts["strength"] = sum(1 for each in relations if each["strength"] != 1.0)
    return {name: count for name, count in sorted(counts.items()) if count}


def _fact_lines(records: ConceptRecords, concepts: Contents) -> Iterator[dict[str, Any]]:
    """Return the declared types, what sources say about concepts, and what learners know."""
    for label, description in records.labels().items():
        if label not in TYPES:
            told = {} if description is None else {"description": description}
            yield {"type": "relationship_type", "name": label, **told}
    for kind, space, time in (
        ("evidence", EVIDENCE, "said_at"),
        ("known", KNOWN_CONCEPTS, "since"),
    ):
        for _, version in records.stream_versions(space):
            content = {time: version.at, **content_of(version.payload)}
            if content["concept_id"] in concepts:
                yield {"type": kind, **content}


def _server_lines(concepts: Contents, relations: Relations) -> Iterator[dict[str, Any]]:
    for content in concepts.values():
        yield {
            "type": "entity",
            "name": content["name"],
            # Without a topic an empty one, which an import reads as none.
            "entityType": content.get("topic") or "",
            "observations": content["explanation"].split("\n"),
        }
    for each in relations:
        yield {
            "type": "relation",
            "from": concepts[each["source_id"]]["name"],
            "to": concepts[each["target_id"]]["name"],
            "relationType": each["relationship_type"],
        }


def _write_notes(folder: Path, concepts: Contents, relations: Relations) -> None:
    """Write a note for each concept: for people its text and links, for an import all of it."""
    names = _file_names(concepts)
    outgoing: dict[str, list[dict[str, Any]]] = {}
    for each in relations:
        outgoing.setdefault(each["source_id"], []).append(each)
    for concept_id, content in concepts.items():
        levels = [content[level] for level in ("area", "topic", "subtopic") if level in content]
        place = folder.joinpath(*(_safe(level) for level in levels))
        file = place / f"{names[concept_id]}.md"
        _refuse_link(file, folder)
        place.mkdir(parents=True, exist_ok=True)
        links = outgoing.get(concept_id, [])
        fields = {name: value for name, value in content.items() if name != "explanation"}
        fields |= {
            "concept_id": concept_id,
            "created_at": moments.iso(content["created_at"]),
            "relations": [
                {name: value for name, value in each.items() if name != "source_id"}
                for each in links
            ],
        }
        lines = [f"- {each['relationship_type']}: [[{names[each['target_id']]}]]" for each in links]
        text = note_text(fields, content["explanation"], lines)
        file.write_bytes(text.encode())


def _refuse_link(file: Path, folder: Path) -> None:
    """Refuse to write a file where a link would lead out of the folder."""
    if file.is_symlink() or not file.parent.resolve().is_relative_to(folder.resolve()):
        raise ValidationFailed(
            f"{file} is a link, and exports do not write through links.",
            field="file",
            hint="Remove the link, or export into an empty folder.",
        )


def _file_names(concepts: Contents) -> dict[str, str]:
    """Return a file name for each concept that no other one has, in any folder."""
    taken: set[str] = set()
    names: dict[str, str] = {}
    for concept_id, content in concepts.items():
        name = plain = _safe(content["name"])
        number = 2
        while fold_name(name) in taken:
            name, number = f"{plain} {number}", number + 1
        taken.add(fold_name(name))
        names[concept_id] = name
    return names


def _safe(name: str) -> str:
    """Return a name that can be a file's: no path leads out of the folder."""
    return _UNSAFE.sub("-", name).strip(" .")[:150] or "unnamed"


def _pages(items: Any) -> Iterator[list[Any]]:
    rest = iter(items)
    while page := list(islice(rest, limits.ITEMS_MAX)):
        yield page
