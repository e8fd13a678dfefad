"""The HTTP server that carries every surface for programs."""

from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["run"]


def run(settings: ServerSettings) -> None:
    """Serve any number of clients on a loopback address until a signal.

    Prints the address and how to connect an agent.

    Raises:
        ServiceUnavailable: The port is taken.
        ValidationFailed: The address is not this machine's own, or there is no such toolset.
    """
    from stratagem.surfaces.server import http

    http.run(settings)
