"""The operations as tools of the Model Context Protocol, on stdio and on HTTP.

The user waits for the start, so each transport imports its own parts when it is called, and the
database is opened after the handshake.
"""

from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["ServerSettings", "run_stdio"]


def run_stdio(settings: ServerSettings) -> None:
    """Serve one client on stdin and stdout until it closes stdin, or until a signal.

    Raises:
        ValidationFailed: There is no toolset of a name that was given.
    """
    from stratagem.surfaces.mcp import stdio

    stdio.run(settings)
