"""Transactions by an id that calls pass: the protocol has no sessions that could hold one open.

They are those of `with db.transaction()`: hidden branches that any process can go on with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from stratagem import limits
from stratagem.developer.models import (
    TransactionCommitted,
    TransactionInfo,
    TransactionRolledBack,
    TransactionStatus,
)
from stratagem.engine import moments
from stratagem.errors import StratagemError, TransactionEnded
from stratagem.operation import Caller
from stratagem.parameters import BranchName, Param
from stratagem.search.transactions import Transactions

__all__ = ["TransactionTools"]

_Id = Annotated[
    str, Param("What strata_txn_begin returned", quiet=True, aliases=("id", "txn", "txn_id"))
]


class TransactionTools:
    """Transactions, for one caller."""

    def __init__(self, transactions: Transactions, caller: Caller) -> None:
        self._transactions = transactions
        self._caller = caller

    def begin(
        self,
        *,
        read_only: Annotated[bool, Param("Read-only: all reads show one moment")] = False,
        time_limit: Annotated[
            float,
            Param(
                "Seconds until it is rolled back automatically",
                gt=0,
                le=limits.TRANSACTION_SECONDS_MAX,
            ),
        ] = limits.TRANSACTION_SECONDS_DEFAULT,
        branch: BranchName = None,
    ) -> TransactionInfo:
        """Begin a transaction on a branch; pass its id as `transaction` to take part in it."""
        caller = self._caller
        if branch is not None and branch != caller.branch:
            caller = replace(caller, branch=branch)
        return _info(self._transactions.begin(caller, read_only=read_only, time_limit=time_limit))

    def commit(self, transaction: _Id) -> TransactionCommitted:
        """Store all that was written in a transaction, at once, and end it.

        Raises:
            TransactionConflict: A record that it changed was changed meanwhile: nothing is stored.
            TransactionEnded: It is over; nothing of it is stored.
        """
        done = self._transactions.commit(self._resume(transaction))
        return TransactionCommitted(
            transaction, done.records, done.events, moments.iso(done.at), done.sequence
        )

    def rollback(self, transaction: _Id) -> TransactionRolledBack:
        """End a transaction without storing anything of it."""
        try:
            within = self._resume(transaction)
        except TransactionEnded:
            return TransactionRolledBack(transaction, rolled_back=False)
        self._transactions.roll_back(within)
        return TransactionRolledBack(transaction, rolled_back=True)

    def info(self, transaction: _Id) -> TransactionInfo:
        """Return the branch of an open transaction, and when it ends by itself.

        Raises:
            TransactionEnded: It is over.
        """
        within = self._resume(transaction)
        self._transactions.confirm(within)
        return _info(within)

    def is_active(self, transaction: _Id) -> TransactionStatus:
        """Return whether a transaction is open."""
        try:
            self.info(transaction)
        except StratagemError:
            return TransactionStatus(transaction, active=False)
        return TransactionStatus(transaction, active=True)

    def _resume(self, transaction: str) -> Caller:
        return self._transactions.resume(self._caller, transaction)


def _info(caller: Caller) -> TransactionInfo:
    state = caller.transaction
    assert state is not None, "it was begun or found"
    return TransactionInfo(state.id, str(state.branch), state.read_only, moments.iso(state.ends_at))
