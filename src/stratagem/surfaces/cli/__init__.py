"""The command line, for people.

Every command is a translation of one operation, or of one way to look after a database. What a
command needs is imported when it runs, so that `stratagem mcp` and a shell's completion start
without the rest.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import Final

__all__ = ["main"]

# How many new objects there are before the collector looks for cycles among them; 700 by default.
_COLLECTION_THRESHOLD: Final = 10_000


def main() -> None:
    """Run the command that the arguments of this process name, and exit."""
    _relax_garbage_collection()
    arguments, database = sys.argv[1:], ""
    if arguments[:1] == ["--db"] and arguments[2:3] == ["hook"]:
        database, arguments = arguments[1], arguments[2:]
    if arguments[:1] == ["hook"]:
        # Before anything else is imported: a hook runs at every prompt of an agent.
        from stratagem.hooks.command import is_hook_call, run_hook

        if is_hook_call(arguments):
            if database:
                os.environ["STRATAGEM_DB"] = database
            run_hook(arguments)
    # Before NumPy is read: vectors are small here, and its threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows takes a code page by default, which has no room for other scripts.
        with suppress(AttributeError, ValueError):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    from stratagem.surfaces.cli.plain_lines import run_plain_line

    code = run_plain_line(sys.argv[1:])
    if code is not None:
        sys.exit(code)
    from stratagem.surfaces.cli.app import root_command

    root_command().main(prog_name="stratagem")


def _relax_garbage_collection() -> None:
    """Look for cycles less often, and not among everything when the process ends.

    Imports make hundreds of thousands of objects, none of them garbage: looking through them again
    and again, and once more at the end, took a quarter of the CPU of a start.
    """
    gc.set_threshold(_COLLECTION_THRESHOLD)
    atexit.register(gc.freeze)
