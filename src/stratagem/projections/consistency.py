"""Rebuilding a read model from the log, and verifying it against the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import StratagemError
from stratagem.projections import items
from stratagem.projections.backoff import delay
from stratagem.projections.contract import Properties, ReadModel
from stratagem.projections.delivery import apply_each
from stratagem.projections.leases import ACTOR, Lease, LeaseLost
from stratagem.storage.contract import Progress, Store, Transaction
from stratagem.storage.outbox import Postponed

__all__ = ["Comparison", "Difference", "rebuild", "verify"]


class Difference(NamedTuple):
    """An item that is not as the log says. `waiting`: the outbox has it, so it may yet be."""

    what: Literal["missing", "left over", "outdated", "altered"]
    id: str
    waiting: bool


@dataclass(slots=True)
class Comparison:
    """How a read model compares with the log: how many items, and those that differ."""

    items: int = 0
    different: int = 0
    waiting: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        """Count a difference, and keep it where there are not too many."""
        self.different += 1
        self.waiting += difference.waiting
        if len(self.differences) < limits.OUTBOX_SHOWN_MAX:
            self.differences.append(difference)


def rebuild(
    store: Store,
    model: ReadModel,
    lease: Lease,
    progress: Progress,
    draw: Callable[[], float],
) -> int:
    """Make a read model anew from the log, and return how many records it holds then.

    What is written meanwhile waits in the outbox. A record that is refused goes back there.

    Raises:
        ServiceUnavailable: The read model does not answer.
        LeaseLost: Another process delivers to it by now.
    """
    head = store.reader().log.head().sequence
    store.write(lambda transaction: _begin(transaction, lease, model.name), ACTOR)
    model.clear()
    total, done = items.count(store, model), 0
    refused: dict[int, tuple[int, StratagemError]] = {}
    for page in items.pages(store, model):
        errors = apply_each(model, page)
        sequences = {item.subject: item.sequence for item in page}
        refused |= {subject: (sequences[subject], error) for subject, error in errors.items()}
        if not lease.take():
            raise LeaseLost
        done += len(page)
        progress(done, max(total, done), f"making {model.name} anew")
    now = store.now()

    def work(transaction: Transaction) -> None:
        lease.insist(transaction)
        transaction.outbox.set_built(model.name, model.fingerprint, upto=head)
        _put_back(transaction, model.name, refused, now, draw)

    store.write(work, ACTOR)
    return done - len(refused)


def verify(store: Store, model: ReadModel, progress: Progress) -> Comparison:
    """Compare a read model with the log, item by item.

    Raises:
        ServiceUnavailable: The read model does not answer.
    """
    found = Comparison()
    total = items.count(store, model)
    known: set[str] = set()
    for page in items.pages(store, model):
        expected = model.expected_properties(page)
        stored = model.fetch(list(expected))
        known |= expected.keys()
        found.items += len(expected)
        for name, wanted in expected.items():
            what = _difference(wanted, stored.get(name))
            if what is not None:
                found.add(Difference(what, name, _waits(store, model, wanted["subject"])))
        progress(found.items, max(total, found.items), f"comparing {model.name}")
    for item in model.stored_items():
        if item.id not in known:
            found.add(Difference("left over", item.id, _waits(store, model, item.subject)))
    return found


def _begin(transaction: Transaction, lease: Lease, name: str) -> None:
    lease.insist(transaction)
    transaction.outbox.set_built(name, None)


def _put_back(
    transaction: Transaction,
    name: str,
    refused: dict[int, tuple[int, StratagemError]],
    now: int,
    draw: Callable[[], float],
) -> None:
    transaction.outbox.requeue(name, {at: sequence for at, (sequence, _) in refused.items()})
    for subject, (sequence, error) in refused.items():
        told = f"{error.code}: {error.message}"[: limits.OUTBOX_ERROR_CHARS]
        later = Postponed(subject, 1, now + delay(1, draw), failed=False, error=told)
        transaction.outbox.postpone(name, [later], upto=sequence)


def _difference(
    wanted: Properties, stored: Properties | None
) -> Literal["missing", "outdated", "altered"] | None:
    if stored is None:
        return "missing"
    if stored.get("sequence") != wanted["sequence"]:
        return "outdated"
    return None if _same(wanted, stored) else "altered"


def _same(wanted: Properties, stored: Properties) -> bool:
    return wanted.keys() == stored.keys() and all(
        _alike(value, stored[name]) for name, value in wanted.items()
    )


def _alike(one: object, other: object) -> bool:
    """Compare values; vectors as single precision leaves them."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(abs(a - b) < _ROUNDING for a, b in zip(one, other, strict=True))
    return one == other


# A vector that went through single precision and text and back.
_ROUNDING = 1e-5


def _waits(store: Store, model: ReadModel, subject: int) -> bool:
    return bool(store.reader().outbox.oldest_rows(model.name, [subject]))
