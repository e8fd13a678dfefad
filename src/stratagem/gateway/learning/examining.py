"""What the engine makes of arguments, under the policy and with the lessons of a branch."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import replace
from statistics import median
from typing import Any, Final

from stratagem import limits
from stratagem.errors import BranchNotFound, CorrectionUnavailable, StratagemError
from stratagem.gateway.correction import (
    Candidate,
    Correction,
    Learned,
    Nothing,
    Policy,
    correct,
    ready,
)
from stratagem.gateway.learning.health import Health
from stratagem.gateway.learning.kept import KeptCorrections
from stratagem.gateway.learning.lessons import Lessons
from stratagem.gateway.learning.policies import InForce, Policies
from stratagem.gateway.learning.profiles import Profile, read_profile
from stratagem.gateway.learning.standing import Standing, lowered, read_standing, suspects
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation

__all__ = ["Examiner"]

# What other processes taught is seen within this time; what this one taught, once it is written.
_SECONDS: Final = 2.0
_PROFILE_SECONDS: Final = 30.0
_KEPT_MAX: Final = 1_000


class _Known:
    """What was read for a branch: good for a moment, or until something of ours is written."""

    def __init__(self, until: float, lessons: Lessons, suspected: frozenset[str]) -> None:
        self.until = until
        self.lessons = lessons
        self.suspected = suspected
        self.standings: dict[tuple[str, str], Standing] = {}


class Examiner:
    """Reads policies and lessons, and corrects by them. Runs nothing, and notes nothing."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self.health = Health()
        self.kept = KeptCorrections(time.monotonic)
        self.milliseconds: deque[float] = deque(maxlen=1_000)
        self._policies = Policies()
        self._in_force: dict[tuple[str, str | None], tuple[float, InForce]] = {}
        self._known: dict[str, _Known] = {}
        # How many batches of lessons of each branch wait to be written: what is known has them
        # already, and is not read anew before the log has them too.
        self.unwritten: Counter[str] = Counter()
        self._profiles: dict[tuple[str, str, int], tuple[float, Profile]] = {}
        # What is looked up over a network must not be waited for on the home loop.
        self.remote = foundation.store.remote

    def look(self, tool: str | None, branch: str) -> InForce:
        """Read what the correction of a call takes; return the policy as it is now.

        Raises:
            CorrectionUnavailable: The policy cannot be read.
        """
        self._in_force.pop((branch, tool), None)
        found = self.policy(branch, tool)
        self._read(branch)
        return found

    def policy(self, branch: str, tool: str | None = None) -> InForce:
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
            found = self._policies.read(reader, self._foundation.views.view(reader, branch), tool)
        except BranchNotFound:
            # Nothing is wrong with the policy.
            raise
        except Exception as error:
            self.health.failed("policyService", error)
            raise CorrectionUnavailable("The policy of corrections cannot be read.") from error
        self.health.worked("policyService")
        if self.remote:
            if len(self._in_force) > _KEPT_MAX:
                self._in_force.clear()
            self._in_force[key] = (now + _SECONDS, found)
        return found

    def policy_at_hand(self, branch: str, tool: str, otherwise: Policy) -> Policy:
        """Return the policy, without waiting for a network: as it was when it was last read."""
        if not self.remote:
            return self.policy(branch, tool).policy
        known = self._in_force.get((branch, tool))
        return known[1].policy if known is not None else otherwise

    def lessons_at_hand(self, branch: str) -> Lessons | None:
        """Return what was learned, without waiting for a network; None where that would take it."""
        known = self._known.get(branch)
        if self.remote:
            return known.lessons if known is not None else None
        return self.lessons(branch)

    def lessons(self, branch: str) -> Lessons | None:
        """Return what was learned, as a branch shows it; None where it cannot be read."""
        known = self._read(branch)
        return known.lessons if known is not None else None

    def foreseen(
        self, tool: Tool, arguments: Any, branch: str, teacher: str = ""
    ) -> tuple[Correction, Candidate | None]:
        """Return what would become of a call, and the correction that would be applied to it.

        Raises:
            CorrectionUnavailable: The policy cannot be read, or the engine does not work.
        """
        in_force = self.look(tool.name, branch)
        found = self.examine(tool, arguments, branch, teacher, in_force=in_force)
        candidate, withheld = self.decided(tool, branch, found, in_force.policy)
        lowered_ones = [self.lowered(tool.name, branch, each)[0] for each in found.candidates]
        lowered_ones.sort(key=lambda each: -each.confidence)
        found = replace(found, candidates=tuple(lowered_ones), withheld=withheld)
        if found.errors and withheld is not None:
            return replace(found, applied=None), None
        return found, candidate

    def decided(
        self, tool: Tool, branch: str, found: Correction, policy: Policy
    ) -> tuple[Candidate | None, str | None]:
        """Return the correction that a call is run with, and why it is only offered."""
        if found.chosen is None:
            return None, found.withheld
        candidate, deprecated = self.lowered(tool.name, branch, found.chosen)
        if deprecated:
            return None, "Corrections of this kind have stopped working for this tool."
        return candidate, policy.withholds(candidate, tool=tool.name, categories=(tool.category,))

    def examine(
        self,
        tool: Tool,
        arguments: Any,
        branch: str,
        teacher: str = "",
        *,
        in_force: InForce | None = None,
        seconds: float | None = None,
    ) -> Correction:
        """Return what the engine makes of arguments; `teacher` is the caller's (`teacher_of`).

        It takes at most about so many seconds of the processor.

        Raises:
            CorrectionUnavailable: The policy cannot be read, or the engine does not work.
        """
        in_force = in_force or self.policy(branch, tool.name)
        learned, stamp = self._learned(tool, branch, teacher, in_force)

        def make() -> Correction:
            return correct(
                ready(tool.content["inputSchema"]),
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
            found = self.kept.get(about, arguments, make)
        except Exception as error:
            self.health.failed("correctionEngine", error)
            raise CorrectionUnavailable("The correction engine does not work.") from error
        self.milliseconds.append((time.perf_counter() - started) * 1000)
        self.health.worked("correctionEngine")
        return found

    def lowered(self, tool: str, branch: str, candidate: Candidate) -> tuple[Candidate, list[str]]:
        """Return a candidate with what its past leaves of it, and its deprecated patterns."""
        known = self._read(branch)
        if known is None or tool not in known.suspected:
            return candidate, []
        return lowered(candidate, lambda pattern: self._standing(known, branch, tool, pattern))

    def standing(self, branch: str, tool: str, pattern: str) -> Standing:
        """Return how a pattern has been doing at a tool, from what is written by now."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, branch)
            return read_standing(reader, view, tool, pattern)

    def profile(self, tool: Tool, branch: str) -> Profile:
        """Return what a tool is usually called with."""
        key, now = (branch, tool.name, tool.revision), time.monotonic()
        known = self._profiles.get(key)
        if known is None or known[0] < now:
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, branch)
                found = read_profile(reader, view, tool.name, tool.content["inputSchema"])
            if len(self._profiles) > _KEPT_MAX:
                self._profiles.clear()
            known = self._profiles[key] = (now + _PROFILE_SECONDS, found)
        return known[1]

    def forget(self, branch: str | None = None) -> None:
        """Read everything anew when it is next asked for."""
        self._in_force.clear()
        if branch is None:
            self._known.clear()
            self._profiles.clear()
        else:
            self._known.pop(branch, None)

    @property
    def latency(self) -> float | None:
        """The median time of the newest corrections, in milliseconds."""
        return round(median(self.milliseconds), 3) if self.milliseconds else None

    def _learned(
        self, tool: Tool, branch: str, teacher: str, in_force: InForce
    ) -> tuple[Learned, int]:
        lessons = self.lessons(branch)
        if lessons is None:
            return Nothing(), -1
        pooled = in_force.policy.experimental_features
        own = lessons.of(tool.name, teacher=teacher, elsewhere=pooled)
        return own, own.stamp

    def _read(self, branch: str) -> _Known | None:
        known = self._known.get(branch)
        now = time.monotonic()
        if known is not None and (known.until > now or self.unwritten[branch]):
            return known
        try:
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, branch)
                known = _Known(now + _SECONDS, Lessons.read(reader, view), suspects(reader, view))
        except BranchNotFound:
            raise
        except Exception as error:  # noqa: BLE001 -- the schema alone has to do then
            self.health.failed("patternService", error)
            return None
        self.health.worked("patternService")
        if len(self._known) > limits.CORRECTION_CACHE_MAX:
            self._known.clear()
        self._known[branch] = known
        return known

    def _standing(self, known: _Known, branch: str, tool: str, pattern: str) -> Standing:
        found = known.standings.get((tool, pattern))
        if found is None:
            try:
                found = self.standing(branch, tool, pattern)
            except StratagemError as error:
                self.health.failed("patternService", error)
                found = Standing()
            known.standings[tool, pattern] = found
        return found
