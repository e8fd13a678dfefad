"""Drops every privilege that the code does not need.

The order matters. What needs privileges comes first: opening the paths for Landlock and the
working directory, which may be accessible to root only, then becoming another user. The seccomp
filter comes last, because it would forbid the other steps. Each step either works or ends the
process: code never runs with fewer restrictions than requested.
"""

from __future__ import annotations

import base64
import ctypes
import os
import resource
import stat
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9

# The numbers of these three are the same on every machine.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
# Rights that make sense for a file: execute, write, read, truncate, ioctl.
_FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [
        ("allowed_access", ctypes.c_uint64),
        ("parent_fd", ctypes.c_int32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_ushort),
        ("instructions", ctypes.c_char_p),
    ]


def harden(settings: dict[str, Any]) -> None:
    """Apply the restrictions in the order that works."""
    os.umask(0o077 if settings["uid"] is None else 0o022)
    folder = os.open(settings["folder"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    paths = _open_paths(settings["landlock"]["rules"] if settings["landlock"] is not None else [])
    if settings["uid"] is not None:
        os.setgroups([])
        os.setresgid(settings["uid"], settings["uid"], settings["uid"])
        os.setresuid(settings["uid"], settings["uid"], settings["uid"])
    os.fchdir(folder)
    os.close(folder)
    # Becoming another user clears both; the first ends the run with the server.
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    _prctl(_PR_SET_DUMPABLE, settings["dumpable"])
    if os.getppid() != settings["parent"] and settings["parent"] is not None:
        raise SystemExit("the server is gone")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if settings["landlock"] is not None:
        _landlock(settings["landlock"], paths)
    for name, most in settings["limits"].items():
        _limit(getattr(resource, name), most)
    if settings["filter"] is not None:
        _filter(base64.b64decode(settings["filter"]))


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, most))


def _open_paths(rules: list[list[Any]]) -> list[tuple[int, int]]:
    """Open the path of each rule; return the descriptors with their rights."""
    return [(os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in rules]


def _landlock(settings: dict[str, Any], paths: list[tuple[int, int]]) -> None:
    attributes = _RulesetAttributes(settings["files"], settings["network"], settings["scoped"])
    ruleset = _check(
        _libc.syscall(
            _LANDLOCK_CREATE_RULESET,
            ctypes.byref(attributes),
            ctypes.c_size_t(settings["size"]),
            0,
        )
    )
    for descriptor, rights in paths:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = _PathBeneath(rights if is_folder else rights & _FILE_RIGHTS, descriptor)
        _check(
            _libc.syscall(
                _LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0
            )
        )
        os.close(descriptor)
    _check(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _filter(program: bytes) -> None:
    wrapped = _Program(len(program) // 8, program)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(wrapped))


def _prctl(option: int, first: int, second: int = 0) -> None:
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    _check(_libc.prctl(option, *arguments))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
