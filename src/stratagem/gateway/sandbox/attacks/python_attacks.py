"""Attacks on a full Python interpreter: what each one got through, or None."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
targets: dict[str, Any] = globals().get("inputs", {})

FORKS = 200

# Numbers on x86_64 and aarch64. With zeros for arguments a call that is let through fails with
# another error than "not permitted" or "no such call", or does no harm.
CALLS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone3": (435, 435),
    "execveat": (322, 281),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "setns": (308, 268),
    "shmget": (29, 194),
    "swapon": (167, 224),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def tcp() -> str:
    with socket.create_connection((targets["host"], targets["tcp"]), timeout=1):
        return "connected"


def udp() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (targets["host"], targets["udp"]))
        return "sent"


def unix_socket() -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(targets["unix"])
        return "connected"


def abstract_socket() -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + targets["abstract"])
        return "connected"


def datagram_pair() -> str:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with contextlib.suppress(OSError):
            pair = socket.socketpair(socket.AF_UNIX, kind)
            pair[0].sendto(b"x", "\0" + targets["abstract_datagram"])
            return "sent"
    raise PermissionError


def read_secret() -> str:
    return Path(targets["secret"]).read_text("utf-8")


def read_by_link() -> str:
    for name, link in (("soft", os.symlink), ("hard", os.link)):
        with contextlib.suppress(OSError):
            path = f"link-{name}-{os.getpid()}"
            link(targets["secret"], path)
            return Path(path).read_text("utf-8")
    raise PermissionError


def change_secret() -> None:
    """Try to change the planted file; whether it worked is seen from outside."""
    attempts: tuple[Callable[[], object], ...] = (
        lambda: os.chmod(targets["secret"], 0o777),  # noqa: S103, PTH101 - an attack
        lambda: os.chown(targets["secret"], os.getuid(), -1),
        lambda: os.utime(targets["secret"], (0, 0)),
        lambda: os.truncate(targets["secret"], 0),
        lambda: os.unlink(targets["secret"]),  # noqa: PTH108 - an attack
        lambda: Path(targets["secret"]).write_text("changed", "utf-8"),
        lambda: Path(targets["outside"], "new").write_text("written", "utf-8"),
        lambda: Path(targets["outside"], "folder").mkdir(),
    )
    for attempt in attempts:
        with contextlib.suppress(OSError):
            attempt()


def large_file() -> str:
    written = 0
    with Path(f"large-{os.getpid()}").open("wb", buffering=0) as file:
        try:
            while written < 300 << 20:
                written += file.write(b"\0" * (4 << 20))
        except OSError:
            pass
    if written > targets["file_bytes_max"]:
        return f"{written} bytes written"
    raise PermissionError


def large_allocation() -> str:
    return f"{len(bytearray(400 << 20))} bytes"


def shared_allocation() -> str:
    import mmap

    return f"{len(mmap.mmap(-1, 400 << 20))} bytes"


def environment() -> str:
    extra = sorted(set(os.environ) - set(targets["environment"]))
    if extra:
        return ", ".join(extra)
    raise PermissionError


def snoop() -> str:
    for name in ("environ", "cmdline", "maps", "mem"):
        with contextlib.suppress(OSError), Path(f"/proc/{targets['victim']}/{name}").open("rb"):
            return name
    raise PermissionError


def forks() -> str:
    count = 0
    with contextlib.suppress(OSError):
        while count < FORKS:
            if os.fork() == 0:
                time.sleep(10)
                os._exit(0)
            count += 1
    if count > targets["processes_max"]:
        return f"{count} processes"
    raise PermissionError


def run_program() -> str:
    done = subprocess.run(["/bin/true"], check=False, timeout=5)
    return f"ended with {done.returncode}"


def signal_others() -> str:
    os.kill(targets["victim"], signal.SIGKILL)
    return "sent"


def limit_others() -> str:
    resource.prlimit(targets["victim"], resource.RLIMIT_NOFILE, (1, 1))
    return "set"


def new_namespaces() -> str:
    number = 56 if platform.machine() == "x86_64" else 220
    # A user namespace, and the signal that a parent gets when its child ends.
    made = libc.syscall(number, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if made == 0:
        os._exit(0)
    if made > 0:
        return "cloned"
    raise PermissionError


def become_root() -> str:
    os.setuid(0)
    return "root"


def set_user_id() -> str:
    path = Path(f"set-{os.getpid()}")
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    with contextlib.suppress(OSError):
        path.chmod(0o4755)
    if path.stat().st_mode & 0o6000:
        return "made"
    raise PermissionError


def make_device() -> str:
    os.mknod(f"device-{os.getpid()}", 0o20666, os.makedev(1, 1))
    return "made"


def other_calls() -> str:
    column = 0 if platform.machine() == "x86_64" else 1
    through = []
    for name, numbers in CALLS.items():
        ctypes.set_errno(0)
        answer = libc.syscall(numbers[column], 0, 0, 0, 0, 0, 0)
        if answer >= 0 or ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS}:
            through.append(name)
    if through:
        return ", ".join(through)
    raise PermissionError


ATTACKS = (
    tcp,
    udp,
    unix_socket,
    abstract_socket,
    datagram_pair,
    read_secret,
    read_by_link,
    large_file,
    large_allocation,
    shared_allocation,
    environment,
    snoop,
    forks,
    run_program,
    signal_others,
    limit_others,
    new_namespaces,
    become_root,
    set_user_id,
    make_device,
    other_calls,
)


def run_attacks() -> Iterator[tuple[str, str | None]]:
    """Try each attack that is not left out; yield what it achieved, None if it failed."""
    for attack in ATTACKS:
        if attack.__name__ not in targets["left_out"]:
            try:
                yield attack.__name__, attack()
            except (OSError, MemoryError, subprocess.SubprocessError):
                yield attack.__name__, None


if targets:
    change_secret()
    result = dict(run_attacks())
    sys.stdout.flush()
