"""Where the interpreters are, and what they must be able to read in order to start."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "NETWORK_FILES",
    "NO_NODE",
    "NO_PYTHON",
    "SYSTEM_FILES",
    "SYSTEM_FOLDERS",
    "Runtime",
    "beyond_system",
    "nodes",
    "pythons",
    "reachable_by_anyone",
]

SYSTEM_FOLDERS: Final[tuple[str, ...]] = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES: Final[tuple[str, ...]] = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
# What names, certificates and services are looked up in.
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

# For root, what the code runs with must be readable by a user without rights.
NO_PYTHON: Final = (
    "there is no Python whose files every user may read: install python3 of the system, or make "
    f"this one readable (chmod -R go+rX {sys.base_prefix})"
)
NO_NODE: Final = "install Node.js, with files that every user may read, for full JavaScript"
_HAS_DESCRIPTORS: Final = Path("/proc/self/fd").exists()


@dataclass(frozen=True, slots=True)
class Runtime:
    """An interpreter, and the folders it needs beyond those of the system.

    `home` is the folder above Python's library. `by_descriptor`: it starts even where only root
    can reach it, because what it needs is opened before the rights of root are given up.
    """

    executable: str
    folders: tuple[str, ...] = ()
    home: str | None = None
    by_descriptor: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that it must be able to read."""
        return (self.executable, *self.folders)

    def reachable_by_anyone(self) -> bool:
        """Tell whether a user without rights could start it by its path."""
        return self.readable_by_anyone() and all(map(reachable_by_anyone, self.paths))

    def startable_by_anyone(self) -> bool:
        """Tell whether it runs for a user without rights, once root has opened what it needs."""
        return self.reachable_by_anyone() or (self.by_descriptor and self.readable_by_anyone())

    def readable_by_anyone(self) -> bool:
        """Tell whether its own files are for everyone, whatever the folders above them are."""
        return all(_open_to_others(Path(path)) for path in (*self.paths, *self._library))

    @property
    def _library(self) -> Iterator[str]:
        if self.home is not None:
            # One folder and one file stand for all: whoever installed it had one umask.
            yield from (os.path.dirname(os.__file__), os.__file__)  # noqa: PTH120 - text


def pythons() -> Iterator[Runtime]:
    """Yield the interpreters that could run Python code, the one of this process first."""
    own = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    libraries = [str(Path(sys.base_prefix, name)) for name in ("lib", "lib64")]
    folders = tuple(beyond_system(libraries))
    yield Runtime(own, folders, home=sys.base_prefix, by_descriptor=_HAS_DESCRIPTORS)
    yield from _of_system("python3")


def nodes() -> Iterator[Runtime]:
    """Yield the programs that could run JavaScript code."""
    if found := shutil.which("node"):
        yield Runtime(os.path.realpath(found), by_descriptor=_HAS_DESCRIPTORS)
    yield from _of_system("node")


def _of_system(name: str) -> Iterator[Runtime]:
    for folder in ("/usr/local/bin", "/usr/bin"):
        path = Path(folder, name)
        if path.exists():
            yield Runtime(os.path.realpath(path))


def reachable_by_anyone(path: str) -> bool:
    """Tell whether a user without rights may look into every folder above a path."""
    return all(map(_open_to_others, Path(path).parents))


def beyond_system(paths: Iterable[str]) -> Iterator[str]:
    """Yield those that exist and do not lie in a folder of the system."""
    for folder in paths:
        real = os.path.realpath(folder)
        if Path(real).exists() and not real.startswith(tuple(f"{s}/" for s in SYSTEM_FOLDERS)):
            yield real


def _open_to_others(path: Path) -> bool:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        wanted = stat.S_IXOTH
    else:
        wanted = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
    return mode & wanted == wanted
