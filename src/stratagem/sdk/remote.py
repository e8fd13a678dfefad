"""The SDK for a server: `connect(url, token=…)` and `connect_async`.

A lost reply must not make a write happen twice. Every write carries an idempotency key
(`request_id`), generated if none was given, and is repeated under the same key; the server then
returns the first result. A request without a key, such as a batch of calls, is repeated only if it
certainly did not arrive.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx2

from stratagem import limits
from stratagem.errors import StratagemError
from stratagem.sdk.developer_groups import AsyncDeveloperGroups, DeveloperGroups
from stratagem.sdk.generated.debugging import AsyncDebuggingMethods, DebuggingMethods
from stratagem.sdk.generated.gateway import AsyncGatewayOperations, GatewayOperations
from stratagem.sdk.generated.knowledge import AsyncKnowledgeMethods, KnowledgeMethods
from stratagem.sdk.generated.memory import AsyncMemoryMethods, MemoryMethods
from stratagem.sdk.generated.review import AsyncReviewMethods, ReviewMethods
from stratagem.sdk.http_requests import (
    PreparedRequest,
    ServerEndpoint,
    closed_client_error,
    is_outcome,
    unreachable_error,
)
from stratagem.sdk.method_calls import MethodCall, as_method, reword_note
from stratagem.sdk.remote_transactions import (
    AsyncRemoteTransaction,
    RemoteScope,
    RemoteTransaction,
)
from stratagem.sdk.retry_policy import RetryPolicy, may_repeat
from stratagem.sdk.times import time_arguments
from stratagem.sdk.unknown_keywords import suggest_keywords

__all__ = ["AsyncClient", "Client", "connect", "connect_async"]

ResultT = TypeVar("ResultT")

# How long to wait for an answer, and for how long a request is sent again.
_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 15.0
# Nothing was sent: the request can be repeated whatever it does.
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_STATUS: Final = "strata_status"


class _RequestAttempts:
    """The attempts of one request."""

    def __init__(
        self, endpoint: ServerEndpoint, request: PreparedRequest, patience: RetryPolicy
    ) -> None:
        self._endpoint = endpoint
        self._request = request
        self._retry_policy = patience
        self._began = time.monotonic()
        self._attempt = 0

    def wait_after_failure(self, error: httpx2.TransportError | httpx2.DecodingError) -> float:
        """Return how long to wait until the next attempt, or give up."""
        wait = None
        if self._request.repeatable or isinstance(error, _NOT_SENT):
            wait = self._next_delay()
        if wait is None:
            raise unreachable_error(self._endpoint.base, error) from error
        return wait

    def wait_after_refusal(self, response: httpx2.Response) -> float | None:
        """Return how long to wait until the next attempt; None: this is the answer."""
        if not may_repeat(response.status_code, repeatable=self._request.repeatable):
            return None
        if is_outcome(response):
            return None
        return self._next_delay(response.headers.get("retry-after", ""))

    def _next_delay(self, retry_after: str = "") -> float | None:
        wait = self._retry_policy.delay(self._attempt, time.monotonic() - self._began, retry_after)
        self._attempt += 1
        return wait


class _ServerClient:
    """The common base of the synchronous and the asynchronous client."""

    def __init__(self, endpoint: ServerEndpoint, patience: RetryPolicy) -> None:
        self._endpoint = endpoint
        self._retry_policy = patience
        self._closed = False
        self._scope = RemoteScope(self)

    def __repr__(self) -> str:
        endpoint = self._endpoint
        place = {"branch": endpoint.branch, "namespace": endpoint.namespace}
        about = [f"server {endpoint.base!r}", *(f"{n} {v!r}" for n, v in place.items() if v)]
        state = ["closed"] if self._closed else []
        return f"<{type(self).__name__}: {', '.join([*about, *state])}>"

    def _request(self, name: str, arguments: Mapping[str, Any] | None) -> PreparedRequest:
        given = {} if arguments is None else time_arguments(name, arguments)
        return self._prepare(name, given, whole=False)

    def _prepare(self, name: str, given: Mapping[str, Any], *, whole: bool) -> PreparedRequest:
        return self._endpoint.prepare_request(
            name, given, whole=whole, transaction=self._scope.current()
        )


class Client(_ServerClient, DeveloperGroups):
    """A server, as the embedded SDK has a database. Safe to use from several threads."""

    def __init__(self, endpoint: ServerEndpoint, seconds: float, patience: RetryPolicy) -> None:
        super().__init__(endpoint, patience)
        self._http = httpx2.Client(**endpoint.client_options(seconds))
        # The same methods as the embedded SDK has.
        self.memory = MemoryMethods(self._invoke)
        self.debugging = DebuggingMethods(self._invoke)
        self.knowledge = KnowledgeMethods(self._invoke)
        self.review = ReviewMethods(self._invoke)
        self.gateway = GatewayOperations(self.call)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        return self._send(self._request(name, arguments))

    def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._send(self._prepare(name, time_arguments(name, arguments), whole=True))
        except StratagemError as error:
            error.reword_hint(as_method)
            raise

    def transaction(
        self,
        *,
        read_only: bool = False,
        time_limit: timedelta | float = limits.TRANSACTION_SECONDS_DEFAULT,
    ) -> RemoteTransaction:
        """Return a block whose operations are stored all together, or none of them.

        The server holds it open by an id that the requests of the block carry. See
        `Stratagem.transaction`.
        """
        return RemoteTransaction(
            self._scope, self._call_typed, read_only=read_only, time_limit=time_limit
        )

    @property
    def branch(self) -> str:
        """The current branch."""
        return self._endpoint.branch or str(self.call(_STATUS)["branch"])

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self._endpoint.namespace or str(self.call(_STATUS)["namespace"])

    def close(self) -> None:
        """Let go of the connections."""
        self._closed = True
        self._http.close()

    def _invoke(self, method: Callable[..., ResultT], arguments: Mapping[str, Any], /) -> ResultT:
        call = MethodCall.of(method, arguments)
        request = self._prepare(call.operation, call.arguments, whole=True)
        try:
            result: ResultT = reword_note(call.result(self._send(request)))
        except StratagemError as error:
            error.reword_hint(as_method)
            raise
        return result

    def _send(self, request: PreparedRequest) -> dict[str, Any]:
        attempts = _RequestAttempts(self._endpoint, request, self._retry_policy)
        while True:
            if self._closed:
                raise closed_client_error()
            try:
                response = self._http.post(
                    request.path, content=request.body, headers=request.headers
                )
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                time.sleep(attempts.wait_after_failure(error))
                continue
            wait = attempts.wait_after_refusal(response)
            if wait is None:
                return self._endpoint.parse_answer(request, response)
            time.sleep(wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_ServerClient, AsyncDeveloperGroups):
    """A server, for programs with an event loop: the same methods, to be awaited."""

    def __init__(self, endpoint: ServerEndpoint, seconds: float, patience: RetryPolicy) -> None:
        super().__init__(endpoint, patience)
        self._http = httpx2.AsyncClient(**endpoint.client_options(seconds))
        self.memory = AsyncMemoryMethods(self._invoke)
        self.debugging = AsyncDebuggingMethods(self._invoke)
        self.knowledge = AsyncKnowledgeMethods(self._invoke)
        self.review = AsyncReviewMethods(self._invoke)
        self.gateway = AsyncGatewayOperations(self.call)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        return await self._send(self._request(name, arguments))

    async def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._send(
                self._prepare(name, time_arguments(name, arguments), whole=True)
            )
        except StratagemError as error:
            error.reword_hint(as_method)
            raise

    def transaction(
        self,
        *,
        read_only: bool = False,
        time_limit: timedelta | float = limits.TRANSACTION_SECONDS_DEFAULT,
    ) -> AsyncRemoteTransaction:
        """Return a block, for `async with`; see `Client.transaction`."""
        return AsyncRemoteTransaction(
            self._scope, self._call_typed, read_only=read_only, time_limit=time_limit
        )

    async def close(self) -> None:
        """Let go of the connections."""
        self._closed = True
        await self._http.aclose()

    async def _invoke(
        self, method: Callable[..., ResultT], arguments: Mapping[str, Any], /
    ) -> ResultT:
        call = MethodCall.of(method, arguments)
        request = self._prepare(call.operation, call.arguments, whole=True)
        try:
            result: ResultT = reword_note(call.result(await self._send(request)))
        except StratagemError as error:
            error.reword_hint(as_method)
            raise
        return result

    async def _send(self, request: PreparedRequest) -> dict[str, Any]:
        attempts = _RequestAttempts(self._endpoint, request, self._retry_policy)
        while True:
            if self._closed:
                raise closed_client_error()
            try:
                response = await self._http.post(
                    request.path, content=request.body, headers=request.headers
                )
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                await asyncio.sleep(attempts.wait_after_failure(error))
                continue
            wait = attempts.wait_after_refusal(response)
            if wait is None:
                return self._endpoint.parse_answer(request, response)
            await asyncio.sleep(wait)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


@suggest_keywords
def connect(
    url: str,
    *,
    token: str | None = None,
    namespace: str | None = None,
    branch: str | None = None,
    workspace: str | None = None,
    timeout: float = _SECONDS,
    patience: float = _PATIENCE_SECONDS,
) -> Client:
    """Connect to a server; its address is what `stratagem serve` prints.

    `timeout`: how many seconds an answer is waited for. `patience`: for how many seconds a
    request whose answer was lost, or that came too early, is sent again.
    """
    endpoint = ServerEndpoint(url, token, namespace=namespace, branch=branch, workspace=workspace)
    return Client(endpoint, timeout, RetryPolicy(patience, random.uniform))


@suggest_keywords
def connect_async(
    url: str,
    *,
    token: str | None = None,
    namespace: str | None = None,
    branch: str | None = None,
    workspace: str | None = None,
    timeout: float = _SECONDS,
    patience: float = _PATIENCE_SECONDS,
) -> AsyncClient:
    """Connect to a server, for programs with an event loop; see `connect`."""
    endpoint = ServerEndpoint(url, token, namespace=namespace, branch=branch, workspace=workspace)
    return AsyncClient(endpoint, timeout, RetryPolicy(patience, random.uniform))
