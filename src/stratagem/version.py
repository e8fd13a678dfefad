"""The version of this package."""

from __future__ import annotations

from typing import Final

__all__ = ["VERSION"]

# The build reads it here: asking the installed package takes longer than most commands do.
VERSION: Final = "0.1.0"
