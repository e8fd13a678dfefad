"""Which tool does what is asked for: from what tools say of themselves, and from what worked."""

from stratagem.gateway.advice.retrieval.duplicates import difference, group_duplicates
from stratagem.gateway.advice.retrieval.index import ToolIndex, ToolMatch

__all__ = ["ToolIndex", "ToolMatch", "difference", "group_duplicates"]
