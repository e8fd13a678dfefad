"""Which tool does what is asked for: from what tools say of themselves, and from what worked."""

from stratagem.gateway.advice.retrieval.index import Match, ToolIndex
from stratagem.gateway.advice.retrieval.twins import difference, grouped

__all__ = ["Match", "ToolIndex", "difference", "grouped"]
