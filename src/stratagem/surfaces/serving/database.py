"""The databases of a server, each opened when it is first needed."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stratagem import limits
from stratagem.deferred_modules import asyncio
from stratagem.errors import ServiceUnavailable, StorageUnavailable, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.serving.calls import ActiveCalls
from stratagem.surfaces.serving.settings import ServerSettings

if TYPE_CHECKING:
    from stratagem.bootstrap import Runtime

__all__ = ["Database"]

logger = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 2.0


class Database:
    """The server's own database, and those of its workspaces. Safe to use from several threads.

    Opening may include a migration, so no handshake waits for it. A failed opening is retried with
    the next call: the disk may have space again, or the other process may have ended.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._runtime: Runtime | None = None
        self._workspaces: dict[str, Runtime] = {}
        self._closed = False
        self.calls = ActiveCalls()
        # How browsers reach the server, once it listens.
        self.address: str | None = None
        self._open_listeners: list[Callable[[str | None], object]] = []

    def on_open(self, listener: Callable[[str | None], object]) -> None:
        """Call a listener with each workspace that is opened, and with those that are open.

        It is called in whichever thread opened it.
        """
        with self._opening:
            self._open_listeners.append(listener)
            for workspace in ([] if self._runtime is None else [None]) + [*self._workspaces]:
                listener(workspace)

    def call(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation, opening the database first where that is still to be done."""
        try:
            return self.runtime(caller.workspace).call(name, arguments, caller)
        except StratagemError as error:
            return _answer_unopened(name, error)

    async def call_async(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation without holding up the event loop."""
        async with self.calls.track(name, arguments, caller):
            runtime = self._runtime_if_open(caller.workspace)
            try:
                if runtime is None:
                    runtime = await asyncio.to_thread(self.runtime, caller.workspace)
                return await runtime.call_async(name, arguments, caller)
            except StratagemError as error:
                return _answer_unopened(name, error)

    def runtime(self, workspace: str | None = None) -> Runtime:
        """Return the open database of a workspace; None is the server's own.

        Raises:
            StratagemError: It cannot be opened.
        """
        opened = self._runtime_if_open(workspace)
        if opened is not None:
            return opened
        with self._opening:
            if self._closed:
                raise StorageUnavailable("The server is stopping.", hint="Start it again.")
            if workspace is None:
                if self._runtime is None:
                    self._runtime = self._open()
                    self._notify_open(None)
                return self._runtime
            if workspace not in self._workspaces:
                self._workspaces = {**self._workspaces, workspace: self._open_workspace(workspace)}
                self._notify_open(workspace)
            return self._workspaces[workspace]

    def workspaces(self) -> list[str | None]:
        """Return the workspaces there are, open or not; None is the server's own.

        Raises:
            StratagemError: The database cannot be asked.
        """
        from stratagem.access.workspaces import home_of
        from stratagem.bootstrap import workspaces

        home = home_of(self._settings.database)
        others = {*workspaces(self._settings.database), *self._workspaces} - {home}
        return [None, *sorted(others)]

    @contextmanager
    def borrow(self, workspace: str | None) -> Iterator[Runtime]:
        """Lend the database of a workspace; one that was not open is closed again afterwards.

        Raises:
            StratagemError: It cannot be opened.
        """
        opened = self.runtime() if workspace is None else self._runtime_if_open(workspace)
        if opened is not None:
            yield opened
            return
        from stratagem.access.workspaces import place_of

        assert workspace is not None
        runtime = self._open(*place_of(self._settings.database, workspace))
        try:
            yield runtime
        finally:
            runtime.close()

    async def check(self) -> None:
        """Read from the server's own database.

        Raises:
            StratagemError: It cannot be read.
        """

        def read() -> None:
            # Opening the database may take as long as reading it.
            self.runtime().foundation.store.reader().log.head()

        await asyncio.to_thread(read)

    async def leave_loop(self) -> None:
        """End the connections that live on this event loop."""
        for runtime in self._all_open():
            await runtime.leave_loop()

    def open_in_background(self) -> None:
        """Begin to open the database; a failure is logged, and met again by the next call."""
        threading.Thread(target=self._try_to_open, name="stratagem-opening", daemon=True).start()

    def open_within(self, seconds: float) -> bool:
        """Open the database, waiting for a bounded time; whether it is open.

        Raises:
            StratagemError: It cannot be opened.
        """
        met: list[StratagemError] = []

        def attempt() -> None:
            try:
                self.runtime()
            except StratagemError as error:
                met.append(error)

        opening = threading.Thread(target=attempt, name="stratagem-opening", daemon=True)
        opening.start()
        opening.join(seconds)
        if met:
            raise met[0]
        return self._runtime is not None

    def close(self) -> None:
        """Close the databases.

        A long migration is abandoned: it is rolled back when the process ends.
        """
        self._closed = True
        if self._opening.acquire(timeout=CLOSING_SECONDS):
            for runtime in self._all_open():
                runtime.close()
            self._opening.release()

    def _notify_open(self, workspace: str | None) -> None:
        for listener in self._open_listeners:
            listener(workspace)

    def _runtime_if_open(self, workspace: str | None) -> Runtime | None:
        return self._runtime if workspace is None else self._workspaces.get(workspace)

    def _all_open(self) -> list[Runtime]:
        own = [] if self._runtime is None else [self._runtime]
        return [*own, *self._workspaces.values()]

    def _open_workspace(self, workspace: str) -> Runtime:
        from stratagem.access.workspaces import place_of

        if len(self._workspaces) >= limits.WORKSPACES_OPEN_MAX:
            raise ServiceUnavailable(
                "This server has the maximum number of workspaces open.",
                limit=limits.WORKSPACES_OPEN_MAX,
            )
        where, of_log = place_of(self._settings.database, workspace)
        return self._open(where, of_log, workspace_name=workspace)

    def _open(
        self, place: str | None = None, workspace: str = "default", workspace_name: str = ""
    ) -> Runtime:
        from stratagem.bootstrap import Settings, built_in, start

        given, own = self._settings, "" if place is None else workspace_name
        runtime = start(
            Settings(
                place or given.database,
                durability=given.durability,
                embedder=given.embedder,
                read_only=given.read_only,
                redaction=given.redaction,
                relevance_min=given.relevance_min,
                # External read models know no workspaces: they are fed from the server's own only.
                external=None if place is None else built_in(),
                workspace=workspace,
                environment={**given.of_files, **os.environ},
                allow_hosts=given.allow_hosts,
                allow_callables=given.allow_callables,
                sign_in_address=lambda: (self.address, own) if self.address else None,
                personal=given.personal if place is None else None,
                git_folder=given.git_folder if place is None else None,
                bundles=self._bundle_folder(own),
            )
        )
        runtime.look_at_clock()
        return runtime

    def _bundle_folder(self, workspace: str) -> str | None:
        """Return the folder for the bundles of a workspace: nobody reads those of another."""
        if self._settings.bundles is None or not workspace:
            return self._settings.bundles
        operators = Path(self._settings.bundles).expanduser()
        folder = operators / "workspaces" / workspace
        if operators.is_dir() and not self._settings.read_only:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(folder)

    def _try_to_open(self) -> None:
        try:
            self.runtime()
        except StratagemError as error:
            logger.warning("%s %s", error.message, error.hint)


def _answer_unopened(name: str, error: StratagemError) -> dict[str, Any]:
    """Answer what can be answered without the database; raise the error otherwise."""
    from stratagem.bootstrap import now
    from stratagem.operations import answer_unopened

    return answer_unopened(name, error, now())
