"""Deleting a namespace, and bringing back what it held.

Deleting forgets every entry of it in one transaction: the log keeps them, views of earlier moments
show them, and a diff with another branch lists them. Logged events stay, because they are never
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import orjson

from stratagem import limits
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import View
from stratagem.memory.entries import check_names, is_expired
from stratagem.memory.kinds import ENTRY, ENTRY_FORGOTTEN, ENTRY_STORED, EVENT, entries
from stratagem.memory.listing import live_namespaces
from stratagem.memory.models import NamespaceDeleted, NamespaceRestored
from stratagem.parameters import BranchName, Param, RequestId
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Appended, Reader, Transaction
from stratagem.storage.listing import ListedKey
from stratagem.storage.views import find_branch

__all__ = ["Namespaces"]

NamespaceName = Annotated[str, Param("The namespace", quiet=True)]
Before = Annotated[
    str | int,
    Param("The moment to restore: `before` of the deletion, or any other", time="moment"),
]
# As many are read, and written, at a time; all of them in one transaction.
_AT_ONCE: Final = 1_000
_NEAR_MAX: Final = 3


class Namespaces(BoundSystem):
    """Whole namespaces, for one caller."""

    def delete_namespace(
        self, name: NamespaceName, *, branch: BranchName = None, request_id: RequestId = None
    ) -> NamespaceDeleted:
        """Forget every entry of a namespace at once; `restore_namespace` brings them back."""
        where, on = _check(name), branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, on)
            view = View(target, transaction.branches.lineage(target), transaction.wall)
            head = transaction.log.head().sequence
            drafts = [
                Draft(ENTRY_FORGOTTEN, {}, entries(where), listed.key)
                for listed in _all_entries(transaction, view, where)
            ]
            events = sum(
                count.live
                for count in transaction.listing.space_counts(view, (EVENT,))
                if transaction.records.spaces()[count.space].namespace == where
            )
            answer = {"namespace": where, "deleted": len(drafts), "events": events}
            last = _append_all(transaction, on, drafts)
            if last is None:
                return answer | _near(transaction, view, where)
            return answer | {"before": f"@{head}", **_at(last)}

        arguments = {"namespace": where, "branch": on}
        return NamespaceDeleted(
            **self._foundation.write(
                self._caller,
                work,
                request_id=request_id,
                operation="delete_namespace",
                arguments=arguments,
            )
        )

    def restore_namespace(
        self,
        name: NamespaceName,
        as_of: Before,
        *,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> NamespaceRestored:
        """Store again what a namespace held at a moment and holds no more.

        What is stored under a key now is left as it is.
        """
        where, on = _check(name), branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, on)
            then = self._views.view(transaction, on, as_of)
            now = View(target, transaction.branches.lineage(target), transaction.wall)
            taken = {listed.key for listed in _all_entries(transaction, now, where)}
            past = list(_all_entries(transaction, then, where))
            lost = [listed for listed in past if listed.key not in taken]
            drafts: list[Draft] = []
            for begin in range(0, len(lost), _AT_ONCE):
                group = lost[begin : begin + _AT_ONCE]
                contents = transaction.log.contents([listed.sequence for listed in group])
                drafts += [
                    Draft(ENTRY_STORED, content, entries(where), listed.key, None, listed.sequence)
                    for listed in group
                    if not is_expired(
                        content := orjson.loads(contents[listed.sequence].payload), transaction.wall
                    )
                ]
            answer = {
                "namespace": where,
                "restored": len(drafts),
                "kept": len(past) - len(lost),
            }
            last = _append_all(transaction, on, drafts)
            if not past:
                return answer | _near(transaction, then, where)
            return answer | (_at(last) if last else {})

        arguments = {"namespace": where, "as_of": as_of, "branch": on}
        return NamespaceRestored(
            **self._foundation.write(
                self._caller,
                work,
                request_id=request_id,
                operation="restore_namespace",
                arguments=arguments,
            )
        )


def _check(namespace: str) -> str:
    return check_names(namespace, field="namespace", chars_max=limits.NAMESPACE_CHARS_MAX)


def _near(reader: Reader, view: View, empty: str) -> dict[str, Any]:
    """Return which namespaces with entries have a name like that of one without."""
    near = nearest(empty, live_namespaces(reader, view, (ENTRY,), besides=empty), _NEAR_MAX)
    return {"near": near} if near else {}


def _all_entries(reader: Reader, view: View, namespace: str) -> Iterator[ListedKey]:
    """Yield the entries that a view shows in a namespace, by key."""
    after = ""
    while page := reader.listing.by_key(view, entries(namespace), after=after, limit=_AT_ONCE):
        yield from page
        after = page[-1].key


def _append_all(transaction: Transaction, branch: str, drafts: list[Draft]) -> Appended | None:
    """Append drafts to the branch of a name, in groups; return where the last one landed."""
    last = None
    for begin in range(0, len(drafts), _AT_ONCE):
        target = find_branch(transaction.branches, branch)
        last = transaction.append(target, drafts[begin : begin + _AT_ONCE])[-1]
    return last


def _at(appended: Appended) -> dict[str, Any]:
    return {"version": appended.sequence, "timestamp": moments.iso(appended.at)}
