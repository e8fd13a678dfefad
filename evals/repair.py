"""Are damaged calls repaired, and never wrongly?

The data's own damage is measured first, under the default policy; `servers` adds calls of real
servers, which are installed for it. Then valid calls, real ones and
made-up ones of the catalogue's tools, are damaged in many other ways: there the figure that
counts is how many are run with other arguments than were meant.

Offered corrections carry a confidence. It is compared with how often they are right, on tools
that the numbers in `patterns.py` were not chosen by. `--png` writes the diagram.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import orjson
from rich.table import Table

from evals import calls, damage, servers, writing
from evals.damage import Case
from evals.sampling import interval
from evals.suites import Figure, Options, Outcome, Suite, need
from stratagem.gateway.correction import Correction, correct, ready, remarks

__all__ = ["SUITE", "Tally", "cases", "held_out", "offers"]

EXACT_MIN: Final = 97.0
MILLISECONDS_MAX: Final = 1.0
_SEED: Final = 20240117
_MADE: Final = 600
_PER_KIND: Final = 300
_BINS: Final = 10


class Tally:
    """What became of the calls of one kind."""

    def __init__(self) -> None:
        self.calls = self.exact = self.refused = self.offered = self.wrong = 0
        self.milliseconds: list[float] = []

    def add(self, outcome: Correction, meant: Any, milliseconds: float) -> bool:
        """Count one call, and return whether it was silently wrong."""
        self.calls += 1
        self.milliseconds.append(milliseconds)
        if same(outcome.applied, meant):
            self.exact += 1
            return False
        if outcome.applied is not None:
            self.wrong += 1
            return True
        self.refused += 1
        self.offered += any(same(one.arguments, meant) for one in outcome.candidates)
        return False


class OpenTally:
    """What became of calls of real servers, whose schemas take any name."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()

    def add(self, case: Case) -> str:
        """Count one call, and return what became of it."""
        schema = ready(case.call.schema)
        outcome = correct(schema, case.sent)
        told = outcome.applied is not None and bool(remarks(schema, outcome.applied))
        unknown = not set(case.meant or ()) <= case.call.schema["properties"].keys()
        if same(outcome.applied, case.meant):
            found = "silent" if unknown and not told else "right"
        elif outcome.applied is not None:
            found = "told" if told else "silent"
        else:
            meant = [same(one.arguments, case.meant) for one in outcome.candidates]
            found = "offered" if any(meant) else "refused"
        self.outcomes[found] += 1
        return found


class Offer(NamedTuple):
    """An offered correction, and whether it is what was meant."""

    pattern: str
    confidence: float
    right: bool


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON; 5 and 5.0 are, 1 and true are not."""
    return _plain(one) == _plain(other)


def _plain(value: Any) -> bytes:
    return orjson.dumps(_whole(value), option=orjson.OPT_SORT_KEYS)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def recorded(data: Path) -> list[Case]:
    """Return the damaged calls of the data."""
    lines = need(data / "tools" / "repair_dev.jsonl").read_bytes().splitlines()
    rows = map(orjson.loads, lines)
    return [
        Case(
            row["kind"],
            calls.Call(row["tool"], row["schema"], row["good_args"]),
            row["bad_args"],
            row["good_args"],
        )
        for row in rows
    ]


def cases(data: Path) -> list[Case]:
    """Return calls damaged in other ways, the same ones every time."""
    rng = random.Random(_SEED)
    valid = [
        call
        for call in [*calls.real(data), *calls.made(data, _MADE, _SEED)]
        if ready(call.schema).validator.is_valid(call.arguments)
    ]
    names = calls.vocabulary(data)
    found = []
    for kind, harm in {**damage.KINDS, **writing.KINDS}.items():
        found += _drawn(kind, valid, lambda call, harm=harm: harm(call, rng), rng)
    found += _drawn("name_of_another_thing", valid, lambda c: damage.confusable(c, rng, names), rng)
    found += _drawn(
        "parameter_of_another_tool", valid, lambda c: damage.foreign(c, rng, names), rng
    )
    return found


def _drawn(kind: str, valid: list[calls.Call], harm: Any, rng: random.Random) -> list[Case]:
    found: list[Case] = []
    for call in rng.sample(valid, len(valid)):
        damaged = harm(call)
        if damaged is None or same(damaged[0], call.arguments):
            continue
        found.append(Case(kind, call, *damaged))
        if len(found) == _PER_KIND:
            break
    return found


def _measured(listed: list[Case], notes: list[str]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = defaultdict(Tally)
    for case in listed:
        began = time.perf_counter()
        outcome = correct(case.call.schema, case.sent)
        took = 1000 * (time.perf_counter() - began)
        if tallies[case.kind].add(outcome, case.meant, took):
            notes.append(
                f"wrong: {case.kind} {case.call.tool} {_short(case.sent)} "
                f"ran {_short(outcome.applied)}, meant {_short(case.meant)}"
            )
    return tallies


def _short(value: Any) -> str:
    return orjson.dumps(value).decode()[:300].replace("[", "\\[")


def held_out(case: Case) -> bool:
    """Tell whether a case is kept from choosing the confidences: by its tool."""
    return sum(case.call.tool.encode()) % 2 == 1


def offers(listed: list[Case]) -> list[Offer]:
    """Return every correction that is offered for calls that are refused."""
    found = []
    for case in listed:
        outcome = correct(case.call.schema, case.sent)
        if outcome.applied is None:
            found += [
                Offer(one.pattern, one.confidence, same(one.arguments, case.meant))
                for one in outcome.candidates
            ]
    return found


def _bins(made: list[Offer]) -> list[tuple[float, float, int]]:
    """Return mean confidence, share that is right, and count, for each tenth of confidence."""
    bins: dict[int, list[Offer]] = defaultdict(list)
    for offer in made:
        bins[min(int(offer.confidence * _BINS), _BINS - 1)].append(offer)
    return [
        (
            sum(one.confidence for one in held) / len(held),
            sum(one.right for one in held) / len(held),
            len(held),
        )
        for _, held in sorted(bins.items())
    ]


def _calibration_error(bins: list[tuple[float, float, int]]) -> float:
    total = sum(count for _, _, count in bins)
    return sum(count * abs(said - right) for said, right, count in bins) / max(total, 1)


def _diagram(bins: list[tuple[float, float, int]], error: float, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 5))
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.scatter(
        [said for said, _, _ in bins],
        [right for _, right, _ in bins],
        s=[20 + count / 4 for _, _, count in bins],
    )
    for said, right, count in bins:
        axes.annotate(str(count), (said, right), textcoords="offset points", xytext=(8, -4))
    axes.set(
        xlabel="confidence of offered corrections",
        ylabel="share that is right",
        title=f"Reliability (expected calibration error {error:.3f})",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def run(options: Options) -> Outcome:
    """Repair the data's calls and the generated ones, and check the confidences."""
    notes: list[str] = []
    own = _measured(recorded(options.data), notes)
    generated = cases(options.data)
    others = _measured(generated, notes)
    made = offers([case for case in generated if held_out(case)])
    bins = _bins(made)
    error = _calibration_error(bins)
    real, silent = _open_table(servers.cases())
    notes += silent
    if options.png is not None:
        _diagram(bins, error, options.png)
        notes.append(f"The reliability diagram is in {options.png}.")
    return Outcome(
        figures=[
            *_figures(own, others, error),
            Figure("not silently wrong, calls of real servers", -len(silent), 0),
        ],
        tables=[
            _table("kind in the data", own),
            _table("other kind", others),
            _offered(made, bins),
            real,
        ],
        notes=notes,
    )


