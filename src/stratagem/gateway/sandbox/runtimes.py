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
    "SYSTEM_FILES",
    "SYSTEM_FOLDERS",
    "Runtime",
    "beyond_system",
    "nodes",
    "pythons",
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


@dataclass(frozen=True, slots=True)
class Runtime:
    """An interpreter, and the folders it needs beyond those of the system."""

    executable: str
    folders: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that it must be able to read."""
        return (self.executable, *self.folders)

    def reachable_by_anyone(self) -> bool:
        """Tell whether a user without rights could start it."""
        return all(_open_to_others(Path(path)) for path in self.paths)


def pythons() -> Iterator[Runtime]:
    """Yield the interpreters that could run Python code, the one of this process first."""
    own = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    libraries = [str(Path(sys.base_prefix, name)) for name in ("lib", "lib64")]
    yield Runtime(own, tuple(beyond_system(libraries)))
    yield from _of_system("python3")


def nodes() -> Iterator[Runtime]:
    """Yield the programs that could run JavaScript code."""
    if found := shutil.which("node"):
        yield Runtime(os.path.realpath(found))
    yield from _of_system("node")


def _of_system(name: str) -> Iterator[Runtime]:
    for folder in ("/usr/local/bin", "/usr/bin"):
        path = Path(folder, name)
        if path.exists():
            yield Runtime(os.path.realpath(path))


def beyond_system(paths: Iterable[str]) -> Iterator[str]:
    """Yield those that exist and do not lie in a folder of the system."""
    for folder in paths:
        real = os.path.realpath(folder)
        if Path(real).exists() and not real.startswith(tuple(f"{s}/" for s in SYSTEM_FOLDERS)):
            yield real


def _open_to_others(path: Path) -> bool:
    for part in (path, *path.parents):
        mode = part.stat().st_mode
        wanted = stat.S_IXOTH if part.is_dir() else stat.S_IXOTH | stat.S_IROTH
        if mode & wanted != wanted:
            return False
    return True
