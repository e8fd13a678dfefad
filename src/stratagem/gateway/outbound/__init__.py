"""Outbound HTTP: bounded in size and time, and refused for private addresses unless allowed."""

from stratagem.gateway.outbound.allowed_hosts import AllowedHost, parse_allowed_hosts
from stratagem.gateway.outbound.client import Outbound
from stratagem.gateway.outbound.responses import Response

__all__ = ["AllowedHost", "Outbound", "Response", "parse_allowed_hosts"]
