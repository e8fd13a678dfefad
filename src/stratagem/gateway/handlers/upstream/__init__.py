"""Upstream MCP servers: one persistent connection each, shared by all calls."""

from __future__ import annotations

from stratagem.gateway.handlers.upstream.definitions import (
    HttpServer,
    ServerDefinition,
    StdioServer,
    read_definition,
)
from stratagem.gateway.handlers.upstream.upstream_tools import (
    fingerprint,
    fingerprints,
)
from stratagem.gateway.handlers.upstream.upstreams import Upstreams

__all__ = [
    "HttpServer",
    "ServerDefinition",
    "StdioServer",
    "Upstreams",
    "fingerprint",
    "fingerprints",
    "read_definition",
]
