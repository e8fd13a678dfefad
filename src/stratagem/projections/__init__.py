"""Read models outside of the database: how the outbox feeds them, and the two there are."""

from stratagem.projections.service import Projections

__all__ = ["Projections"]
