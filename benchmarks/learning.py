"""Run `python -m benchmarks.learning`: what is learned from 1,000 recorded executions.

First how calls are repaired, then which tools are recommended (see `choosing`).

A community of callers has its own words for the parameters of some tools, and for the values that
their schemas list. No schema says what these words mean. A caller who is refused calls again in
the schema's words, as callers do; that is all there is to learn from. Some words mean one thing to
some callers and another to others: they must never become certain.

The calls that are measured were not made before: other callers, other values. They are looked at
before and after, without being run. What counts most is how many would be run with other arguments
than were meant: that has to be none.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rich.console import Console
from rich.table import Table

import stratagem
from benchmarks.choosing import told
from stratagem import Stratagem
from stratagem.errors import ValidationFailed
from stratagem.gateway.learning.lessons import teacher_of
from stratagem.operation import Caller

__all__ = ["Tally", "main", "measured"]

_SEED: Final = 6
_EXECUTIONS: Final = 1_000
_MEASURED: Final = 400
_SHARE_DAMAGED: Final = 0.6

Arguments = dict[str, Any]


def find_papers(
    query: str,
    year: int,
    order: Literal["newest", "cited", "relevance"] = "relevance",
    first: int = 10,
    page: int = 1,
) -> str:
    """Find papers."""
    return f"{query} {year} {order} {first} {page}"


def book_table(
    restaurant: str, guests: int, seating: Literal["indoor", "terrace", "bar"] = "indoor"
) -> str:
    """Book a table at a restaurant."""
    return f"{restaurant} {guests} {seating}"


def convert_money(amount: float, source: str, target: str) -> str:
    """Convert an amount of money."""
    return f"{amount} {source} {target}"


def file_ticket(
    summary: str, component: str, priority: Literal["low", "normal", "urgent"] = "normal"
) -> str:
    """File a ticket."""
    return f"{summary} {component} {priority}"


def ship_parcel(recipient: str, grams: int, speed: Literal["standard", "express"]) -> str:
    """Ship a parcel."""
    return f"{recipient} {grams} {speed}"


_TOOLS: Final[Mapping[str, Callable[..., str]]] = {
    each.__name__: each
    for each in (find_papers, book_table, convert_money, file_ticket, ship_parcel)
}
# The community's words for parameters, and for listed values; none of them is in a schema.
_NAMES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "find_papers": {"query": ("needle", "about"), "year": ("vintage",)},
    "book_table": {"restaurant": ("venue", "where"), "guests": ("covers", "pax")},
    "convert_money": {"source": ("have",), "target": ("want",), "amount": ("sum_of",)},
    "file_ticket": {"summary": ("headline",), "component": ("squad", "owner")},
    "ship_parcel": {"recipient": ("consignee",), "grams": ("heft",)},
}
_VALUES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "find_papers": {"order": {"hot": "newest", "impact": "cited"}},
    "book_table": {"seating": {"outside": "terrace", "counter": "bar"}},
    "file_ticket": {"priority": {"asap": "urgent", "whenever": "low"}},
    "ship_parcel": {"speed": {"overnight": "express", "slow": "standard"}},
}
# To one half of the callers it is the one, to the other half the other.
_DISPUTED: Final[Mapping[str, tuple[str, tuple[str, str]]]] = {
    "convert_money": ("ccy", ("source", "target")),
    "file_ticket": ("what", ("summary", "component")),
    # Here nothing that is missing tells which of them is meant.
    "find_papers": ("chunk", ("first", "page")),
}
_WORDS: Final = (
    "amber", "anchor", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island",
    "juniper", "kelp", "lagoon", "meadow", "orchid", "pine", "quartz", "river", "tundra", "willow",
)  # fmt: skip


class Damaged(NamedTuple):
    """A call in the community's words, and what it means."""

    kind: str
    tool: str
    given: Arguments
    meant: Arguments


class Tally:
    """What would become of calls."""

    def __init__(self) -> None:
        self.calls = self.exact = self.offered = self.wrong = 0

    def share(self, count: int) -> str:
        """Return a count as a share of all calls."""
        return f"{100 * count / self.calls:.1f} %" if self.calls else "-"


