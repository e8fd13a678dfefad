"""The transactions of callers: begin one, resume it by its id, commit it or roll it back.

A caller within a transaction is a `Caller` whose branch is the hidden one, so that every system
works in it without knowing of it. `storage/open_transactions.py` says what a commit writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from stratagem import limits
from stratagem.engine import values
from stratagem.engine.lineage import TRANSACTION_MARK, is_transaction
from stratagem.errors import (
    NotInTransaction,
    PermissionDenied,
    StratagemError,
    TransactionEnded,
    ValidationFailed,
)
from stratagem.operation import Caller, TransactionState
from stratagem.search.foundation import Foundation
from stratagem.storage import open_transactions
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.open_transactions import Commit, ends_at, find_transaction, only_reads
from stratagem.storage.views import find_branch

__all__ = ["Transactions"]

_SECOND: Final = 1_000_000
_TOKEN_BYTES: Final = 16
# When it ends, a token, and whether it only reads.
_ID: Final = re.compile(r"[0-9]{1,20}-[0-9a-f]{1,64}(?:-r)?")


class Transactions:
    """The transactions on one database. They hold no lock: any number may be open at a time."""

    def __init__(self, foundation: Foundation, entropy: Callable[[int], bytes]) -> None:
        self._foundation = foundation
        self._entropy = entropy
        self._store = foundation.store

    def begin(
        self,
        caller: Caller,
        *,
        read_only: bool = False,
        time_limit: timedelta | float = limits.TRANSACTION_SECONDS_DEFAULT,
    ) -> Caller:
        """Begin a transaction on the caller's branch; return the caller within it.

        It sees the branch as it is now, and its own writes.

        Raises:
            NotInTransaction: The caller is in one already.
            ReadOnly: The database was opened for reading only.
        """
        caller.refuse_in_transaction("Another transaction")
        micros = _time_limit(time_limit)
        origin = caller.branch

        def work(transaction: Transaction) -> str:
            branch = find_branch(transaction.branches, origin)
            fork = open_transactions.begin(
                transaction,
                branch,
                token=self._entropy(_TOKEN_BYTES).hex(),
                ends_at=transaction.wall + micros,
                read_only=read_only,
            )
            return fork.name

        name = self._store.write(work, WriteRequest(caller.actor))
        return self._within(caller, name, origin)

    def resume(self, caller: Caller, transaction_id: str) -> Caller:
        """Return a caller within the open transaction of an id, which it has begun itself.

        Raises:
            TransactionEnded: No transaction of that id is open.
            PermissionDenied: Somebody else has begun it.
        """
        if not _ID.fullmatch(transaction_id):
            raise TransactionEnded("No transaction has such an id.", field="transaction")
        with self._store.snapshot() as reader:
            branch = find_transaction(reader.branches, transaction_id)
            begun = reader.log.versions([branch.id])[branch.id]
            assert branch.parent is not None, "a transaction is a fork"
            origin = reader.branches.by_id(branch.parent).name
        if begun.actor != caller.actor:
            raise PermissionDenied("Another caller has begun this transaction.")
        return self._within(caller, branch.name, origin)

    def confirm(self, caller: Caller) -> None:
        """Refuse to go on with a transaction whose time is over.

        Raises:
            TransactionEnded: Its time limit is over; nothing of it is stored.
        """
        state = _state(caller)
        if self._store.now() >= state.ends_at:
            raise TransactionEnded(
                "The transaction took longer than its time limit; nothing of it was committed.",
                transaction=state.id,
                hint="Begin a new one, with a longer `time_limit` if needed.",
            )

    def arguments_for(self, caller: Caller, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call, for the branch of the transaction that it is part of.

        Raises:
            NotInTransaction: They name another branch.
            TransactionEnded: Its time limit is over.
            ValidationFailed: They name the branch of a transaction.
        """
        named = arguments.get("branch")
        if isinstance(named, str) and is_transaction(named):
            values.check_text(named, field="branch", chars_max=limits.BRANCH_NAME_CHARS_MAX)
        if caller.transaction is None:
            return arguments
        self.confirm(caller)
        if named is None:
            return arguments
        if named != caller.transaction.branch:
            raise NotInTransaction(
                f"The transaction works only on the branch {caller.transaction.branch!r}.",
                field="branch",
                branch=named,
            )
        return {**arguments, "branch": caller.branch}

    def commit(self, caller: Caller) -> Commit:
        """Write all changes of a transaction to its branch atomically, and end it.

        Raises:
            TransactionConflict: A record it changed was changed meanwhile; it was rolled back.
            TransactionEnded: It is over; nothing of it is stored.
        """
        state = _state(caller)
        if state.read_only:
            self.roll_back(caller)
            return Commit(0, 0, None, self._store.now())
        try:
            self.confirm(caller)
            return self._store.write(
                lambda transaction: open_transactions.commit(
                    transaction, find_transaction(transaction.branches, state.id)
                ),
                WriteRequest(caller.actor),
            )
        except StratagemError:
            self.roll_back(caller)
            raise
        finally:
            self._foundation.views.forget(caller.branch)

    def roll_back(self, caller: Caller) -> None:
        """End a transaction and store nothing of it; nothing happens where it is over."""
        state = _state(caller)

        def work(transaction: Transaction) -> None:
            branch = transaction.branches.by_name(f"{TRANSACTION_MARK}{state.id}")
            open_transactions.discard(transaction, [branch] if branch else [])

        self._store.write(work, WriteRequest(caller.actor))
        self._foundation.views.forget(caller.branch)

    def end_overdue(self) -> None:
        """End the transactions that killed processes left open; write only where there are any."""
        store = self._store
        if store.read_only:
            return
        if open_transactions.overdue(store.reader().branches, store.now()):
            store.write(open_transactions.end_overdue, WriteRequest("transactions"))

    def _within(self, caller: Caller, name: str, origin: str) -> Caller:
        assert is_transaction(name), "only a hidden branch is a transaction"
        read_only = only_reads(name)
        state = TransactionState(
            id=name.removeprefix(TRANSACTION_MARK),
            branch=origin,
            ends_at=ends_at(name),
            read_only=read_only,
        )
        return replace(
            caller,
            branch=name,
            can_switch=False,
            read_only=caller.read_only or read_only,
            transaction=state,
            transaction_id=None,
            origin=None,
        )


def _state(caller: Caller) -> TransactionState:
    if caller.transaction is None:
        raise NotInTransaction("No transaction was begun.", hint="Begin one first.")
    return caller.transaction


def _time_limit(given: timedelta | float) -> int:
    """Return a time limit in microseconds."""
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    longest = limits.TRANSACTION_SECONDS_MAX
    if isinstance(seconds, bool) or not 0 < seconds <= longest:
        raise ValidationFailed(
            f"`time_limit` must be above zero and at most {longest:,} seconds.",
            field="time_limit",
            limit=longest,
        )
    return int(seconds * _SECOND)
