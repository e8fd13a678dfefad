"""How often the first recommended fix works, and whether its reliability can be taken at its word.

A made-up world in which the truth is known. A fix works at a rate that depends on the environment:
a common part, a part for each of its traits (system, language, framework, runtime), a smaller one
for each minor version, so that like environments have like rates. One fix in eight stopped
working at some time. Outcomes are drawn at these rates, most from a few popular environments, some
of them years ago. Then callers come, and each way of judging fixes picks one for each of them.

* success@1: the true rate of the fix that was picked, on average. The oracle knows the rates.
* calibration error: the average distance between what was said and what happened, by tenths of
  what was said; over all fixes, and over those that were picked.
* Brier score: the mean squared error of what was said against drawn outcomes.

Run with `python -m benchmarks.simulation`. The same seed gives the same figures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from stratagem.debugging.environments import Environment, canonical, similarity
from stratagem.engine import evidence
from stratagem.engine.evidence import Observation

__all__ = ["Score", "run", "table"]

SEED: Final = 20_260_805
INCIDENTS: Final = 600
CALLERS_EACH: Final = 4
# Mean outcomes of an incident, over all its fixes and environments.
WORLDS: Final = {"few": 6, "some": 25, "many": 100}

DAY_US: Final = 24 * 3600 * 1_000_000
AGE_DAYS_MEAN: Final = 300
STOPPED_SHARE: Final = 1 / 8
# Deviations on the scale of logits.
FIX_SPREAD: Final = 1.2
TRAIT_SPREAD: Final = 0.8
MINOR_SPREAD: Final = 0.3

SYSTEMS: Final = ("linux", "linux", "macos", "windows")
LANGUAGES: Final = ("3.11", "3.12", "3.10", "2.7")
FRAMEWORKS: Final = (("torch", "2.1"), ("torch", "2.3"), ("torch", "1.13"), ("tf", "2.15"))
RUNTIMES: Final = ("docker", "bare")


class Place(NamedTuple):
    """An environment, and what in it a rate depends on: traits, and details of them."""

    environment: Environment
    traits: tuple[str, ...]
    details: tuple[str, ...]


class Outcome(NamedTuple):
    place: Place
    worked: bool
    age_days: float


@dataclass
class Fix:
    """A fix with its true rates. `stopped_days` ago it all but stopped working."""

    chance: random.Random
    level: float
    stopped_days: float | None
    outcomes: list[Outcome] = field(default_factory=list)
    effects: dict[str, float] = field(default_factory=dict)

    def rate(self, place: Place, age_days: float = 0.0) -> float:
        logit = self.level
        logit += sum(self._effect(trait, TRAIT_SPREAD) for trait in place.traits)
        logit += sum(self._effect(detail, MINOR_SPREAD) for detail in place.details)
        if self.stopped_days is not None and age_days < self.stopped_days:
            logit -= 3.0
        return 1 / (1 + math.exp(-logit))

    def _effect(self, name: str, spread: float) -> float:
        if name not in self.effects:
            self.effects[name] = self.chance.gauss(0.0, spread)
        return self.effects[name]


Judge = Callable[[Fix, Place, float], float]


@dataclass(frozen=True, slots=True)
class Score:
    world: str
    judge: str
    success: float
    error: float
    error_picked: float
    brier: float


def run(seed: int = SEED, incidents: int = INCIDENTS) -> list[Score]:
    """Return how each way of judging does in each world."""
    return [
        score
        for world, outcomes in WORLDS.items()
        for score in _in_world(world, outcomes, random.Random(f"{seed} {world}"), incidents)
    ]


def table(scores: Sequence[Score]) -> Table:
    shown = Table(title="Which fix first, and how sure", title_justify="left")
    shown.add_column("judged by")
    for name, mean in WORLDS.items():
        shown.add_column(f"success@1\n{name} ({mean})", justify="right")
    for name in WORLDS:
        shown.add_column(f"calibration\nerror {name}", justify="right")
    shown.add_column("of those\npicked", justify="right")
    shown.add_column("Brier", justify="right")
    for judge in JUDGES:
        own = [score for score in scores if score.judge == judge]
        middle = own[len(own) // 2]
        shown.add_row(
            judge,
            *(f"{score.success:.3f}" for score in own),
            *(f"{score.error:.3f}" for score in own),
            f"{middle.error_picked:.3f}",
            f"{middle.brier:.3f}",
        )
    shown.caption = "Mean outcomes of an incident in parentheses; last two columns: some outcomes."
    return shown


def ours(fix: Fix, place: Place, prior: float) -> float:
    return _belief(fix, prior, lambda outcome: similarity(place.environment, outcome.place[0]))


def ours_anywhere(fix: Fix, _place: Place, prior: float) -> float:
    return _belief(fix, prior, lambda _: 1.0)


def pooled(fix: Fix, _place: Place, _prior: float) -> float:
    return fmean([outcome.worked for outcome in fix.outcomes] or [0.5])


def wilson(fix: Fix, _place: Place, _prior: float) -> float:
    """Return the lower end of the 95 % Wilson interval, which is 0 without outcomes."""
    n, z = len(fix.outcomes), 1.96
    if not n:
        return 0.0
    rate = fmean(outcome.worked for outcome in fix.outcomes)
    reach = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, (rate + z * z / (2 * n) - reach) / (1 + z * z / n))


def ramp(fix: Fix, place: Place, _prior: float) -> float:
    """Return the success rate of the caller's own bucket × min(n, 10) / 10."""
    bucket = place.environment.bucket
    own = [each.worked for each in fix.outcomes if each.place.environment.bucket == bucket]
    return fmean(own or [0.0]) * min(len(own), 10) / 10


