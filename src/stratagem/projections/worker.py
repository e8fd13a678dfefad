"""The thread that delivers, in processes that live long enough.

It starts a moment after the database was opened, so that no start waits for it and a short command
never starts it. From then on every write wakes it, also those of other processes and machines, and
it wakes up by itself for retries.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from stratagem import limits
from stratagem.errors import ServiceUnavailable, StratagemError
from stratagem.projections.backoff import delay
from stratagem.projections.consistency import rebuild
from stratagem.projections.contract import ReadModel
from stratagem.projections.delivery import Delivery
from stratagem.projections.health import Health
from stratagem.projections.leases import Lease, LeaseLost
from stratagem.storage.contract import Store

__all__ = ["Feeder", "Worker"]

logger = logging.getLogger(__name__)

_JOIN_SECONDS: Final = 3.0
_WAIT_MAX: Final = round(2 * limits.OUTBOX_DELAY_SECONDS_MAX * 1_000_000)
Follow = Callable[[Callable[[int], None]], Callable[[], None]]


class Feeder:
    """Keeps one read model up to date: makes it where it was not made, then delivers."""

    def __init__(
        self,
        store: Store,
        model: ReadModel,
        health: Health,
        *,
        owner: str,
        draw: Callable[[], float],
    ) -> None:
        self.model = model
        self.lease = Lease(store, model.name, owner)
        self.health = health
        self._store = store
        self._draw = draw
        self._delivery = Delivery(store, model, self.lease, draw)
        self._outages = 0
        self._not_before = 0

    def step(self) -> bool:
        """Do some of the work there is; return whether there may be more."""
        # A clock that was set back by more than any wait is no reason to wait for it.
        if self._store.now() < self._not_before <= self._store.now() + _WAIT_MAX:
            return False
        try:
            worked = self._build() or self._delivery.round() > 0
        except LeaseLost:
            return False
        except ServiceUnavailable as error:
            self._outages += 1
            self._not_before = self._store.now() + delay(self._outages, self._draw)
            self.health.learn(error)
            self._delivery.rest()
            logger.info("%s", error.message)
            return False
        if worked:
            self._outages = 0
            self.health.learn(None)
        return worked

    def rest(self) -> None:
        """Let another process deliver."""
        self._delivery.rest()

    def _build(self) -> bool:
        """Make the read model, where it was not made with what is used now."""
        if not self.needs_building() or not self.lease.take():
            return False
        try:
            rebuild(self._store, self.model, self.lease, _silent, self._draw)
        finally:
            self.lease.give_back()
        return True

    def needs_building(self) -> bool:
        """Whether the read model was never made, or was made with something else."""
        known = {each.name: each for each in self._store.reader().outbox.projections()}
        registered = known.get(self.model.name)
        return registered is not None and registered.built != self.model.fingerprint


class Worker:
    """Runs feeders in a thread until it is stopped.

    `follow` has a function called after every commit, and returns what ends that.
    """

    def __init__(self, feeders: Sequence[Feeder], follow: Follow) -> None:
        self._feeders = feeders
        self._follow = follow
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stratagem-outbox", daemon=True)

    def start(self) -> None:
        """Begin, in a moment."""
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to deliver."""
        self._wake.set()

    def stop(self) -> None:
        """End; a request that is under way is left behind, and what it was about stays in line."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        if self._stopping.wait(limits.OUTBOX_POLL_SECONDS):
            return
        try:
            leave = self._follow(lambda _sequence: self.wake())
        except StratagemError:
            # The database was closed.
            return
        while not self._stopping.is_set():
            self._wake.clear()
            if not self._work():
                self._wake.wait(limits.OUTBOX_POLL_SECONDS)
        leave()
        for feeder in self._feeders:
            try:
                feeder.rest()
            except StratagemError:
                # The database was closed; the lease ends by itself.
                return

    def _work(self) -> bool:
        worked = False
        for feeder in self._feeders:
            try:
                worked = feeder.step() or worked
            except StratagemError as error:
                logger.warning("%s: %s", feeder.model.name, error.message)
            except Exception:
                if not self._stopping.is_set():
                    logger.exception("Delivering to %s failed.", feeder.model.name)
        return worked


def _silent(_done: int, _total: int, _what: str) -> None:
    """Report no progress: nobody watches."""
