"""A small TCP proxy that cuts connections at the worst moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Fault = Literal["none", "lose the reply", "lose the request", "end the session"]
_CHUNK = 65_536
# What a PostgreSQL server says when it is ready for the next request, outside of transactions, and
# what it says when an administrator has ended a session.
_READY = b"Z\0\0\0\5I"
_REASON = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
_ENDED = b"E" + (len(_REASON) + 4).to_bytes(4, "big") + _REASON


class Proxy:
    """Stands between a client and a server on this machine, and watches for a word.

    With a fault set, the next message that holds the word cuts its connection: before it reaches
    the server, or after the server has answered it; or the server has answered, and ends the
    session before it is ready again. `away` refuses new connections as well.
    """

    def __init__(self, port: int, word: bytes) -> None:
        self.fault: Fault = "none"
        self.away_after = False
        self.cuts = 0
        self._away = False
        self._target = port
        self._word = word
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def come_back(self) -> None:
        self._away = False

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._away:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                pair = _Pair(client, server)
                for source, sink, watch in (
                    (client, server, self._asked),
                    (server, client, pair.answered),
                ):
                    threading.Thread(
                        target=pair.pump, args=(source, sink, watch), daemon=True
                    ).start()

    def _asked(self, pair: _Pair, data: bytes) -> bool:
        """Say whether what a client sends may go on."""
        if self.fault == "none" or self._word not in data:
            return True
        fault, self.fault = self.fault, "none"
        self.cuts += 1
        self._away = self.away_after
        if fault == "lose the request":
            pair.close()
            return False
        pair.losing = fault == "lose the reply"
        pair.ending = fault == "end the session"
        return True


class _Pair:
    """A connection of a client, and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._ends = (client, server)
        self.losing = self.ending = False

    def answered(self, _pair: _Pair, data: bytes) -> bool:
        if self.ending and data.endswith(_READY):
            self._ends[0].sendall(data.removesuffix(_READY) + _ENDED)
            self.losing = True
        if self.losing:
            self.close()
        return not self.losing

    def pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        watch: Callable[[_Pair, bytes], bool],
    ) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if not watch(self, data):
                    break
                sink.sendall(data)
        self.close()

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
