"""Starts a program that is killed when its parent dies.

Run as a script, `launch.py PARENT COMMAND ARGS...`: it asks the kernel to kill this process when
its parent dies for any reason, then executes the command in its place. It imports nothing of the
package, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_NOT_FOUND = 127


def main(parent: int, command: list[str]) -> None:
    """Tie this process to its parent, then become the command."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the kernel was asked.
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - an administrator named the command
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
