"""Retention changes no present, and of the past it hides only what it says that it hides."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import MergeConflict, StratagemError, VersionErased
from tests.postgres import a_workspace
from tests.properties.seeding import seeded

KEYS = ("k1", "k2", "k3")
ERASED = "erased"


def _write(db: Stratagem, draw: random.Random, number: int, branch: str | None) -> None:
    """Write something of any kind; what is written never comes again."""
    key = draw.choice(KEYS)
    match draw.choice(("put", "put", "delete", "set", "clear", "upsert", "drop", "log")):
        case "put":
            db.kv.put(key, f"value {number}", branch=branch)
        case "delete":
            db.kv.delete(key, branch=branch)
        case "set":
            db.state.set(key, number, branch=branch)
        case "clear":
            db.state.delete(key, branch=branch)
        case "upsert":
            db.vectors.upsert("docs", key, [1, number], branch=branch)
        case "drop":
            db.vectors.delete("docs", key, branch=branch)
        case _:
            db.events.append("e", number, branch=branch)


def _step(db: Stratagem, draw: random.Random, number: int) -> None:
    names = [each.name for each in db.branches.list()]
    branch = draw.choice(names)
    what = draw.random()
    if what < 0.1 and len(names) < 5:
        db.branches.fork(f"b{number}", source=branch)
    elif what < 0.2 and len(names) > 1:
        source = draw.choice([name for name in names if name != branch])
        try:
            db.branches.merge(source, branch=branch)
        except MergeConflict:
            db.branches.merge(source, branch=branch, strategy="source_wins")
    elif what < 0.3:
        with db.transaction() as block:
            for _ in range(draw.randrange(1, 4)):
                _write(db, draw, number, None)
            if draw.random() < 0.5:
                block.rollback()
    else:
        _write(db, draw, number, branch)


def _show(read: Any) -> Any:
    try:
        record = read()
    except VersionErased:
        return ERASED
    except StratagemError as error:
        return error.code
    if record is None:
        return None
    return getattr(record, "value", None) or getattr(record, "vector", None)


def _views(db: Stratagem, branch: str, moments: list[str | None]) -> Iterator[tuple[Any, Any]]:
    """Yield what each key shows on a branch at some moments."""
    for moment in moments:
        at: Any = {"branch": branch, "as_of": moment}
        for key in KEYS:
            yield (branch, moment, "kv", key), _show(lambda key=key, at=at: db.kv.get(key, **at))
            yield (
                (branch, moment, "state", key),
                _show(lambda key=key, at=at: db.state.get(key, **at)),
            )
            yield (
                (branch, moment, "vectors", key),
                _show(lambda key=key, at=at: db.vectors.get("docs", key, **at)),
            )


def _present(db: Stratagem, branch: str) -> Any:
    found = db.vectors.search("docs", [1, 1], k=10, branch=branch)
    return (
        [(each.key, each.value) for each in db.kv.list(branch=branch)],
        [(each.cell, each.value) for each in db.state.list(branch=branch)],
        sorted((each.key, each.version) for each in found),
        [each.data for each in db.events.list(branch=branch)],
    )


def run(histories: int, steps: int, seed: int, address: str | None = None) -> int:
    """Take histories; return how many reads of the past were told that it was erased."""
    told = 0
    for number in range(histories):
        draw = random.Random(f"{seed} {number}")
        place = f"{address}#{a_workspace()}" if address else ":memory:"
        with stratagem.open(place, embedder="none", durability="fast") as db:
            db.vectors.create_collection("docs", 2)
            for step in range(steps):
                _step(db, draw, step + 1)
            told += _check(db, draw)
    return told


def _check(db: Stratagem, draw: random.Random) -> int:
    names = [each.name for each in db.branches.list()]
    last = int(db.database.info().head.partition(":")[0])
    moments: list[str | None] = [None, *(f"@{draw.randint(2, last)}" for _ in range(6))]
    before = {place: value for name in names for place, value in _views(db, name, moments)}
    present = {name: _present(db, name) for name in names}

    done = db.retention.apply(keep=draw.randint(1, 3))

    after = {place: value for name in names for place, value in _views(db, name, moments)}
    assert {name: _present(db, name) for name in names} == present
    for place, value in before.items():
        assert after[place] == value or (value is not None and after[place] == ERASED), place
        assert place[1] is not None or after[place] == value, place
    assert db.retention.apply(keep=3).versions == 0 or done.more
    assert db.runtime.foundation.store.examine(lambda *_: None, None) == []
    return sum(each == ERASED for each in after.values())


@pytest.mark.parametrize("histories", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_no_present_changes_and_the_past_is_told_as_it_is(histories: int) -> None:
    # A few histories need not ask for anything that was erased: others are taken until one does.
    with seeded() as seed:
        assert any(run(histories, 50, seed + further) > 0 for further in range(10))


def test_the_same_holds_in_postgresql(postgres_address: str) -> None:
    # One history need not ask for anything that was erased; the test above sees to it that some do.
    with seeded() as seed:
        run(1, 50, seed, postgres_address)
