"""`stratagem hook CLIENT`: one event in, one answer out, and status 0 whatever happens.

A prompt and a failed command are answered immediately by the lean half. Captured events are
spooled; starts, ends of turns, compactions and ends of sessions run the thorough half, which writes
them. Each has a time limit, after which the process ends, finished or not: spooled events are safe,
and the next event continues.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

# First of all: what follows has patterns.
from stratagem.hooks.pattern_cache import PatternCache  # isort: skip

from stratagem.hooks.clients import (
    CLIENTS,
    COMPACT,
    COMPACTED,
    END,
    PROMPT,
    START,
    STOP,
    TOOL,
    HookEvent,
    format_answer,
    parse_event,
)
from stratagem.hooks.settings import HookSettings, read_settings
from stratagem.projects import is_address

__all__ = ["is_hook_call", "run_hook"]

# In seconds, where no setting says otherwise. Most take a tenth; on a machine that is overloaded a
# prompt waits no longer than this. Clients wait 10 s for a start and 5 s for most others
# (`hook_lists`), and then say that the hook failed; all hooks of a session's end have 1.5 s.
_TIME_LIMITS: Final = {
    START: 8.0,
    PROMPT: 2.5,
    TOOL: 2.5,
    STOP: 4.5,
    COMPACT: 4.5,
    COMPACTED: 4.5,
    END: 1.3,
}
_INPUT_SECONDS: Final = 5.0
# More than any client sends; what is beyond is not read.
_INPUT_BYTES_MAX: Final = 16_000_000


def is_hook_call(arguments: list[str]) -> bool:
    """Whether a command line is a client's call: `hook CLIENT`, and perhaps an event.

    One with options is the command line's to read.
    """
    called = len(arguments) > 1 and arguments[0] == "hook" and arguments[1] in CLIENTS
    return called and not any(each.startswith("-") for each in arguments)


def run_hook(arguments: list[str]) -> NoReturn:
    """Answer the event on standard input, and end the process with status 0."""
    patterns = PatternCache()
    client, name = arguments[1], arguments[2] if len(arguments) > 2 else ""  # noqa: PLR2004
    watch = _TimeLimit(_INPUT_SECONDS)
    answer = format_answer(client, name, "")
    try:
        text = sys.stdin.buffer.read(_INPUT_BYTES_MAX).decode("utf-8", "replace")
        event = parse_event(client, text, name)
        if event is not None:
            answer = format_answer(client, event.name, "")
            settings = read_settings(event.folder or os.getcwd())
            watch.restart(settings.time_limit or _TIME_LIMITS[event.kind], answer)
            context = _handle(event, settings)
            answer = format_answer(client, event.name, context)
            if event.kind == START:
                from stratagem.hooks.turns import read_lean_patterns

                read_lean_patterns()
                patterns.keep()
    except Exception:  # noqa: BLE001 -- the outermost frame: a hook never gets in the way
        _report_fault()
    watch.finish(answer)


def _handle(event: HookEvent, settings: HookSettings) -> str:
    """Handle an event; return the text that answers it, which may be empty."""
    if "all" in settings.off or not _is_there(settings.database):
        return ""
    from stratagem.hooks.handlers import handle_event

    return handle_event(event, settings)


def _is_there(database: str) -> bool:
    """Whether there is a database: of one on a server only the server knows."""
    return is_address(database) or os.path.isfile(database)


def _report_fault() -> None:
    """Print a traceback where somebody asked for it."""
    if os.environ.get("STRATAGEM_DEBUG"):
        import traceback

        traceback.print_exc()


class _TimeLimit:
    """Ends the process when its time is over, whatever it waits for."""

    def __init__(self, seconds: float) -> None:
        import threading

        self._answer = ""
        self._changed = threading.Condition()
        self._finished = False
        self._seconds = seconds
        threading.Thread(target=self._watch, daemon=True).start()

    def restart(self, seconds: float, answer: str) -> None:
        """Begin anew, with what is answered if the time is over."""
        with self._changed:
            self._seconds, self._answer = seconds, answer
            self._changed.notify()

    def finish(self, answer: str) -> NoReturn:
        """Print the answer and end the process, leaving nothing running."""
        with self._changed:
            self._finished = True
            _end(answer)

    def _watch(self) -> None:
        with self._changed:
            while self._changed.wait(self._seconds):
                pass
            if not self._finished:
                _end(self._answer)


def _end(answer: str) -> NoReturn:
    try:
        if answer:
            data = f"{answer}\n".encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(1, data) :]
        sys.stderr.flush()
    except OSError:
        # Nobody reads any more.
        pass
    # At once: what a thread still does, or an interpreter does at its end, is nothing to wait for.
    os._exit(0)
