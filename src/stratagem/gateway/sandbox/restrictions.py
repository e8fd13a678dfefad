"""The restrictions that a process applies to itself before it runs the code.

They are Landlock rules, a seccomp filter and resource limits; `inside/harden.py` applies them.
"""

from __future__ import annotations

import base64
import ctypes
import math
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.sandbox import filters
from stratagem.gateway.sandbox.layers import Mode, Task

__all__ = [
    "EXECUTE",
    "LANDLOCK_SCOPES_SIGNALS",
    "LINKERS",
    "READ",
    "WORK",
    "WRITE_FILE",
    "count_processes",
    "filter_obstacle",
    "filter_text",
    "landlock_ruleset",
    "landlock_version",
    "resource_limits",
]

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ: Final = 1 << 2 | 1 << 3
# Remove, and make folders, files, pipes and links; move between folders; truncate.
WORK: Final = READ | WRITE_FILE | sum(1 << bit for bit in (4, 5, 7, 8, 10, 12, 13, 14))
# How many file rights each version knows, beginning with the first.
_FILE_RIGHTS: Final = (13, 14, 15, 15, 16)
_LANDLOCK_HAS_NETWORK: Final = 4
LANDLOCK_SCOPES_SIGNALS: Final = 6
_CREATE_RULESET: Final = 444
_VERSION_FLAG: Final = 1

# A program is started by its dynamic linker, which must be executable as well.
LINKERS: Final = (
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
)

# The memory that an interpreter takes before any code runs: measured, with a margin.
_START_BYTES: Final[Mapping[Mode, int]] = {
    "python": 48 << 20,
    "node": 192 << 20,
    "monty": 1 << 30,
    "quickjs": 128 << 20,
}


def filter_obstacle() -> str | None:
    """Return why seccomp filters cannot be used on this machine, or None if they can."""
    if sys.platform != "linux":
        return "it needs Linux"
    if platform.machine() not in filters.MACHINES:
        return f"there is no filter of system calls for {platform.machine()}"
    return None


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def landlock_ruleset(
    version: int, rules: Iterable[tuple[str, int]], *, network: bool
) -> dict[str, Any]:
    """Return the ruleset for paths and their rights, reduced to what this version supports."""
    known = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS)) - 1]) - 1
    has_network = version >= _LANDLOCK_HAS_NETWORK
    has_scopes = version >= LANDLOCK_SCOPES_SIGNALS
    return {
        "files": known,
        "network": 0b11 if has_network and not network else 0,
        "scoped": 0b11 if has_scopes else 0,
        "size": 24 if has_scopes else 16 if has_network else 8,
        "rules": [[path, rights & known] for path, rights in rules if Path(path).exists()],
    }


def filter_text(task: Task, *, alone: bool, pid: int = 0) -> str:
    """Return the seccomp filter for a task, in base64."""
    needs = filters.Needs(
        network=task.permissions.network,
        processes=task.permissions.process_execution or task.mode == "monty",
        execute=task.mode == "node",
        # Shared memory counts only against the limit on address space.
        shared_memory=task.mode != "node",
        alone=alone,
        own_pid=pid,
    )
    return base64.b64encode(filters.assemble(platform.machine(), needs)).decode()


def resource_limits(task: Task, *, processes: int) -> dict[str, int]:
    """Return the resource limits of a task; `processes` is how many its user has already."""
    memory = task.permissions.memory_bytes + _START_BYTES[task.mode]
    # Node reserves far more address space than it uses, and would not start.
    counted = "RLIMIT_DATA" if task.mode == "node" else "RLIMIT_AS"
    most = {
        counted: memory,
        "RLIMIT_FSIZE": limits.SANDBOX_FILE_BYTES_MAX,
        "RLIMIT_NOFILE": limits.SANDBOX_OPEN_FILES_MAX,
        "RLIMIT_CORE": 0,
        # The server stops a run in time; this is for a run whose server has died.
        "RLIMIT_CPU": math.ceil(task.permissions.seconds) * 8 + 5,
    }
    if sys.platform == "linux":
        # The kernel counts all that the user runs, also what other programs start after the count.
        # Code in Monty starts no process, so that room for those does no harm there.
        room = 8 if task.mode == "monty" else 1
        most["RLIMIT_NPROC"] = processes + room * limits.SANDBOX_PROCESSES_MAX
    return most


def count_processes(uid: int) -> int:
    """Count the processes and threads of a user, as the kernel does for its limit."""
    return sum(_threads(entry) for entry in _entries_of(uid))


def _entries_of(uid: int) -> Iterator[str]:
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal():
                try:
                    if entry.stat().st_uid == uid:
                        yield entry.path
                except OSError:  # it has ended since
                    continue


def _threads(entry: str) -> int:
    try:
        return len(os.listdir(f"{entry}/task"))  # noqa: PTH208 - names alone, and many times
    except OSError:  # it has ended since
        return 0
