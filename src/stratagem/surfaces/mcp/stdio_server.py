"""The protocol's library, serving one client on stdin and stdout.

Stdin is read by a thread that nobody has to wait for: reading a pipe cannot be interrupted, and a
signal must not wait for the client's next line.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from types import TracebackType
from typing import Any, Self

import anyio
from anyio import CancelScope, to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from stratagem import limits
from stratagem.operation import Caller
from stratagem.surfaces.mcp.callers import ProcessCaller
from stratagem.surfaces.mcp.client_pipe import LAST_ANSWER_SECONDS, UNANSWERED_MAX, ClientPipe
from stratagem.surfaces.mcp.first_requests import HANDSHAKE_ID
from stratagem.surfaces.mcp.server import build
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["serve"]

Incoming = MemoryObjectSendStream[SessionMessage | Exception]


def serve(
    settings: ServerSettings,
    database: Database,
    pipe: ClientPipe,
    caller: Caller,
    unread: Sequence[bytes | None],
) -> None:
    """Serve until stdin ends, or until a signal; `unread` comes before what is read from it."""
    server = build(settings, database, ProcessCaller(caller))
    messages = _Messages(pipe, chain(unread, pipe.lines), database)
    anyio.run(_serve, server, messages)


async def _serve(server: Server[Any], messages: _Messages) -> None:
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](
        max_buffer_size=float("inf")
    )
    with to_server, incoming:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            messages.start_reading(to_server)
            await server.run(incoming, messages, server.create_initialization_options())
            tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: CancelScope) -> None:
    if sys.platform == "win32":  # asyncio has no signal handlers there; Ctrl-C interrupts
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


class _Messages:
    """The messages of a client's pipe; for the server, the stream it writes to."""

    def __init__(self, pipe: ClientPipe, lines: Iterable[bytes | None], database: Database) -> None:
        self._pipe = pipe
        self._lines = lines
        self._database = database
        self._answered_any = False
        self._unanswered = threading.Semaphore(UNANSWERED_MAX)

    def start_reading(self, to_server: Incoming) -> None:
        """Begin to hand the client's messages to the server; close the stream when they end."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._read, args=(loop, to_server), name="stratagem-stdin", daemon=True
        )
        thread.start()

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message to the client."""
        try:
            await to_thread.run_sync(self._write, item.message)
        finally:
            # A client that no longer reads has had its answer too.
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._unanswered.release()
        if not self._answered_any:
            # The handshake is done: now there is time to open the database.
            self._answered_any = True
            self._database.open_in_background()

    async def aclose(self) -> None:
        """Do nothing: the pipe is the client's to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _read(self, loop: asyncio.AbstractEventLoop, to_server: Incoming) -> None:
        # The loop may be closed before this thread hears of it.
        with suppress(RuntimeError):
            for line in self._lines:
                message = self._parse(line)
                if message is not None:
                    loop.call_soon_threadsafe(to_server.send_nowait, message)
            self._wait_for_last_answers()
            loop.call_soon_threadsafe(to_server.close)

    def _parse(self, line: bytes | None) -> SessionMessage | None:
        """Return a line's message; one that is none is answered here."""
        if line is None:
            bound = limits.REQUEST_BYTES_MAX
            self._refuse(INVALID_REQUEST, f"A message is longer than {bound:,} bytes.")
            return None
        if not line.strip():
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self._answer_unread(line)
            return None
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        self._unanswered.acquire()
        return SessionMessage(
            message, ServerMessageMetadata(on_request_unanswered=self._note_cancelled)
        )

    async def _note_cancelled(self) -> None:
        self._unanswered.release()

    def _wait_for_last_answers(self) -> None:
        for _ in range(UNANSWERED_MAX):
            if not self._unanswered.acquire(timeout=LAST_ANSWER_SECONDS):
                return

    def _answer_unread(self, line: bytes) -> None:
        from stratagem.surfaces.mcp.malformed_requests import answer_malformed

        answer = answer_malformed(line)
        if answer is None:
            self._refuse(PARSE_ERROR, "A line is not a JSON-RPC message.")
            return
        with suppress(anyio.BrokenResourceError):
            self._write(answer)

    def _refuse(self, code: int, words: str) -> None:
        error = ErrorData(code=code, message=words)
        with suppress(anyio.BrokenResourceError):
            self._write(JSONRPCError(jsonrpc="2.0", id=None, error=error))

    def _write(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse) and message.id == HANDSHAKE_ID:
            # The client had its answer when it shook hands.
            return
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._pipe.write(text.encode())
        except OSError as error:
            raise anyio.BrokenResourceError from error
