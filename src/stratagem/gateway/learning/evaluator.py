"""Evaluates arguments: the corrections that the policy and the lessons of a branch allow."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Any, Final, Literal

import orjson
from cachetools import TTLCache

from stratagem import limits
from stratagem.errors import BranchNotFound, CorrectionUnavailable, StratagemError, blame_of
from stratagem.gateway.correction import (
    Candidate,
    Correction,
    Learned,
    Nothing,
    Policy,
    correct,
    ready,
)
from stratagem.gateway.learning import policies
from stratagem.gateway.learning.answers import (
    CacheFigures,
    DegradedMode,
    ServiceHealth,
)
from stratagem.gateway.learning.call_profiles import CallProfile, read_profile
from stratagem.gateway.learning.evidence import (
    PatternReliability,
    lower_confidence,
    read_reliability,
    tools_with_failures,
)
from stratagem.gateway.learning.lessons import Lessons
from stratagem.gateway.learning.policies import EffectivePolicy
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation

__all__ = [
    "SERVICE_NAMES",
    "CorrectionCache",
    "CorrectionEvaluator",
    "CorrectionHealth",
    "ServiceName",
]

logger = logging.getLogger(__name__)

ServiceName = Literal[
    "patternService",
    "policyService",
    "validationService",
    "correctionEngine",
    "learningPipeline",
]
SERVICE_NAMES: Final[tuple[ServiceName, ...]] = (
    "patternService",
    "validationService",
    "policyService",
    "correctionEngine",
    "learningPipeline",
)


class CorrectionHealth:
    """Which services of the corrections work, as of their last use."""

    def __init__(self) -> None:
        self._faults: dict[ServiceName, str] = {}

    def record_failure(self, part: ServiceName, error: BaseException) -> None:
        """Record that a part failed; an error caused by the caller's input does not count."""
        # No caller of a tool gives the policy, which is stored.
        if part != "policyService" and _is_callers(error):
            return
        if part not in self._faults:
            logger.warning("corrections work without the %s: %s", part, error)
        self._faults[part] = f"{type(error).__name__}: {error}"[:300]

    def record_success(self, part: ServiceName) -> None:
        """Note that a part worked."""
        if self._faults:
            self._faults.pop(part, None)

    @property
    def fallback(self) -> bool:
        """Whether something is missing."""
        return bool(self._faults)

    def status(self) -> dict[str, ServiceHealth]:
        """Return the state of each part."""
        return {
            part: "unavailable" if part in self._faults else "healthy" for part in SERVICE_NAMES
        }

    def faults(self) -> dict[str, str]:
        """Return what is wrong with the parts that do not work."""
        return {str(part): fault for part, fault in self._faults.items()}

    def degraded_mode(self) -> DegradedMode:
        """Return what an answer says where something is missing; nothing where all is well."""
        return {"fallbackMode": True, "serviceStatus": self.status()} if self._faults else {}


def _is_callers(error: BaseException) -> bool:
    return isinstance(error, StratagemError) and blame_of(error.code) in {"arguments", "caller"}


