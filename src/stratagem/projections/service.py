"""The read models that were chosen, and what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stratagem import limits
from stratagem.deferred_modules import defer
from stratagem.errors import ServiceUnavailable, StratagemError, ValidationFailed
from stratagem.storage.contract import Progress, Store, Transaction

if TYPE_CHECKING:
    from stratagem.projections import consistency, leases, worker
    from stratagem.projections.consistency import Comparison
    from stratagem.projections.contract import ReadModel
    from stratagem.projections.health import Health
    from stratagem.projections.worker import Feeder, Worker
else:
    # Most databases feed no service.
    consistency = defer("stratagem.projections.consistency")
    leases = defer("stratagem.projections.leases")
    worker = defer("stratagem.projections.worker")

__all__ = ["Projections"]

_LEASE_WAIT_SECONDS: Final = limits.OUTBOX_LEASE_SECONDS + 5


class Projections:
    """The outbox of a database, and the read models that this process can feed."""

    def __init__(
        self,
        store: Store,
        models: Sequence[tuple[ReadModel, Health]],
        *,
        owner: str,
        draw: Callable[[], float],
    ) -> None:
        self._store = store
        self._draw = draw
        self._feeders = {
            model.name: worker.Feeder(store, model, health, owner=owner, draw=draw)
            for model, health in models
        }
        self._worker: Worker | None = None

    def register(self) -> None:
        """See to it that from now on every process puts events into the outbox."""
        known = {each.name: each.kinds for each in self._store.reader().outbox.projections()}
        for name, feeder in self._feeders.items():
            if known.get(name) != feeder.model.kinds and not self._store.read_only:
                self._store.write(partial(_register, name, feeder.model.kinds), leases.ACTOR)

    def start(self) -> None:
        """Deliver in the background, where there is anything to feed."""
        if self._feeders and not self._store.read_only and self._worker is None:
            self._worker = worker.Worker(list(self._feeders.values()), self._store.follow)
            self._worker.start()

    def wake(self) -> None:
        """Say that something was written."""
        if self._worker is not None:
            self._worker.wake()

    def status(self) -> list[dict[str, Any]]:
        """Return each projection with what waits for it, and whether this process can feed it."""
        with self._store.snapshot() as reader:
            return [
                {
                    "name": each.name,
                    "kinds": list(each.kinds),
                    "configured": each.name in self._feeders,
                    "built": each.built is not None,
                    **reader.outbox.count(each.name)._asdict(),
                    "processed": each.processed,
                    "delivered_by": each.lease_owner
                    if each.lease_until > self._store.now()
                    else None,
                    "rows": [
                        row._asdict()
                        for row in reader.outbox.rows(each.name, limit=limits.OUTBOX_SHOWN_MAX)
                    ],
                }
                for each in reader.outbox.projections()
            ]

    def troubles(self) -> dict[str, str | None]:
        """Return for each read model that this process can feed what is wrong with it."""
        return {name: feeder.health.trouble() for name, feeder in self._feeders.items()}

    def retry(self, name: str | None = None) -> dict[str, int]:
        """Make everything that waits or was given up due at once; say how many were given up."""
        names = [each.name for each in self._store.reader().outbox.projections()]
        if name is not None and name not in names:
            raise self._no_such_projection(name, names)
        found = {
            each: self._store.write(partial(_retry, each), leases.ACTOR)
            for each in ([name] if name else names)
        }
        self.wake()
        return found

    def deliver(self, name: str, progress: Progress) -> None:
        """Deliver everything that is due, in this thread.

        Raises:
            ServiceUnavailable: The read model does not answer.
        """
        feeder = self._feeder(name)
        total = self._store.reader().outbox.count(name).pending
        while feeder.step():
            pending = self._store.reader().outbox.count(name).pending
            progress(max(total - pending, 0), total, f"delivering to {name}")
        feeder.rest()
        if (trouble := feeder.health.trouble()) is not None:
            raise ServiceUnavailable(trouble, service=name)

    def rebuild(self, name: str, progress: Progress) -> int:
        """Make a read model anew from the log; return how many records it holds then.

        Raises:
            ServiceUnavailable: It does not answer.
            StorageBusy: Another process delivers to it and does not stop.
        """
        feeder = self._feeder(name)
        self.register()
        feeder.lease.wait(_LEASE_WAIT_SECONDS)
        try:
            return consistency.rebuild(
                self._store, feeder.model, feeder.lease, progress, self._draw
            )
        finally:
            with suppress(StratagemError):
                feeder.lease.give_back()

    def verify(self, name: str, progress: Progress) -> Comparison:
        """Compare a read model with the log.

        Raises:
            ServiceUnavailable: It does not answer.
        """
        return consistency.verify(self._store, self._feeder(name).model, progress)

    def remove(self, name: str) -> None:
        """Put no more events into the outbox for a projection, and forget those that wait."""
        names = [each.name for each in self._store.reader().outbox.projections()]
        if name not in names:
            raise self._no_such_projection(name, names)
        self._store.write(lambda transaction: transaction.outbox.drop(name), leases.ACTOR)

    def close(self) -> None:
        """Stop delivering, and let go of the connections."""
        if self._worker is not None:
            self._worker.stop()
        for feeder in self._feeders.values():
            feeder.model.close()

    def _feeder(self, name: str) -> Feeder:
        feeder = self._feeders.get(name)
        if feeder is None:
            raise self._no_such_projection(name, list(self._feeders))
        return feeder

    @staticmethod
    def _no_such_projection(name: str, known: Sequence[str]) -> ValidationFailed:
        return ValidationFailed(
            f"There is no projection {name!r} here.",
            field="name",
            allowed=list(known),
            hint=_HINTS.get(name, "`stratagem projections list` shows the projections."),
        )


def _register(name: str, kinds: Sequence[str], transaction: Transaction) -> None:
    transaction.outbox.register(name, kinds)


def _retry(name: str, transaction: Transaction) -> int:
    return transaction.outbox.retry_all(name)


_HINTS: Final[Mapping[str, str]] = {
    "neo4j": "Set STRATAGEM_GRAPH=neo4j, and NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD.",
    "chroma": "Set STRATAGEM_VECTORS=chroma, and CHROMA_URL or CHROMA_PERSIST_DIRECTORY.",
}
