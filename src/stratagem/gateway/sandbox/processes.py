"""Starting one process, and keeping it within time and output.

A process here leads a group of its own. However its run ends (by itself, by the clock, by too
much output, by cancellation of the task that waits for it) the whole group is killed and the
process is waited for before anything is returned.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stratagem import limits
from stratagem.errors import ServiceUnavailable
from stratagem.gateway.sandbox.results import OnOutput, Stream

__all__ = ["Launch", "Outcome", "run"]

_CHUNK_BYTES = 1 << 16
_SHOWN_CHARS = 500
_LAST_WORDS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, and what to tell it.

    `orders` are made from the process id, once there is one. `work` follows them and is for
    the code itself. `home` is the folder above Python's library where only root can reach it: the
    process is given it open, and finds its library there when it is root no more.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    orders: Callable[[int], Mapping[str, Any]]
    work: Mapping[str, Any]
    home: str | None = None


@dataclass(slots=True)
class Outcome:
    """What a process left behind."""

    texts: dict[Stream, str] = field(default_factory=lambda: {"stdout": "", "stderr": ""})
    status: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    stopped: Literal["time", "output"] | None = None
    duration: float = 0.0


async def run(
    launch: Launch, *, seconds: float, stdin: bytes | None, on_output: OnOutput | None
) -> Outcome:
    """Run a process to its end, or to the end of its time.

    Raises:
        ServiceUnavailable: The process did not get as far as running the code.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, _home_of(launch) as (descriptors, variables):
            process = await asyncio.create_subprocess_exec(
                *launch.argv,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**launch.env, **variables},
                cwd="/",
                pass_fds=[theirs.fileno(), *descriptors],
                start_new_session=True,
            )
        try:
            return await _Conversation(process, Outcome(), on_output).hold(
                ours, launch, seconds=seconds, stdin=stdin
            )
        finally:
            _kill_group(process.pid)
            # Short, and not to be cut off: a process that nobody waits for stays for ever.
            await asyncio.shield(_gone(process))


@contextlib.contextmanager
def _home_of(launch: Launch) -> Iterator[tuple[list[int], dict[str, str]]]:
    """Open the home of an interpreter; give its descriptor, and the variable that names it."""
    if launch.home is None:
        yield [], {}
        return
    # The kernel follows such a name to the folder itself, without asking about those above it.
    descriptor = os.open(launch.home, os.O_PATH | os.O_DIRECTORY)
    try:
        yield [descriptor], {"PYTHONHOME": f"/proc/self/fd/{descriptor}"}
    finally:
        os.close(descriptor)


class _TooMuch(Exception):
    """There was more output than is taken."""


@dataclass(slots=True)
class _Conversation:
    process: asyncio.subprocess.Process
    outcome: Outcome
    on_output: OnOutput | None

    async def hold(
        self, control: socket.socket, launch: Launch, *, seconds: float, stdin: bytes | None
    ) -> Outcome:
        reader, writer = await asyncio.open_connection(
            sock=control, limit=limits.SANDBOX_OUTPUT_BYTES_MAX
        )
        outputs = [
            asyncio.create_task(self._read(self.process.stdout, "stdout")),
            asyncio.create_task(self._read(self.process.stderr, "stderr")),
        ]
        try:
            if not await self._begin(launch, reader, writer):
                await asyncio.wait(outputs, timeout=1)
                raise self._not_started()
            others = [asyncio.create_task(self._report(reader))]
            if stdin is not None:
                others.append(asyncio.create_task(self._feed(stdin)))
            await self._until_over([*outputs, *others], seconds)
        finally:
            _kill_group(self.process.pid)
            writer.close()
            for task in outputs:
                task.cancel()
            await asyncio.gather(*outputs, return_exceptions=True)
        return self.outcome

    async def _begin(
        self, launch: Launch, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the orders; tell whether nothing stands any more between them and the code."""
        for message in (launch.orders(self.process.pid), launch.work):
            data = json.dumps(message).encode()
            writer.write(len(data).to_bytes(4, "big") + data)
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            async with asyncio.timeout(limits.SANDBOX_START_SECONDS_MAX):
                return (await reader.readline()).startswith(b'{"ready"')
        return False

    def _not_started(self) -> ServiceUnavailable:
        said = self.outcome.texts["stderr"].strip()[-_SHOWN_CHARS:]
        return ServiceUnavailable(
            "The sandbox could not be started." + (f" It said: {said}" if said else ""),
            hint="`stratagem doctor` shows what of the sandbox works on this machine.",
            part="sandbox",
        )

    async def _until_over(self, tasks: list[asyncio.Task[None]], seconds: float) -> None:
        """Wait for the process and for all that it said."""
        begun = time.perf_counter()
        ended = asyncio.create_task(self._end())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(ended, *tasks)
        except TimeoutError:
            self.outcome.stopped = "time"
        except _TooMuch:
            self.outcome.stopped = "output"
        finally:
            self.outcome.duration = time.perf_counter() - begun
            _kill_group(self.process.pid)
            for task in (ended, *tasks):
                task.cancel()
            await asyncio.gather(ended, *tasks, return_exceptions=True)

    async def _end(self) -> None:
        # What it left running must not outlive it, and holds the pipes open: until they are
        # closed, asyncio does not say that a process has ended.
        if await _ended(self.process.pid):
            _kill_group(self.process.pid)
        self.outcome.status = await self.process.wait()

    async def _read(self, pipe: asyncio.StreamReader | None, stream: Stream) -> None:
        assert pipe is not None, "asked for when starting"
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        room = limits.SANDBOX_OUTPUT_BYTES_MAX
        while data := await pipe.read(_CHUNK_BYTES):
            self._say(stream, decoder.decode(data[:room]))
            room -= len(data)
            if room < 0:
                raise _TooMuch
        self._say(stream, decoder.decode(b"", final=True))

    def _say(self, stream: Stream, text: str) -> None:
        self.outcome.texts[stream] += text
        if text and self.on_output is not None:
            self.on_output(stream, text)

    async def _report(self, reader: asyncio.StreamReader) -> None:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise _TooMuch from error
        except ConnectionError:
            return
        with contextlib.suppress(ValueError, RecursionError):
            report = json.loads(line)
            if isinstance(report, dict):
                self.outcome.report = report

    async def _feed(self, stdin: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None, "asked for when starting"
        # Code need not read what it is given.
        with contextlib.suppress(ConnectionError):
            pipe.write(stdin)
            await pipe.drain()
            pipe.close()
            await pipe.wait_closed()


async def _ended(pid: int) -> bool:
    """Wait for the end of a process, whoever else holds its pipes; False where none can tell."""
    if not hasattr(os, "pidfd_open"):
        return False
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        loop.add_reader(descriptor, _settle, over)
        await over
        return True
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _settle(over: asyncio.Future[None]) -> None:
    # Called again for as long as nobody has taken the descriptor out.
    if not over.done():
        over.set_result(None)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait until a killed process is gone; what it said last is thrown away.

    A pipe that is not read to its end is never closed, and waiting would never end.
    """
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None, "asked for when starting"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                while await pipe.read(_CHUNK_BYTES):
                    pass
    await process.wait()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
