"""Retention: erases old executions while a server runs, soon after its start and then daily."""

from __future__ import annotations

import logging
import threading
from typing import Final

from stratagem import limits
from stratagem.errors import StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["ExecutionRetention"]

logger = logging.getLogger(__name__)

# Agents that waited for the server come first.
_FIRST_SECONDS: Final = 30.0
# Passes of one day; what is left then is left for tomorrow.
_PASSES_MAX: Final = 10


class ExecutionRetention:
    """A thread that erases old executions once a day."""

    def __init__(
        self, settings: ServerSettings, database: Database, first_seconds: float = _FIRST_SECONDS
    ) -> None:
        self._database = database
        self._read_only = settings.read_only
        self._first_seconds = first_seconds
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin, in the background."""
        if not self._read_only:
            threading.Thread(target=self._run, name="stratagem-retention", daemon=True).start()

    def stop(self) -> None:
        """Do not begin another pass."""
        self._stopped.set()

    def _run(self) -> None:
        wait = self._first_seconds
        while not self._stopped.wait(wait):
            wait = limits.RETENTION_SECONDS
            try:
                workspaces = self._database.workspaces()
            except StratagemError as error:
                logger.warning("old executions were not erased: %s", error)
                continue
            for workspace in workspaces:
                if self._stopped.is_set():
                    return
                self._erase_old(workspace)

    def _erase_old(self, workspace: str | None) -> None:
        """Erase what is old in a workspace; one that cannot be opened holds up no other."""
        try:
            with self._database.borrow(workspace) as runtime:
                # The operator's word: it is how the server was set up.
                caller = Caller(actor="retention", authority="operator")
                for _pass in range(_PASSES_MAX):
                    answer = runtime.call("executions_erase", {}, caller)
                    if self._stopped.is_set() or not answer["more"]:
                        return
        except StratagemError as error:
            where = f" of the workspace {workspace}" if workspace else ""
            logger.warning("old executions%s were not erased: %s", where, error)
