"""The interpreters of this machine, and the files they need in order to start."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from stratagem.deferred_dataclasses import dataclass

__all__ = [
    "NETWORK_FILES",
    "NO_NODE",
    "NO_PYTHON",
    "SYSTEM_FILES",
    "SYSTEM_FOLDERS",
    "Interpreter",
    "beyond_system",
    "find_nodes",
    "find_pythons",
    "reachable_by_anyone",
]

SYSTEM_FOLDERS: Final[tuple[str, ...]] = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES: Final[tuple[str, ...]] = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
# Needed for name resolution and TLS certificates.
NETWORK_FILES: Final[tuple[str, ...]] = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
)

# Code of a server that runs as root runs as an unprivileged user, who must be able to read these.
NO_PYTHON: Final = (
    "there is no Python whose files every user may read: install python3 of the system, or make "
    f"this one readable (chmod -R go+rX {sys.base_prefix})"
)
NO_NODE: Final = "install Node.js, with files that every user may read, for full JavaScript"
_HAS_DESCRIPTORS: Final = Path("/proc/self/fd").exists()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter, and the folders it needs besides those of the system.

    `home` is the folder above Python's library. `by_descriptor`: it can start even if only root
    can reach it, because its files are opened before the process drops its privileges.
    """

    executable: str
    folders: tuple[str, ...] = ()
    home: str | None = None
    by_descriptor: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that it must be able to read."""
        return (self.executable, *self.folders)

    def reachable_by_anyone(self) -> bool:
        """Tell whether an unprivileged user could start it by its path."""
        return self.readable_by_anyone() and all(map(reachable_by_anyone, self.paths))

    def startable_by_anyone(self) -> bool:
        """Tell whether it runs for an unprivileged user, once root has opened its files."""
        return self.reachable_by_anyone() or (self.by_descriptor and self.readable_by_anyone())

    def readable_by_anyone(self) -> bool:
        """Tell whether every user may read its own files, ignoring the folders above them."""
        return all(_is_open_to_others(Path(path)) for path in (*self.paths, *self._library))

    @property
    def _library(self) -> Iterator[str]:
        if self.home is not None:
            # One folder and one file are checked for all: they were installed with one umask.
            yield from (os.path.dirname(os.__file__), os.__file__)  # noqa: PTH120 - text


def find_pythons() -> Iterator[Interpreter]:
    """Yield the interpreters that could run Python code, the one of this process first."""
    own = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    libraries = [str(Path(sys.base_prefix, name)) for name in ("lib", "lib64")]
    folders = tuple(beyond_system(libraries))
    yield Interpreter(own, folders, home=sys.base_prefix, by_descriptor=_HAS_DESCRIPTORS)
    yield from _find_in_system("python3")


def find_nodes() -> Iterator[Interpreter]:
    """Yield the programs that could run JavaScript code."""
    if found := shutil.which("node"):
        yield Interpreter(os.path.realpath(found), by_descriptor=_HAS_DESCRIPTORS)
    yield from _find_in_system("node")


def _find_in_system(name: str) -> Iterator[Interpreter]:
    for folder in ("/usr/local/bin", "/usr/bin"):
        path = Path(folder, name)
        if path.exists():
            yield Interpreter(os.path.realpath(path))


def reachable_by_anyone(path: str) -> bool:
    """Tell whether an unprivileged user may enter every folder above a path."""
    return all(map(_is_open_to_others, Path(path).parents))


def beyond_system(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real paths of those that exist outside the folders of the system."""
    for folder in paths:
        real = os.path.realpath(folder)
        if Path(real).exists() and not real.startswith(tuple(f"{s}/" for s in SYSTEM_FOLDERS)):
            yield real


def _is_open_to_others(path: Path) -> bool:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        wanted = stat.S_IXOTH
    else:
        wanted = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
    return mode & wanted == wanted
