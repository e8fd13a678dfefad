"""Stratagem: a memory for AI agents that knows how it came to know things."""

from stratagem.errors import StratagemError
from stratagem.sdk import Stratagem
from stratagem.sdk import open_database as open  # noqa: A004 -- `stratagem.open` reads like `open`

__all__ = ["Stratagem", "StratagemError", "open"]
