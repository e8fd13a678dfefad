"""Runs one process within limits of time and output.

The process leads a process group of its own. However the run ends (by itself, by timeout, by too
much output, by cancellation of the waiting task), the whole group is killed and the process is
reaped before the run returns.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ServiceUnavailable
from stratagem.gateway.sandbox.results import CodeResult, Killed, LayerName, OnOutput, Stream

__all__ = ["Launch", "ProcessResult", "code_result_of", "run"]

_CHUNK_BYTES = 1 << 16
_SHOWN_CHARS = 500
_LAST_WORDS_SECONDS = 2.0
# As shells do, bubblewrap exits with this number plus the signal that ended the process.
_SIGNAL_BASE: Final = 128
_SIGNAL_MAX: Final = 64
_OUT_OF_MEMORY: Final = re.compile(
    r"MemoryError|out of memory|Cannot allocate memory|bad_alloc|Array buffer allocation failed",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start, and the messages to send to it.

    `instructions` returns the message for `inside/start.py`, given the process id. `work` follows
    it and is for the code itself. `home` is set if only root can reach Python's library: the
    folder above it is passed as an open descriptor, so that it stays readable without root.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    instructions: Callable[[int], Mapping[str, Any]]
    work: Mapping[str, Any]
    home: str | None = None


@dataclass(slots=True)
class ProcessResult:
    """The output, the exit status and the report of a process."""

    texts: dict[Stream, str] = field(default_factory=lambda: {"stdout": "", "stderr": ""})
    status: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    stopped: Literal["time", "output"] | None = None
    duration: float = 0.0


async def run(
    launch: Launch, *, seconds: float, stdin: bytes | None, on_output: OnOutput | None
) -> ProcessResult:
    """Run a process until it ends or its time is up.

    Raises:
        ServiceUnavailable: The process did not get as far as running the code.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, _open_home(launch) as (descriptors, variables):
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
            return await _ProcessMonitor(process, ProcessResult(), on_output).supervise(
                ours, launch, seconds=seconds, stdin=stdin
            )
        finally:
            _kill_group(process.pid)
            # Short, and shielded: a process that is not reaped stays as a zombie.
            await asyncio.shield(_reap(process))


@contextlib.contextmanager
def _open_home(launch: Launch) -> Iterator[tuple[list[int], dict[str, str]]]:
    """Open the home of an interpreter; yield its descriptor and the variable that names it."""
    if launch.home is None:
        yield [], {}
        return
    # The kernel resolves such a path to the folder itself and does not check its parents.
    descriptor = os.open(launch.home, os.O_PATH | os.O_DIRECTORY)
    try:
        yield [descriptor], {"PYTHONHOME": f"/proc/self/fd/{descriptor}"}
    finally:
        os.close(descriptor)


class _OutputLimitExceeded(Exception):
    """The process wrote more than the limit."""


