"""`with db.transaction():` for a database in this process.

The operations of a block take part by being run in it: which transaction is the current one is a
variable of the context, so each thread and each task of an event loop has its own. Work that a
block started and that outlives it is refused, never written outside the transaction.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult
from stratagem.engine import moments
from stratagem.errors import NotInTransaction, StratagemError, TransactionEnded
from stratagem.operation import Caller
from stratagem.sdk.method_calls import as_method
from stratagem.search.transactions import Transactions
from stratagem.storage.open_transactions import Commit

__all__ = ["Committed", "OpenBlock", "TransactionBlock", "TransactionScope"]

# The blocks that are open in this context, of whichever databases.
_BLOCKS: Final[ContextVar[tuple[OpenBlock, ...]]] = ContextVar("stratagem_transactions", default=())


@dataclass(slots=True, repr=False)
class Committed(DisplayableResult):
    """What a transaction has written; `version` is None where that was nothing."""

    records: int
    events: int
    version: int | None
    timestamp: str


class TransactionScope:
    """The caller for which operations of a database are run: its own, or one in a transaction."""

    def __init__(self, transactions: Transactions, caller: Caller) -> None:
        self.transactions = transactions
        self._caller = caller

    def caller(self) -> Caller:
        """Return whom an operation is run for now.

        Raises:
            TransactionEnded: The transaction that it would be part of is over.
        """
        # There are none for nearly every call.
        block = self._block() if _BLOCKS.get() else None
        return self._caller if block is None else block.require_open()

    def begin(self, **options: Any) -> Caller:
        """Begin a transaction, unless one is open."""
        if self._block() is not None:
            raise NotInTransaction("A transaction cannot be begun within another one.")
        try:
            return self.transactions.begin(self._caller, **options)
        except StratagemError as error:
            error.reword_hint(as_method)
            raise

    def _block(self) -> OpenBlock | None:
        for block in _BLOCKS.get():
            if block.scope is self:
                return block
        return None


class OpenBlock:
    """The common base of synchronous and asynchronous blocks."""

    def __init__(self, scope: TransactionScope, options: dict[str, Any]) -> None:
        self.scope = scope
        self._options = options
        self._caller: Caller | None = None
        self._over = False
        self._result: Committed | None = None

    @property
    def id(self) -> str:
        """The id of the transaction."""
        assert self._caller is not None, "enter the block first"
        assert self._caller.transaction is not None
        return self._caller.transaction.id

    @property
    def result(self) -> Committed | None:
        """What was committed; None before that, or where it was rolled back."""
        return self._result

    def require_open(self) -> Caller:
        """Return the caller within the transaction."""
        if self._caller is None or self._over:
            raise TransactionEnded("The transaction of this object has ended.")
        return self._caller

    def _refuse_again(self) -> None:
        if self._caller is not None:
            raise TransactionEnded("This transaction was used before; begin another one.")

    def _enter(self, caller: Caller) -> None:
        self._caller = caller
        _BLOCKS.set((*_BLOCKS.get(), self))

    def _leave(self) -> None:
        # Not by a token: whoever ends a block may have another context than who began it.
        _BLOCKS.set(tuple(each for each in _BLOCKS.get() if each is not self))

    def _end(self, *, commit: bool) -> None:
        """Commit or roll back, unless the transaction is over already."""
        if self._over:
            return
        self._over = True
        assert self._caller is not None
        if commit:
            self._result = _to_committed(self.scope.transactions.commit(self._caller))
        else:
            self.scope.transactions.roll_back(self._caller)

    def __repr__(self) -> str:
        if self._caller is None:
            state = "not begun"
        elif not self._over:
            state = "open"
        else:
            state = f"{self._result!r}" if self._result else "rolled back"
        return f"<transaction: {state}>"


class TransactionBlock(OpenBlock):
    """A transaction: all that is done in its block is stored, or nothing of it.

    It is committed where the block ends, and rolled back where an error leaves it.
    """

    def rollback(self) -> None:
        """Store nothing of it. The block may go on, without operations on this database."""
        self.require_open()
        self._end(commit=False)

    def __enter__(self) -> Self:
        self._refuse_again()
        self._enter(self.scope.begin(**self._options))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        try:
            self._end(commit=kind is None)
        except StratagemError:
            # Of two errors the first is the one to mend; what was not rolled back ends by itself.
            if kind is None:
                raise


def _to_committed(commit: Commit) -> Committed:
    return Committed(commit.records, commit.events, commit.sequence, moments.iso(commit.at))
