"""The SDK for a server: `connect(url, token=…)` and `connect_async`.

A reply that is lost must not make a write happen twice. Every write carries a request id, made up
where none was given, and is sent again under the same one; the server then returns the first
result. What has no request id is sent again only where it surely did not arrive.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

import httpx2
import orjson

from stratagem.debugging import Debugging
from stratagem.errors import ServiceUnavailable
from stratagem.knowledge import Knowledge
from stratagem.memory import Memory
from stratagem.operations import find
from stratagem.sdk.gateway import GatewayMethods
from stratagem.sdk.methods import AsyncMethods, Methods, Prepared
from stratagem.sdk.restoring import error_of

if TYPE_CHECKING:
    from stratagem.operation import Operation

__all__ = ["AsyncClient", "Client", "connect", "connect_async"]

_ATTEMPTS: Final = 5
_BACKOFF_SECONDS: Final = 0.1
_SECONDS: Final = 60.0
# The server, or something before it, says that it may be asked again.
_AGAIN: Final = frozenset({429, 502, 503, 504})
# Nothing was sent: the request can be repeated whatever it does.
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class _Connection:
    """What both clients share: addresses, headers, and when to try again."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        namespace: str | None,
        branch: str | None,
        workspace: str | None,
    ) -> None:
        self.base = url.rstrip("/").removesuffix("/mcp").removesuffix("/api")
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"
        if workspace:
            self.headers["x-stratagem-workspace"] = workspace
        self._defaults = {"namespace": namespace, "branch": branch}

    def request(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bytes, bool]:
        """Return where an operation is, its body, and whether it may be sent twice."""
        operation = find(name)
        given = dict(arguments)
        known = operation.input_model.model_fields
        for field, value in self._defaults.items():
            if value is not None and field in known:
                given.setdefault(field, value)
        repeatable = operation.right_for(given) == "read"
        if not repeatable and "request_id" in known:
            given.setdefault("request_id", secrets.token_hex(16))
            repeatable = True
        return self._path(operation), orjson.dumps(given), repeatable

    def _path(self, operation: Operation) -> str:
        return f"{self.base}/api/{operation.toolset}/{operation.name}"


def _answer(response: httpx2.Response) -> dict[str, Any]:
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        raise ServiceUnavailable(
            f"The server answered {response.status_code} with something that is no JSON.",
            hint="Is this the address of a Stratagem server?",
        ) from None
    if response.is_success:
        found: dict[str, Any] = answer
        return found
    raise error_of(answer)


def _pause(attempt: int, response: httpx2.Response | None) -> float:
    wished = response.headers.get("retry-after", "") if response is not None else ""
    if wished.isdigit():
        return min(float(wished), _SECONDS)
    most = _BACKOFF_SECONDS * 2**attempt
    return random.uniform(most / 2, most)  # noqa: S311 -- spreads load, guards nothing


def _gone(base: str, error: Exception) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"The server at {base} cannot be reached: {str(error) or type(error).__name__}.",
        hint="Check the address and that `stratagem serve` runs there.",
    )


class Client:
    """A server, as the embedded SDK has a database. Safe to use from several threads."""

    def __init__(self, connection: _Connection, seconds: float) -> None:
        self._connection = connection
        self._http = httpx2.Client(timeout=seconds, headers=connection.headers, trust_env=False)
        # They answer as the systems themselves do, method for method.
        self.memory = cast("Memory", Methods(Memory, "strata_", self._send))
        self.debugging = cast("Debugging", Methods(Debugging, "", self._send))
        self.knowledge = cast("Knowledge", Methods(Knowledge, "", self._send))
        self.gateway = GatewayMethods(self.call)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        path, body, repeatable = self._connection.request(name, arguments or {})
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                response = self._http.post(path, content=body)
            except httpx2.TransportError as error:
                if last or not (repeatable or isinstance(error, _NOT_SENT)):
                    raise _gone(self._connection.base, error) from error
                time.sleep(_pause(attempt, None))
                continue
            if last or not repeatable or response.status_code not in _AGAIN:
                return _answer(response)
            time.sleep(_pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _send(self, prepared: Prepared) -> Any:
        return prepared.result(self.call(prepared.operation, prepared.arguments))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient:
    """A server, for programs with an event loop: the same methods, to be awaited."""

    def __init__(self, connection: _Connection, seconds: float) -> None:
        self._connection = connection
        self._http = httpx2.AsyncClient(
            timeout=seconds, headers=connection.headers, trust_env=False
        )
        self.memory: Any = AsyncMethods(Memory, "strata_", self._send)
        self.debugging: Any = AsyncMethods(Debugging, "", self._send)
        self.knowledge: Any = AsyncMethods(Knowledge, "", self._send)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        path, body, repeatable = self._connection.request(name, arguments or {})
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                response = await self._http.post(path, content=body)
            except httpx2.TransportError as error:
                if last or not (repeatable or isinstance(error, _NOT_SENT)):
                    raise _gone(self._connection.base, error) from error
                await asyncio.sleep(_pause(attempt, None))
                continue
            if last or not repeatable or response.status_code not in _AGAIN:
                return _answer(response)
            await asyncio.sleep(_pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def _send(self, prepared: Prepared) -> Any:
        return prepared.result(await self.call(prepared.operation, prepared.arguments))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def connect(
    url: str,
    *,
    token: str | None = None,
    namespace: str | None = None,
    branch: str | None = None,
    workspace: str | None = None,
    timeout: float = _SECONDS,
) -> Client:
    """Connect to a server; its address is what `stratagem serve` prints."""
    connection = _Connection(url, token, namespace=namespace, branch=branch, workspace=workspace)
    return Client(connection, timeout)


def connect_async(
    url: str,
    *,
    token: str | None = None,
    namespace: str | None = None,
    branch: str | None = None,
    workspace: str | None = None,
    timeout: float = _SECONDS,
) -> AsyncClient:
    """Connect to a server, for programs with an event loop."""
    connection = _Connection(url, token, namespace=namespace, branch=branch, workspace=workspace)
    return AsyncClient(connection, timeout)
