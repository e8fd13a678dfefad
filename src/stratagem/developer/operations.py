"""The operations of developer mode, as rows of the table that every surface is made from."""

from __future__ import annotations

from stratagem.developer.entry_operations import ENTRY_OPERATIONS
from stratagem.developer.place_operations import PLACE_OPERATIONS
from stratagem.operation import Operation

__all__ = ["OPERATIONS"]

OPERATIONS: tuple[Operation, ...] = (*ENTRY_OPERATIONS, *PLACE_OPERATIONS)
