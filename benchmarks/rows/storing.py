"""Storing entries, one commit each and in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from statistics import fmean
from time import sleep
from typing import Final, NamedTuple

import orjson

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import ITEMS, Dataset, batches, open_ours, store_batch
from benchmarks.measuring import Operation, Pair
from benchmarks.plain import PlainSqlite
from benchmarks.results import Figure
from stratagem import Stratagem
from stratagem.storage.sqlite.connection import connect
from stratagem.storage.sqlite.statements import SQL

__all__ = ["BULK", "STORE"]

_LIMIT: Final = 4.0
_LIMIT_APART: Final = 12.0
_LOG_LIMIT: Final = 4.0
_PLAIN_LIMIT: Final = 6.0
# Longer than commits of a burst are apart.
_PAUSE_SECONDS: Final = 0.06
_PAUSED: Final = 60
# As many texts as wait to be indexed together, twice: each round indexes as many as it stores.
_PER_ROUND: Final = 128
_ROUNDS: Final = 20
_BULK_SIZE: Final = 50_000
_BULK_SIZE_QUICK: Final = 10_000
Entry = tuple[str, str]
_RATES: Final = (("embedded", True, 4_000), ("lexical only", False, 20_000))


def store(bench: Bench) -> Iterator[Figure]:
    """Store new entries, each with its commit, beside those that are there."""
    for size in bench.sizes(100_000):
        for name, write in _SINGLE.items():
            dataset = bench.datasets.copy(size, embedded=True, name=f"store-{name}-{size}")
            yield _single(bench, dataset, name, write)


class _Single(NamedTuple):
    """One way to write once, the yardstick's way beside it, and what is promised of the two."""

    ours: Callable[[Stratagem], Operation[Entry]]
    plain: Callable[[PlainSqlite], Operation[Entry]]
    limit: float | None
    note: str
    apart: bool = False


def _single(bench: Bench, dataset: Dataset, name: str, write: _Single) -> Figure:
    fresh = list(texts.entries(bench.rounds(_ROUNDS) * _PER_ROUND, start=10_000_000))
    rounds = [fresh[at : at + _PER_ROUND] for at in range(0, len(fresh), _PER_ROUND)]
    plain = dataset.plain()
    with dataset.ours() as db:
        if write.apart:
            pair = _measure_apart(bench, write.ours(db), write.plain(plain), fresh)
        else:
            pair = bench.clock.alternate(write.ours(db), write.plain(plain), rounds)
    plain.close()
    return Figure(
        "store",
        name,
        dataset.size,
        pair.ours.median,
        "s",
        pair.plain.median,
        f"≤ {write.limit:g} × CPU" if write.limit else "",
        cpu_ratio=pair.cpu_ratio,
        # Of the two, ours has the longer pieces of work, which are interrupted more often.
        passed=pair.cpu_ratio <= write.limit if write.limit else None,
        note=write.note,
    )


def _measure_apart(
    bench: Bench, ours: Operation[Entry], plain: Operation[Entry], entries: list[Entry]
) -> Pair:
    """Time single writes, each after a pause."""
    pair = Pair()
    for entry in entries[:_PAUSED]:
        sleep(_PAUSE_SECONDS)
        bench.clock.ours(ours, [entry], pair.ours)
        bench.clock.plain(plain, [entry], pair.plain)
    return pair


def _log(db: Stratagem) -> Operation[Entry]:
    def log(entry: Entry) -> None:
        db.memory.log("message", {"role": "user", "content": entry[1]}, session="talk")

    return log


def _bare(db: Stratagem) -> Operation[Entry]:
    """Return the statements of a plain store, run as they are over the database's own tables.

    No hash, no check, no answer: what is left is the least that a store into these tables takes.
    """
    path = db.runtime.foundation.store.location
    connection = connect(path, durability="fast")
    run = connection.execute
    # Far from the numbers that are taken: nothing else is written to this database.
    number = count(1 << 40)

    def put(entry: Entry) -> None:
        key, value = entry
        seq = next(number)
        payload = orjson.dumps({"value": value, "index": False})
        run("BEGIN IMMEDIATE")
        run(SQL["subject_id"], (1, key)).fetchone()
        run(SQL["insert_subject"], (seq, 1, key))
        run(
            SQL["insert_event"],
            (seq, seq, seq, 1, "EntryStored", 1, seq, "me", None, None, payload, *_HASHES),
        )
        run(SQL["insert_version"], (seq, seq, 1, 1, False, None, None))
        run(SQL["keep_tally"], (1, "entry", seq, 1))
        run("COMMIT")

    return put


_HASHES: Final = (bytes(16), bytes(32), bytes(32))
_SINGLE: Final[dict[str, _Single]] = {
    "one, indexed and embedded": _Single(
        lambda db: lambda entry: db.memory.store(*entry),
        lambda plain: plain.put,
        _LIMIT,
        "one commit each, fast durability; plain: an insert, and one into FTS5",
    ),
    "one after a pause": _Single(
        lambda db: lambda entry: db.memory.store(*entry),
        lambda plain: plain.put,
        _LIMIT_APART,
        "the same; it is indexed in its own commit, and not with others",
        apart=True,
    ),
    "a logged event of a session": _Single(
        _log, lambda plain: plain.put, _LOG_LIMIT, "the same; its context is indexed too"
    ),
    "one, not indexed": _Single(
        lambda db: lambda entry: db.memory.store(*entry, index=False),
        lambda plain: plain.put_version,
        _PLAIN_LIMIT,
        "plain: an insert into a table of versions with an index",
    ),
    "its statements alone": _Single(
        _bare,
        lambda plain: plain.put_version,
        None,
        "the statements of the one above by the bare driver: the least these tables take",
    ),
}


def bulk(bench: Bench) -> Iterator[Figure]:
    """Fill an empty database in groups of a thousand."""
    size = _BULK_SIZE_QUICK if bench.quick else _BULK_SIZE
    for case, embedded, wanted in _RATES:
        pair = _filled(bench, size, embedded=embedded)
        # All of the time counts, a slow group with a checkpoint in it too.
        ours, plain = (ITEMS / fmean(times.seconds) for times in (pair.ours, pair.plain))
        yield Figure(
            "bulk",
            case,
            size,
            ours,
            "/s",
            plain,
            f"≥ {wanted:,}/s",
            cpu_ratio=pair.cpu_ratio,
            passed=ours >= wanted,
            note=f"{case}, 1,000 entries a commit, into an empty database; "
            f"{ITEMS / fmean(pair.ours.cpu_seconds):,.0f} entries a second of processor time",
        )


def _filled(bench: Bench, size: int, *, embedded: bool) -> Pair:
    dataset = bench.datasets.empty(f"bulk-{embedded}")
    pair = Pair()
    plain = dataset.plain()
    with open_ours(dataset.ours_path, embedded=embedded) as db:
        for batch in batches(size):
            bench.clock.ours(lambda each: store_batch(db, each), [batch], pair.ours)
            bench.clock.plain(plain.put_many, [batch], pair.plain)
    plain.close()
    return pair


STORE: Final = Row("store", "one entry, searchable by words and meaning at once", store)
BULK: Final = Row("bulk", "many entries at once", bulk)
