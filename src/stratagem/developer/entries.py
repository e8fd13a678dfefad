"""Entries as a store of keys and values, and as JSON documents: two views of what memory keeps.

What is put here is stored as `strata_store` stores it, but not indexed for search unless that is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from stratagem import limits
from stratagem.developer.models import DocumentChanged, FoundEntries, PlaceDeleted
from stratagem.developer.parameters import (
    HistoryLimit,
    Indexed,
    JsonPath,
    KeyName,
    ListLimit,
    Prefix,
    SpaceName,
)
from stratagem.developer.records import erased_version
from stratagem.engine import paths
from stratagem.errors import ValidationFailed
from stratagem.memory.entries import Entries, Item
from stratagem.memory.models import Entry, EntryList, Forgotten, History, Stored, StoredMany
from stratagem.memory.parameters import Keys, Tags
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.parameters import MISSING, AsOf, BranchName, Cursor, Param, RequestId
from stratagem.search.foundation import Foundation

__all__ = ["JsonDocuments", "KeyValues"]

_Value = Annotated[Any, Param("Any JSON, not as text")]
_ExpectedVersion = Annotated[
    int | None, Param("Only if at this version; 0: only if new", quiet=True)
]
_Ttl = Annotated[
    str | float | None, Param("Expires after: 7d, 12h, seconds", strict=True, time="duration")
]
_PutItems = Annotated[
    Sequence[Item],
    Param(
        "[{key, value}, …]: all are written, or none",
        advertised={
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string"}, "value": {}},
                "required": ["key", "value"],
            }
        },
        time="items",
    ),
]
_ROOT = "$"


class KeyValues:
    """Values under keys, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._memory = Memory(foundation, caller)

    def put(
        self,
        key: KeyName,
        value: _Value,
        *,
        ttl: _Ttl = None,
        tags: Tags = None,
        expected_version: _ExpectedVersion = None,
        index: Indexed = False,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Stored:
        """Store a value under a key, in the place of what was there.

        Raises:
            VersionConflict: The entry is not at `expected_version` (0: not there).
        """
        return self._memory.store(
            key,
            value,
            ttl=ttl,
            tags=tags,
            expected_version=expected_version,
            index=index,
            namespace=namespace,
            branch=branch,
            request_id=request_id,
        )

    def get(
        self,
        key: KeyName,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> Entry | None:
        """Return what is stored under a key, now or at a past moment; None if nothing is."""
        return _recall_exactly(self._memory, key, as_of, namespace, branch)

    def delete(
        self,
        key: KeyName,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Forgotten:
        """Remove what is stored under a key; views of earlier moments still show it."""
        return self._memory.forget(key, namespace=namespace, branch=branch, request_id=request_id)

    def list(
        self,
        prefix: Prefix = None,
        *,
        limit: ListLimit = limits.LIST_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> EntryList:
        """Return entries in the order of their keys, a page at a time."""
        return _list_by_key(self._memory, prefix, limit, cursor, as_of, namespace, branch)

    def history(
        self,
        key: KeyName,
        *,
        limit: HistoryLimit = limits.HISTORY_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> History:
        """Return the versions of an entry, newest first."""
        return self._memory.history(
            key, namespace=namespace, branch=branch, as_of=as_of, limit=limit, cursor=cursor
        )

    def put_many(
        self,
        items: _PutItems,
        *,
        index: Indexed = False,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> StoredMany:
        """Store several entries, all of them or none."""
        written: Any = [{"index": index, **each} for each in items]
        return self._memory.store(
            items=written, namespace=namespace, branch=branch, request_id=request_id
        )

    def get_many(
        self,
        keys: Keys,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> FoundEntries:
        """Return what is stored under several keys, all of one moment."""
        found = self._memory.recall_many(keys, namespace=namespace, as_of=as_of, branch=branch)
        there = {each.key for each in found}
        return FoundEntries(found, [each for each in dict.fromkeys(keys) if each not in there])

    def delete_many(
        self,
        keys: Keys,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Forgotten:
        """Remove several entries at once."""
        return self._memory.forget(
            keys=keys, namespace=namespace, branch=branch, request_id=request_id
        )


class JsonDocuments(Entries):
    """JSON documents under keys, and single places of them, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        super().__init__(foundation, caller)
        self._memory = Memory(foundation, caller)

    def set(
        self,
        key: KeyName,
        value: _Value,
        path: JsonPath = _ROOT,
        *,
        expected_version: _ExpectedVersion = None,
        index: Indexed = False,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Stored:
        """Put a value at a place of a document; at `$` it is the whole document.

        Objects that are missing on the way are made.
        """
        return self._memory.store(
            key,
            value,
            path=None if _is_root(path) else path,
            expected_version=expected_version,
            index=index,
            namespace=namespace,
            branch=branch,
            request_id=request_id,
        )

    def get(
        self,
        key: KeyName,
        path: JsonPath = _ROOT,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> Entry | None:
        """Return what is at a place of a document; None if nothing is."""
        return _recall_exactly(self._memory, key, as_of, namespace, branch, path)

    def delete(
        self,
        key: KeyName,
        path: JsonPath = _ROOT,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> PlaceDeleted:
        """Remove a place of a document; at `$` the whole document."""
        if _is_root(path):
            forgotten = self._memory.forget(
                key, namespace=namespace, branch=branch, request_id=request_id
            )
            where = namespace or self._caller.namespace
            return PlaceDeleted(
                key, _ROOT, forgotten.deleted, where, forgotten.version, forgotten.timestamp
            )
        steps = paths.parse(path)

        def edit(document: Any) -> Any:
            there = document is not MISSING and paths.get(document, steps)[0]
            return paths.remove(document, steps) if there else MISSING

        done = self._edit_value(
            key,
            edit,
            namespace=namespace,
            branch=branch,
            request_id=request_id,
            operation="json_delete",
            arguments={"path": list(steps)},
        )
        return PlaceDeleted(
            key,
            paths.render(steps),
            done["changed"],
            done["namespace"],
            done.get("version"),
            done.get("timestamp"),
        )

    def append(
        self,
        key: KeyName,
        value: _Value,
        path: JsonPath = _ROOT,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> DocumentChanged:
        """Add an element to the array at a place of a document; a missing array is made."""

        def change(array: Any) -> Any:
            if array is MISSING:
                return [value]
            if not isinstance(array, list):
                raise ValidationFailed(
                    f"There is no array at {path}.",
                    field="path",
                    hint="Set a value at that path first.",
                )
            return [*array, value]

        return self._change(
            key, path, change, namespace, branch, request_id, "json_append", {"value": value}
        )

    def increment(
        self,
        key: KeyName,
        path: JsonPath = _ROOT,
        by: Annotated[float, Param("How much to add; negative to subtract")] = 1,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> DocumentChanged:
        """Add to the number at a place of a document; a missing one counts as 0."""
        if not limits.INTEGER_MIN <= by <= limits.INTEGER_MAX:
            raise ValidationFailed(
                f"`by` is at most {limits.INTEGER_MAX:,}; nothing larger can be stored.",
                field="by",
                limit=limits.INTEGER_MAX,
            )
        step = int(by) if float(by).is_integer() else by

        def change(number: Any) -> Any:
            if number is MISSING:
                return step
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValidationFailed(
                    f"There is no number at {path}.",
                    field="path",
                    hint="Set a value at that path first.",
                )
            return number + step

        return self._change(
            key, path, change, namespace, branch, request_id, "json_increment", {"by": by}
        )

    def list(
        self,
        prefix: Prefix = None,
        *,
        limit: ListLimit = limits.LIST_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> EntryList:
        """Return documents in the order of their keys, a page at a time."""
        return _list_by_key(self._memory, prefix, limit, cursor, as_of, namespace, branch)

    def history(
        self,
        key: KeyName,
        *,
        limit: HistoryLimit = limits.HISTORY_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> History:
        """Return the versions of a document, newest first."""
        return self._memory.history(
            key, namespace=namespace, branch=branch, as_of=as_of, limit=limit, cursor=cursor
        )

    def _change(  # noqa: PLR0917 -- of the two methods above
        self,
        key: str,
        path: str,
        change: Callable[[Any], Any],
        namespace: str | None,
        branch: str | None,
        request_id: str | None,
        operation: str,
        arguments: dict[str, Any],
    ) -> DocumentChanged:
        """Replace what is at a place by what a function makes of it."""
        steps = () if _is_root(path) else paths.parse(path)

        def edit(document: Any) -> Any:
            there, value = (False, None) if document is MISSING else paths.get(document, steps)
            whole = {} if document is MISSING else document
            return paths.put(whole, steps, change(value if there else MISSING))

        done = self._edit_value(
            key,
            edit,
            namespace=namespace,
            branch=branch,
            request_id=request_id,
            operation=operation,
            arguments={"path": list(steps), **arguments},
        )
        return DocumentChanged(
            key,
            paths.render(steps),
            paths.get(done["value"], steps)[1],
            done["namespace"],
            done["version"],
            done["timestamp"],
        )


def _is_root(path: str) -> bool:
    return path.strip() in {"", _ROOT}


def _recall_exactly(  # noqa: PLR0917 -- of the methods above
    memory: Memory,
    key: str,
    as_of: str | int | None,
    namespace: str | None,
    branch: str | None,
    path: str = _ROOT,
) -> Entry | None:
    place = None if _is_root(path) else path
    entry = memory.recall(key, namespace=namespace, as_of=as_of, branch=branch, path=place)
    if entry is None and as_of is not None:
        miss = memory.explain_miss(key, namespace=namespace, as_of=as_of, branch=branch)
        if miss.reason == "erased":
            raise erased_version(key, str(miss.timestamp))
    return entry


def _list_by_key(  # noqa: PLR0917 -- of the methods above
    memory: Memory,
    prefix: str | None,
    limit: int,
    cursor: str | None,
    as_of: str | int | None,
    namespace: str | None,
    branch: str | None,
) -> EntryList:
    return memory.list(
        prefix,
        order="key",
        limit=limit,
        cursor=cursor,
        as_of=as_of,
        namespace=namespace,
        branch=branch,
    )
