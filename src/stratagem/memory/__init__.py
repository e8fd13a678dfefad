"""Memory: entries under keys, logged events, and the branches they live on."""

from stratagem.memory.service import Memory

__all__ = ["Memory"]
