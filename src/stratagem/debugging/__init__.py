"""Debugging: incidents, the fixes that were tried, and the evidence for each."""

from stratagem.debugging.service import Debugging

__all__ = ["Debugging"]
