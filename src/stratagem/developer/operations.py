"""The operations of developer mode, as rows of the table that every surface is made from."""

from __future__ import annotations

from stratagem.developer.entry_operations import ENTRY_OPERATIONS
from stratagem.developer.place_operations import PLACE_OPERATIONS
from stratagem.developer.upkeep_operations import UPKEEP_OPERATIONS
from stratagem.developer.vector_operations import VECTOR_OPERATIONS
from stratagem.operation import Operation

__all__ = ["OPERATIONS"]

OPERATIONS: tuple[Operation, ...] = (
    *ENTRY_OPERATIONS,
    *VECTOR_OPERATIONS,
    *PLACE_OPERATIONS,
    *UPKEEP_OPERATIONS,
)
