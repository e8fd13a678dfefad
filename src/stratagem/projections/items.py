"""The records of the log, in the form that external read models are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from stratagem.engine.events import Space
from stratagem.engine.lineage import DEFAULT_BRANCH, Lineage, View
from stratagem.engine.records import Link
from stratagem.projections.contract import Companion, ReadModel, RecordState
from stratagem.storage.contract import BranchReader, Reader, RecordReader, Store, Version

__all__ = ["count", "ends", "item_kinds", "pages", "read"]

_PAGE = 500


def item_kinds(model: ReadModel) -> list[str]:
    """Return the kinds of record that are items of a read model by themselves."""
    companion = model.companion
    return [kind for kind in model.kinds if companion is None or kind != companion.kind]


def read(
    reader: Reader, subjects: Mapping[int, int], companion: Companion | None
) -> list[RecordState]:
    """Return some records as they are at the head of `default`.

    Each is given with the sequence of its newest event, which is that of its deletion where
    it is gone.
    """
    wanted = list(subjects)
    records = reader.records.current_many(_lineage(reader.branches), wanted)
    items: list[RecordState] = []
    for subject, (space, key) in reader.records.names(wanted).items():
        record = records.get(subject)
        if record is None:
            items.append(RecordState(subject, key, space.kind, subjects[subject]))
        else:
            items.append(_item(reader, subject, (space, key), record.version))
    if companion is not None:
        items = _with_nodes(reader, _with_companions(reader, items, companion), companion)
    return _drop_dangling_links(reader, items)


def pages(store: Store, model: ReadModel) -> Iterator[list[RecordState]]:
    """Return all items of a read model, in pages that hold no transaction open."""
    for kind in item_kinds(model):
        for space in store.reader().records.spaces(kind).values():
            after: str | None = ""
            while after is not None:
                with store.snapshot() as reader:
                    page, after = reader.records.page(
                        _lineage(reader.branches), space, after=after, limit=_PAGE
                    )
                    numbers = reader.records.subjects(space, [key for key, _ in page])
                    items = [
                        _item(reader, numbers[key], (space, key), version) for key, version in page
                    ]
                    if model.companion is not None:
                        items = _with_companions(reader, items, model.companion)
                    items = _drop_dangling_links(reader, items)
                if items:
                    yield items


def count(store: Store, model: ReadModel) -> int:
    """Return how many items a read model should hold."""
    with store.snapshot() as reader:
        branch = reader.branches.by_name(DEFAULT_BRANCH)
        assert branch is not None
        view = View(branch, reader.branches.lineage(branch), store.now())
        return sum(reader.records.count(view, kind) for kind in item_kinds(model))


def ends(records: RecordReader, items: Sequence[RecordState]) -> dict[int, tuple[int, ...]]:
    """Return the records that links lead from and to, by the record that links them."""
    keys: dict[Space, set[str]] = {}
    for item in items:
        if item.link is not None:
            keys.setdefault(item.link.space, set()).update((item.link.source, item.link.target))
    numbers = {space: records.subjects(space, sorted(wanted)) for space, wanted in keys.items()}
    return {
        item.subject: tuple(
            numbers[item.link.space][key]
            for key in (item.link.source, item.link.target)
            if key in numbers[item.link.space]
        )
        for item in items
        if item.link is not None
    }


def _item(reader: Reader, subject: int, name: tuple[Space, str], version: Version) -> RecordState:
    space, key = name
    content = orjson.loads(version.payload or b"{}")
    meaning = reader.kinds.project(version.kind, content, key)
    link: Link | None = meaning.links[0] if meaning.links else None
    return RecordState(
        subject,
        key,
        space.kind,
        version.sequence,
        content,
        meaning.text,
        meaning.facets,
        link,
    )


def _with_companions(
    reader: Reader, items: list[RecordState], companion: Companion
) -> list[RecordState]:
    """Return the items with the certainty that was computed for those that were given none."""
    wanted = [
        item.key
        for item in items
        if item.kind == companion.node
        and item.content is not None
        and item.content.get("certainty_score") is None
    ]
    found = _companions(reader, wanted, companion)
    return [
        item._replace(content={**(item.content or {}), **found[item.key]})
        if item.kind == companion.node and item.key in found
        else item
        for item in items
    ]


def _companions(
    reader: Reader, keys: Sequence[str], companion: Companion
) -> dict[str, dict[str, Any]]:
    """Return what was computed for some records, by their keys."""
    found: dict[str, dict[str, Any]] = {}
    for space in reader.records.spaces(companion.kind).values() if keys else ():
        numbers = reader.records.subjects(space, keys)
        records = reader.records.current_many(_lineage(reader.branches), list(numbers.values()))
        for record in records.values():
            found[record.key] = {
                "certainty_score": orjson.loads(record.version.payload or b"{}")["score"],
                "certainty_source": "computed",
                "certainty_sequence": record.version.sequence,
            }
    return found


def _with_nodes(
    reader: Reader, items: list[RecordState], companion: Companion
) -> list[RecordState]:
    """Return the items with those of the companion kind leading to what they add to."""
    added = [item for item in items if item.kind == companion.kind and not item.is_purged]
    keys = [item.key for item in added]
    nodes: dict[str, RecordState] = {}
    for space in reader.records.spaces(companion.node).values() if keys else ():
        numbers = reader.records.subjects(space, keys)
        records = reader.records.current_many(_lineage(reader.branches), list(numbers.values()))
        nodes |= {
            record.key: _item(reader, number, (space, record.key), record.version)
            for number, record in records.items()
        }
    whole = {each.key: each for each in _with_companions(reader, [*nodes.values()], companion)}
    return [
        item._replace(node=whole.get(item.key)) if item.kind == companion.kind else item
        for item in items
    ]


def _drop_dangling_links(reader: Reader, items: list[RecordState]) -> list[RecordState]:
    """Return the records with those marked as deleted that link a purged one."""
    known = ends(reader.records, items)
    return [
        item._replace(content=None, link=None)
        if item.link is not None and len(known[item.subject]) < len(_endpoints(item.link))
        else item
        for item in items
    ]


def _endpoints(link: Link) -> tuple[str, str]:
    return link.source, link.target


def _lineage(branches: BranchReader) -> Lineage:
    branch = branches.by_name(DEFAULT_BRANCH)
    assert branch is not None
    return branches.lineage(branch)
