"""Spaces: the namespaces of memory, as things that are created, chosen and deleted.

A namespace needs no creating: it is there when something is stored in it. Creating one as a space
records its name, so that an empty one exists too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from stratagem import limits
from stratagem.developer.kinds import (
    CELL,
    CELL_DELETED,
    COLLECTION,
    COLLECTION_DELETED,
    SPACE_CREATED,
    SPACE_DELETED,
    SPACES,
    VECTOR_DELETED,
    cells,
    collections,
    vectors,
)
from stratagem.developer.models import (
    SpaceCurrent,
    SpaceDeleted,
    SpaceInfo,
    SpaceList,
    SpacePresence,
)
from stratagem.developer.records import KeyedRecords
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import View
from stratagem.errors import SwitchUnavailable, ValidationFailed
from stratagem.memory.entries import check_names
from stratagem.memory.kinds import ENTRY, ENTRY_FORGOTTEN, EVENT, entries
from stratagem.parameters import AsOf, BranchName, Param, RequestId
from stratagem.storage.contract import Reader, Transaction
from stratagem.storage.views import find_branch

__all__ = ["SpaceTools"]

_Name = Annotated[str, Param("The space", quiet=True, aliases=("space", "namespace"))]
_DEFAULT = "default"
_AT_ONCE = 1_000


class SpaceTools(KeyedRecords):
    """Spaces, for one caller."""

    def create(
        self, name: _Name, *, branch: BranchName = None, request_id: RequestId = None
    ) -> SpaceInfo:
        """Create a space; one that is there is left as it is."""
        where = _check_name(name)
        self._write_record(
            SPACES,
            where,
            SPACE_CREATED,
            {},
            branch,
            request_id,
            "space_create",
            check=lambda version: version is None,
        )
        return self._describe([where], branch, None)[0]

    def list(self, *, branch: BranchName = None, as_of: AsOf = None) -> SpaceList:
        """Return the spaces that were created or hold something, by name."""
        return SpaceList([*self._describe(None, branch, as_of)], self._caller.namespace)

    def exists(
        self, name: _Name, *, branch: BranchName = None, as_of: AsOf = None
    ) -> SpacePresence:
        """Return whether a space was created or holds something."""
        where = _check_name(name)
        there = any(each.name == where for each in self._describe(None, branch, as_of))
        return SpacePresence(where, there)

    def delete(
        self,
        name: _Name,
        *,
        force: Annotated[bool, Param("Delete it even if it is not empty")] = False,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> SpaceDeleted:
        """Delete a space and, with `force`, the entries, cells and collections in it.

        Views of earlier moments still show them. Logged events stay.
        """
        where = _check_name(name)
        if where == _DEFAULT:
            raise ValidationFailed(
                f"The space {_DEFAULT!r} cannot be deleted.",
                field="name",
                hint="Delete what it holds.",
            )
        on = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, on)
            view = View(target, transaction.branches.lineage(target), transaction.wall)
            drafts, counts = _deletions(transaction, view, where)
            created = transaction.records.current(view.lineage, SPACES, where) is not None
            held = sum(counts.values())
            events = _count(transaction, view, EVENT, where)
            if held and not force:
                said = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
                raise ValidationFailed(
                    f"The space {where!r} is not empty: it holds {said}.",
                    field="force",
                    hint="Pass force to delete what it holds too. Past moments still show it.",
                )
            before = f"@{transaction.log.head().sequence}"
            if created:
                drafts.append(Draft(SPACE_DELETED, {}, SPACES, where))
            for begin in range(0, len(drafts), _AT_ONCE):
                target = find_branch(transaction.branches, on)
                transaction.append(target, drafts[begin : begin + _AT_ONCE])
            return {
                "deleted": bool(drafts),
                **counts,
                "events": events,
                "before": before if held else None,
            }

        done = self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="space_delete",
            arguments={"name": where, "force": force, "branch": on},
        )
        return SpaceDeleted(where, **done)

    def use(self, name: _Name) -> SpaceCurrent:
        """Make a space the current one: that of whatever names none."""
        where = _check_name(name)
        self._caller.refuse_in_transaction("Changing the space")
        if not self._caller.can_switch:
            raise SwitchUnavailable(
                "This connection cannot remember a current space.",
                hint="Pass `namespace` with each call instead.",
            )
        self._caller.use_namespace(where)
        return SpaceCurrent(where)

    def current(self) -> SpaceCurrent:
        """Return the current space."""
        return SpaceCurrent(self._caller.namespace)

    def _describe(
        self, names: Sequence[str] | None, branch: str | None, as_of: str | int | None
    ) -> Sequence[SpaceInfo]:
        """Return spaces with how much they hold: those named, or all."""
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            counted = _counts(reader, view)
            created = list(_keys(reader, view, SPACES))
        wanted = names or sorted({*counted, *created, _DEFAULT})
        return [
            SpaceInfo(name, name == self._caller.namespace, **counted.get(name, {}))
            for name in wanted
        ]


_FIELDS = {ENTRY: "entries", EVENT: "events", CELL: "cells", COLLECTION: "collections"}


def _check_name(name: str) -> str:
    return check_names(name, field="name", chars_max=limits.NAMESPACE_CHARS_MAX)


def _counts(reader: Reader, view: View) -> dict[str, dict[str, int]]:
    """Return how much each namespace shows of each kind."""
    spaces = reader.records.spaces()
    found: dict[str, dict[str, int]] = {}
    for each in reader.listing.space_counts(view, tuple(_FIELDS)):
        space = spaces[each.space]
        found.setdefault(space.namespace, {})[_FIELDS[space.kind]] = each.live
    return found


def _count(reader: Reader, view: View, kind: str, namespace: str) -> int:
    return _counts(reader, view).get(namespace, {}).get(_FIELDS[kind], 0)


def _keys(reader: Reader, view: View, space: Space) -> Iterator[str]:
    after = ""
    while page := reader.listing.by_key(view, space, after=after, limit=_AT_ONCE):
        yield from (each.key for each in page)
        after = page[-1].key


def _deletions(reader: Reader, view: View, namespace: str) -> tuple[list[Draft], dict[str, int]]:
    """Return what deletes everything in a namespace, and how much of each kind that is."""
    named = list(_keys(reader, view, collections(namespace)))
    groups = {
        "entries": [(ENTRY_FORGOTTEN, entries(namespace))],
        "cells": [(CELL_DELETED, cells(namespace))],
        "vectors": [(VECTOR_DELETED, vectors(namespace, each)) for each in named],
        "collections": [(COLLECTION_DELETED, collections(namespace))],
    }
    drafts: list[Draft] = []
    counts: dict[str, int] = {}
    for field, spaces in groups.items():
        found = [
            Draft(kind, {}, space, key)
            for kind, space in spaces
            for key in _keys(reader, view, space)
        ]
        drafts += found
        counts[field] = len(found)
    return drafts, counts
