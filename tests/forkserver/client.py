"""Stands in for `python`: has the fork server run what the arguments name, and ends as that does.

Started with `python -I -S`, and so with little more than the interpreter.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket
from collections.abc import Mapping, Sequence

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Of the variables that an interpreter reads, those that the fork server heeds as well; and the one
# by which `make` is told which interpreter to take.
_HEEDED = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHON"}


def can_run(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether the fork server can run what `python` is to run with these arguments."""
    is_program = bool(arguments) and (
        arguments[0] in {"-c", "-m"} or not arguments[0].startswith("-")
    )
    # Other systems have no such sockets, or no fork.
    return (
        is_program
        and sys.platform == "linux"
        and not any(name.startswith("PYTHON") and name not in _HEEDED for name in environment)
    )


class Connection:
    """A connection to the fork server: for one process, or to keep the server alive."""

    def __init__(self, path: str) -> None:
        self._socket = socket(AF_UNIX, SOCK_SEQPACKET)
        self._socket.connect(path)

    def keep_server(self) -> None:
        """Have the server live until this is closed."""
        self._socket.send(b"keep")

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        streams: Sequence[int],
    ) -> int:
        """Start a process; return its id."""
        umask = os.umask(0)
        os.umask(umask)
        variables = [f"{name}={value}" for name, value in environment.items()]
        fields = [folder, str(umask), str(len(arguments)), *arguments, *variables]
        rights = (SOL_SOCKET, SCM_RIGHTS, struct.pack("3i", *streams))
        self._socket.sendmsg([os.fsencode("\0".join(fields))], [rights])
        return self.receive()

    def send_signal(self, number: int) -> None:
        self._socket.send(b"%d" % number)

    def receive(self) -> int:
        """Return what the server says next: at first the id of the process, then its status."""
        said = self._socket.recv(100)
        if not said:
            raise ConnectionError("the fork server has ended")
        return int(said)

    def has_news(self) -> bool:
        self._socket.settimeout(0)
        try:
            return bool(self._socket.recv(1, 2))
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()


def main() -> None:
    path, *arguments = sys.argv[1:]
    if not can_run(arguments, os.environ):
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - this is what it is for
    server = Connection(path)
    # A signal that comes before there is a process to send it on to waits for that.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    server.start(arguments, os.environ, os.path.realpath("."), (0, 1, 2))
    for each in _FORWARDED:
        signal.signal(each, lambda number, _frame: server.send_signal(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    # The new process has them: whoever reads the other end sees when it closes them.
    for stream in (0, 1, 2):
        os.close(stream)
    status = os.waitstatus_to_exitcode(server.receive())
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
