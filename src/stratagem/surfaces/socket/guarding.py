"""The Socket.IO server with two bounds of ours: on messages, and on sockets of nobody known."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson
import socketio

from stratagem import limits
from stratagem.errors import RequestTooLarge
from stratagem.surfaces.rest.bodies import check_depth

__all__ = ["BoundedJson", "GuardedServer"]

_NAMESPACE: Final = "/"


class BoundedJson:
    """JSON as the server reads and writes it, refused where it is nested too deeply."""

    @staticmethod
    def loads(text: str | bytes, **_options: Any) -> Any:
        """Read a message.

        Raises:
            ValueError: It is no JSON, or nested too deeply.
        """
        body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            check_depth(body)
        except RequestTooLarge as error:
            raise ValueError(error.message) from error
        return orjson.loads(body)

    @staticmethod
    def dumps(value: Any, **_options: Any) -> str:
        """Write a message."""
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


class GuardedServer(socketio.AsyncServer):  # type: ignore[misc]
    """Keeps count of sockets that have not said who they are, and lets go of them in time."""

    def __init__(self, unknown: set[str], **options: Any) -> None:
        super().__init__(**options)
        self._unknown = unknown
        self._waiting: set[asyncio.Task[None]] = set()

    async def _handle_eio_connect(self, eio_sid: str, environ: dict[str, Any]) -> Any:
        self._unknown.add(eio_sid)
        task = asyncio.ensure_future(self._let_go(eio_sid))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return await super()._handle_eio_connect(eio_sid, environ)

    async def _handle_connect(self, eio_sid: str, namespace: str | None, data: Any) -> None:
        await super()._handle_connect(eio_sid, namespace, data)
        if self._is_known(eio_sid):
            self._unknown.discard(eio_sid)

    async def _handle_eio_disconnect(self, eio_sid: str, reason: Any) -> None:
        self._unknown.discard(eio_sid)
        await super()._handle_eio_disconnect(eio_sid, reason)

    async def _let_go(self, eio_sid: str) -> None:
        await asyncio.sleep(limits.UNKNOWN_SOCKET_SECONDS)
        if eio_sid in self._unknown:
            self._unknown.discard(eio_sid)
            await self.eio.disconnect(eio_sid)

    def _is_known(self, eio_sid: str) -> bool:
        sid = self.manager.sid_from_eio_sid(eio_sid, _NAMESPACE)
        return sid is not None and self.manager.is_connected(sid, _NAMESPACE)
