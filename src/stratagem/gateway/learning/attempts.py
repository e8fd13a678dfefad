"""The attempts of a caller to get one call right, and the corrections offered meanwhile."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from cachetools import LRUCache, TLRUCache

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.gateway.calls.call import Call
from stratagem.gateway.correction import Candidate, Fault
from stratagem.gateway.learning.answers import ActiveCorrection

__all__ = [
    "AttemptCounter",
    "AttemptKey",
    "CachedOffer",
    "OfferCache",
    "attempt_key",
    "is_brief",
    "offer_id",
]

_KEPT_MAX: Final = 10_000


class AttemptKey(NamedTuple):
    """The key of attempts: an actor, the agent it speaks for, a branch and a tool."""

    actor: str
    agent: str | None
    branch: str
    tool: str


def attempt_key(call: Call, tool: str) -> AttemptKey:
    """Return what a call is an attempt at."""
    return AttemptKey(call.caller.actor, call.context.get("agentId"), call.branch, tool)


class AttemptCounter:
    """Counts attempts, and knows which corrections have not ended yet."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # How many attempts failed, and since when they are counted.
        self._counts: TLRUCache[AttemptKey, tuple[int, float]] = TLRUCache(
            _KEPT_MAX,
            ttu=lambda _problem, count, _now: count[1] + limits.CORRECTION_BREAKER_SECONDS,
            timer=clock,
        )
        self._numbers = itertools.count()
        self._active: dict[int, ActiveCorrection] = {}

    def number(self, key: AttemptKey) -> int:
        """Return which attempt a call is, from 1: calls that are under way have not failed."""
        return self._counts.get(key, (0, 0.0))[0] + 1

    def record_failure(self, key: AttemptKey) -> None:
        """Count an attempt that did not work."""
        count, since = self._counts.get(key, (0, self._clock()))
        self._counts[key] = (count + 1, since)

    def record_success(self, key: AttemptKey) -> None:
        """Note that a call worked: the next one is a first attempt."""
        self._counts.pop(key, None)

    def start(self, call: Call, tool: str, attempt: int, at: int) -> int:
        """Note that a corrected call is under way; return the number to end it by."""
        number = next(self._numbers)
        self._active[number] = {
            "agentId": call.context.get("agentId"),
            "toolName": tool,
            "attempt": attempt,
            "startedAt": moments.iso(at),
            "status": "processing",
        }
        return number

    def end(self, number: int) -> None:
        """Note that a corrected call has ended."""
        self._active.pop(number, None)

    @property
    def active(self) -> list[ActiveCorrection]:
        """The corrected calls that are under way."""
        return list(self._active.values())


CachedOffer = tuple[Candidate, tuple[Fault, ...]]


def offer_id(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of a correction: of the tool and the arguments it would run with."""
    data = orjson.dumps([tool, arguments], option=orjson.OPT_SORT_KEYS)
    return f"corr_{hashlib.sha256(data).hexdigest()[:16]}"


def is_brief(arguments: Any, bytes_max: int = limits.CORRECTION_KEPT_BYTES_MAX) -> bool:
    """Whether arguments are short: enough to be kept in memory, unless told otherwise."""
    try:
        return len(orjson.dumps(arguments)) <= bytes_max
    except (TypeError, ValueError, RecursionError):
        return False


class OfferCache:
    """The offers of this process, each for the caller and the tool it was made for."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop every offer."""
        self._offers: LRUCache[tuple[str, str, str], CachedOffer] = LRUCache(_KEPT_MAX)

    def put(self, caller: str, tool: str, offered: CachedOffer) -> str:
        """Keep an offer, unless it is long: it can be made anew. Return its id."""
        made = offer_id(tool, offered[0].arguments)
        if is_brief(offered[0].arguments):
            self._offers[caller, tool, made] = offered
        return made

    def get(self, caller: str, tool: str, made: str) -> CachedOffer | None:
        """Return an offer that was made to a caller for a tool."""
        return self._offers.get((caller, tool, made))
