"""The embedded SDK for programs with an event loop: the work is done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, NoReturn, Self, TypeVar

from stratagem import limits, operations
from stratagem.answers import whole
from stratagem.bootstrap import Runtime, Settings
from stratagem.capture.review import Review
from stratagem.debugging.curation import CuratedDebugging
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import StorageUnavailable, StratagemError
from stratagem.knowledge.service import Knowledge
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.sdk.developer_groups import AsyncDeveloperGroups
from stratagem.sdk.embedded import (
    CheckedService,
    Durability,
    OpenDatabase,
    Redaction,
    check_path,
    open_runtime,
    own_caller,
    require_there,
)
from stratagem.sdk.generated.debugging import AsyncDebuggingMethods
from stratagem.sdk.generated.knowledge import AsyncKnowledgeMethods
from stratagem.sdk.generated.memory import AsyncMemoryMethods
from stratagem.sdk.generated.review import AsyncReviewMethods
from stratagem.sdk.method_calls import as_method
from stratagem.sdk.times import time_arguments
from stratagem.sdk.transactions import OpenBlock, TransactionScope
from stratagem.sdk.unknown_keywords import suggest_keywords
from stratagem.search.foundation import BoundSystem

if TYPE_CHECKING:
    from stratagem.sdk.functions import AsyncEmbeddedGateway

__all__ = ["AsyncStratagem", "AsyncTransactionBlock", "open_async"]

ServiceT = TypeVar("ServiceT", bound=BoundSystem)
ResultT = TypeVar("ResultT")

# Writers queue for the database anyway; readers beyond these gain little.
_THREADS: Final = 8


class AsyncTransactionBlock(OpenBlock):
    """A transaction of a database that is awaited; see `TransactionBlock`."""

    def __init__(
        self,
        scope: TransactionScope,
        options: dict[str, Any],
        run: Callable[[Callable[[], Any]], asyncio.Future[Any]],
    ) -> None:
        super().__init__(scope, options)
        self._run = run

    async def rollback(self) -> None:
        """Store nothing of it. The block may go on, without operations on this database."""
        self.require_open()
        await self._end_in_any_case(commit=False)

    async def __aenter__(self) -> Self:
        self._refuse_again()
        begun = self._run(lambda: self.scope.begin(**self._options))
        try:
            caller = await asyncio.shield(begun)
        except asyncio.CancelledError:
            begun.add_done_callback(self._end_unwanted)
            raise
        self._enter(caller)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        try:
            await self._end_in_any_case(commit=kind is None)
        except StratagemError:
            if kind is None:
                raise

    async def _end_in_any_case(self, *, commit: bool) -> None:
        """End the transaction, even where whoever waits for that is cancelled meanwhile."""
        await asyncio.shield(self._run(lambda: self._end(commit=commit)))

    def _end_unwanted(self, begun: asyncio.Future[Caller]) -> None:
        if not begun.cancelled() and begun.exception() is None:
            caller = begun.result()
            self._run(lambda: self.scope.transactions.roll_back(caller))


class _AwaitedService(Generic[ServiceT]):
    """A service whose methods run in a thread, and are awaited."""

    def __init__(
        self,
        service: CheckedService[ServiceT],
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._service = service
        self._run = run

    def __repr__(self) -> str:
        return repr(self._service)

    async def __call__(
        self,
        method: Callable[Concatenate[ServiceT, ...], ResultT],
        arguments: Mapping[str, Any],
        /,
    ) -> ResultT:
        result: ResultT = await self._run(lambda: self._service(method, arguments))
        return result


class AsyncStratagem(OpenDatabase, AsyncDeveloperGroups):
    """An open database for programs with an event loop: the same methods, to be awaited.

    The work is done in threads, so the loop never waits for it. When a call is cancelled, work that
    has begun is completed and other work is not started: a write is stored whole, or not at all.
    """

    def __init__(self, runtime: Runtime, caller: Caller, threads: ThreadPoolExecutor) -> None:
        super().__init__(runtime, caller)
        self._threads = threads
        self.memory = AsyncMemoryMethods(self._awaited_service("memory", Memory))
        self.debugging = AsyncDebuggingMethods(self._awaited_service("debugging", CuratedDebugging))
        self.knowledge = AsyncKnowledgeMethods(self._awaited_service("knowledge", Knowledge))
        self.review = AsyncReviewMethods(self._awaited_service("review", Review))

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        given = {} if arguments is None else time_arguments(name, arguments)
        if operations.find(name).run_async is None:
            answer: dict[str, Any] = await self._run(lambda: self._call(name, given))
            return answer
        # What waits for tools can be cancelled, and runs on the gateway's own loop.
        await self._run(self._keep_loop_apart)
        return await self._runtime.call_async(name, given, self._scope.caller())

    async def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with whole():
                return await self.call(name, arguments)
        except StratagemError as error:
            error.reword_hint(as_method)
            raise

    def transaction(
        self,
        *,
        read_only: bool = False,
        time_limit: timedelta | float = limits.TRANSACTION_SECONDS_DEFAULT,
    ) -> AsyncTransactionBlock:
        """Return a block, for `async with`, whose operations are stored together or not at all.

        Tasks that the block starts take part in it. See `Stratagem.transaction`.
        """
        options = {"read_only": read_only, "time_limit": time_limit}
        return AsyncTransactionBlock(self._scope, options, self._run)

    @cached_property
    def gateway(self) -> AsyncEmbeddedGateway:
        """Tools: registering and calling them."""
        from stratagem.sdk.functions import AsyncEmbeddedGateway

        return AsyncEmbeddedGateway(
            self.call, lambda: self._runtime.gateway, self._run, call_in_thread=self._call
        )

    async def close(self) -> None:
        """Complete the running calls, and close the database."""
        if self._closed:
            return
        self._closed = True
        # Not in one of the threads that it waits for.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._end))

    def _end(self) -> None:
        self._threads.shutdown(wait=True)
        self._runtime.close()

    def _keep_loop_apart(self) -> None:
        self._runtime.gateway.home.keep_apart()

    def _awaited_service(
        self, system: str, kind: Callable[[Any, Caller], ServiceT]
    ) -> _AwaitedService[ServiceT]:
        return _AwaitedService(self._service(system, kind), self._run)

    def _run(self, work: Callable[[], ResultT]) -> asyncio.Future[ResultT]:
        """Start work in a thread, which is then in the transaction that the caller is in."""
        if self._closed:
            raise StorageUnavailable("The database was closed.", hint="Open it again.")
        return asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class _Opening:
    """A database that is being opened: `await` it, or enter it with `async with`."""

    def __init__(self, opened: Callable[[], tuple[Runtime, Caller]]) -> None:
        self._opened = opened
        self._database: AsyncStratagem | None = None

    def __await__(self) -> Generator[Any, None, AsyncStratagem]:
        return self._open().__await__()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"The database is not open yet, so it has no {name!r}: write `async with "
            "stratagem.open_async(…) as db:`, or `db = await stratagem.open_async(…)`.",
            name=name,
            obj=self,
        )

    def __repr__(self) -> str:
        return "<open_async(…), not awaited: write `db = await stratagem.open_async(…)`>"

    async def __aenter__(self) -> AsyncStratagem:
        self._database = await self._open()
        return self._database

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._database is not None, "it was entered"
        await self._database.close()

    async def _open(self) -> AsyncStratagem:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="stratagem")
        opening = asyncio.get_running_loop().run_in_executor(threads, self._opened)
        try:
            runtime, caller = await asyncio.shield(opening)
        except BaseException:
            # Nobody will close what is opened now.
            opening.add_done_callback(_close_unwanted)
            threads.shutdown(wait=False)
            raise
        return AsyncStratagem(runtime, caller, threads)


def _close_unwanted(opening: asyncio.Future[tuple[Runtime, Caller]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].close()


@suggest_keywords
def open_async(
    path: str | PathLike[str],
    *,
    durability: Durability = "full",
    embedder: str | None = None,
    namespace: str = "default",
    branch: str = "default",
    read_only: bool = False,
    redaction: Redaction = "basic",
    relevance_min: float = TRY_MIN,
    actor: str = "sdk",
    workspace: str = "default",
    create: bool = True,
    allow_hosts: Sequence[str] = (),
    bundles: str | PathLike[str] | None = None,
) -> _Opening:
    """Open a database for a program with an event loop: `async with stratagem.open_async(…) as db`.

    Awaiting it opens the database too; close that yourself. See `open` for the parameters.
    """
    if not create:
        require_there(path, workspace)
    settings = Settings(
        check_path(path),
        durability=durability,
        embedder=embedder,
        read_only=read_only,
        redaction=redaction,
        relevance_min=relevance_min,
        workspace=workspace,
        allow_hosts=tuple(allow_hosts),
        bundles=None if bundles is None else str(bundles),
    )
    caller = own_caller(actor, namespace, branch)
    return _Opening(lambda: open_runtime(settings, caller))
