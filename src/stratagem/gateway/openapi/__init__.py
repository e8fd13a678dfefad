"""OpenAPI documents: reading them, and turning each operation into a tool."""

from stratagem.gateway.openapi.document import Document, load, read
from stratagem.gateway.openapi.tools import Listing, list_tools

__all__ = ["Document", "Listing", "list_tools", "load", "read"]
