"""Ports for servers that a test starts."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback that nobody else is given for the next minute.

    A connection that was just closed holds the port: the kernel hands it out to no other test
    run, while a server that asks for this very port may have it (SO_REUSEADDR, as they all do).
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # Only now: before, the kernel might choose a port that is held in this way already.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen(1)
        address = listener.getsockname()
        with socket.create_connection(address):
            # This end closes first, and so it is the one that lingers on the port.
            listener.accept()[0].close()
    port: int = address[1]
    return port