def oracle(fix: Fix, place: Place, _prior: float) -> float:
    return fix.rate(place)


JUDGES: Final[dict[str, Judge]] = {
    "oracle (the true rate)": oracle,
    "ours": ours,
    "ours, environments ignored": ours_anywhere,
    "pooled success rate": pooled,
    "Wilson lower bound, pooled": wilson,
    "bucket's rate × min(n, 10)/10": ramp,
}


def _belief(fix: Fix, prior: float, likeness: Callable[[Outcome], float]) -> float:
    weighed = (
        Observation(
            outcome.worked,
            evidence.weight(similarity=likeness(outcome), age_us=int(outcome.age_days * DAY_US)),
        )
        for outcome in fix.outcomes
    )
    return evidence.believe(weighed, prior=prior).mean


def _in_world(world: str, outcomes: int, chance: random.Random, incidents: int) -> list[Score]:
    places = _places()
    chance.shuffle(places)
    popularity = [1 / (rank + 1) for rank in range(len(places))]
    known = [_incident(chance, places, popularity, outcomes) for _ in range(incidents)]
    priors = _priors(known)
    said: dict[str, list[tuple[float, bool]]] = {judge: [] for judge in JUDGES}
    picked: dict[str, list[tuple[float, float]]] = {judge: [] for judge in JUDGES}
    for fixes, prior in zip(known, priors, strict=True):
        for place in chance.choices(places, popularity, k=CALLERS_EACH):
            rates = [fix.rate(place) for fix in fixes]
            drawn = [chance.random() < rate for rate in rates]
            for name, judge in JUDGES.items():
                scores = [judge(fix, place, prior) for fix in fixes]
                best = max(range(len(fixes)), key=scores.__getitem__)
                said[name] += zip(scores, drawn, strict=True)
                picked[name].append((scores[best], rates[best]))
    return [
        Score(
            world,
            name,
            success=fmean(rate for _, rate in picked[name]),
            error=_calibration_error(said[name]),
            error_picked=_calibration_error(picked[name]),
            brier=fmean((score - happened) ** 2 for score, happened in said[name]),
        )
        for name in JUDGES
    ]


def _places() -> list[Place]:
    return [
        Place(
            canonical({"os": system, "python": language, framework: version, "runtime": runtime}),
            (system, f"py{language[0]}", f"{framework}{version[0]}", runtime),
            (f"py{language}", f"{framework}{version}"),
        )
        for system in dict.fromkeys(SYSTEMS)
        for language in LANGUAGES
        for framework, version in FRAMEWORKS
        for runtime in RUNTIMES
    ]


def _incident(
    chance: random.Random, places: list[Place], popularity: list[float], outcomes: int
) -> list[Fix]:
    """Return the fixes of an incident, tried more or less often whatever their worth."""
    fixes = [_fix(chance) for _ in range(chance.randint(2, 6))]
    tries = [chance.expovariate(1.0) for _ in fixes]
    for _ in range(round(chance.expovariate(1 / outcomes))):
        fix = chance.choices(fixes, tries)[0]
        place = chance.choices(places, popularity)[0]
        age = chance.expovariate(1 / AGE_DAYS_MEAN)
        fix.outcomes.append(Outcome(place, chance.random() < fix.rate(place, age), age))
    return fixes


def _fix(chance: random.Random) -> Fix:
    stopped = chance.expovariate(1 / AGE_DAYS_MEAN) if chance.random() < STOPPED_SHARE else None
    return Fix(chance, chance.gauss(0.0, FIX_SPREAD), stopped)


def _priors(incidents: Sequence[Sequence[Fix]]) -> list[float]:
    """Return for each incident the base rate of the others."""
    counts = [_counts(fixes) for fixes in incidents]
    worked, failed = (sum(column) for column in zip(*counts, strict=True))
    return [evidence.base_rate(worked - own[0], failed - own[1]) for own in counts]


def _counts(fixes: Sequence[Fix]) -> tuple[int, int]:
    outcomes = [outcome.worked for fix in fixes for outcome in fix.outcomes]
    return sum(outcomes), len(outcomes) - sum(outcomes)


def _calibration_error(said: Sequence[tuple[float, float]]) -> float:
    tenths: dict[int, list[tuple[float, float]]] = {}
    for score, happened in said:
        tenths.setdefault(min(9, int(score * 10)), []).append((score, happened))
    gaps = (
        len(pairs) * abs(fmean(score for score, _ in pairs) - fmean(truth for _, truth in pairs))
        for pairs in tenths.values()
    )
    return sum(gaps) / len(said)


def main() -> None:
    console = Console()
    # A file or a pipe has no width of its own.
    (console if console.is_terminal else Console(width=120)).print(table(run()))


if __name__ == "__main__":
    main()
