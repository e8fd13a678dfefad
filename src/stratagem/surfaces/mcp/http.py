"""The protocol over HTTP, as an application that the server takes in."""

from __future__ import annotations

from typing import Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.surfaces.admission import Authenticator
from stratagem.surfaces.mcp.callers import SessionCallers
from stratagem.surfaces.mcp.direct_calls import DirectCalls
from stratagem.surfaces.mcp.request_bodies import RequestBodies
from stratagem.surfaces.mcp.server import build
from stratagem.surfaces.mcp.sessions import SessionTracking
from stratagem.surfaces.mcp.virtual_servers import VirtualServers
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["PATH", "application"]

PATH: Final = "/mcp"
SESSION_IDLE_SECONDS: Final = 24 * 3600


def application(
    settings: ServerSettings,
    database: Database,
    authenticator: Authenticator,
    *,
    hosts: list[str],
    origins: list[str],
) -> ASGIApp:
    """Return the protocol's server as an ASGI application; its lifespan has to be run."""
    callers = SessionCallers(authenticator)
    server = build(settings, database, callers)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # A session lives in one process; with several, a client's next request may meet another.
        stateless_http=settings.several_processes,
        max_request_body_size=limits.REQUEST_BYTES_MAX,
        session_idle_timeout=SESSION_IDLE_SECONDS,
        # Ours ends old sessions first; this one would refuse new ones.
        max_sessions=2 * limits.SESSIONS_MAX,
        transport_security=security,
    )
    direct = DirectCalls(app, server, PATH, security)
    tracked = RequestBodies(SessionTracking(direct, callers), authenticator.quotas.large_bodies)
    return VirtualServers(tracked, PATH)
