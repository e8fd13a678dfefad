"""Upstream MCP servers: one lasting connection each, shared by all calls."""

from __future__ import annotations

from stratagem.gateway.handlers.upstream.definitions import (
    HttpServer,
    ServerDefinition,
    StdioServer,
    read_definition,
)
from stratagem.gateway.handlers.upstream.listing import (
    Changes,
    compare,
    fingerprint,
    fingerprints,
)
from stratagem.gateway.handlers.upstream.upstreams import Upstreams

__all__ = [
    "Changes",
    "HttpServer",
    "ServerDefinition",
    "StdioServer",
    "Upstreams",
    "compare",
    "fingerprint",
    "fingerprints",
    "read_definition",
]
