"""Transactions that callers hold open: each is a hidden branch.

A transaction of a caller may last for seconds and cross requests and processes, so it cannot be
one of the store. It is a fork of the branch it works on, with a name that no caller can write:
what is written goes there, and nobody else sees it. Committing appends to the branch, in one
transaction of the store, the last version of each record that the fork changed and the events it
gained, and deletes the fork. Rolling back deletes it. The whole state of a transaction is in the
log (its time limit and whether it is read-only in its name, its owner in its first event), so that
any process can continue it, and a killed process leaves nothing to clean up but an expired branch.

Two rules:

* Whoever commits first wins, by whole records. A merge of fields would let two transactions that
  both counted from 1 to 2 agree on 2.
* Committed versions are written as new ones, and no merge is recorded. Otherwise the knowledge of
  the branch would contain every transaction it ever had, in each merge that it records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.events import Draft
from stratagem.engine.lineage import TRANSACTION_MARK, Branch, Cut
from stratagem.errors import BranchNotFound, TransactionConflict, TransactionEnded
from stratagem.storage.contract import BranchReader, Reader, Transaction

__all__ = [
    "Commit",
    "begin",
    "commit",
    "discard",
    "end_overdue",
    "ends_at",
    "find_transaction",
    "only_reads",
    "overdue",
]

# Ends the name of a transaction that only reads; its token is hexadecimal and never ends so.
_READING_MARK = "-r"
# How many records an error lists; it counts them all.
_RECORDS_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit wrote; `sequence` is its last event, None where there was nothing to write."""

    records: int
    events: int
    sequence: int | None
    at: int


def begin(
    transaction: Transaction, origin: Branch, *, token: str, ends_at: int, read_only: bool = False
) -> Branch:
    """Start a transaction on a branch; whatever outlived its time limit is ended on the way."""
    end_overdue(transaction)
    fork = transaction.branches.create(
        f"{TRANSACTION_MARK}{ends_at}-{token}{_READING_MARK if read_only else ''}",
        parent=origin,
        fork_sequence=transaction.log.head().sequence,
    )
    # A branch may only descend from so many others.
    transaction.branches.lineage(fork)
    return fork


def find_transaction(branches: BranchReader, id: str) -> Branch:  # noqa: A002 -- what it is
    """Return the branch of a transaction that is still open.

    Raises:
        TransactionEnded: It was committed, rolled back or ended by its time limit.
    """
    branch = branches.by_name(f"{TRANSACTION_MARK}{id}")
    if branch is None:
        raise TransactionEnded("The transaction has ended.", transaction=id)
    return branch


def commit(transaction: Transaction, branch: Branch) -> Commit:
    """Write what a transaction changed to the branch it was begun on, and end it.

    Raises:
        TransactionConflict: A record that it changed was changed on the branch meanwhile.
        BranchNotFound: The branch is not there any more.
    """
    origin = _origin(transaction.branches, branch)
    head = transaction.log.head().sequence
    changed = transaction.changes.subjects(Cut(branch.id, head), 0)
    _refuse_contested(transaction, branch, Cut(origin.id, head), changed)
    records = _record_drafts(transaction, branch, origin, changed)
    events = _event_drafts(transaction, branch, head)
    # Records and logged events in the order in which the transaction wrote them.
    drafts = [draft for _sequence, draft in sorted([*records, *events], key=lambda each: each[0])]
    last = None
    if drafts:
        last = transaction.append(origin, drafts)[-1].sequence
        # What is derived from records was left out: it is computed for the state of this branch.
        for kind in transaction.kinds.records.values():
            if kind.settle is not None:
                kind.settle(transaction, origin, drafts)
    transaction.branches.delete(branch)
    return Commit(len(records), len(events), last, transaction.at)


def discard(transaction: Transaction, branches: Iterable[Branch]) -> None:
    """End transactions without committing them."""
    for branch in branches:
        transaction.branches.delete(branch)


def end_overdue(transaction: Transaction) -> None:
    """End the transactions whose time limit is over, such as those of killed processes."""
    discard(transaction, overdue(transaction.branches, transaction.wall))


def overdue(branches: BranchReader, now: int) -> list[Branch]:
    """Return the transactions that are open beyond their time limit."""
    return [each for each in branches.transactions() if ends_at(each.name) <= now]


def ends_at(name: str) -> int:
    """Return when the time limit of a transaction is over, in microseconds since 1970."""
    return int(name.removeprefix(TRANSACTION_MARK).partition("-")[0])


def only_reads(name: str) -> bool:
    """Whether a transaction was begun for reading only."""
    return name.endswith(_READING_MARK)


def _origin(branches: BranchReader, branch: Branch) -> Branch:
    assert branch.parent is not None, "a transaction is a fork"
    origin = branches.by_id(branch.parent)
    # Its name may belong to another branch by now.
    live = branches.by_name(origin.name)
    if live is None or live.id != origin.id:
        raise BranchNotFound(
            f"The branch {origin.name!r} was deleted while the transaction was open; nothing was "
            "committed.",
            branch=origin.name,
            hint="Restore the branch, or begin a transaction on another one.",
        )
    return origin


def _refuse_contested(reader: Reader, branch: Branch, origin: Cut, changed: Sequence[int]) -> None:
    since = set(reader.changes.subjects(origin, branch.fork_sequence or 0))
    contested = reader.records.names([each for each in changed if each in since])
    records = [
        {"kind": space.kind, "namespace": space.namespace, "key": key}
        for space, key in contested.values()
        # The commit computes these again, whoever changed them.
        if not reader.kinds.record(space.kind).derived
    ]
    if records:
        first = records[0]
        more = f" and {len(records) - 1} more" if len(records) > 1 else ""
        raise TransactionConflict(
            f"The {first['kind']} {first['key']!r} in {first['namespace']!r}{more} changed on the "
            "branch after the transaction began; nothing was committed.",
            records=records[:_RECORDS_SHOWN_MAX],
            record_count=len(records),
        )


def _record_drafts(
    reader: Reader, branch: Branch, origin: Branch, changed: Sequence[int]
) -> list[tuple[int, Draft]]:
    """Return the last version of each record that was written, with its place in the order."""
    written = reader.records.current_many(reader.branches.lineage(branch), changed)
    before = reader.records.current_many(reader.branches.lineage(origin), changed)
    drafts = []
    for subject, (space, key) in reader.records.names(changed).items():
        kind, record = reader.kinds.record(space.kind), written.get(subject)
        if kind.derived:
            continue
        if record is not None and record.version.payload is not None:
            version = record.version
            content = orjson.loads(version.payload or b"{}")
            draft = Draft(version.kind, content, space, key, version.sequence, version.sequence)
            drafts.append((version.sequence, draft))
        elif subject in before and kind.deletes is not None:
            # After all writes: nothing follows a deletion.
            drafts.append((reader.log.head().sequence, Draft(kind.deletes, {}, space, key)))
    return drafts


def _event_drafts(reader: Reader, branch: Branch, head: int) -> list[tuple[int, Draft]]:
    return [
        (
            each.sequence,
            Draft(
                each.kind,
                orjson.loads(each.payload),
                each.space,
                None,
                each.sequence,
                each.sequence,
            ),
        )
        for each in reader.changes.stream_events(Cut(branch.id, head), 0)
        if each.payload is not None
    ]