@dataclass(slots=True)
class _ProcessMonitor:
    process: asyncio.subprocess.Process
    result: ProcessResult
    on_output: OnOutput | None

    async def supervise(
        self, control: socket.socket, launch: Launch, *, seconds: float, stdin: bytes | None
    ) -> ProcessResult:
        reader, writer = await asyncio.open_connection(
            sock=control, limit=limits.SANDBOX_OUTPUT_BYTES_MAX
        )
        outputs = [
            asyncio.create_task(self._read_output(self.process.stdout, "stdout")),
            asyncio.create_task(self._read_output(self.process.stderr, "stderr")),
        ]
        try:
            if not await self._send_instructions(launch, reader, writer):
                await asyncio.wait(outputs, timeout=1)
                raise self._start_failure()
            others = [asyncio.create_task(self._read_report(reader))]
            if stdin is not None:
                others.append(asyncio.create_task(self._write_stdin(stdin)))
            await self._wait([*outputs, *others], seconds)
        finally:
            _kill_group(self.process.pid)
            writer.close()
            for task in outputs:
                task.cancel()
            await asyncio.gather(*outputs, return_exceptions=True)
        return self.result

    async def _send_instructions(
        self, launch: Launch, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the instructions and the work; tell whether the process reports that it is ready."""
        for message in (launch.instructions(self.process.pid), launch.work):
            data = json.dumps(message).encode()
            writer.write(len(data).to_bytes(4, "big") + data)
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            async with asyncio.timeout(limits.SANDBOX_START_SECONDS_MAX):
                return (await reader.readline()).startswith(b'{"ready"')
        return False

    def _start_failure(self) -> ServiceUnavailable:
        said = self.result.texts["stderr"].strip()[-_SHOWN_CHARS:]
        return ServiceUnavailable(
            "The sandbox could not be started." + (f" It said: {said}" if said else ""),
            hint="`stratagem doctor` shows which parts of the sandbox work on this machine.",
            part="sandbox",
        )

    async def _wait(self, tasks: list[asyncio.Task[None]], seconds: float) -> None:
        """Wait for the process and all of its output, up to the time limit."""
        begun = time.perf_counter()
        ended = asyncio.create_task(self._read_status())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(ended, *tasks)
        except TimeoutError:
            self.result.stopped = "time"
        except _OutputLimitExceeded:
            self.result.stopped = "output"
        finally:
            self.result.duration = time.perf_counter() - begun
            _kill_group(self.process.pid)
            for task in (ended, *tasks):
                task.cancel()
            await asyncio.gather(ended, *tasks, return_exceptions=True)

    async def _read_status(self) -> None:
        # Its child processes must not outlive it. They also hold the pipes open, and asyncio
        # does not report the end of a process before its pipes are closed.
        if await _wait_for_exit(self.process.pid):
            _kill_group(self.process.pid)
        self.result.status = await self.process.wait()

    async def _read_output(self, pipe: asyncio.StreamReader | None, stream: Stream) -> None:
        assert pipe is not None, "asked for when starting"
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        room = limits.SANDBOX_OUTPUT_BYTES_MAX
        while data := await pipe.read(_CHUNK_BYTES):
            self._add_output(stream, decoder.decode(data[:room]))
            room -= len(data)
            if room < 0:
                raise _OutputLimitExceeded
        self._add_output(stream, decoder.decode(b"", final=True))

    def _add_output(self, stream: Stream, text: str) -> None:
        self.result.texts[stream] += text
        if text and self.on_output is not None:
            self.on_output(stream, text)

    async def _read_report(self, reader: asyncio.StreamReader) -> None:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise _OutputLimitExceeded from error
        except ConnectionError:
            return
        with contextlib.suppress(ValueError, RecursionError):
            report = json.loads(line)
            if isinstance(report, dict):
                self.result.report = report

    async def _write_stdin(self, stdin: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None, "asked for when starting"
        # Code need not read its standard input.
        with contextlib.suppress(ConnectionError):
            pipe.write(stdin)
            await pipe.drain()
            pipe.close()
            await pipe.wait_closed()


async def _wait_for_exit(pid: int) -> bool:
    """Wait for a process to exit, even if its pipes stay open; False without pidfd support."""
    if not hasattr(os, "pidfd_open"):
        return False
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        loop.add_reader(descriptor, _mark_done, over)
        await over
        return True
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _mark_done(over: asyncio.Future[None]) -> None:
    # Called again until the descriptor is removed from the loop.
    if not over.done():
        over.set_result(None)


async def _reap(process: asyncio.subprocess.Process) -> None:
    """Wait for a killed process, and discard the rest of its output.

    asyncio closes a pipe only when it was read to its end, and waits for that.
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


def code_result_of(
    process: ProcessResult, layer: LayerName, handed_on: str | None = None
) -> CodeResult:
    """Return the result of a run from that of its process."""
    ended_by = _ending_signal(process)
    reported = process.report.get("exit")
    if ended_by is not None:
        status = _SIGNAL_BASE + ended_by
    else:
        status = reported if isinstance(reported, int) else process.status
    return CodeResult(
        stdout=process.texts["stdout"],
        stderr=process.texts["stderr"],
        exit_code=status,
        result=process.report.get("result"),
        duration=process.duration,
        killed=_kill_reason(process, ended_by),
        layer=layer,
        handed_on=handed_on,
    )


def _ending_signal(process: ProcessResult) -> int | None:
    """Return the signal that ended the process, None if it ended by itself."""
    if process.stopped is not None:
        return int(signal.SIGKILL)
    if process.status < 0:
        return -process.status
    # Code that ended by itself reported its exit; without a report such a status means a signal.
    if "exit" not in process.report and 0 < process.status - _SIGNAL_BASE <= _SIGNAL_MAX:
        return process.status - _SIGNAL_BASE
    return None


def _kill_reason(process: ProcessResult, ended_by: int | None) -> Killed | None:
    if process.stopped is not None:
        return process.stopped
    if process.report.get("killed") in {"memory", "signal"}:
        return "memory" if process.report["killed"] == "memory" else "signal"
    if ended_by == signal.SIGXCPU:
        return "time"
    if ended_by is not None:
        return "memory" if _OUT_OF_MEMORY.search(process.texts["stderr"]) else "signal"
    return None
