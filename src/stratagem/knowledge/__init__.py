"""Knowledge: concepts, how they relate, and how sure one can be of each."""

from stratagem.knowledge.service import Knowledge

__all__ = ["Knowledge"]
