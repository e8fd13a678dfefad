"""`with db.transaction():` for a server: the requests of a block carry the id of a transaction.

Which one is the current one is a variable of the context, so each thread and each task has its own,
as with a database in this process (`transactions.py`).
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self

from stratagem.errors import NotInTransaction, StratagemError, TransactionEnded
from stratagem.sdk.method_bases import AsyncCall, Call
from stratagem.sdk.transactions import Committed

__all__ = ["AsyncRemoteTransaction", "RemoteScope", "RemoteTransaction"]

# The blocks that are open in this context, of whichever servers.
_BLOCKS: Final[ContextVar[tuple[_Block, ...]]] = ContextVar(
    "stratagem_remote_transactions", default=()
)


class RemoteScope:
    """Which transaction the requests of a client are part of."""

    def __init__(self, client: object) -> None:
        self._client = client

    def current(self) -> str | None:
        """Return the id of the transaction that a request is part of now.

        Raises:
            TransactionEnded: The transaction that it would be part of is over.
        """
        block = self.block()
        return None if block is None else block.require_open()

    def block(self) -> _Block | None:
        """Return the block of this client that is open in this context."""
        return next((each for each in _BLOCKS.get() if each.scope is self), None)


class _Block:
    """The common base of synchronous and asynchronous blocks."""

    def __init__(
        self, scope: RemoteScope, *, read_only: bool, time_limit: timedelta | float
    ) -> None:
        self.scope = scope
        seconds = time_limit.total_seconds() if isinstance(time_limit, timedelta) else time_limit
        self._options = {"read_only": read_only, "time_limit": seconds}
        self._id: str | None = None
        self._over = False
        self._result: Committed | None = None

    @property
    def id(self) -> str:
        """The id of the transaction."""
        assert self._id is not None, "enter the block first"
        return self._id

    @property
    def result(self) -> Committed | None:
        """What was committed; None before that, or where it was rolled back."""
        return self._result

    def require_open(self) -> str:
        """Return the id of the transaction, while it is open."""
        if self._id is None or self._over:
            raise TransactionEnded("The transaction of this object has ended.")
        return self._id

    def _refuse_again(self) -> None:
        if self._id is not None:
            raise TransactionEnded("This transaction was used before; begin another one.")
        if self.scope.block() is not None:
            raise NotInTransaction("A transaction cannot be begun within another one.")

    def _enter(self, answer: dict[str, Any]) -> None:
        self._id = str(answer["transaction"])
        _BLOCKS.set((*_BLOCKS.get(), self))

    def _leave(self) -> None:
        # Not by a token: whoever ends a block may have another context than who began it.
        _BLOCKS.set(tuple(each for each in _BLOCKS.get() if each is not self))

    def _end_request(self, *, commit: bool) -> tuple[str, dict[str, Any]]:
        return f"strata_txn_{'commit' if commit else 'rollback'}", {"transaction": self.id}

    def _keep(self, answer: dict[str, Any]) -> None:
        if "records" in answer:
            self._result = Committed(
                answer["records"], answer["events"], answer.get("version"), answer["timestamp"]
            )

    def __repr__(self) -> str:
        if self._id is None:
            state = "not begun"
        elif not self._over:
            state = "open"
        else:
            state = f"{self._result!r}" if self._result else "rolled back"
        return f"<transaction: {state}>"


class RemoteTransaction(_Block):
    """A transaction on a server: all that is done in its block is stored, or nothing of it."""

    def __init__(
        self,
        scope: RemoteScope,
        call: Call,
        *,
        read_only: bool,
        time_limit: timedelta | float,
    ) -> None:
        super().__init__(scope, read_only=read_only, time_limit=time_limit)
        self._call = call

    def rollback(self) -> None:
        """Store nothing of it. The block may go on, without operations on this server."""
        self.require_open()
        self._call(*self._end_request(commit=False))
        self._over = True

    def __enter__(self) -> Self:
        self._refuse_again()
        self._enter(self._call("strata_txn_begin", dict(self._options)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        if self._over:
            return
        self._over = True
        try:
            self._keep(self._call(*self._end_request(commit=kind is None)))
        except StratagemError:
            # Of two errors the first is the one to mend; what was not rolled back ends by itself.
            if kind is None:
                raise


class AsyncRemoteTransaction(_Block):
    """A transaction on a server, for `async with`; see `RemoteTransaction`."""

    def __init__(
        self,
        scope: RemoteScope,
        call: AsyncCall,
        *,
        read_only: bool,
        time_limit: timedelta | float,
    ) -> None:
        super().__init__(scope, read_only=read_only, time_limit=time_limit)
        self._call = call

    async def rollback(self) -> None:
        """Store nothing of it. The block may go on, without operations on this server."""
        self.require_open()
        await self._call(*self._end_request(commit=False))
        self._over = True

    async def __aenter__(self) -> Self:
        self._refuse_again()
        self._enter(await self._call("strata_txn_begin", dict(self._options)))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        if self._over:
            return
        self._over = True
        try:
            self._keep(await self._call(*self._end_request(commit=kind is None)))
        except StratagemError:
            if kind is None:
                raise
