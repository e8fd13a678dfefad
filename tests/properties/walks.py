"""Random walks: any operations in any order, on a real memory and on the naive model.

A walk forks three replicas of the first branch, then writes (also in transactions), forgets (also
whole namespaces), waits, forks, deletes, restores, purges and merges criss-cross on all of them, and
looks at everything on the way: recall, lists, history, search, status, diff and preview. It ends with
a full sync, after which all branches show the same. Product and model never differ.

`python -m tests.properties.walks --minutes 5` walks for as long as it is told, in SQLite and in
PostgreSQL by turns, and prints how many walks were compared.
"""

from __future__ import annotations

import argparse
import logging
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from tests.contracts.samples import SECOND
from tests.postgres import shared_server
from tests.properties.machine import FIELDS, KEYS, NAMESPACES, WORDS, Histories
from tests.properties.seeding import seeded

REPLICAS: Final = 3
_PICKS: Final = 10_001


def scalar(draw: random.Random) -> Any:
    return draw.choice([draw.choice(WORDS), draw.randrange(4), None, draw.random() < 0.5])


def json_value(draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.6:
        names = draw.sample(FIELDS, draw.randrange(len(FIELDS) + 1))
        return {name: _inner(draw) for name in names}
    return scalar(draw) if kind < 0.85 else draw.choices(WORDS, k=draw.randrange(3))


def _inner(draw: random.Random) -> Any:
    if draw.random() < 0.6:
        return scalar(draw)
    return {name: scalar(draw) for name in draw.sample(FIELDS, draw.randrange(3))}


def _pick(draw: random.Random) -> int:
    return draw.randrange(_PICKS)


def _tags(draw: random.Random) -> list[str]:
    return draw.choices(("t1", "t2", "t3"), k=draw.randrange(3))


def _writes(draw: random.Random) -> list[tuple[str, Any, Any]]:
    """Return what is written within a transaction; one of it may be forgotten at last."""
    writes = [("store", draw.choice(KEYS), json_value(draw)) for _ in range(draw.randrange(1, 4))]
    return [*writes, ("forget", draw.choice(KEYS), None)] if draw.random() < 0.4 else writes


Draw = Callable[[random.Random], Mapping[str, Any]]

# How often each step is drawn, and what with.
STEPS: Final[dict[str, tuple[int, Draw]]] = {
    "store": (20, lambda draw: {
        "pick": _pick(draw), "key": draw.choice(KEYS), "value": json_value(draw),
        "tags": _tags(draw), "ttl": draw.choice((0, 0, 0, 5)),
    }),
    "store_at_path": (5, lambda draw: {
        "pick": _pick(draw), "key": draw.choice(KEYS), "value": scalar(draw),
        "path": draw.choices(FIELDS, k=draw.randrange(1, 3)),
    }),
    "compare_and_set": (1, lambda draw: {
        "pick": _pick(draw), "key": draw.choice(KEYS), "off": draw.randrange(-1, 2),
    }),
    "forget": (6, lambda draw: {"pick": _pick(draw), "key": draw.choice(KEYS)}),
    "delete_namespace": (1, lambda draw: {
        "pick": _pick(draw), "namespace": draw.choice(NAMESPACES),
    }),
    "restore_namespace": (2, lambda draw: {
        "pick": _pick(draw), "when": _pick(draw), "namespace": draw.choice(NAMESPACES),
    }),
    "log": (3, lambda draw: {
        "pick": _pick(draw), "data": json_value(draw), "namespace": draw.choice(NAMESPACES),
    }),
    "wait": (6, lambda draw: {"seconds": draw.randrange(1, 8)}),
    "clock_set_back": (1, lambda draw: {"seconds": draw.randrange(1, 11)}),
    "fork": (2, lambda draw: {"pick": _pick(draw), "when": _pick(draw)}),
    "create": (1, lambda _draw: {}),
    "delete": (2, lambda draw: {"pick": _pick(draw)}),
    "restore": (2, lambda draw: {"pick": _pick(draw)}),
    "transaction": (3, lambda draw: {
        "pick": _pick(draw), "writes": _writes(draw),
        "ending": draw.choice(("commit", "commit", "roll back", "contest")),
        "by_id": draw.random() < 0.5,
    }),
    "merge": (22, lambda draw: {
        "one": _pick(draw), "other": _pick(draw),
        "strategy": draw.choice((None, None, "source_wins", "target_wins")),
        "decided": draw.random() < 0.6, "side": _pick(draw),
    }),
    "purge": (1, lambda draw: {"key": draw.choice(KEYS)}),
    "purge_event": (1, lambda draw: {"pick": _pick(draw)}),
    "recall_everything": (4, lambda draw: {"pick": _pick(draw), "when": _pick(draw)}),
    "list_everything": (3, lambda draw: {
        "pick": _pick(draw), "when": _pick(draw), "by_key": draw.random() < 0.5,
        "tag": draw.choice((None, "t1")),
    }),
    "read_history": (3, lambda draw: {
        "pick": _pick(draw), "when": _pick(draw), "key": draw.choice(KEYS),
    }),
    "search": (5, lambda draw: {
        "pick": _pick(draw), "when": _pick(draw), "word": draw.choice(WORDS),
        "tag": draw.choice((None, None, "t1")),
    }),
    "diff": (10, lambda draw: {
        "one": _pick(draw), "other": _pick(draw), "when": _pick(draw),
    }),
    "compare": (5, lambda draw: {
        "one": _pick(draw), "other": _pick(draw), "when": _pick(draw), "then": _pick(draw),
    }),
    "reopen": (1, lambda _draw: {}),
    "rebuild": (1, lambda _draw: {}),
}  # fmt: skip
_NAMES: Final = tuple(STEPS)
_WEIGHTS: Final = tuple(weight for weight, _draw in STEPS.values())


class Walk:
    """One random walk; a seed repeats it."""

    def __init__(self, seed: str, machine: type[Histories] = Histories) -> None:
        self.draw = random.Random(seed)
        self.history = machine()
        self.taken: list[tuple[str, Mapping[str, Any]]] = []

    def run(self, steps: int) -> None:
        """Take some steps, then bring all branches together; nothing may differ on the way."""
        try:
            self._fork_replicas()
            for _ in range(steps):
                self.step()
            self.history.sync_everything()
            self.history.status_is_true()
        finally:
            self.history.teardown()

    def _fork_replicas(self) -> None:
        for _ in range(REPLICAS):
            self._take("fork", {"pick": 0, "when": 0})

    def step(self) -> None:
        name = self.draw.choices(_NAMES, _WEIGHTS)[0]
        arguments = STEPS[name][1](self.draw)
        if self._is_possible(name):
            self._take(name, arguments)
            self.history.status_is_true()

    def _take(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.taken.append((name, arguments))
        getattr(self.history, name)(**arguments)

    def _is_possible(self, name: str) -> bool:
        """Whether a step can be taken now: the conditions that the rules of the machine have."""
        history = self.history
        model = history.model
        if name in {"fork", "create"}:
            return len(model.live) <= REPLICAS + 1
        if name == "merge":
            return len(model.live) > 1
        if name == "restore":
            return any(line.deleted is not None for line in model.lines)
        if name == "clock_set_back":
            return not history.brief and history.clock.now > model.times[0][1] + 20 * SECOND
        return True


def walk(
    places: range, steps: int, *, number: int, machine: type[Histories] = Histories
) -> Counter[str]:
    """Walk once for each place; return how often each step was taken."""
    taken: Counter[str] = Counter()
    for place in places:
        each = Walk(f"{number}/{place}", machine)
        try:
            each.run(steps)
        except BaseException:
            print(f"Walk {place} of {steps} steps:")  # noqa: T201 -- a failure tells how it came
            for name, arguments in each.taken:
                print(f"    history.{name}(**{arguments!r})")  # noqa: T201 -- as above
            raise
        taken.update(name for name, _arguments in each.taken)
    return taken


def served(address: str) -> type[Histories]:
    """Return the machine whose histories lie in workspaces of a PostgreSQL server."""
    return type("ServedHistories", (Histories,), {"address": address})


def main() -> None:
    """Walk in both stores for some minutes, and say how many walks agreed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", choices=("sqlite", "postgres"), help="in one of the stores")
    given = parser.parse_args()
    # Some walks set the clock back; the warnings about that are no news.
    logging.getLogger("stratagem").setLevel(logging.ERROR)
    with ExitStack() as open_things, seeded() as number:
        machines: dict[str, type[Histories]] = {}
        if given.only != "postgres":
            machines["SQLite"] = Histories
        if given.only != "sqlite":
            base = Path(open_things.enter_context(tempfile.TemporaryDirectory()))
            machines["PostgreSQL"] = served(open_things.enter_context(shared_server(base)))
        _walk_for(60 * given.minutes, given.steps, number, machines)


def _walk_for(
    seconds: float, steps: int, number: int, machines: Mapping[str, type[Histories]]
) -> None:
    until = time.monotonic() + seconds
    done: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    stores = cycle(machines)
    while time.monotonic() < until:
        store, place = next(stores), done.total()
        taken += walk(range(place, place + 1), steps, number=number, machine=machines[store])
        done[store] += 1
    counts = " and ".join(f"{done[store]:,} in {store}" for store in machines)
    print(  # noqa: T201 -- the count is what it is run for
        f"{done.total():,} walks of {steps} steps, {counts}: {taken['merge']:,} merges, "
        f"{taken['diff']:,} diffs, {taken['search']:,} searches; 0 differences."
    )


if __name__ == "__main__":
    main()
