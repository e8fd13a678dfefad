"""The transport to a local server process, over its standard input and output.

The SDK has such a transport; this one differs because the server is untrusted. Lines have a
maximum length, the last lines of stderr are kept for the error message when it ends, its
environment contains only what was named, and it ends together with this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import anyio
from mcp.client.stdio import get_default_environment

from stratagem import limits
from stratagem.errors import ExecutionFailed
from stratagem.gateway.handlers.upstream import launch
from stratagem.gateway.handlers.upstream.dispatcher import (
    ConnectionLost,
    Message,
    MessageDispatcher,
    PendingRequest,
    read_message,
)
from stratagem.gateway.handlers.upstream.upstream_tools import clean_line
from stratagem.mcp_messages import encode_message

__all__ = ["ServerProcess", "open_process"]

_LAUNCH: Final = str(Path(launch.__file__))
# Whether the kernel can kill a process when its parent dies.
_HAS_PARENT_DEATH_SIGNAL: Final[bool] = sys.platform.startswith("linux")


class ServerProcess(MessageDispatcher):
    """A running server, and the messages from and to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self.pid = process.pid
        # Set when no more messages can be exchanged.
        self.ended = asyncio.Event()
        self._process = process
        self._last_words: deque[str] = deque(maxlen=limits.UPSTREAM_STDERR_LINES)
        self._fault = ""

    def last_words(self) -> str:
        """Return why it ended: its exit status and last lines of stderr, as far as known."""
        status = self._process.returncode
        ended = "" if status is None else f"it ended with status {status}"
        return "\n".join(part for part in (self._fault, ended, *self._last_words) if part)

    async def _receive_all(self) -> None:
        """Receive messages from the process until its output ends."""
        assert self._process.stdout is not None
        while line := await self._line(self._process.stdout):
            if not line.isspace():
                # What is no message is nobody's answer.
                with contextlib.suppress(ValueError):
                    self._accept(read_message(line))
            # Lines that are there already are read without waiting: others get their turn.
            await asyncio.sleep(0)
        self.ended.set()

    async def _line(self, stream: asyncio.StreamReader) -> bytes:
        try:
            return await stream.readline()
        except ValueError:
            self._fault = f"it sent a line of over {limits.UPSTREAM_MESSAGE_BYTES_MAX} bytes"
        except OSError as error:
            self._fault = f"its output cannot be read: {error}"
        return b""

    async def _send_request(self, message: Message, pending: PendingRequest) -> None:
        del pending
        try:
            await self._write(message)
        except OSError:
            raise ConnectionLost from None

    async def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):
            await self._write(message)

    def _abandon(self, pending: PendingRequest, reason: str, *, notify: bool) -> None:
        if notify and not self._is_closed:
            self._spawn(self._send(self._cancellation(pending, reason)))

    async def _write(self, message: Message) -> None:
        """Send a message to the process.

        Raises:
            OSError: It has stopped reading.
        """
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(encode_message(message) + b"\n")
            await stdin.drain()
        except OSError as error:
            self._fault = f"it no longer reads its input: {error}"
            # A process that stops reading may keep running, but will answer nothing more.
            self.ended.set()
            raise

    async def read_stderr(self) -> None:
        """Keep the last lines of the process's stderr."""
        assert self._process.stderr is not None
        partial = ""
        while chunk := await self._process.stderr.read(4096):
            *lines, partial = (partial + chunk.decode("utf-8", "replace")).split("\n")
            partial = partial[-limits.UPSTREAM_STDERR_LINE_CHARS :]
            self._last_words.extend(_clean_stderr(line) for line in lines if line.strip())
        if partial.strip():
            self._last_words.append(_clean_stderr(partial))

    async def end(self) -> None:
        """End the process: close its input, then send SIGTERM, then SIGKILL."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        for number in (signal.SIGTERM, None):
            if await self._wait_for_exit():
                break
            self._signal(number)
        await self._wait_for_exit()
        # Kill the child processes that it left behind.
        self._signal(None)

    async def _wait_for_exit(self) -> bool:
        try:
            async with asyncio.timeout(limits.UPSTREAM_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: int | None) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self.pid, signal.SIGKILL if number is None else number)


@contextlib.asynccontextmanager
async def open_process(
    command: str, args: tuple[str, ...], env: Mapping[str, str]
) -> AsyncIterator[ServerProcess]:
    """Start a server, and end it when the context is left.

    Raises:
        ExecutionFailed: It cannot be started; nothing was sent.
    """
    process = ServerProcess(await _start(command, args, get_default_environment() | dict(env)))
    reading = asyncio.create_task(process.read_stderr())
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _start(
    command: str, args: tuple[str, ...], env: dict[str, str]
) -> asyncio.subprocess.Process:
    if shutil.which(command, path=env.get("PATH")) is None:
        raise ExecutionFailed(
            f"The program {command!r} was not found.",
            safe=True,
            hint="Install it, or name it with its whole path.",
        )
    try:
        return await asyncio.create_subprocess_exec(
            *_tie_to_parent(command, args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            limit=limits.UPSTREAM_MESSAGE_BYTES_MAX,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ExecutionFailed(f"{command!r} cannot be started: {error}", safe=True) from error


def _tie_to_parent(command: str, args: tuple[str, ...]) -> list[str]:
    """Return a command line that ends with this process, if the system supports that."""
    ours = (
        [sys.executable, "-I", "-S", _LAUNCH, str(os.getpid())] if _HAS_PARENT_DEATH_SIGNAL else []
    )
    return [*ours, command, *args]


def _clean_stderr(line: str) -> str:
    return clean_line(line, limits.UPSTREAM_STDERR_LINE_CHARS)
