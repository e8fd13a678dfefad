"""One HTTP server in this process, on which tests put the databases they want to have served."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from functools import cache
from typing import Any

import uvicorn

from stratagem.bootstrap import Runtime
from stratagem.operation import Caller
from stratagem.surfaces.server import http
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings


class Prepared(Database):
    """A database that is open already."""

    def __init__(self, settings: ServerSettings, runtime: Runtime) -> None:
        super().__init__(settings)
        self._runtime = runtime

    async def call_async(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation as if an administrator's token had been shown."""
        caller.authority = "operator"
        return await super().call_async(name, arguments, caller)


class Host:
    """The server: each application has an address of its own below it."""

    def __init__(self) -> None:
        self._apps: dict[str, Any] = {}
        self._databases: dict[str, Database] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._names = map(str, itertools.count(1))
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._answer, interface="asgi3", log_config=None, lifespan="off", ws="none"
        )
        server = uvicorn.Server(config)
        threading.Thread(target=server.run, args=([listener],), daemon=True).start()

    def add(self, settings: ServerSettings, database: Database) -> str:
        """Serve a database; return its address."""
        name = next(self._names)
        self._apps[name] = http.application(settings, database, self._port)
        self._databases[name] = database
        return f"http://127.0.0.1:{self._port}/{name}"

    def remove(self, url: str) -> None:
        """End what a database has open on the loop of this server, and serve it no more."""
        name = url.rpartition("/")[2]
        del self._apps[name]
        database = self._databases.pop(name)
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(database.leave_loop(), self._loop).result(60)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self._loop = asyncio.get_running_loop()
        _, name, path = scope["path"].split("/", 2)
        await self._apps[name]({**scope, "path": f"/{path}"}, receive, send)


@cache
def host() -> Host:
    """Return the server of this process, which ends with it."""
    return Host()
