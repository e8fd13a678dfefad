"""The seccomp filter: which system calls are allowed, assembled for this machine.

A filter is a small program that the kernel runs at each system call. It is assembled from rules:
the first rule of a call whose conditions all hold decides, and a call without such a rule fails
with ENOSYS. Only the lower half of an argument is compared: every argument that is checked here is
an `int` or a set of flags in the lower 32 bits, and the kernel ignores the rest of it.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.sandbox.syscalls import NETWORK, NUMBERS, PLAIN, UNMEDIATED

__all__ = ["MACHINES", "Needs", "assemble", "rules_for"]

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES: Final = tuple(_ARCHITECTURES)

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000


def _errno_answer(number: int) -> int:
    return 0x00050000 | number


_DENY: Final = _errno_answer(errno.EPERM)
_MISSING: Final = _errno_answer(errno.ENOSYS)

# Opcodes of classic BPF: load an absolute word, bitwise and, jump if equal, jump if at least,
# return.
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_ARGUMENTS = 0, 4, 16
# Calls of the x32 interface have this bit, and would otherwise pass by other numbers.
_X32_BIT: Final = 0x40000000

_NEW_NAMESPACES: Final = 0x7E020000
_CLONE_THREAD: Final = 0x10000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_TYPE_MASK = 1, 0xF
_O_CREAT: Final = 0o100
# O_TMPFILE without the bit it shares with O_DIRECTORY.
_O_TMPFILE: Final = 0o20000000
_MAP_SHARED_ANONYMOUS: Final = 0x21
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_F_SETOWN, _F_SETOWN_EX = 8, 15
# PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_SET_NO_NEW_PRIVS and its
# getter, PR_SET_VMA. Not PR_SET_PDEATHSIG: it could undo that the run dies with the server.
_PRCTL_ALLOWED: Final = (3, 15, 16, 23, 38, 39, 0x53564D41)


@dataclass(frozen=True, slots=True)
class Needs:
    """What one run needs from its filter.

    `alone` is for a run without namespaces, which shares the paths and process ids of the machine;
    without `processes` it may signal only `own_pid`.
    """

    network: bool
    processes: bool
    execute: bool
    shared_memory: bool
    alone: bool
    own_pid: int = 0


class Condition(NamedTuple):
    """Holds if an argument, combined with a mask, equals a value."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF


class Rule(NamedTuple):
    """The answer to a system call if all conditions hold."""

    name: str
    answer: int
    conditions: tuple[Condition, ...] = ()


def rules_for(needs: Needs) -> Iterator[Rule]:
    """Yield the rules for one run, in order."""
    for name in (*PLAIN, *(NETWORK if needs.network else ())):
        yield Rule(name, _ALLOW)
    yield from _file_rules(needs)
    yield from _socket_rules(needs)
    yield from _process_rules(needs)
    for option in _PRCTL_ALLOWED:
        yield Rule("prctl", _ALLOW, (Condition(0, option),))
    yield Rule("prctl", _DENY)
    # Another process's limits could be changed by its id; zero is oneself.
    yield Rule("prlimit64", _ALLOW, (Condition(0, 0),))
    yield Rule("prlimit64", _DENY)
    if not needs.shared_memory:
        shared = Condition(3, _MAP_SHARED_ANONYMOUS, _MAP_SHARED_ANONYMOUS)
        yield Rule("mmap", _errno_answer(errno.ENOMEM), (shared,))
    yield Rule("mmap", _ALLOW)


def _file_rules(needs: Needs) -> Iterator[Rule]:
    for request in (_TIOCSTI, _TIOCLINUX):
        yield Rule("ioctl", _DENY, (Condition(1, request),))
    yield Rule("ioctl", _ALLOW)
    for command in (_F_SETOWN, _F_SETOWN_EX):
        yield Rule("fcntl", _DENY, (Condition(1, command),))
    yield Rule("fcntl", _ALLOW)
    yield from _no_set_user_id("open", mode=2, flags=1)
    yield from _no_set_user_id("openat", mode=3, flags=2)
    yield from _no_set_user_id("creat", mode=1)
    yield from _no_set_user_id("fchmod", mode=1)
    yield Rule("fchown", _DENY if needs.alone else _ALLOW)
    if needs.alone:
        for name in UNMEDIATED:
            yield Rule(name, _DENY)
    yield from _no_set_user_id("chmod", mode=1)
    yield from _no_set_user_id("fchmodat", mode=2)
    for name in UNMEDIATED:
        yield Rule(name, _ALLOW)