class CorrectionCache:
    """Corrections by what they depend on: the least recently used go first, none after an hour.

    The key holds everything that a correction depends on: the tool's revision, the policy, what
    was learned, and the arguments themselves. So a change of any of them is seen at once.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._corrections: TTLCache[bytes, Correction] = TTLCache(
            limits.CORRECTION_CACHE_MAX, limits.CORRECTION_CACHE_SECONDS, timer=clock
        )
        # A diagnosis looks from another thread than calls do.
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def clear(self) -> None:
        """Let go of every correction."""
        with self._lock:
            self._corrections.clear()

    def get(
        self, about: tuple[Any, ...], arguments: Any, make: Callable[[], Correction]
    ) -> Correction:
        """Return a correction: a kept one, or one that is made now."""
        try:
            data = orjson.dumps(arguments)
        except (orjson.JSONEncodeError, RecursionError):
            # What is no JSON is refused quickly.
            return make()
        if len(data) > limits.CORRECTION_KEPT_BYTES_MAX:
            return make()
        key = hashlib.sha256(repr(about).encode() + b"\0" + data).digest()
        with self._lock:
            known = self._corrections.get(key)
            if known is not None:
                self.hits += 1
                return known
            self.misses += 1
        made = make()
        if made.late:
            return made
        with self._lock:
            self._corrections[key] = made
        return made

    def figures(self) -> CacheFigures:
        """Return how the cache is doing."""
        asked = self.hits + self.misses
        return {
            "entries": len(self._corrections),
            "hits": self.hits,
            "misses": self.misses,
            "hitRate": round(self.hits / asked, 4) if asked else None,
        }


# What other processes taught is seen within this time; what this one taught, once it is written.
_SECONDS: Final = 2.0
_PROFILE_SECONDS: Final = 30.0
_KEPT_MAX: Final = 1_000


class _BranchLessons:
    """The lessons of a branch: valid for a moment, or until this process writes new ones."""

    def __init__(self, until: float, lessons: Lessons, failing_tools: frozenset[str]) -> None:
        self.until = until
        self.lessons = lessons
        self.failing_tools = failing_tools
        self.reliabilities: dict[tuple[str, str], PatternReliability] = {}


class CorrectionEvaluator:
    """Reads policies and lessons, and corrects arguments by them. Runs and records nothing."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self.health = CorrectionHealth()
        self.cache = CorrectionCache(time.monotonic)
        self.milliseconds: deque[float] = deque(maxlen=1_000)
        self._in_force: dict[tuple[str, str | None], tuple[float, EffectivePolicy]] = {}
        self._known: dict[str, _BranchLessons] = {}
        # How many batches of lessons of each branch wait to be written: what is known has them
        # already, and is not read anew before the log has them too.
        self.unwritten: Counter[str] = Counter()
        self._profiles: TTLCache[tuple[str, str, int], CallProfile] = TTLCache(
            _KEPT_MAX, _PROFILE_SECONDS
        )
        # They are read in threads.
        self._profiles_lock = threading.Lock()
        # What is looked up over a network must not be waited for on the home loop.
        self._remote = foundation.store.remote

    def look(self, tool: str | None, branch: str) -> EffectivePolicy:
        """Read what the correction of a call takes; return the policy as it is now.

        Raises:
            CorrectionUnavailable: The policy cannot be read.
        """
        self._in_force.pop((branch, tool), None)
        found = self.policy(branch, tool)
        # Fresh enough that the rest of the call, on the home loop, need not read it again.
        self._read(branch, ahead=_SECONDS / 2)
        return found

    def policy(self, branch: str, tool: str | None = None) -> EffectivePolicy:
        """Return the policy that holds on a branch.

        Raises:
            CorrectionUnavailable: It cannot be read.
        """
        key, now = (branch, tool), time.monotonic()
        known = self._in_force.get(key)
        if known is not None and known[0] > now:
            return known[1]
        try:
            reader = self._foundation.store.reader()
            found = policies.read(reader.records, self._foundation.views.view(reader, branch), tool)
        except BranchNotFound:
            # Nothing is wrong with the policy.
            raise
        except Exception as error:
            self.health.record_failure("policyService", error)
            raise CorrectionUnavailable("The policy of corrections cannot be read.") from error
        self.health.record_success("policyService")
        if self._remote:
            if len(self._in_force) > _KEPT_MAX:
                self._in_force.clear()
            self._in_force[key] = (now + _SECONDS, found)
        return found

    def cached_policy(self, branch: str, tool: str, otherwise: Policy) -> Policy:
        """Return the policy, without waiting for a network: as it was when it was last read."""
        if not self._remote:
            return self.policy(branch, tool).policy
        known = self._in_force.get((branch, tool))
        return known[1].policy if known is not None else otherwise

    def cached_lessons(self, branch: str) -> Lessons | None:
        """Return what was learned, without waiting for a network; None where that would take it."""
        known = self._known.get(branch)
        if self._remote:
            return known.lessons if known is not None else None
        return self.lessons(branch)

    def lessons(self, branch: str) -> Lessons | None:
        """Return what was learned, as a branch shows it; None where it cannot be read."""
        known = self._read(branch)
        return known.lessons if known is not None else None

    def foresee(
        self, tool: Tool, arguments: Any, branch: str, teacher: str = ""
    ) -> tuple[Correction, Candidate | None]:
        """Predict the decision about a call, and the correction that would be applied to it.

        Raises:
            CorrectionUnavailable: The policy cannot be read, or the engine does not work.
        """
        in_force = self.look(tool.name, branch)
        found = self.evaluate(tool, arguments, branch, teacher, in_force=in_force)
        candidate, withheld = self.decide(tool, branch, found, in_force.policy)
        lowered_ones = [
            self.lower_confidence(tool.name, branch, each)[0] for each in found.candidates
        ]
        lowered_ones.sort(key=lambda each: -each.confidence)
        found = replace(found, candidates=tuple(lowered_ones), withheld=withheld)
        if found.errors and withheld is not None:
            return replace(found, applied=None), None
        return found, candidate

    def decide(
        self, tool: Tool, branch: str, found: Correction, policy: Policy
    ) -> tuple[Candidate | None, str | None]:
        """Return the correction that a call is run with, and why it is only offered."""
        if found.chosen is None:
            return None, found.withheld
        candidate, deprecated = self.lower_confidence(tool.name, branch, found.chosen)
        if deprecated:
            return None, "Corrections of this kind have stopped working for this tool."
        return candidate, policy.withholds(candidate, tool=tool.name, categories=(tool.category,))

    def evaluate(
        self,
        tool: Tool,
        arguments: Any,
        branch: str,
        teacher: str = "",
        *,
        in_force: EffectivePolicy | None = None,
        seconds: float | None = None,
    ) -> Correction:
        """Return the engine's correction of arguments; `teacher` is the caller's (`teacher_of`).

        It takes at most about so many seconds of the processor.

        Raises:
            CorrectionUnavailable: The policy cannot be read, or the engine does not work.
        """
        in_force = in_force or self.policy(branch, tool.name)
        learned, stamp = self._lessons_for(tool, branch, teacher, in_force)

        def make() -> Correction:
            return correct(
                ready(tool.correction_schema),
                arguments,
                policy=in_force.policy,
                learned=learned,
                tool=tool.name,
                categories=(tool.category,),
                is_late=lambda: time.thread_time() > until,
            )

        until = time.thread_time() + (limits.CORRECTION_SECONDS if seconds is None else seconds)
        about = (tool.name, tool.revision, tool.category, in_force.stamp, stamp)
        started = time.perf_counter()
        try:
            found = self.cache.get(about, arguments, make)
        except Exception as error:
            self.health.record_failure("correctionEngine", error)
            raise CorrectionUnavailable("The correction engine does not work.") from error
        self.milliseconds.append((time.perf_counter() - started) * 1000)
        self.health.record_success("correctionEngine")
        return found

    def lower_confidence(
        self, tool: str, branch: str, candidate: Candidate
    ) -> tuple[Candidate, list[str]]:
        """Return a candidate, less confident after failures, and its deprecated patterns."""
        known = self._read(branch)
        if known is None or tool not in known.failing_tools:
            return candidate, []
        return lower_confidence(
            candidate, lambda pattern: self._cached_reliability(known, branch, tool, pattern)
        )

    def reliability(self, branch: str, tool: str, pattern: str) -> PatternReliability:
        """Return how a pattern has been doing at a tool, from what is written by now."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, branch)
            return read_reliability(reader, view, tool, pattern)

    def profile(self, tool: Tool, branch: str) -> CallProfile:
        """Return what a tool is usually called with."""
        key = (branch, tool.name, tool.revision)
        with self._profiles_lock:
            profile = self._profiles.get(key)
        if profile is None:
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, branch)
                profile = read_profile(reader, view, tool.name, tool.content["inputSchema"])
            with self._profiles_lock:
                self._profiles[key] = profile
        return profile

    def renew(self, branch: str, counting: threading.Lock) -> None:
        """Put lessons into effect, now that they are written.

        Over a network it is read here and put in place at once: with nothing in its place, a call
        that is under way would read it on the home loop.
        """
        fresh = None
        if self._remote:
            with suppress(BranchNotFound):
                fresh = self._fetch(branch)
        with counting:
            if self.unwritten[branch]:
                # More waits to be written: whoever read it before would count from there.
                return
            self.forget(branch)
            if fresh is not None:
                self._keep(branch, fresh)

    def forget(self, branch: str | None = None) -> None:
        """Read everything anew when it is next asked for."""
        self._in_force.clear()
        if branch is None:
            self._known.clear()
            with self._profiles_lock:
                self._profiles.clear()
        else:
            self._known.pop(branch, None)

    @property
    def latency(self) -> float | None:
        """The median time of the newest corrections, in milliseconds."""
        return round(median(self.milliseconds), 3) if self.milliseconds else None

    def _lessons_for(
        self, tool: Tool, branch: str, teacher: str, in_force: EffectivePolicy
    ) -> tuple[Learned, int]:
        lessons = self.lessons(branch)
        if lessons is None:
            return Nothing(), -1
        pooled = in_force.policy.experimental_features
        own = lessons.of(tool.name, teacher=teacher, elsewhere=pooled)
        return own, own.stamp

    def _read(self, branch: str, *, ahead: float = 0.0) -> _BranchLessons | None:
        """Return the lessons of a branch; cached ones if they stay valid for so many seconds."""
        known = self._known.get(branch)
        now = time.monotonic()
        if known is not None and (known.until > now + ahead or self.unwritten[branch]):
            return known
        known = self._fetch(branch)
        if known is not None:
            self._keep(branch, known)
        return known

    def _fetch(self, branch: str) -> _BranchLessons | None:
        now = time.monotonic()
        try:
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, branch)
                known = _BranchLessons(
                    now + _SECONDS,
                    Lessons.read(reader.catalogue, view),
                    tools_with_failures(reader.catalogue, view),
                )
        except BranchNotFound:
            raise
        except Exception as error:  # noqa: BLE001 -- the schema alone has to do then
            self.health.record_failure("patternService", error)
            return None
        self.health.record_success("patternService")
        return known

    def _keep(self, branch: str, known: _BranchLessons) -> None:
        if len(self._known) > limits.CORRECTION_CACHE_MAX:
            self._known.clear()
        self._known[branch] = known

    def _cached_reliability(
        self, known: _BranchLessons, branch: str, tool: str, pattern: str
    ) -> PatternReliability:
        found = known.reliabilities.get((tool, pattern))
        if found is None:
            try:
                found = self.reliability(branch, tool, pattern)
            except StratagemError as error:
                self.health.record_failure("patternService", error)
                found = PatternReliability()
            known.reliabilities[tool, pattern] = found
        return found
