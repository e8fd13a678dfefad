"""The records of the log, in the form that external read models are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson

from stratagem.engine.events import Space
from stratagem.engine.lineage import DEFAULT_BRANCH, Lineage, View
from stratagem.engine.records import Link
from stratagem.projections.contract import RecordState
from stratagem.storage.contract import BranchReader, Reader, RecordReader, Store, Version

__all__ = ["count", "ends", "pages", "read"]

_PAGE = 500


def read(reader: Reader, subjects: Mapping[int, int]) -> list[RecordState]:
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
    return _drop_dangling_links(reader, items)


def pages(store: Store, kinds: Iterable[str]) -> Iterator[list[RecordState]]:
    """Return all records of some kinds, in pages that hold no transaction open."""
    for kind in kinds:
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
                    items = _drop_dangling_links(reader, items)
                if items:
                    yield items


def count(store: Store, kinds: Iterable[str]) -> int:
    """Return how many records of some kinds there are."""
    with store.snapshot() as reader:
        branch = reader.branches.by_name(DEFAULT_BRANCH)
        assert branch is not None
        view = View(branch, reader.branches.lineage(branch), store.now())
        return sum(reader.records.count(view, kind) for kind in kinds)


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
