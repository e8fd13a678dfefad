"""Changes of records as callers read them.

A branch carries the records of every system. An entry is called by its key; any other record by
its title, or by the titles of the two that it links, for its key is an id that tells people little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from stratagem.engine import moments
from stratagem.engine.lineage import Lineage
from stratagem.engine.merge import ABSENT
from stratagem.engine.records import Projection
from stratagem.engine.values import same
from stratagem.memory.kinds import ENTRY
from stratagem.memory.models import Change
from stratagem.storage.branch_merge import RecordDifference
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
        before, after = change.before, change.after
        both = isinstance(before, dict) and isinstance(after, dict)
        differs = _differing_fields(before, after) if both else None
        described = Change(
            key=change.key,
            namespace=change.space.namespace,
            change="changed" if both else "added" if before is ABSENT else "removed",
            before=value_of(before),
            after=value_of(after),
            side=change.side if sided else None,
            differs=differs,
        )
        if change.space.kind != ENTRY:
            described.kind = change.space.kind
            described.title = self._title(change)
        else:
            _add_particulars(described, before, after)
        return described

    def _title(self, change: RecordDifference) -> str | None:
        content = change.before if change.after is ABSENT else change.after
        projection = self._project(change.space.kind, content, change.key)
        if projection.text is not None:
            return projection.text.title or None
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
    if not isinstance(side, Mapping):
        return None
    return side["value"] if "value" in side else dict(side)


def _differing_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [
        _FIELDS.get(name, name)
        for name in {**before, **after}
        if not same(before.get(name, ABSENT), after.get(name, ABSENT))
    ]


def _add_particulars(change: Change, before: Any, after: Any) -> None:
    """Add what there is to tell of an entry beside its value."""
    differs = change.differs
    if differs is None or "expires" in differs:
        change.expires_before, change.expires_after = _expiry(before), _expiry(after)
    if differs is not None and "tags" in differs:
        change.tags_before, change.tags_after = before.get("tags", []), after.get("tags", [])


def _expiry(side: Any) -> str | None:
    expires = isinstance(side, Mapping) and "expires_at" in side
    return moments.iso(side["expires_at"]) if expires else None
