"""A connection to Neo4j that never waits for longer than it should.

The driver's blocking interface can wait for an answer that was lost for as long as the connection
stands. Its asynchronous one can be told to stop waiting, so that is what is used, on an event loop
in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from stratagem import limits
from stratagem.errors import GraphServiceFailed, ServiceUnavailable

__all__ = ["Bolt", "Statement"]

T = TypeVar("T")
# Cypher, and its parameters.
Statement = tuple[str, Mapping[str, Any]]

SERVICE: Final = "neo4j_service"
_INSTALL: Final = "pip install 'stratagem[neo4j]'"
_CLOSING_SECONDS: Final = 2.0
# Seconds between attempts after a conflict with another client.
_PAUSES: Final = (0.05, 0.1, 0.2, 0.4)


class Bolt:
    """Runs statements. Safe to use from several threads; connects when it is first used."""

    def __init__(self, uri: str, user: str, password: str, database: str | None = None) -> None:
        self._uri = uri
        self._database = database
        self._auth = (user, password) if user else None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._driver: Any = None

    def write(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction."""

        async def work(transaction: Any) -> None:
            for text, parameters in statements:
                await (await transaction.run(text, parameters)).consume()

        self._run(lambda session: session.execute_write(work))

    def read(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement that changes nothing, and return its rows."""

        async def work(transaction: Any) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = await (await transaction.run(text, parameters)).data()
            return rows

        return self._run(lambda session: session.execute_read(work))

    def alone(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement in a transaction of its own, as changes to the schema want it."""

        async def work(session: Any) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = await (await session.run(text, parameters)).data()
            return rows

        return self._run(work)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            loop, self._loop = self._loop, None
            driver, self._driver = self._driver, None
        if loop is None:
            return
        if driver is not None:
            closing = asyncio.run_coroutine_threadsafe(driver.close(), loop)
            try:
                closing.result(_CLOSING_SECONDS)
            except (TimeoutError, OSError):
                closing.cancel()
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)

    def _run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run work on a session, and say in our words what went wrong."""
        try:
            from neo4j.exceptions import AuthError, DriverError, Neo4jError, TransientError
        except ImportError as error:
            raise _unavailable(f"The package neo4j is not installed: {_INSTALL}.") from error
        try:
            loop = self._get_loop()
            return asyncio.run_coroutine_threadsafe(self._run_with_timeout(work), loop).result()
        except (AuthError, TransientError) as error:
            raise _unavailable(f"Neo4j refuses to answer: {error.message}.") from error
        except Neo4jError as error:
            told = f"Neo4j refused: {error.message}."
            raise GraphServiceFailed(told, service=SERVICE, neo4j_code=error.code) from error
        except (DriverError, TimeoutError, OSError, ValueError) as error:
            told = str(error) or f"nothing within {limits.SERVICE_TIMEOUT_SECONDS:g} seconds"
            raise _unavailable(f"Neo4j does not answer at {self._uri}: {told}.") from error

    async def _run_with_timeout(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run work within its time limit; repeat it after a conflict with another client.

        On a server that has just started, two clients that set it up may run into a deadlock, and
        the server aborts one of them; a retry a moment later succeeds.
        """
        from neo4j.exceptions import TransientError

        async def run() -> T:
            for pause in _PAUSES:
                try:
                    async with self._get_driver().session(database=self._database) as session:
                        return await work(session)
                except TransientError:
                    await asyncio.sleep(pause)
            async with self._get_driver().session(database=self._database) as session:
                return await work(session)

        return await asyncio.wait_for(run(), limits.SERVICE_TIMEOUT_SECONDS)

    def _get_driver(self) -> Any:
        """Return the driver. Only called on the event loop."""
        if self._driver is None:
            from neo4j import AsyncGraphDatabase, NotificationMinimumSeverity

            self._driver = AsyncGraphDatabase.driver(
                self._uri,
                auth=self._auth,
                connection_timeout=limits.SERVICE_CONNECT_SECONDS,
                connection_acquisition_timeout=limits.SERVICE_CONNECT_SECONDS,
                # The outbox tries again, and does so for longer.
                max_transaction_retry_time=0,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
                telemetry_disabled=True,
                user_agent="stratagem",
            )
        return self._driver

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = self._loop = asyncio.new_event_loop()

                def run() -> None:
                    loop.run_forever()
                    loop.close()

                self._thread = threading.Thread(target=run, name="stratagem-neo4j", daemon=True)
                self._thread.start()
            return self._loop


def _unavailable(message: str) -> ServiceUnavailable:
    return ServiceUnavailable(message, service=SERVICE)