def main() -> int:
    """Measure and print; 0 when nothing was silently wrong and learning helped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--executions", type=int, default=_EXECUTIONS)
    count = parser.parse_args().executions
    before, after = measured(count)
    table = Table(title=f"Repair of calls not seen, before and after {count:,} executions")
    for column in ("damage", "calls", "when", "repaired", "right one offered", "silently wrong"):
        table.add_column(column, justify="left" if column in {"damage", "when"} else "right")
    for kind, first in before.items():
        for when, tally in (("before", first), ("after", after[kind])):
            table.add_row(
                kind,
                str(tally.calls),
                when,
                tally.share(tally.exact),
                tally.share(tally.offered),
                str(tally.wrong),
            )
    console = Console()
    console.print(table)
    choices, better = told(count)
    console.print(choices)
    wrong = sum(tally.wrong for each in (before, after) for tally in each.values())
    helped = after["name"].exact > before["name"].exact
    return 0 if wrong == 0 and helped and better else 1


def measured(executions: int) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Return what becomes of calls before and after so many recorded executions."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "learning.db")
        with stratagem.open(path, durability="fast", embedder="none") as database:
            for function in _TOOLS.values():
                database.gateway.add(function, configuration={"rateLimit": 1_000_000})
            unseen = random.Random(_SEED)
            calls = [_damaged(unseen) for _each in range(_MEASURED)]
            before = _examined(database, calls)
            _live(database, executions, random.Random(_SEED + 1))
            return before, _examined(database, calls)


def _live(database: Stratagem, executions: int, rng: random.Random) -> None:
    """Have the community call its tools until so many executions are recorded."""
    done = 0
    while done < executions:
        call = _damaged(rng) if rng.random() < _SHARE_DAMAGED else None
        context = {"agentId": f"caller-{rng.randrange(40)}"}
        if call is None:
            tool = rng.choice(list(_TOOLS))
            database.gateway.execute(tool, _valid(tool, rng), context=context)
            done += 1
            continue
        done += 1
        try:
            database.gateway.execute(call.tool, call.given, context=context)
        except ValidationFailed:
            # What was meant is said in the words of the schema.
            database.gateway.execute(call.tool, call.meant, context=context)
            done += 1
    database.runtime.gateway.recorder.settle()


def _examined(database: Stratagem, calls: list[Damaged]) -> dict[str, Tally]:
    gateway = database.runtime.gateway
    evaluator = gateway.corrector.evaluator
    evaluator.forget()
    # An agent that has not called yet, of the same caller as the others.
    teacher = teacher_of(Caller().actor, "somebody new")
    tallies: dict[str, Tally] = {kind: Tally() for kind in ("name", "value", "both", "disputed")}
    with gateway.foundation.store.snapshot() as reader:
        view = gateway.foundation.views.view(reader, "default")
        tools = {name: gateway.registry.find(reader, view, name) for name in _TOOLS}
    for call in calls:
        found = evaluator.evaluate(tools[call.tool], call.given, "default", teacher)
        tally = tallies[call.kind]
        tally.calls += 1
        if found.applied is not None:
            right = found.applied == call.meant
            tally.exact += right
            tally.wrong += not right
        else:
            tally.offered += any(each.arguments == call.meant for each in found.candidates)
    return tallies


def _valid(tool: str, rng: random.Random) -> Arguments:
    """Return arguments that a tool takes, with values that hardly occur twice."""

    def words() -> str:
        return f"{' '.join(rng.sample(_WORDS, 2))} {rng.randrange(10_000)}"

    made: Mapping[str, Callable[[], Arguments]] = {
        "find_papers": lambda: {"query": words(), "year": rng.randrange(1950, 2026)},
        "book_table": lambda: {"restaurant": words(), "guests": rng.randrange(10, 90)},
        "convert_money": lambda: {
            "amount": round(rng.uniform(20, 9_000), 2),
            "source": f"{rng.choice(_WORDS)} coin",
            "target": f"{rng.choice(_WORDS)} crown",
        },
        "file_ticket": lambda: {"summary": words(), "component": words()},
        "ship_parcel": lambda: {
            "recipient": words(),
            "grams": rng.randrange(50, 20_000),
            "speed": rng.choice(("standard", "express")),
        },
    }
    return made[tool]()


def _damaged(rng: random.Random) -> Damaged:
    """Return a call in the community's words."""
    kind = rng.choices(("name", "value", "both", "disputed"), (55, 25, 12, 8))[0]
    if kind == "disputed":
        tool = rng.choice(list(_DISPUTED))
        word, names = _DISPUTED[tool]
        meant = _valid(tool, rng)
        name = rng.choice(names)
        meant.setdefault(name, rng.randrange(11, 99))
        return Damaged(kind, tool, _renamed(meant, {name: word}), meant)
    tool = rng.choice(list(_VALUES if kind != "name" else _NAMES))
    meant = _valid(tool, rng)
    given = dict(meant)
    if kind in {"value", "both"}:
        parameter, words = next(iter(_VALUES[tool].items()))
        word, value = rng.choice(list(words.items()))
        meant[parameter] = value
        given[parameter] = word
    if kind in {"name", "both"}:
        name, others = rng.choice(list(_NAMES[tool].items()))
        given = _renamed(given, {name: rng.choice(others)})
    return Damaged(kind, tool, given, meant)


def _renamed(arguments: Arguments, names: Mapping[str, str]) -> Arguments:
    return {names.get(name, name): value for name, value in arguments.items()}


if __name__ == "__main__":
    raise SystemExit(main())
