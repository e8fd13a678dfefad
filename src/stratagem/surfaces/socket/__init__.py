"""The gateway's events over Socket.IO, by the names of its document."""

from stratagem.surfaces.socket.app import Sockets

__all__ = ["Sockets"]
