"""What a reader can do whose store compares vectors itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from stratagem.engine.lineage import View
from stratagem.storage.contract import Found

__all__ = ["Comparing"]


@runtime_checkable
class Comparing(Protocol):
    """Compares vectors among what a view shows.

    A query's vector comes as the vectors of texts do: 32-bit numbers, one after the other.
    """

    def nearest(
        self,
        view: View,
        query: bytes,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> list[Found]:
        """Return the versions that a view shows whose vectors are nearest, nearest first."""
        ...

    def cosines(self, sequences: Sequence[int], query: bytes) -> dict[int, float]:
        """Return how near some versions are, leaving out those that have no vector."""
        ...
