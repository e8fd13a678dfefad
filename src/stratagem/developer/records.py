"""Reading and writing records of one kind by their keys: what cells and vectors have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stratagem import limits
from stratagem.developer.models import RecordsPurged
from stratagem.engine import moments, values
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, View
from stratagem.errors import VersionErased
from stratagem.memory.entries import check_names
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Reader, Transaction, Version
from stratagem.storage.list_cursors import anchor_view, cursor_at, list_check
from stratagem.storage.views import find_branch

__all__ = ["KeyedRecords", "erased_version"]


def erased_version(key: str, written: str) -> VersionErased:
    """Return the refusal to show what a key held at a moment, as it was erased since."""
    return VersionErased(
        f"The value that {key!r} had then was written at {written}; retention has erased it since.",
        field="as_of",
        key=key,
        written=written,
    )


class KeyedRecords(BoundSystem):
    """Records by space and key, for one caller."""

    def _namespace(self, namespace: str | None) -> str:
        return check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )

    def _key(self, key: str, field: str) -> str:
        return check_names(key, field=field, chars_max=limits.KEY_CHARS_MAX)

    def _other_branch(self, branch: str | None) -> str | None:
        """Return the branch that was written to, unless it is the one that nearly all is on."""
        caller = self._caller
        name = caller.shown_branch if branch in {None, caller.branch} else branch
        return None if name == DEFAULT_BRANCH else name

    def _current(
        self, space: Space, key: str, branch: str | None, as_of: str | int | None
    ) -> Version | None:
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            version = reader.records.current(view.lineage, space, key)
            if version is not None and version.payload is not None:
                return version
            if as_of is not None:
                self._refuse_erased(reader, view, space, key)
        return None

    def _refuse_erased(self, reader: Reader, view: View, space: Space, key: str) -> None:
        """Raise an error if a version existed that was erased, instead of reporting a miss."""
        newest = reader.records.history(view.lineage, space, key, before=OPEN_END, limit=1)
        if newest and newest[0].payload is None:
            raise erased_version(key, moments.iso(newest[0].at))

    def _versions(  # noqa: PLR0917 -- of the histories
        self,
        space: Space,
        key: str,
        before: int,
        limit: int,
        branch: str | None,
        as_of: str | int | None,
    ) -> tuple[list[Version], bool]:
        """Return a page of a record's versions, newest first, and whether there are more."""
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            found = reader.records.history(view.lineage, space, key, before=before, limit=limit + 1)
        return found[:limit], len(found) > limit

    def _page(  # noqa: PLR0917 -- of the lists
        self,
        space: Space,
        prefix: str | None,
        limit: int,
        cursor: str | None,
        branch: str | None,
        as_of: str | int | None,
    ) -> tuple[list[tuple[str, Version]], str | None]:
        """Return a page of records by key, and the cursor of the next.

        All pages show the state that the first one showed.
        """
        begin = prefix or ""
        values.check_text(begin, field="prefix", chars_max=limits.KEY_CHARS_MAX, empty_ok=True)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            check = list_check(view.branch.id, space.kind, space.namespace, begin)
            view, anchor, position = anchor_view(reader, view, cursor, check)
            listed = reader.listing.by_key(
                view, space, prefix=begin, after=position, limit=limit + 1
            )
            page = listed[:limit]
            versions = reader.log.versions([each.sequence for each in page])
        found = [(each.key, versions[each.sequence]) for each in page]
        more = len(listed) > limit
        return found, cursor_at(anchor.text, page[-1].key) if more else None

    def _write_record(  # noqa: PLR0917 -- of the methods that write
        self,
        space: Space,
        key: str,
        kind: str,
        content: Mapping[str, Any],
        branch: str | None,
        request_id: str | None,
        operation: str,
        *,
        check: Callable[[Version | None], bool] = lambda _version: True,
        arguments: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write one record; `check` is given the version that is there, and says whether to."""
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, name)
            lineage = transaction.branches.lineage(target)
            version = transaction.records.current(lineage, space, key)
            live = version if version is not None and version.payload is not None else None
            if not check(live):
                assert live is not None, "only what is there is left alone"
                return {
                    "version": live.sequence,
                    "timestamp": moments.iso(live.at),
                    "written": False,
                }
            done = transaction.append(target, [Draft(kind, dict(content), space, key)])[0]
            return {
                "version": done.sequence,
                "timestamp": moments.iso(done.at),
                "written": True,
            }

        given = {**(arguments or {}), "content": content, "space": list(space), "key": key}
        return self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation=operation,
            arguments={**given, "branch": name},
        )

    def _delete_record(  # noqa: PLR0917 -- of the methods that delete
        self,
        space: Space,
        key: str,
        kind: str,
        branch: str | None,
        request_id: str | None,
        operation: str,
    ) -> dict[str, Any]:
        """Delete a record; return nothing where there was none."""
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, name)
            lineage = transaction.branches.lineage(target)
            if transaction.records.current(lineage, space, key) is None:
                return {}
            done = transaction.append(target, [Draft(kind, {}, space, key)])[0]
            return {"version": done.sequence, "timestamp": moments.iso(done.at)}

        return self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation=operation,
            arguments={"space": list(space), "key": key, "branch": name},
        )

    def _purge(self, space: Space, key: str) -> RecordsPurged:
        erased = self._foundation.purge(self._caller, space=space, key=key, sequence=None)
        return RecordsPurged(erased.events, erased.note)
