"""How often the first recommended fix works, and whether its reliability can be taken at its word.

A made-up world in which the truth is known. A fix works at a rate that depends on the environment:
a common part, a part for each of its traits (system, language, framework, runtime), a smaller one
for each minor version, so that like environments have like rates. One fix in eight stopped
working at some time. Outcomes are drawn at these rates, most from a few popular environments, some
of them years ago. Then callers come, and each way of judging fixes picks one for each of them.

There are several worlds, for the environment does not matter alike in all of them:

* standard: it matters as much as the fix does;
* none: it has no effect at all;
* strong: it matters more than the fix;
* flip: each fix works on some systems and hardly ever on the others;
* high: most fixes work, wherever;
* claims: nine of ten fixes come with a word of their author, who praises nearly all of them.

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

from stratagem.debugging.environments import Environment, canonical, contradictions, similarity
from stratagem.engine import evidence
from stratagem.engine.evidence import Observation

__all__ = ["Score", "run", "tables"]

SEED: Final = 20_260_805
INCIDENTS: Final = 200
CALLERS_EACH: Final = 4
# Mean outcomes of an incident, over all its fixes and environments.
OUTCOMES: Final = (6, 25, 100)

DAY_US: Final = 24 * 3600 * 1_000_000
AGE_DAYS_MEAN: Final = 300
STOPPED_SHARE: Final = 1 / 8
# Deviations on the scale of logits.
FIX_SPREAD: Final = 1.2
MINOR_SPREAD: Final = 0.3
FLIP_WORKS: Final = 2.5
FLIP_FAILS: Final = -3.0
CLAIM_SHARE: Final = 0.9
CLAIM_PRAISES: Final = 0.95

SYSTEMS: Final = ("linux", "linux", "macos", "windows")
LANGUAGES: Final = ("3.11", "3.12", "3.10", "2.7")
FRAMEWORKS: Final = (("torch", "2.1"), ("torch", "2.3"), ("torch", "1.13"), ("tf", "2.15"))
RUNTIMES: Final = ("docker", "bare")


class World(NamedTuple):
    """What decides whether a fix works."""

    name: str
    trait_spread: float = 0.8
    minor_spread: float = MINOR_SPREAD
    level: float = 0.0
    flips: bool = False
    claims: bool = False


WORLDS: Final = (
    World("standard"),
    World("none", trait_spread=0.0, minor_spread=0.0),
    World("strong", trait_spread=2.0),
    World("flip", flips=True),
    World("high", level=1.8),
    World("claims", claims=True),
)


class Place(NamedTuple):
    """An environment, and what in it a rate depends on: traits, and details of them."""

    environment: Environment
    traits: tuple[str, ...]
    details: tuple[str, ...]


class Outcome(NamedTuple):
    place: Place
    worked: bool
    age_days: float
    claim: bool = False


@dataclass
class Fix:
    """A fix with its true rates. `stopped_days` ago it all but stopped working."""

    world: World
    chance: random.Random
    level: float
    stopped_days: float | None
    outcomes: list[Outcome] = field(default_factory=list)
    effects: dict[str, float] = field(default_factory=dict)

    def rate(self, place: Place, age_days: float = 0.0) -> float:
        logit = self.level
        logit += sum(self._effect(trait, self.world.trait_spread) for trait in place.traits)
        logit += sum(self._effect(detail, self.world.minor_spread) for detail in place.details)
        if self.world.flips:
            system = place.traits[0]
            logit += FLIP_WORKS if self._effect(f"on {system}", 1.0) > 0 else FLIP_FAILS
        if self.stopped_days is not None and age_days < self.stopped_days:
            logit -= 3.0
        return 1 / (1 + math.exp(-logit))

    def _effect(self, name: str, spread: float) -> float:
        if name not in self.effects:
            self.effects[name] = self.chance.gauss(0.0, spread)
        return self.effects[name]


class Verdict(NamedTuple):
    """What to rank a fix by, and the probability that it is said to have."""

    rank: float
    said: float


Judge = Callable[[Fix, Place, float], Verdict]


@dataclass(frozen=True, slots=True)
class Score:
    world: str
    outcomes: int
    judge: str
    success: float
    error: float
    error_picked: float
    brier: float


def run(
    seed: int = SEED, incidents: int = INCIDENTS, worlds: Sequence[World] = WORLDS
) -> list[Score]:
    """Return how each way of judging does in each world."""
    return [
        score
        for world in worlds
        for outcomes in OUTCOMES
        for score in _in_world(
            world, outcomes, random.Random(f"{seed} {world.name} {outcomes}"), incidents
        )
    ]


def tables(scores: Sequence[Score]) -> list[Table]:
    """Return success and calibration by world."""
    return [
        _table(scores, "success", "Which fix first: success@1 by world"),
        _table(scores, "error", "How sure: calibration error by world"),
    ]


def _table(scores: Sequence[Score], field: str, title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    shown.add_column("judged by", no_wrap=True)
    names = dict.fromkeys(score.world for score in scores)
    for name in names:
        shown.add_column(name, justify="right", no_wrap=True)
    for column in ("mean", *(("picked", "Brier") if field == "error" else ())):
        shown.add_column(column, justify="right")
    for judge in JUDGES:
        own = [score for score in scores if score.judge == judge]
        means = (field, *(("error_picked", "brier") if field == "error" else ()))
        shown.add_row(
            judge,
            *(_three([each for each in own if each.world == name], field) for name in names),
            *(f"{fmean(getattr(each, mean) for each in own):.3f}" for mean in means),
        )
    shown.caption = "By world: with {}, {} and {} outcomes of an incident in the mean.".format(
        *OUTCOMES
    )
    return shown


def _three(scores: Sequence[Score], field: str) -> str:
    return " ".join(f"{getattr(each, field):.3f}"[1:] for each in scores)


def ours(fix: Fix, place: Place, prior: float) -> Verdict:
    """Rank as `debugging.ranking` does, and say what it says."""
    observed = (
        Observation(
            outcome.worked,
            _weight(outcome, place, claim=evidence.CLAIM_TRUST),
            min(evidence.FAR, contradictions(place.environment, outcome.place.environment)),
        )
        for outcome in fix.outcomes
    )
    belief = evidence.believe(observed, prior=prior, prior_weight=evidence.FIX_PRIOR_WEIGHT)
    return Verdict(belief.cautious, belief.mean)


def by_similarity(fix: Fix, place: Place, prior: float) -> Verdict:
    """Judge as the first release did: all evidence in one sum, weighed by similarity."""
    observed = (
        Observation(outcome.worked, _weight(outcome, place, claim=0.5)) for outcome in fix.outcomes
    )
    mean = evidence.believe(observed, prior=prior, prior_weight=2.0).mean
    return Verdict(mean, mean)


def pooled_beta(fix: Fix, _place: Place, prior: float) -> Verdict:
    """Judge by all outcomes alike, with a prior of two outcomes."""
    won, lost = _counts([fix])
    mean = (2 * prior + won) / (2 + won + lost)
    return Verdict(mean, mean)


def wilson(fix: Fix, _place: Place, _prior: float) -> Verdict:
    """Judge by the lower end of the 95 % Wilson interval, which is 0 without outcomes."""
    n, z = len(fix.outcomes), 1.96
    if not n:
        return Verdict(0.0, 0.0)
    rate = fmean(outcome.worked for outcome in fix.outcomes)
    reach = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = max(0.0, (rate + z * z / (2 * n) - reach) / (1 + z * z / n))
    return Verdict(low, low)


def own_bucket(fix: Fix, place: Place, prior: float) -> Verdict:
    """Judge by outcomes in the caller's own bucket alone."""
    bucket = place.environment.bucket
    own = [each.worked for each in fix.outcomes if each.place.environment.bucket == bucket]
    mean = (2 * prior + sum(own)) / (2 + len(own))
    return Verdict(mean, mean)


