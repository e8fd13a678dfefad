"""One client on stdin and stdout, one JSON message to a line.

Nothing but the protocol may be on stdout, so the descriptor is moved aside and whatever else
prints lands on stderr. Stdin is read by a thread that nobody has to wait for: reading a pipe
cannot be interrupted, and a signal must not wait for the client's next line.

When stdin ends, what was asked before is still answered, so that
`stratagem mcp < requests.jsonl` works; then the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

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
from stratagem.surfaces.mcp.callers import ProcessCaller
from stratagem.surfaces.mcp.server import build
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["run"]

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
CHUNK_BYTES: Final = 64 * 1024
# More than this unanswered, and the client has to wait until it is read on.
UNANSWERED_MAX: Final = 4 * limits.CALLS_AT_ONCE_MAX
# How long an answer is waited for after the client has closed stdin.
LAST_ANSWER_SECONDS: Final = 5.0

Incoming = MemoryObjectSendStream[SessionMessage | Exception]


def run(settings: ServerSettings) -> None:
    """Serve until stdin ends, or until a signal."""
    settings.check_toolsets()
    logging.basicConfig(level=logging.WARNING, format="stratagem: %(message)s")
    database = Database(settings)
    try:
        anyio.run(_serve, build(settings, database, ProcessCaller(settings)), database)
    finally:
        database.close()


async def _serve(server: Server[Any], database: Database) -> None:
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](
        max_buffer_size=float("inf")
    )
    pipe = _Pipe(_take_over(STDIN), _take_over(STDOUT), database)
    with to_server, incoming:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            pipe.start_reading(to_server)
            await server.run(incoming, pipe, server.create_initialization_options())
            tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: CancelScope) -> None:
    if sys.platform == "win32":  # asyncio has no signal handlers there; Ctrl-C interrupts
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _take_over(descriptor: int) -> int:
    """Return the client's end of a standard stream, and put something harmless in its place."""
    private = os.dup(descriptor)
    if descriptor == STDOUT:
        sys.stdout.flush()
        os.dup2(STDERR, STDOUT)
    else:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    return private


class _Pipe:
    """Both directions of a client's pipe; for the server, the stream it writes to."""

    def __init__(self, reads: int, writes: int, database: Database) -> None:
        self._reads = reads
        self._writes = writes
        self._database = database
        self._writing = threading.Lock()
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
            for line in _lines(self._reads):
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
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        rest = memoryview(text.encode() + b"\n")
        try:
            with self._writing:
                while rest:
                    rest = rest[os.write(self._writes, rest) :]
        except OSError as error:
            raise anyio.BrokenResourceError from error


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield what is read line by line; None for a line that is too long."""
    parts: list[bytes] = []
    size = 0
    with suppress(OSError):
        while chunk := os.read(descriptor, CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                fits = size + len(end) <= limits.REQUEST_BYTES_MAX
                yield b"".join([*parts, end]) if fits else None
                parts, size = [], 0
            size += len(rest)
            # A line that is too long is counted on, not kept.
            parts = [*parts, rest] if size <= limits.REQUEST_BYTES_MAX else []
    if size:
        yield b"".join(parts) if size <= limits.REQUEST_BYTES_MAX else None
