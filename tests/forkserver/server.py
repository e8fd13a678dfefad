"""The process that has imported Stratagem and the MCP SDK, and forks for each program.

Run by path, with the path of the socket that it listens at.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import importlib.util
import io
import os
import pkgutil
import re
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import types
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What servers and clients of the official SDK and of ASGI import besides, sooner or later.
_MODULES = (
    "jsonschema",
    "mcp.client.stdio",
    "mcp.server.mcpserver",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
)
# They run in processes that are fenced in, and are started as scripts.
_SCRIPTS = re.compile(r"\.(inside|workers)\.|\.__main__$")
_MESSAGE_BYTES_MAX = 200_000
_STREAMS = 3
# Whoever starts it uses it at once, unless killed meanwhile.
_SECONDS_ALONE_MAX = 60


@dataclass(frozen=True, slots=True)
class Request:
    """A program as the arguments of `python` say it, and what a process inherits."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    umask: int
    streams: list[int]

    @classmethod
    def read(cls, message: bytes, streams: list[int]) -> Request:
        folder, umask, count, *texts = os.fsdecode(message).split("\0")
        arguments, variables = texts[: int(count)], texts[int(count) :]
        environment = dict(each.split("=", 1) for each in variables)
        return cls(arguments, environment, folder, int(umask), streams)


class ForkServer:
    """Waits for requests, and tells each client how its process ended.

    A client that goes away takes its process along, as a killed process takes its threads. A client
    that asks for nothing keeps the server alive; it ends with the last of them.
    """

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(f"{path}.new")
        self._listener.listen(128)
        Path(f"{path}.new").rename(path)
        self._woken, waking = socket.socketpair()
        self._woken.setblocking(False)
        waking.setblocking(False)
        self._waking = waking
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._processes: dict[int, socket.socket] = {}
        self._users: set[socket.socket] = set()
        signal.set_wakeup_fd(waking.fileno())
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def serve(self) -> Request | None:
        """Return in a new process, with what it shall do; or with nothing, in the end."""
        while True:
            ready = self._selector.select(None if self._users else _SECONDS_ALONE_MAX)
            for key, _events in ready:
                if key.fileobj is self._listener:
                    self._selector.register(self._listener.accept()[0], selectors.EVENT_READ)
                elif key.fileobj is self._woken:
                    self._report_ends()
                elif isinstance(key.fileobj, socket.socket) and (
                    request := self._receive(key.fileobj)
                ):
                    return request
            if self._is_left_alone or not (ready or self._users):
                return None

    _is_left_alone = False

    def _receive(self, client: socket.socket) -> Request | None:
        """Read what a client says: a program at first, then signals for it."""
        size = array.array("i").itemsize * _STREAMS
        message, ancillary = b"", list[tuple[int, int, bytes]]()
        # A client that leaves without reading what it was told resets its connection.
        with suppress(ConnectionError):
            message, ancillary, _flags, _address = client.recvmsg(
                _MESSAGE_BYTES_MAX, socket.CMSG_SPACE(size)
            )
        process = next((pid for pid, each in self._processes.items() if each is client), None)
        if not message:
            self._drop(client, process)
        elif process is not None:
            os.kill(process, int(message))
        elif ancillary:
            streams = array.array("i")
            streams.frombytes(ancillary[0][2])
            return self._fork(client, message, list(streams))
        else:
            self._users.add(client)
        return None

    def _drop(self, client: socket.socket, process: int | None) -> None:
        self._selector.unregister(client)
        client.close()
        if process is not None:
            os.kill(process, signal.SIGKILL)
        if client in self._users:
            self._users.remove(client)
            self._is_left_alone = not self._users

    def _fork(self, client: socket.socket, message: bytes, streams: list[int]) -> Request | None:
        process = os.fork()
        if process == 0:
            self._leave()
            return Request.read(message, streams)
        for stream in streams:
            os.close(stream)
        self._processes[process] = client
        # A client that went away meanwhile takes its process along when its end is read.
        with suppress(ConnectionError):
            client.send(b"%d" % process)
        return None

    def _leave(self) -> None:
        """Let go of all that is the server's, in a new process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._waking.close()
        self._selector.close()

    def _report_ends(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(1000)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                process, status = ended
                # A client that went away has no more use for it.
                with suppress(OSError):
                    self._processes.pop(process).send(b"%d" % status)

    def close(self) -> None:
        for process in self._processes:
            os.kill(process, signal.SIGKILL)


def _take_over(request: Request) -> None:
    """Make this process what it would be if it had just been started."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request.folder)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    tempfile.tempdir = None
    _open_streams(unbuffered=bool(os.environ.get("PYTHONUNBUFFERED")))


