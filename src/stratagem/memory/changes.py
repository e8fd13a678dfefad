"""Changes of records as callers read them.

A branch carries the records of every system. An entry is named by its key; any other record by its
title, or by the titles of the two records that it links, because its key is an id that means little
to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from stratagem.engine import moments
from stratagem.engine.events import Space
from stratagem.engine.lineage import Lineage
from stratagem.engine.merge import ABSENT, ChangedBy, changed_places
from stratagem.engine.paths import Steps
from stratagem.engine.records import Projection
from stratagem.engine.values import same
from stratagem.memory.kinds import ENTRY
from stratagem.memory.models import Change
from stratagem.storage.branch_merge import RecordDifference, place_of
from stratagem.storage.contract import Reader

__all__ = ["Changes", "value_of"]

# The fields of an entry as callers know them.
_FIELDS = {"expires_at": "expires"}


class Changes:
    """Describes changes between two branches; titles are looked up where they can be seen."""

    def __init__(self, reader: Reader, *lineages: Lineage) -> None:
        self._reader = reader
        self._lineages = lineages

    def describe(self, change: RecordDifference, *, sided: bool = False) -> Change:
        """Return a change as callers see it; `sided`: with the branch that made it."""
        space, key, before, after, side, _base = change
        both = before is not ABSENT and after is not ABSENT
        if both and space.kind == ENTRY and len(before) == len(after) == 1:
            # Most entries have a value and nothing beside it.
            return Change(
                key,
                space.namespace,
                "changed",
                before["value"],
                after["value"],
                side if sided else None,
                _changed_by(change) if side == "both" else None,
                ["value"],
            )
        described = Change(
            key,
            space.namespace,
            "changed" if both else "added" if before is ABSENT else "removed",
            self.show_side(space, before),
            self.show_side(space, after),
            side if sided else None,
            _changed_by(change) if both and side == "both" else None,
            _differing_fields(before, after) if both else None,
        )
        if space.kind != ENTRY:
            described.kind = space.kind
            content = before if after is ABSENT else after
            described.title = self._title(space, content, key)
        else:
            _add_particulars(described, before, after)
        return described

    def show_side(self, space: Space, side: Any) -> Any:
        """Return a side of a change: the value of an entry, or a record with readable times."""
        value = value_of(side)
        if type(value) is not dict:
            return value
        times = self._reader.kinds.record(space.kind).times
        if not times:
            return value
        return {
            name: moments.iso(each) if name in times and isinstance(each, int) else each
            for name, each in value.items()
        }

    def show_place(self, space: Space, path: Steps, side: Any) -> Any:
        """Return the value of one side at a conflicting place of a record.

        None if there is none.
        """
        if not path:
            return self.show_side(space, side)
        if side is ABSENT:
            return None
        is_time = path[0] in self._reader.kinds.record(space.kind).times
        return moments.iso(side) if is_time and isinstance(side, int) else side

    def title_of(self, space: Space, key: str) -> str | None:
        """Return the name of a record for people; that of an entry is its key."""
        if space.kind == ENTRY:
            return None
        number = self._reader.records.subjects(space, [key])
        for lineage in self._lineages:
            for record in self._reader.records.current_many(lineage, [*number.values()]).values():
                content = orjson.loads(record.version.payload or b"{}")
                return self._title(space, content, key)
        return None

    def _title(self, space: Space, content: Mapping[str, Any], key: str) -> str | None:
        projection = self._project(space.kind, content, key)
        if projection.text is not None:
            return projection.text.title or None
        if about := self._reader.kinds.record(space.kind).about:
            field, other = about
            subjects = self._reader.records.subjects(other, [content[field]])
            return self._titles_of(other.kind, subjects).get(content[field])
        if not projection.links:
            return None
        link = projection.links[0]
        ends = self._reader.records.subjects(link.space, [link.source, link.target])
        titles = self._titles_of(link.space.kind, ends)
        source, target = (titles.get(end, end) for end in (link.source, link.target))
        return f"{source} {link.label} {target}"

    def _titles_of(self, kind: str, subjects: Mapping[str, int]) -> dict[str, str]:
        titles: dict[str, str] = {}
        for lineage in self._lineages:
            records = self._reader.records.current_many(lineage, list(subjects.values()))
            for record in records.values():
                content = orjson.loads(record.version.payload or b"{}")
                text = self._project(kind, content, record.key).text
                titles[record.key] = text.title if text else record.key
        return titles

    def _project(self, kind: str, content: Mapping[str, Any], key: str) -> Projection:
        writes = self._reader.kinds.record(kind).writes
        return self._reader.kinds.project(writes or "", content, key)


def value_of(side: Any) -> Any:
    """Return the value of an entry, or all of another record; None where there is none."""
    if type(side) is not dict:
        return None
    return side["value"] if "value" in side else dict(side)


def _differing_fields(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        _FIELDS.get(name, name)
        for name in before | after
        if (ours := before.get(name, ABSENT)) is not (theirs := after.get(name, ABSENT))
        and not same(ours, theirs)
    ]


def _changed_by(change: RecordDifference) -> dict[str, ChangedBy]:
    """Return which branch changed each place of a record that both of them changed."""
    changed = changed_places(change.base, change.before, change.after)
    return {_place_name(change.space, path): side for path, side in changed.items()}


def _place_name(space: Space, path: Steps) -> str:
    """Return a place of a record: within the value of an entry it begins with "$"."""
    beside_value = space.kind == ENTRY and path[:1] != ("value",)
    return _FIELDS.get(str(path[0]), str(path[0])) if beside_value else place_of(path)


def _add_particulars(change: Change, before: Any, after: Any) -> None:
    """Add the other fields of an entry: tags and expiry."""
    differs = change.differs
    if differs is None or "expires" in differs:
        change.expires_before, change.expires_after = _expiry(before), _expiry(after)
    if differs is not None and "tags" in differs:
        change.tags_before, change.tags_after = before.get("tags", []), after.get("tags", [])


def _expiry(side: Any) -> str | None:
    expires = type(side) is dict and "expires_at" in side
    return moments.iso(side["expires_at"]) if expires else None
