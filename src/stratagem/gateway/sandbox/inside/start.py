"""The entry point inside the sandbox: receive the instructions, drop privileges, run the code.

The instructions come through one socket, whose number is the only argument: a length and a JSON
object for this module, then a length and a JSON object for the code that is to run. Answers are
lines of JSON on the same socket: `{"ready": true}` when all privileges are dropped, and at the end
the report of the code. The code can write to the socket too; it can only falsify its own result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Follow the instructions; for JavaScript in Node this does not return."""
    # Meant for this process alone, not for its children.
    os.environ.pop("PYTHONHOME", None)
    descriptor = int(sys.argv[1])
    instructions = receive(descriptor)
    mode = instructions["mode"]
    if mode in {"monty", "quickjs"}:
        sys.path.append(instructions["packages"])
        import snippets  # type: ignore[import-not-found]

        prepared = snippets.prepare(mode)
        harden(instructions)
        send(descriptor, {"ready": True})
        snippets.run(prepared, mode, receive(descriptor), lambda answer: send(descriptor, answer))
    elif mode == "python":
        import python_code  # type: ignore[import-not-found]

        harden(instructions)
        send(descriptor, {"ready": True})
        python_code.run(receive(descriptor), lambda answer: send(descriptor, answer))
    else:
        execute(descriptor, instructions)


def execute(descriptor: int, instructions: dict[str, Any]) -> None:
    """Replace this process by Node, which keeps the socket for its result."""
    os.set_inheritable(descriptor, True)  # noqa: FBT003 -- it takes no name
    name, *arguments = instructions["argv"]
    # Opened before privileges are dropped: both may be accessible to root only.
    program = f"/proc/self/fd/{seal_copy('node_code.js')}"
    given = {"{socket}": str(descriptor), "{program}": program}
    argv = [name, *(given.get(part, part) for part in arguments)]
    executable = f"/proc/self/fd/{os.open(name, os.O_PATH)}"
    harden(instructions)
    send(descriptor, {"ready": True})
    try:
        os.execve(executable, argv, instructions["env"])  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def seal_copy(name: str) -> int:
    """Copy a file of this folder to sealed (immutable) memory; return its descriptor."""
    import fcntl

    with open(f"{__file__.rpartition('/')[0]}/{name}", "rb") as file:  # noqa: PTH123 - no pathlib
        content = file.read()
    copy = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    while content:
        content = content[os.write(copy, content) :]
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
    return copy


def harden(instructions: dict[str, Any]) -> None:
    """Drop privileges, if this machine supports it."""
    if instructions["harden"] is not None:
        import harden as hardening  # type: ignore[import-not-found]

        hardening.harden(instructions["harden"])


def receive(descriptor: int) -> Any:
    """Read one length-prefixed JSON object."""
    size = int.from_bytes(read_exactly(descriptor, 4), "big")
    return json.loads(read_exactly(descriptor, size))


def read_exactly(descriptor: int, size: int) -> bytes:
    """Read this many bytes."""
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 16))
        if not part:
            raise SystemExit("the instructions ended early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(descriptor: int, answer: dict[str, Any]) -> None:
    """Write one line of JSON."""
    line = json.dumps(answer).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


if __name__ == "__main__":
    main()
