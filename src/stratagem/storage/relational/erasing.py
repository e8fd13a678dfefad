"""Erasing content from a log, from everything made of it, and from records that quote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from stratagem.engine.copies import Copies
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.storage.contract import PURGED_AT, Erased, Remembered
from stratagem.storage.relational import replaying
from stratagem.storage.relational.appending import SqlTransaction
from stratagem.storage.relational.projecting import CONTENT_PURGED

__all__ = ["ERASED_MARK", "erase"]

# No caller's key can hold a control character, so a name that begins with one is never anyone's.
# The first of them all PostgreSQL cannot keep.
ERASED_MARK: Final = "\x01"


def erase(
    transaction: SqlTransaction,
    *,
    space: Space,
    key: str | None,
    sequence: int | None,
    sequences: Sequence[int] = (),
) -> Erased:
    """Erase a record's events, or some events, with the copies of them; say so in the log.

    The read models have to be made anew afterwards.
    """
    subject = transaction.subjects(space, [key]).get(key) if key is not None else None
    named = transaction.doomed(subject, sequence, sequences)
    if not named:
        return Erased()
    quoting = _Quoting() if sequences else _quoting(transaction, named, key)
    doomed = sorted({*named, *quoting.sequences})
    default = transaction.branch(DEFAULT_BRANCH)
    assert default is not None
    transaction.append(default, [Draft(CONTENT_PURGED, {"sequences": doomed})])
    transaction.finish(None)
    transaction.erase(doomed)
    for remembered in quoting.requests:
        transaction.erase_request(remembered.actor, remembered.request)
    if not sequences:
        transaction.set_setting(PURGED_AT, transaction.head().sequence)
    if subject is not None:
        transaction.erase_subject(subject, f"{ERASED_MARK}{subject}")
        transaction.post([(transaction.head().sequence, subject, space.kind)])
    return Erased(len(named), quoting.copies, len(quoting.requests), quoting.elsewhere)


@dataclass(slots=True)
class _Quoting:
    """What quotes something that is erased."""

    sequences: list[int] = field(default_factory=list)
    copies: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    requests: list[Remembered] = field(default_factory=list)


def _quoting(transaction: SqlTransaction, named: Sequence[int], key: str | None) -> _Quoting:
    """Go through the log and the kept results once, and return what quotes some events."""
    copies = _copies(transaction, named, key)
    found = _Quoting()
    if not copies:
        return found
    own, left = set(named), set()
    names: list[str] = []
    for event in replaying.events(transaction, 0):
        if event.payload is None or event.space is None or event.sequence in own:
            continue
        content = orjson.loads(event.payload)
        kind = transaction.kinds.quoting.get(event.kind)
        if kind is None:
            if copies.quoted_at_length(content):
                left.add((event.space.kind, event.key or event.sequence))
        elif copies.quoted_in([content.get(name) for name in kind.quoting]):
            found.sequences.append(event.sequence)
            found.copies[kind.name] += 1
            if kind.named_by is not None:
                names.append(content[kind.named_by])
    found.elsewhere.update(kind for kind, _subject in left)
    named_or_quoted = (copies, Copies([], names))
    found.requests = [
        each
        for each in _remembered(transaction)
        if any(_is_quoted(either, each) for either in named_or_quoted)
    ]
    return found


def _copies(transaction: SqlTransaction, named: Sequence[int], key: str | None) -> Copies:
    """Return what copies of some events are recognised by."""
    values: list[Any] = []
    for sequence in named:
        row = transaction.log_page(sequence - 1, 1)[0]
        fact = replaying.fact(row)
        kind = transaction.kinds.records.get(fact.space.kind) if fact.space else None
        if fact.content is not None and kind is not None:
            values += [fact.content.get(name) for name in kind.erasable]
    return Copies(values, [key] if key is not None else [])


def _remembered(transaction: SqlTransaction) -> Iterator[Remembered]:
    after = ("", "")
    while page := transaction.requests(after, replaying.PAGE):
        yield from page
        after = (page[-1].actor, page[-1].request)


def _is_quoted(copies: Copies, remembered: Remembered) -> bool:
    return remembered.result is not None and copies.quoted_in(orjson.loads(remembered.result))
