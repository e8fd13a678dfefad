"""OpenAPI documents: parses them and turns each operation into a tool."""

from stratagem.gateway.openapi.document import Document, load_document, parse_document
from stratagem.gateway.openapi.tools import DocumentTools, list_tools

__all__ = ["Document", "DocumentTools", "list_tools", "load_document", "parse_document"]
