"""One client on stdin and stdout, one JSON message to a line.

What most clients ask is answered without the protocol's library (`first_requests`); whoever asks
more is served by the library's server from then on.

When stdin ends, what was asked before is still answered, so that
`stratagem mcp < requests.jsonl` works; then the process ends.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from stratagem.surfaces.mcp.client_identity import process_caller
from stratagem.surfaces.mcp.client_pipe import ClientPipe
from stratagem.surfaces.mcp.first_requests import FirstRequests
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["run"]


class _SignalError(BaseException):
    """The process is to end."""


def run(settings: ServerSettings) -> None:
    """Serve until stdin ends, or until a signal."""
    settings.check_toolsets()
    logging.basicConfig(level=logging.WARNING, format="stratagem: %(message)s")
    database, pipe, caller = Database(settings), ClientPipe(), process_caller(settings)
    first = FirstRequests(settings, database, pipe, caller)
    try:
        with _raise_on_signal():
            unread = first.serve()
            if unread is None:
                first.finish()
        if unread is not None:
            from stratagem.surfaces.mcp.stdio_server import serve

            serve(settings, database, pipe, caller, unread)
            first.finish()
    except _SignalError:
        pass
    finally:
        database.close()


@contextmanager
def _raise_on_signal() -> Iterator[None]:
    """Let a signal end what the main thread does; reading a pipe would not end otherwise."""

    def stop(_number: int, _frame: object) -> None:
        raise _SignalError

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
