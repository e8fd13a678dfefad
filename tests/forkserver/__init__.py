"""Starts programs that import Stratagem or the MCP SDK, without importing them anew each time.

A command of Stratagem takes 0.4 s of processor time to import what it needs, and a server more than
a second, while most of what tests have them do takes a hundredth of that. So one process of a test
run imports it all and forks for each program (`server.py`), which then has arguments, an
environment, a folder, streams and an exit status of its own.

The real commands are started by `tests/surfaces/cli/test_processes.py`, and by tests of what is
imported. What the server cannot do (see `client.can_run`) is done by a new interpreter as ever.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.forkserver.client import Connection, can_run

__all__ = ["Process", "program", "run", "shared_server"]

_HERE = Path(__file__).parent
_SECONDS_MAX = 120


class _Run:
    """What a worker of a test run knows of the fork server that all of them share."""

    base: Path
    folder: Path | None = None
    # Of the worker that started it.
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> Path:
        """Return the folder of the server; start it where nobody did."""
        if sys.platform != "linux":
            return self.base
        if self.folder is None:
            with (self.base / "forkserver.lock").open("w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self.folder = self._find(self.base / "forkserver") or self._start_server()
                (self.base / "forkserver").write_text(str(self.folder), "utf-8")
        return self.folder

    def _find(self, note: Path) -> Path | None:
        """Find the server that another worker started, unless it has ended."""
        if not note.exists():
            return None
        folder = Path(note.read_text("utf-8"))
        with suppress(OSError):
            self._keep(folder)
            return folder
        return None

    def _start_server(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="stratagem-fork-"))
        process = subprocess.Popen(
            [sys.executable, str(_HERE / "server.py"), str(folder / "socket")],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + _SECONDS_MAX
        while not (folder / "socket").exists():
            assert process.poll() is None, "the fork server did not start"
            assert time.monotonic() < end, "the fork server took too long to start"
            time.sleep(0.02)
        self._keep(folder)
        self._process = process
        return folder

    def _keep(self, folder: Path) -> None:
        self._connection = Connection(str(folder / "socket"))
        self._connection.keep_server()

    def leave(self) -> None:
        """Let the server end once no other worker needs it, and wait for that as its parent."""
        if self.folder is not None:
            self.folder = None
            self._connection.close()
        if self._process is not None:
            self._process.wait()


_run = _Run()


@contextmanager
def shared_server(base: Path) -> Iterator[None]:
    """Share a fork server with the other workers of a test run, which have the folder in common."""
    _run.base = base
    try:
        yield
    finally:
        _run.leave()


def program(name: str = "python", *arguments: str) -> str:
    """Return the path of a program that does what `python` does with some arguments and its own."""
    folder = _run.start()
    path = folder / name
    if not path.exists():
        words = [
            sys.executable,
            "-IS",
            str(_HERE / "client.py"),
            str(folder / "socket"),
            *arguments,
        ]
        # Under another name at first: another worker may be about to start it.
        made = folder / f"{name}.{os.getpid()}"
        made.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        made.chmod(0o755)
        made.rename(path)
    return str(path)


class _ForkedProcess(subprocess.Popen[Any]):
    """A process of `subprocess`, forked where it is a program of this Python.

    Three methods of the library that are not public are its own: what starts a process, and what
    asks whether it has ended. All else (pipes, time limits, text) is as in the library.
    """

    _connection: Connection | None = None

    def _execute_child(self, args: Any, *rest: Any) -> None:
        _executable, prepare, _close, passed, folder, environment, _info, _flags, shell = rest[:9]
        pipes = rest[9:15]
        environment = os.environ if environment is None else environment
        is_plain = not (prepare or passed or shell or isinstance(args, str))
        words = [os.fspath(each) for each in args] if is_plain else []
        if words[:1] != [sys.executable] or not can_run(words[1:], environment):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        given = (pipes[0], pipes[3], pipes[5])
        streams = [own if own != -1 else number for number, own in enumerate(given)]
        self._connection = Connection(str(_run.start() / "socket"))
        self.pid = self._connection.start(
            words[1:], environment, os.path.realpath(folder or "."), streams
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._connection is None:
            known: tuple[int, int] = super()._try_wait(wait_flags)  # type: ignore[misc]
            return known
        if wait_flags & os.WNOHANG and not self._connection.has_news():
            return 0, 0
        status = self._connection.receive()
        self._connection.close()
        return self.pid, status

    def _internal_poll(self, *rest: Any, **more: Any) -> int | None:
        if self._connection is None:
            return super()._internal_poll(*rest, **more)  # type: ignore[misc,no-any-return]
        if self.returncode is None:
            process, status = self._try_wait(os.WNOHANG)
            if process:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def _run_forked(
    arguments: Sequence[str | Path],
    *,
    input: Any = None,  # noqa: A002 - as in `subprocess.run`
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, as `subprocess.run` does."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with _ForkedProcess(arguments, **options) as process:
        try:
            output, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(arguments, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


# They are called as those of the library are, and say of themselves what those say.
if TYPE_CHECKING:
    from subprocess import Popen as Process
    from subprocess import run
else:
    Process, run = _ForkedProcess, _run_forked
