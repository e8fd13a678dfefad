"""Parsers of untrusted files, each in a separate process that can be killed.

A parser of documents or code may loop, or take all memory there is, on a file made for that. Here
it has its own address space with a limit, its own processor time, and no way to write files; when
its time is over the process and all its children are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed, ExecutionTimeout, ValidationFailed

__all__ = ["ChildResult", "run_program", "run_worker"]

_START: Final = Path(__file__).with_name("limited_start.py")
_CHUNK_BYTES: Final = 1 << 16
# A parser gets nothing of this server's environment, which may hold secrets.
_ENVIRONMENT: Final = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/nonexistent"}


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a program wrote, and how it ended."""

    status: int
    output: bytes
    errors: bytes


async def run_program(
    command: Sequence[str],
    *,
    given: bytes = b"",
    seconds: float,
    output_bytes_max: int = limits.CHILD_OUTPUT_BYTES_MAX,
    memory_bytes_max: int = limits.CHILD_MEMORY_BYTES_MAX,
    folder: str | None = None,
    file_bytes_max: int = 0,
) -> ChildResult:
    """Run a program to its end and return what it wrote.

    `command` is a path to a program, or `python:` and the path of a script, with arguments.

    Raises:
        ExecutionTimeout: It was still running when its time was over.
        ExecutionFailed: It wrote too much.
    """
    # The limit of processor time also ends children that survive when this process is killed.
    bounds = [str(memory_bytes_max), str(int(seconds) + 2), str(file_bytes_max)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_START),
        *bounds,
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_ENVIRONMENT,
        cwd=folder or "/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(process, given, output_bytes_max)
    except TimeoutError:
        raise ExecutionTimeout(
            f"It did not finish within {seconds:g} seconds.",
            seconds=seconds,
            hint="Give it less, or a longer `timeout`.",
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(_reap(process))


async def run_worker(
    script: Path,
    order: Any,
    *,
    seconds: float,
    data: bytes = b"",
    memory_bytes_max: int = limits.CHILD_MEMORY_BYTES_MAX,
    output_bytes_max: int = limits.CHILD_OUTPUT_BYTES_MAX,
    file_bytes_max: int = 0,
) -> Any:
    """Run a script of ours: an order as one line of JSON and data in, one JSON value out.

    A script answers `{"result": …}`, `{"refused": message, "field": …, "hint": …}`, or
    `{"failed": message, "safe": …, "hint": …}`.

    Raises:
        ValidationFailed: It refused what it was given.
        ExecutionFailed: It failed: most often what it was given took too much memory.
        ExecutionTimeout: It was still running when its time was over.
    """
    done = await run_program(
        [f"python:{script}"],
        given=orjson.dumps(order) + b"\n" + data,
        seconds=seconds,
        memory_bytes_max=memory_bytes_max,
        output_bytes_max=output_bytes_max,
        file_bytes_max=file_bytes_max,
    )
    try:
        answer = orjson.loads(done.output)
    except orjson.JSONDecodeError:
        raise _failure(done) from None
    if "refused" in answer:
        raise ValidationFailed(
            answer["refused"], field=answer.get("field", "content"), hint=answer.get("hint")
        )
    if "failed" in answer:
        safe = bool(answer.get("safe"))
        raise ExecutionFailed(
            answer["failed"], safe=safe, answered=not safe, hint=answer.get("hint")
        )
    return answer["result"]


async def _exchange(
    process: asyncio.subprocess.Process, given: bytes, output_bytes_max: int
) -> ChildResult:
    assert process.stdout is not None, "asked for when starting"
    assert process.stderr is not None, "asked for when starting"
    _, output, errors = await asyncio.gather(
        _write(process, given),
        _read(process.stdout, output_bytes_max),
        _read(process.stderr, output_bytes_max),
    )
    return ChildResult(await process.wait(), output, errors)


async def _write(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None, "asked for when starting"
    # A program need not read what it is given.
    with contextlib.suppress(ConnectionError):
        process.stdin.write(given)
        await process.stdin.drain()
    with contextlib.suppress(ConnectionError):
        process.stdin.close()
        await process.stdin.wait_closed()


async def _read(pipe: asyncio.StreamReader, bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    room = bytes_max
    while piece := await pipe.read(_CHUNK_BYTES):
        room -= len(piece)
        if room < 0:
            raise ExecutionFailed(
                f"The result has more than {bytes_max:,} bytes.",
                answered=True,
                reason="too_large",
                limit=bytes_max,
                hint="Ask for less.",
            )
        pieces.append(piece)
    return b"".join(pieces)


async def _reap(process: asyncio.subprocess.Process) -> None:
    """Wait for a process that was killed, and throw away the rest of its output."""
    for pipe in (process.stdout, process.stderr):
        while pipe is not None and await pipe.read(_CHUNK_BYTES):
            pass
    await process.wait()


def _failure(done: ChildResult) -> ExecutionFailed:
    words = done.errors.decode("utf-8", "replace").strip()
    if done.status < 0 or "MemoryError" in words:
        return ExecutionFailed(
            "It exceeded its memory or time limit.",
            answered=True,
            status=done.status,
            hint="The input expands to much more data than its size suggests. Give less.",
        )
    return ExecutionFailed(
        f"The program ended with status {done.status}: {words[-300:] or 'it said nothing'}.",
        status=done.status,
    )
