"""A diff that goes on from the one before shows what a diff from nothing shows."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import stratagem
from stratagem import Stratagem
from stratagem.errors import MergeConflict
from tests.properties.seeding import seeded

_BRANCHES = ("default", "left", "right", "below-left")
_KEYS = [f"k{number}" for number in range(12)]
_STEPS = 120


def _write(db: Stratagem, draw: random.Random, step: int) -> None:
    branch, key = draw.choice(_BRANCHES), draw.choice(_KEYS)
    kind = draw.random()
    if kind < 0.55:
        db.memory.store(key, {"step": draw.randint(0, 5), "by": branch}, branch=branch)
    elif kind < 0.7:
        db.memory.forget(key, branch=branch)
    elif kind < 0.8:
        db.memory.store(key, step, branch=branch, ttl=0.002)
    elif kind < 0.86:
        db.memory.log("tick", {"step": step}, branch=branch)
    elif kind < 0.9:
        db.memory.store(items=[{"key": each, "value": step} for each in _KEYS[:8]], branch=branch)
    elif kind < 0.93:
        source = draw.choice([each for each in _BRANCHES if each != branch])
        with suppress(MergeConflict):
            db.memory.merge(source, branch=branch)
    elif kind < 0.95:
        db.memory.purge(key)


def _diff(db: Stratagem, pair: tuple[str, str], as_of: str | None) -> object:
    found = db.memory.diff(pair[1], branch=pair[0], as_of=as_of)
    return sorted(map(repr, found.results)), found.ours, found.both, found.added, found.removed


def test_a_diff_after_writes_is_that_of_a_process_that_has_compared_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with (
        seeded() as seed,
        stratagem.open(path, embedder="none", durability="fast") as db,
        stratagem.open(path, embedder="none", durability="fast") as other,
    ):
        draw = random.Random(seed)
        db.memory.store(items=[{"key": key, "value": 0} for key in _KEYS])
        for name, parent in (("left", None), ("right", None), ("below-left", "left")):
            db.memory.fork(name, branch=parent)
        pair = ("default", "left")
        for step in range(_STEPS):
            # Another process may write, or purge, as well.
            _write(draw.choice((db, db, other)), draw, step)
            if draw.random() < 0.1:
                pair = tuple(draw.sample(_BRANCHES, 2))  # type: ignore[assignment]
            as_of = f"@{draw.randint(1, 16)}" if draw.random() < 0.1 else None
            other.runtime.foundation.cache.clear()
            before, fresh, after = (_diff(each, pair, as_of) for each in (db, other, db))
            # Where an entry has expired between the two, they saw two moments.
            assert before == fresh or before != after, (seed, step, pair, as_of)