def _open_streams(*, unbuffered: bool) -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, f"__{name}__")
        binary: Any = io.FileIO(number, "w" if number else "r", closefd=False)
        if not number:
            binary = io.BufferedReader(binary)
        elif not unbuffered:
            binary = io.BufferedWriter(binary)
        opened = io.TextIOWrapper(
            binary,
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=os.isatty(number) or name == "stderr",
            write_through=unbuffered,
        )
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def _run(arguments: list[str]) -> None:
    """Run a program as `python` does with these arguments."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    if arguments[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *arguments[2:]], ""
        code: Any = compile(arguments[1], "<string>", "exec")
    elif arguments[0] == "-m":
        sys.path[0] = str(Path.cwd())
        spec = importlib.util.find_spec(arguments[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{arguments[1]}.__main__")
        assert spec is not None
        assert spec.origin is not None
        loader: Any = spec.loader
        code = loader.get_code(spec.name)
        module.__spec__, module.__file__, module.__package__ = spec, spec.origin, spec.parent
        sys.argv = [spec.origin, *arguments[2:]]
    else:
        path = Path(arguments[0])
        sys.argv, sys.path[0] = arguments, str(path.resolve().parent)
        module.__file__ = arguments[0]
        code = compile(path.read_bytes(), arguments[0], "exec")
    exec(code, module.__dict__)  # noqa: S102 - this is what an interpreter does


def _status_of(arguments: list[str]) -> int:
    try:
        _run(arguments)
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return (exit_.code or 0) & 0xFF
        print(exit_.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    except BaseException:  # noqa: BLE001 - as Python does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _exit(status: int) -> None:
    """End as an interpreter does, but for taking all modules apart."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as an interpreter does
    atexit._run_exitfuncs()  # noqa: SLF001 - as above
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _import_all() -> None:
    import stratagem

    own = (each.name for each in pkgutil.walk_packages(stratagem.__path__, "stratagem."))
    for name in (*(name for name in own if not _SCRIPTS.search(name)), *_MODULES):
        importlib.import_module(name)


def _complete_classes() -> None:
    """Have the methods made that classes put off until they are used: else each program makes them."""
    from stratagem.deferred_patterns import DeferredPattern

    own = (module for name, module in sys.modules.items() if name.startswith("stratagem."))
    for value in (value for module in own for value in vars(module).values()):
        if isinstance(value, type):
            for method in ("__init__", "__eq__", "__repr__", "_make"):
                getattr(value, method, None)
        elif isinstance(value, DeferredPattern):
            _ = value.compiled


def main() -> None:
    path = sys.argv[1]
    # As the command does, before NumPy is read.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _import_all()
    _complete_classes()
    # What is there now stays as it is: looking through it would copy it into each process.
    gc.collect()
    gc.freeze()
    # A thread would not be there after a fork, and neither would what it holds be let go.
    assert len(os.listdir("/proc/self/task")) == 1, threading.enumerate()
    server = ForkServer(path)
    request = server.serve()
    if request is None:
        server.close()
        shutil.rmtree(Path(path).parent)
        return
    _take_over(request)
    _exit(_status_of(request.arguments))


if __name__ == "__main__":
    main()
