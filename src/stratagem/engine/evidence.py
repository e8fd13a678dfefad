"""How much to believe that something works, from what was observed.

A fix, a correction or a tool has outcomes for and against it. An outcome counts more if its
circumstances are similar to the ones asked about, if it is recent and if its reporter can be
trusted:

    weight = max(0.05, similarity) · 2^(−age / 365 days) · trust

Outcomes are sorted into rings around the circumstances asked about: *here*, where nothing
contradicts them; *near*, where one thing does; *far*, where several do. Outcomes outside of *here*
keep their success rate, but together count as six outcomes at most, however many there are:

    shrink(a, b) = (a, b) · 6 / (a + b + 6)
    far  = shrink(Σ far for, Σ far against)
    near = shrink(Σ near for + far for, Σ near against + far against)

The belief is a Beta distribution. Before any evidence it stands at a base rate, as if k outcomes
had been seen; each outcome here then adds its weight to its side:

    Beta(k · prior + here for + near for, k · (1 − prior) + here against + near against)

So ten failures here are not outvoted by two hundred successes elsewhere, while those alone still
say much. 9 of 10 beats 1 of 1, which beats untried, which beats 0 of 1, which beats 0 of 10. The
first of these holds for weights up to 1 and, with k = 1, for priors below 0.76, which is why the
base rate is capped.

Four choices a reader might undo:

* The effective sample size is Σ weights, not Kish's (Σw)²/Σw². Kish's number ignores scale: ten
  outcomes of weight 0.05 would be reported as ten, though they move the belief as half an
  outcome does. Σ weights is what the belief is in fact made of, and what its interval shows.
* The mean is 1 / (1 + against / for) of sums that are rounded once, and a share of `shrink` is
  6 / (1 + (other + 6) / own). Each step is monotone even in floating point and independent of
  order, so a success never lowers a belief by a bit, and equal evidence gives equal numbers.
* The interval is exact (Newton on the distribution function), not normal: with two outcomes a
  normal interval leaves [0, 1].
* A nearer outcome moves a belief at least as far as a farther one of the same ring. Between rings
  this holds up to a thousandth: one success far away can weaken the effect of many failures there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import exp, fsum, inf, isnan, lgamma, log, log1p, sqrt
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "BASE_RATE_CAP",
    "CLAIM_TRUST",
    "ELSEWHERE_MAX",
    "FAR",
    "FIX_PRIOR_WEIGHT",
    "HALF_LIFE_DAYS",
    "HERE",
    "NEAR",
    "PRIOR_WEIGHT",
    "SIMILARITY_MIN",
    "Belief",
    "Observation",
    "base_rate",
    "believe",
    "weight",
]

# How many outcomes the base rate is worth: of tools and corrections, of which nothing else is
# known...
PRIOR_WEIGHT: Final = 2.0
# ...and of fixes, whose base rate comes from other fixes.
FIX_PRIOR_WEIGHT: Final = 1.0
# From 0.76 on one success of one would beat nine of ten, and an untried fix a proven one.
BASE_RATE_CAP: Final = 0.75
# How many outcomes all evidence from elsewhere counts as, at most.
ELSEWHERE_MAX: Final = 6.0
# How many things contradict the circumstances asked about.
HERE: Final = 0
NEAR: Final = 1
FAR: Final = 2
# An outcome in a completely different environment is still weak evidence.
SIMILARITY_MIN: Final = 0.05
# An outcome of a year ago counts half.
HALF_LIFE_DAYS: Final = 365
# Nearly every author believes in their own fix: five such reports count as one of somebody else.
CLAIM_TRUST: Final = 0.2

_HALF_LIFE_US: Final = HALF_LIFE_DAYS * 24 * 3600 * 1_000_000
# A base rate from two outcomes lies halfway between theirs and 0.5.
_BASE_RATE_WEIGHT: Final = 2.0
# The bounds of a mean: no belief is rounded to impossible or certain.
_MEAN_MIN: Final = 1e-15
# The interval leaves this much out on each side.
_TAIL: Final = 0.05
_QUARTILE: Final = 0.25
# The quantiles of the normal distribution.
_NORMAL: Final = {_TAIL: -1.6448536269514722, _QUARTILE: -0.6744897501960817}
# With this much on both sides the Cornish–Fisher expansion is right to 1e-7, and the series
# would need hundreds of terms.
_EXPANSION_FROM: Final = 1_000.0
# With less than this on a side the expansion is no better than a normal guess.
_ROUGH_BELOW: Final = 5.0
# Beside a small count, a larger one than this moves the interval by less than 1e-7.
_SERIES_MAX: Final = 1e9
# Newton's method doubles the digits: after such a step the rest is about its square.
_STEP_LAST: Final = 1e-5
# It takes four rounds at most; a bound all the same.
_ROUNDS_MAX: Final = 50


class Observation(NamedTuple):
    """One outcome, its weight, and the ring in which it was observed."""

    worked: bool
    weight: float
    ring: int = HERE


@dataclass(frozen=True, slots=True)
class Belief:
    """How likely something is to work.

    `mean` lies strictly between 0 and 1; `low` and `high` enclose it and 90 % of the belief.
    `successes` and `failures` are sums of weights, with evidence from elsewhere shrunk;
    `sample_size` is their sum: the number of fresh outcomes in the same circumstances that the
    evidence is worth. Together with the prior they give the belief, Beta(`a`, `b`).
    """

    mean: float
    sample_size: float
    low: float
    high: float
    successes: float
    failures: float
    a: float
    b: float

    @property
    def lower_quartile(self) -> float:
        """The rate that is exceeded with a probability of three quarters."""
        return min(_quantile(self.a, self.b, _QUARTILE), self.mean)

    @property
    def cautious(self) -> float:
        """A number to rank by: halfway between the mean and the lower quartile."""
        return (self.mean + self.lower_quartile) / 2


def weight(*, similarity: float, age_us: int, trust: float = 1.0) -> float:
    """Return the weight of an outcome, from 0 to 1.

    A nearer outcome weighs at least as much as a farther one, and a newer at least as much as an
    older one. A time in the future counts as now.
    """
    likeness = max(SIMILARITY_MIN, _within(similarity, 1.0))
    # An age beyond this weighs nothing; larger integers do not fit into a float.
    half_lives = min(max(age_us, 0), 2_000 * _HALF_LIFE_US) / _HALF_LIFE_US
    return float(likeness * 2.0**-half_lives * _within(trust, 1.0))


def base_rate(successes: float, failures: float) -> float:
    """Return the expected success rate of something untried, given the rates of others.

    Without others it is 0.5. It never reaches 0, and never exceeds `BASE_RATE_CAP`.
    """
    rate = _mean(
        _within(successes) + _BASE_RATE_WEIGHT / 2, _within(failures) + _BASE_RATE_WEIGHT / 2
    )
    return min(BASE_RATE_CAP, rate)


def believe(
    observations: Iterable[Observation],
    *,
    prior: float = 0.5,
    prior_weight: float = PRIOR_WEIGHT,
) -> Belief:
    """Return the belief that follows from observations, independent of their order.

    A prior above `BASE_RATE_CAP` counts as the cap.
    """
    sums = _sums(observations)
    far = _shrink(*sums[FAR])
    near = _shrink(sums[NEAR][0] + far[0], sums[NEAR][1] + far[1])
    successes, failures = sums[HERE][0] + near[0], sums[HERE][1] + near[1]
    expected = min(BASE_RATE_CAP, max(_MEAN_MIN, 0.5 if isnan(prior) else prior))
    a = prior_weight * expected + successes
    b = prior_weight * (1 - expected) + failures
    mean = _mean(a, b)
    low, high = _interval(a, b)
    return Belief(
        mean=mean,
        sample_size=successes + failures,
        # Most of a very skewed belief can lie on one side of its mean.
        low=min(low, mean),
        high=max(high, mean),
        successes=successes,
        failures=failures,
        a=a,
        b=b,
    )


def _sums(observations: Iterable[Observation]) -> list[tuple[float, float]]:
    """Return the sums of weights for and against, for each ring."""
    counts: list[tuple[list[float], list[float]]] = [([], []) for _ in range(FAR + 1)]
    for worked, counted, ring in observations:
        counts[min(FAR, max(HERE, ring))][not worked].append(_within(counted))
    return [(fsum(successes), fsum(failures)) for successes, failures in counts]


def _shrink(successes: float, failures: float) -> tuple[float, float]:
    """Return evidence of the same rate that is worth no more than `ELSEWHERE_MAX` outcomes."""
    return _shrunk_share(successes, failures), _shrunk_share(failures, successes)


def _shrunk_share(own: float, other: float) -> float:
    # In this order every step is monotone in floating point.
    return ELSEWHERE_MAX / (1 + (other + ELSEWHERE_MAX) / own) if own else 0.0


def _within(number: float, most: float = 1e15) -> float:
    """Return a number limited to 0 to `most`; NaN counts as 0."""
    return 0.0 if isnan(number) else float(min(max(number, 0.0), most))


def _mean(a: float, b: float) -> float:
    return min(1 - _MEAN_MIN, max(_MEAN_MIN, 1 / (1 + b / a)))


def _interval(a: float, b: float) -> tuple[float, float]:
    """Return the quantiles of Beta(a, b) that leave a tail out on each side."""
    return _quantile(a, b, _TAIL), 1 - _quantile(b, a, _TAIL)


# Fixes without evidence, and those tried once, share their few quantiles.
@lru_cache(maxsize=8192)
def _quantile(a: float, b: float, tail: float) -> float:
    """Return a quantile of Beta(a, b); `tail` is in `_NORMAL`."""
    if min(a, b) >= _EXPANSION_FROM:
        return _cornish_fisher_quantile(a, b, _NORMAL[tail])
    return _odds_share(_tail_logit(min(a, _SERIES_MAX), min(b, _SERIES_MAX), tail))


def _cornish_fisher_quantile(a: float, b: float, z: float) -> float:
    """Return a quantile by the Cornish–Fisher expansion up to the fourth cumulant."""
    n = a + b
    deviation = sqrt(a / n * (b / n) / (n + 1))
    skewness = 2 * (b - a) / (n + 2) * sqrt((n + 1) / a / b)
    kurtosis = 6 * ((a - b) ** 2 * (n + 1) - a * b * (n + 2)) / (a * b * (n + 2) * (n + 3))
    shift = (
        (z**2 - 1) * skewness / 6
        + (z**3 - 3 * z) * kurtosis / 24
        - (2 * z**3 - 5 * z) * skewness**2 / 36
    )
    return a / n + deviation * (z + shift)


def _tail_logit(a: float, b: float, tail: float) -> float:
    """Return the logit of the lower quantile of Beta(a, b).

    Seen on the scale of logits a Beta distribution is log-concave whatever its shape, hence so
    is its distribution function F, and Newton on log F cannot run away: from the left of the
    root it approaches from the left, from the right it lands on the left.
    """
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    logit, step, rounds = _guess(a, b, log_beta, tail), inf, _ROUNDS_MAX
    while rounds and abs(step) > _STEP_LAST * max(1.0, abs(logit)):
        log_share, log_density = _log_distribution(a, b, logit, log_beta)
        step = (log(tail) - log_share) * exp(log_share - log_density)
        logit += step
        rounds -= 1
    return logit


def _guess(a: float, b: float, log_beta: float, tail: float) -> float:
    """Return a logit near the lower quantile; a + b is never less than the prior's weight."""
    # Far out F is a power of the odds, and so is 1 − F: exact ends for a side below 1.
    if a < 1:
        return (log(tail) + log(a) + log_beta) / a
    if b < 1:
        return -(log1p(-tail) + log(b) + log_beta) / b
    if min(a, b) < _ROUGH_BELOW:
        return log(a / b) + _NORMAL[tail] * sqrt(1 / a + 1 / b)
    share = _cornish_fisher_quantile(a, b, _NORMAL[tail])
    return log(share / (1 - share))


def _log_distribution(a: float, b: float, logit: float, log_beta: float) -> tuple[float, float]:
    """Return the logarithms of F and of its slope at a logit."""
    if logit > 0:
        log_rest, log_density = _log_distribution(b, a, -logit, log_beta)
        return log1p(-min(exp(log_rest), 1 - 1e-12)), log_density
    odds = exp(logit)
    log_density = a * logit - (a + b) * log1p(odds) - log_beta
    return log_density + log(_series(a, b, odds / (1 + odds)) / a), log_density


def _series(a: float, b: float, x: float) -> float:
    """Return a·B(a, b)·F(x) / (x^a·(1−x)^b), a sum of positive terms (DLMF 8.17.8), x ≤ 1/2."""
    total = term = 1.0
    above, below = a + b, a + 1
    while term > 1e-10 * total:
        term *= above / below * x
        total += term
        above += 1
        below += 1
    return total


def _odds_share(logit: float) -> float:
    if logit > 0:
        return 1 / (1 + exp(-logit))
    odds = exp(logit)
    return odds / (1 + odds)
