"""Processes that are there to be killed.

They come from a server that has the package loaded already, so that a round costs what it
does and not what starting Python costs. Each has a pipe on which it tells what it does; what
it told before its death can be read after it.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["stratagem.sdk"])
PATIENCE_SECONDS = 60.0


class Voice:
    """The child's end of the pipe; several threads may speak."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def __call__(self, told: Any) -> None:
        with self._lock:
            self._pipe.send(told)


class Child:
    """A process, seen by its parent."""

    def __init__(self, process: BaseProcess, pipe: Connection[Any, Any]) -> None:
        self.process = process
        self.pipe = pipe

    def hear(self, timeout_seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the next thing the child told; EOFError once it is dead and all is read."""
        assert self.pipe.poll(timeout_seconds), "the child says nothing"
        return self.pipe.recv()

    def hear_rest(self) -> Iterator[Any]:
        """Yield everything that the child told and nobody heard yet, until it ends."""
        while True:
            try:
                yield self.hear()
            except (EOFError, OSError):
                # The end, perhaps in the middle of a message.
                return

    def kill(self) -> None:
        """End the process as a power switch would end it, but for the disk cache."""
        self.process.kill()
        self.process.join()

    def join(self, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for the process to end of itself."""
        wait([self.process.sentinel], timeout_seconds)
        assert self.process.exitcode == 0, f"the child ended with {self.process.exitcode}"


def hear_any(children: Sequence[Child]) -> Iterator[tuple[Child, Any]]:
    """Yield what any of some children told, whoever speaks first."""
    ready = wait([each.pipe for each in children], PATIENCE_SECONDS)
    assert ready, "no child says anything"
    for speaker in children:
        if speaker.pipe in ready:
            yield speaker, speaker.hear()


@contextmanager
def child(work: Callable[..., None], *arguments: Any) -> Iterator[Child]:
    """Run `work(voice, *arguments)` in a process of its own, which does not outlive the block."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(work, theirs, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        process.close()
        ours.close()


def _run(work: Callable[..., None], pipe: Connection[Any, Any], arguments: Any) -> None:
    work(Voice(pipe), *arguments)
