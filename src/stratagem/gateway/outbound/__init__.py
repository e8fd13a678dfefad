"""HTTP that leaves the house: guarded, bounded, and never to a private address by accident."""

from stratagem.gateway.outbound.allowing import AllowedHost, parse_allowed_hosts
from stratagem.gateway.outbound.client import Outbound
from stratagem.gateway.outbound.reading import Response

__all__ = ["AllowedHost", "Outbound", "Response", "parse_allowed_hosts"]