def _no_set_user_id(name: str, *, mode: int, flags: int | None = None) -> Iterator[Rule]:
    """Allow a call unless it sets the set-user-ID or set-group-ID bit of a file."""
    creating = (
        [()] if flags is None else [(Condition(flags, bit, bit),) for bit in (_O_CREAT, _O_TMPFILE)]
    )
    for made in creating:
        for bit in (0o4000, 0o2000):
            yield Rule(name, _DENY, (*made, Condition(mode, bit, bit)))
    yield Rule(name, _ALLOW)


def _socket_rules(needs: Needs) -> Iterator[Rule]:
    if needs.network:
        for family in (_AF_INET, _AF_INET6):
            yield Rule("socket", _ALLOW, (Condition(0, family),))
    yield Rule("socket", _DENY)
    # A pair of datagram sockets could be used to send to any unix socket by its name.
    stream = Condition(1, _SOCK_STREAM, _SOCK_TYPE_MASK)
    yield Rule("socketpair", _ALLOW, (Condition(0, _AF_UNIX), stream))
    yield Rule("socketpair", _DENY)


def _process_rules(needs: Needs) -> Iterator[Rule]:
    for bit in range(32):
        if _NEW_NAMESPACES >> bit & 1:
            yield Rule("clone", _DENY, (Condition(0, 1 << bit, 1 << bit),))
    if not needs.processes:
        yield Rule("clone", _ALLOW, (Condition(0, _CLONE_THREAD, _CLONE_THREAD),))
    for name in ("clone", "fork", "vfork"):
        yield Rule(name, _ALLOW if needs.processes else _DENY)
    yield Rule("execve", _ALLOW if needs.execute or needs.processes else _DENY)
    # A filter cannot read its flags, which lie in memory; libraries fall back to clone.
    yield Rule("clone3", _MISSING)
    if needs.alone and not needs.processes:
        for name in ("kill", "tgkill"):
            yield Rule(name, _ALLOW, (Condition(0, needs.own_pid),))
            yield Rule(name, _DENY)
    else:
        # A pid namespace, or the scopes of Landlock, keep the signals within the run.
        for name in ("kill", "tgkill", "tkill"):
            yield Rule(name, _ALLOW)


def assemble(machine: str, needs: Needs) -> bytes:
    """Return the filter as the kernel takes it: eight bytes for each instruction."""
    numbers = NUMBERS[machine]
    program = [
        _instruction(_LOAD, _OFFSET_ARCHITECTURE),
        _instruction(_EQUAL, _ARCHITECTURES[machine], yes=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _OFFSET_NUMBER),
        _instruction(_AT_LEAST, _X32_BIT, no=1),
        _instruction(_RETURN, _KILL),
    ]
    by_name: dict[str, list[Rule]] = {}
    for rule in rules_for(needs):
        if rule.name in numbers:
            by_name.setdefault(rule.name, []).append(rule)
    for name, rules in by_name.items():
        block = [line for rule in rules for line in _assemble_rule(rule)]
        if rules[-1].conditions:
            block.append(_instruction(_RETURN, _MISSING))
        program += [_instruction(_EQUAL, numbers[name], no=len(block)), *block]
    return b"".join([*program, _instruction(_RETURN, _MISSING)])


def _assemble_rule(rule: Rule) -> list[bytes]:
    block = [_instruction(_RETURN, rule.answer)]
    for condition in reversed(rule.conditions):
        test = [_instruction(_LOAD, _OFFSET_ARGUMENTS + 8 * condition.argument)]
        if condition.mask != 0xFFFFFFFF:  # noqa: PLR2004 - every bit counts
            test.append(_instruction(_AND, condition.mask))
        block = [*test, _instruction(_EQUAL, condition.value, no=len(block)), *block]
    return block


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    assert yes < 256, "a jump is one byte"  # noqa: PLR2004 - see the message
    assert no < 256, "a jump is one byte"  # noqa: PLR2004 - see the message
    return struct.pack("=HBBI", code, yes, no, value)