def _figures(own: dict[str, Tally], others: dict[str, Tally], error: float) -> list[Figure]:
    repairs = [tally for kind, tally in own.items() if not kind.startswith("control")]
    took = [one for tally in own.values() for one in tally.milliseconds]
    wrong = sum(tally.wrong for tally in (*own.values(), *others.values()))
    valid, unfixable = own["control_valid"], own["control_unfixable"]
    exact = 100 * sum(one.exact for one in repairs) / sum(one.calls for one in repairs)
    right = sum(one.exact for one in others.values()) / sum(one.calls for one in others.values())
    return [
        Figure("repaired exactly, %", exact, EXACT_MIN),
        Figure("not silently wrong, calls of both sets", -wrong, 0),
        Figure("valid calls untouched, %", 100 * valid.exact / valid.calls, 100),
        Figure("unfixable calls refused, %", 100 * unfixable.exact / unfixable.calls, 100),
        Figure("other kinds right, % (many must be refused or asked about)", 100 * right),
        Figure("milliseconds below the limit of 1, median", MILLISECONDS_MAX - median(took), 0),
        Figure("calibration error of offers, %", 100 * error),
    ]


def _table(title: str, tallies: dict[str, Tally]) -> Table:
    table = Table(title, "calls", "right", "refused", "of these offered", "wrong", "ms")
    for kind, tally in tallies.items():
        numbers = (tally.calls, tally.exact, tally.refused, tally.offered, tally.wrong)
        table.add_row(kind, *map(str, numbers), f"{median(tally.milliseconds):.2f}")
    return table


def _open_table(listed: list[Case]) -> tuple[Table, list[str]]:
    """Return what became of the calls of real servers, and those that were silently wrong."""
    tallies: dict[str, OpenTally] = defaultdict(OpenTally)
    outcomes = [(case, tallies[case.kind].add(case)) for case in listed]
    silent = [
        f"silent: {case.kind} {case.call.tool} {_short(case.sent)}"
        for case, found in outcomes
        if found == "silent"
    ]
    tools = len({case.call.tool for case in listed})
    kinds = ("right", "offered", "told", "refused", "silent")
    table = Table("real servers, open schemas", "calls", *kinds, title=f"{tools} tools")
    for kind, tally in tallies.items():
        counts = (tally.outcomes[each] for each in kinds)
        table.add_row(kind, str(tally.outcomes.total()), *map(str, counts))
    shares = [interval([float(found == kind) for _, found in outcomes]) for kind in kinds]
    spoken = (f"{100 * low:.0f} to {100 * high:.0f} %" for _, low, high in shares)
    table.add_row("all, 95 % interval", str(len(outcomes)), *spoken)
    return table, silent


def _offered(made: list[Offer], bins: list[tuple[float, float, int]]) -> Table:
    table = Table("offered", "count", "mean confidence", "right")
    for said, right, count in bins:
        table.add_row(f"about {said:.1f}", str(count), f"{said:.2f}", f"{right:.2f}")
    by_pattern: dict[str, list[Offer]] = defaultdict(list)
    for offer in made:
        by_pattern[offer.pattern].append(offer)
    for pattern, held in sorted(by_pattern.items()):
        said = sum(one.confidence for one in held) / len(held)
        right = sum(one.right for one in held) / len(held)
        table.add_row(pattern, str(len(held)), f"{said:.2f}", f"{right:.2f}")
    return table


SUITE: Final = Suite("repair", "damaged calls are repaired, and never wrongly", run)
