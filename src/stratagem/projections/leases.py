"""Which process delivers a projection: one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from stratagem import limits
from stratagem.errors import StorageBusy
from stratagem.storage.contract import Store, Transaction, WriteRequest
from stratagem.storage.outbox import OutboxWriter

__all__ = ["ACTOR", "Lease", "LeaseLost"]

ACTOR: Final = WriteRequest("stratagem")
_MICROSECONDS: Final = 1_000_000
_BETWEEN_TRIES_SECONDS: Final = 0.25


class LeaseLost(Exception):
    """Another process has taken over this projection; it will send again what this one sent."""


class Lease:
    """The right to deliver a projection, for one owner. It ends by itself when nobody renews it."""

    def __init__(self, store: Store, projection: str, owner: str) -> None:
        self._store = store
        self._projection = projection
        self._owner = owner

    def take(self) -> bool:
        """Take or renew the lease; False where another has it."""
        return self._store.write(self.renew, ACTOR)

    def renew(self, transaction: Transaction) -> bool:
        """Renew the lease in a transaction; False where another took it since."""
        return self._until(transaction.outbox, limits.OUTBOX_LEASE_SECONDS)

    def insist(self, transaction: Transaction) -> None:
        """Renew the lease, or write nothing.

        Raises:
            LeaseLost: Another took it since.
        """
        if not self.renew(transaction):
            raise LeaseLost

    def give_back(self) -> None:
        """Let others have the lease."""
        self._store.write(lambda transaction: self._until(transaction.outbox, 0), ACTOR)

    def wait(self, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lease, waiting for whoever has it.

        Raises:
            StorageBusy: Another process had it for all that time.
        """
        for _ in range(max(1, round(seconds / _BETWEEN_TRIES_SECONDS))):
            if self.take():
                return
            sleep(_BETWEEN_TRIES_SECONDS)
        raise StorageBusy(
            f"Another process is still delivering to {self._projection}.",
            projection=self._projection,
        )

    def _until(self, outbox: OutboxWriter, seconds: float) -> bool:
        now = self._store.now()
        until = now + round(seconds * _MICROSECONDS)
        return outbox.lease(self._projection, self._owner, now=now, until=until)
