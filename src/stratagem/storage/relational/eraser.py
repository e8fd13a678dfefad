"""Erasing content from a log, from everything made of it, and from records that quote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.copies import Copies
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import ValidationFailed
from stratagem.storage.contract import PURGED_AT, Erased, RequestResult
from stratagem.storage.relational.projector import CONTENT_PURGED, fact_of
from stratagem.storage.relational.session import NUMBER, Queries, Shape

if TYPE_CHECKING:
    from stratagem.storage.relational.transaction import SqlTransaction

__all__ = ["ERASED_MARK", "Erasure", "erase", "erasure_of"]

_OPTIONAL_NUMBER = Shape[tuple[int | None]]()

# No caller's key can hold a control character, so a name that begins with one is never anyone's.
# The first of them all PostgreSQL cannot store.
ERASED_MARK: Final = "\x01"


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be erased: records, one logged event by its sequence, or several events.

    `quotes`: records of calls that quote it lose their content too. `copies`: versions that merges
    and commits made from it are erased too.
    """

    records: tuple[tuple[Space, str], ...] = ()
    sequence: int | None = None
    sequences: tuple[int, ...] = ()
    quotes: bool = True
    copies: bool = True


def erasure_of(
    space: Space,
    key: str | None,
    sequence: int | None,
    sequences: Sequence[int],
    *,
    copies: bool = True,
) -> Erasure:
    """Return the erasure of a purge: a record, one event, or many events without copies."""
    if sequences:
        return Erasure(sequences=tuple(sequences), quotes=False, copies=copies)
    if key is not None:
        return Erasure(((space, key),))
    return Erasure(sequence=sequence)


def erase(transaction: SqlTransaction, queries: Queries, wanted: Erasure) -> Erased:
    """Erase records and events, with the copies of them; record it in the log.

    The read models have to be rebuilt afterwards.
    """
    subjects = [
        (number, space)
        for space, key in wanted.records
        for number in transaction.records.subjects(space, [key]).values()
    ]
    named = _events_to_erase(queries, [number for number, _ in subjects], wanted)
    if not named:
        return Erased()
    names = [key for _, key in wanted.records]
    quotes = _find_quotes(transaction, named, names) if wanted.quotes else _Quotes()
    doomed = sorted({*named, *quotes.sequences})
    default = transaction.branches.by_name(DEFAULT_BRANCH)
    assert default is not None, "every log begins with it"
    # The event comes first: content that is missing without an event that says so is damage.
    transaction.append(default, [Draft(CONTENT_PURGED, {"sequences": doomed})])
    transaction.finish(None)
    for name in ("erase_events", "erase_results", "erase_vectors"):
        queries.run(name, queries.array(doomed))
    for result in quotes.results:
        transaction.requests.erase(result.actor, result.request)
    head = transaction.log.head().sequence
    if wanted.quotes:
        transaction.settings.set(PURGED_AT, head)
    for subject, space in subjects:
        # The name may be the content to erase. Its number stays, because events refer to it.
        queries.run("erase_subject", subject, f"{ERASED_MARK}{subject}")
        queries.run("purge_outbox", subject)
        transaction.outbox.post([(head, subject, space.kind)])
    return Erased(len(named), quotes.copies, len(quotes.results), quotes.elsewhere)


def _events_to_erase(queries: Queries, subjects: Sequence[int], wanted: Erasure) -> list[int]:
    """Return the events that a purge names: a subject's, or events; with what merges copied."""
    found = set(wanted.sequences)
    for subject in subjects:
        found.update(row[0] for row in queries.rows(NUMBER, "subject_events", subject))
    if wanted.sequence is not None:
        row = queries.row(_OPTIONAL_NUMBER, "origin_of", wanted.sequence)
        if row is None:
            raise ValidationFailed(
                f"No logged event has sequence {wanted.sequence}.",
                field="sequence",
                sequence=wanted.sequence,
            )
        found.add(_first_of(queries, wanted.sequence))
    if not found:
        return []
    latest = found if wanted.copies else set()
    # A copy may have been copied again by a later merge.
    while latest:
        copies = queries.rows(NUMBER, "copies", queries.array(sorted(latest)))
        latest = {row[0] for row in copies} - found
        found |= latest
    return sorted(found)


def _first_of(queries: Queries, sequence: int) -> int:
    """Return the original of a copied event: a merge may have copied what a commit copied."""
    while (row := queries.row(_OPTIONAL_NUMBER, "origin_of", sequence)) and row[0] is not None:
        sequence = row[0]
    return sequence


@dataclass(slots=True)
class _Quotes:
    """Records and results that quote erased content."""

    sequences: list[int] = field(default_factory=list)
    copies: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    results: list[RequestResult] = field(default_factory=list)


def _find_quotes(transaction: SqlTransaction, named: Sequence[int], keys: Sequence[str]) -> _Quotes:
    """Scan the log and the stored results once, and return what quotes some events."""
    copies = _copies(transaction, named, keys)
    found = _Quotes()
    if not copies:
        return found
    own, left = set(named), set()
    names: list[str] = []
    for event in transaction.log.events(0):
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
    # A result goes where it quotes what was purged, or names a record that did.
    named_or_quoted = (copies, Copies([], names))
    found.results = [
        result
        for result in transaction.requests.all()
        if any(_is_quoted(either, result) for either in named_or_quoted)
    ]
    return found


def _copies(transaction: SqlTransaction, named: Sequence[int], keys: Sequence[str]) -> Copies:
    """Return the patterns by which copies of some events are recognised."""
    values: list[Any] = []
    for sequence in named:
        fact = fact_of(transaction.log.page(sequence - 1, 1)[0])
        kind = transaction.kinds.find_record(fact.space.kind) if fact.space else None
        if fact.content is not None and kind is not None:
            values += [fact.content.get(name) for name in kind.erasable]
    return Copies(values, keys)


def _is_quoted(copies: Copies, result: RequestResult) -> bool:
    return result.result is not None and copies.quoted_in(orjson.loads(result.result))