def oracle(fix: Fix, place: Place, _prior: float) -> Verdict:
    return Verdict(fix.rate(place), fix.rate(place))


JUDGES: Final[dict[str, Judge]] = {
    "oracle": oracle,
    "ours": ours,
    "similarity alone": by_similarity,
    "pooled": pooled_beta,
    "Wilson, pooled": wilson,
    "own bucket alone": own_bucket,
}


def _weight(outcome: Outcome, place: Place, *, claim: float) -> float:
    return evidence.weight(
        similarity=similarity(place.environment, outcome.place.environment),
        age_us=int(outcome.age_days * DAY_US),
        trust=claim if outcome.claim else 1.0,
    )


def _in_world(world: World, outcomes: int, chance: random.Random, incidents: int) -> list[Score]:
    places = _places()
    chance.shuffle(places)
    popularity = [1 / (rank + 1) for rank in range(len(places))]
    known = [_incident(world, chance, places, popularity, outcomes) for _ in range(incidents)]
    priors = _priors(known)
    said: dict[str, list[tuple[float, bool]]] = {judge: [] for judge in JUDGES}
    picked: dict[str, list[tuple[float, float]]] = {judge: [] for judge in JUDGES}
    for fixes, prior in zip(known, priors, strict=True):
        for place in chance.choices(places, popularity, k=CALLERS_EACH):
            rates = [fix.rate(place) for fix in fixes]
            drawn = [chance.random() < rate for rate in rates]
            for name, judge in JUDGES.items():
                verdicts = [judge(fix, place, prior) for fix in fixes]
                best = max(range(len(fixes)), key=verdicts.__getitem__)
                said[name] += zip((each.said for each in verdicts), drawn, strict=True)
                picked[name].append((verdicts[best].said, rates[best]))
    return [
        Score(
            world.name,
            outcomes,
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
    world: World,
    chance: random.Random,
    places: list[Place],
    popularity: list[float],
    outcomes: int,
) -> list[Fix]:
    """Return the fixes of an incident, tried more or less often whatever their worth."""
    fixes = [_fix(world, chance) for _ in range(chance.randint(2, 6))]
    tries = [chance.expovariate(1.0) for _ in fixes]
    for _ in range(round(chance.expovariate(1 / outcomes))):
        fix = chance.choices(fixes, tries)[0]
        place = chance.choices(places, popularity)[0]
        age = chance.expovariate(1 / AGE_DAYS_MEAN)
        fix.outcomes.append(Outcome(place, chance.random() < fix.rate(place, age), age))
    if world.claims:
        for fix in fixes:
            if chance.random() < CLAIM_SHARE:
                place = chance.choices(places, popularity)[0]
                age = chance.expovariate(1 / AGE_DAYS_MEAN)
                praised = chance.random() < CLAIM_PRAISES
                fix.outcomes.append(Outcome(place, praised, age, claim=True))
    return fixes


def _fix(world: World, chance: random.Random) -> Fix:
    stopped = chance.expovariate(1 / AGE_DAYS_MEAN) if chance.random() < STOPPED_SHARE else None
    return Fix(world, chance, chance.gauss(world.level, FIX_SPREAD), stopped)


def _priors(incidents: Sequence[Sequence[Fix]]) -> list[float]:
    """Return for each incident the base rate of the others."""
    counts = [_counts(fixes) for fixes in incidents]
    worked, failed = (sum(column) for column in zip(*counts, strict=True))
    return [evidence.base_rate(worked - own[0], failed - own[1]) for own in counts]


def _counts(fixes: Sequence[Fix]) -> tuple[int, int]:
    outcomes = [each.worked for fix in fixes for each in fix.outcomes if not each.claim]
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
    console = console if console.is_terminal else Console(width=150)
    for shown in tables(run()):
        console.print(shown)


if __name__ == "__main__":
    main()
