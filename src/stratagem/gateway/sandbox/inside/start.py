"""The first thing that runs inside: take the orders, give up every right, then run the code.

The orders come through one socket, whose number is the only argument: a length and a JSON
object for this module, then a length and a JSON object for the code that is to run. Answers go
back on it as lines of JSON: `{"ready": true}` when nothing is left to give up, and at the end
what the code gave. The socket is left to the code, which can at most lie about its own result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Do as ordered; for a program this does not return."""
    # Meant for this process alone, if it was given.
    os.environ.pop("PYTHONHOME", None)
    descriptor = int(sys.argv[1])
    orders = take(descriptor)
    mode = orders["mode"]
    if mode in {"monty", "quickjs"}:
        sys.path.append(orders["packages"])
        import snippets  # type: ignore[import-not-found]

        prepared = snippets.prepare(mode)
        harden(orders)
        say(descriptor, {"ready": True})
        snippets.run(prepared, mode, take(descriptor), lambda answer: say(descriptor, answer))
    elif mode == "python":
        import python_code  # type: ignore[import-not-found]

        harden(orders)
        say(descriptor, {"ready": True})
        python_code.run(take(descriptor), lambda answer: say(descriptor, answer))
    else:
        execute(descriptor, orders)


def execute(descriptor: int, orders: dict[str, Any]) -> None:
    """Become another program; only Node is given the socket, for its result."""
    os.set_inheritable(descriptor, orders["mode"] == "node")
    executable, *arguments = orders["argv"]
    argv = [executable, *arguments]
    if orders["mode"] == "node":
        # Opened while they can be reached: both may lie where only root can look.
        program = f"/proc/self/fd/{sealed('node_code.js')}"
        given = {"{socket}": str(descriptor), "{program}": program}
        argv = [executable, *(given.get(part, part) for part in arguments)]
        executable = f"/proc/self/fd/{os.open(executable, os.O_PATH)}"
    harden(orders)
    say(descriptor, {"ready": True})
    try:
        os.execve(executable, argv, orders["env"])  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def sealed(name: str) -> int:
    """Return a descriptor of a file beside this one, as a copy in memory that none can change."""
    import fcntl

    with open(f"{__file__.rpartition('/')[0]}/{name}", "rb") as file:  # noqa: PTH123 - no pathlib
        content = file.read()
    copy = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    while content:
        content = content[os.write(copy, content) :]
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
    return copy


def harden(orders: dict[str, Any]) -> None:
    """Give up rights, where this machine has the means."""
    if orders["harden"] is not None:
        import harden as hardening  # type: ignore[import-not-found]

        hardening.harden(orders["harden"])


def take(descriptor: int) -> Any:
    """Read one object."""
    size = int.from_bytes(exactly(descriptor, 4), "big")
    return json.loads(exactly(descriptor, size))


def exactly(descriptor: int, size: int) -> bytes:
    """Read that many bytes, and none of what follows."""
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 16))
        if not part:
            raise SystemExit("the orders ended early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def say(descriptor: int, answer: dict[str, Any]) -> None:
    """Write one line."""
    line = json.dumps(answer).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


if __name__ == "__main__":
    main()
