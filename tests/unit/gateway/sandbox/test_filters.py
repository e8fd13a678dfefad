"""The filter of system calls, run instruction by instruction for both machines."""

from __future__ import annotations

import errno
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from stratagem.gateway.sandbox.filters import MACHINES, Needs, assemble
from stratagem.gateway.sandbox.syscalls import NUMBERS

NOTHING = Needs(
    network=False, processes=False, execute=False, shared_memory=True, alone=True, own_pid=77
)
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
DENIED, MISSING = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWNET = 0x10000, 0x10000000, 0x40000000
THREAD = 0x3D0F00


def answer(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel would do: classic BPF over the description of a call."""
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    lines = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x15:
            at += yes if accumulator == value else no
        elif code == 0x35:
            at += yes if accumulator >= value else no
        else:
            assert code == 0x06
            return int(value)


def asked(machine: str, needs: Needs, name: str, *arguments: int) -> int:
    program = assemble(machine, needs)
    return answer(program, ARCHITECTURES[machine], NUMBERS[machine][name], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_every_program_needs_is_allowed(machine: str) -> None:
    for name in ("read", "write", "close", "munmap", "futex", "exit_group", "getrandom"):
        assert asked(machine, NOTHING, name) == ALLOW, name
    assert asked(machine, NOTHING, "clone", THREAD) == ALLOW
    assert asked(machine, NOTHING, "socketpair", 1, 1 | 0o2000000) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_need_the_network(machine: str) -> None:
    networked = replace(NOTHING, network=True)

    for family in (1, 2, 10, 16, 17):
        assert asked(machine, NOTHING, "socket", family) == DENIED
    assert asked(machine, NOTHING, "connect") == MISSING
    assert asked(machine, networked, "socket", 2) == ALLOW
    assert asked(machine, networked, "socket", 10) == ALLOW
    assert asked(machine, networked, "socket", 1) == DENIED
    assert asked(machine, networked, "socket", 16) == DENIED
    assert asked(machine, networked, "connect") == ALLOW
    assert asked(machine, networked, "socketpair", 1, 2) == DENIED


@pytest.mark.parametrize("machine", MACHINES)
def test_processes_need_the_permission(machine: str) -> None:
    many = replace(NOTHING, processes=True)

    assert asked(machine, NOTHING, "clone", 17) == DENIED
    assert asked(machine, NOTHING, "execve") == DENIED
    assert asked(machine, replace(NOTHING, execute=True), "execve") == ALLOW
    assert asked(machine, replace(NOTHING, execute=True), "clone", 17) == DENIED
    assert asked(machine, many, "clone", 17) == ALLOW
    assert asked(machine, many, "execve") == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flags", [CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWUSER | CLONE_THREAD])
def test_no_new_namespaces_whatever_is_allowed(machine: str, flags: int) -> None:
    everything = Needs(network=True, processes=True, execute=True, shared_memory=True, alone=False)

    assert asked(machine, everything, "clone", flags | 17) == DENIED
    assert asked(machine, everything, "clone3") == MISSING


@pytest.mark.parametrize("machine", MACHINES)
def test_signals_reach_only_oneself_where_ids_are_shared(machine: str) -> None:
    assert asked(machine, NOTHING, "kill", 77, 9) == ALLOW
    assert asked(machine, NOTHING, "kill", 78, 9) == DENIED
    assert asked(machine, NOTHING, "kill", 0xFFFFFFFFFFFFFFFF, 9) == DENIED
    assert asked(machine, NOTHING, "tgkill", 1, 1, 9) == DENIED
    assert asked(machine, NOTHING, "prlimit64", 78) == DENIED
    assert asked(machine, NOTHING, "prlimit64", 0) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_no_file_runs_as_its_owner(machine: str) -> None:
    walled = replace(NOTHING, alone=False)

    assert asked(machine, walled, "fchmod", 3, 0o755) == ALLOW
    assert asked(machine, walled, "fchmod", 3, 0o4755) == DENIED
    assert asked(machine, walled, "fchmodat", 3, 0, 0o2755) == DENIED
    assert asked(machine, walled, "openat", 3, 0, 0o101, 0o644) == ALLOW
    assert asked(machine, walled, "openat", 3, 0, 0o101, 0o4755) == DENIED
    assert asked(machine, walled, "openat", 3, 0, 0, 0o4755) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_paths_that_landlock_does_not_guard_are_guarded_here(machine: str) -> None:
    for name in ("fchmodat", "fchownat", "utimensat", "truncate", "setsid", "inotify_add_watch"):
        assert asked(machine, NOTHING, name) == DENIED, name
        assert asked(machine, replace(NOTHING, alone=False), name) == ALLOW, name


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_that_is_not_counted_is_refused(machine: str) -> None:
    uncounted = replace(NOTHING, shared_memory=False)
    out_of_memory = 0x00050000 | errno.ENOMEM

    assert asked(machine, uncounted, "mmap", 0, 1 << 20, 3, 0x21) == out_of_memory
    assert asked(machine, uncounted, "mmap", 0, 1 << 20, 3, 0x22) == ALLOW
    assert asked(machine, NOTHING, "mmap", 0, 1 << 20, 3, 0x21) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_an_unknown_call_is_missing_and_a_foreign_one_kills(machine: str) -> None:
    program = assemble(machine, NOTHING)

    assert answer(program, ARCHITECTURES[machine], 5_000) == MISSING
    assert answer(program, 0x40000003, 1) == KILL
    assert answer(program, ARCHITECTURES[machine], 0x40000000 | 41, 2) == KILL


def test_a_filter_fits_into_the_kernel() -> None:
    for machine in MACHINES:
        assert len(assemble(machine, NOTHING)) // 8 < 4096


@pytest.mark.parametrize(
    ("machine", "header", "aliases"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", {}),
        ("aarch64", "/usr/include/asm-generic/unistd.h", {"newfstatat": "fstatat"}),
    ],
)
def test_the_numbers_are_those_of_the_kernel(
    machine: str, header: str, aliases: dict[str, str]
) -> None:
    if not Path(header).exists():
        pytest.skip("the headers of the kernel are not installed")
    text = Path(header).read_text("utf-8")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))

    wrong = {
        name: number
        for name, number in NUMBERS[machine].items()
        if known.get(aliases.get(name, name), "-1") != str(number)
    }

    assert wrong == {}
