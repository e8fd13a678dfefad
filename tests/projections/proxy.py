"""A way to a server that loses replies: what was asked is done, and nobody learns of it."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import Literal

Mode = Literal["pass", "cut", "swallow"]


class Proxy:
    """Passes bytes on to a port of the loopback.

    "cut" ends a connection in place of its next reply; "swallow" loses replies and keeps the
    connection. `spare` replies are let through before that.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.mode: Mode = "pass"
        self.spare = 0
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for each in list(self._open):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        self._open |= {client, server}
        with client, server, selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            try:
                while self._passed(ready, server):
                    pass
            except OSError:
                return
            finally:
                self._open -= {client, server}

    def _passed(self, ready: selectors.DefaultSelector, server: socket.socket) -> bool:
        for key, _ in ready.select():
            source = key.fileobj
            assert isinstance(source, socket.socket)
            data = source.recv(65_536)
            if not data:
                return False
            if source is server and self._loses():
                if self.mode == "cut":
                    return False
                continue
            key.data.sendall(data)
        return True

    def _loses(self) -> bool:
        if self.mode == "pass":
            return False
        if self.spare > 0:
            self.spare -= 1
            return False
        self.lost += 1
        return True
