"""How corrections turned out, counted in the log, and what is learned from them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratagem.engine.events import Draft
from stratagem.gateway import names
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.call import Call
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.correction import Candidate, Correction, Policy
from stratagem.gateway.learning import lessons as counting
from stratagem.gateway.learning import teaching
from stratagem.gateway.learning.examining import Examiner
from stratagem.gateway.learning.places import is_of_schema, names_of
from stratagem.gateway.learning.teaching import Lesson, pattern_id
from stratagem.gateway.learning.telling import Teller
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation

__all__ = ["Applied", "Judge"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A correction that a call runs with. `given`: what the caller wrote, if that is recorded."""

    candidate: Candidate
    found: Correction
    took: float
    attempt: int
    confirmed: bool
    policy: Policy
    given: Any = None


class Judge:
    """Counts outcomes, for and against, and tells of what changed by them."""

    def __init__(
        self,
        foundation: Foundation,
        recorder: Recorder,
        examiner: Examiner,
        breakers: Breakers,
        teller: Teller,
    ) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._examiner = examiner
        self._breakers = breakers
        self._teller = teller
        # What was told to be deprecated, and is.
        self._told: set[tuple[str, str, str]] = set()
        self._counting = threading.Lock()

    def judge(
        self,
        tool: Tool,
        call: Call,
        record: Mapping[str, Any],
        applied: Applied,
        worked: bool | None,  # noqa: FBT001 -- None: the tool said nothing
    ) -> None:
        """Count a correction by how its call ended; one that nothing is known of is not counted."""
        if worked is None:
            self._breakers.leave(tool.name)
            self._unjudged(tool, call, record, applied)
            return
        outcome = self._outcome(tool, call, record, applied)
        kind, space = (
            (names.CORRECTION_HELD, names.CORRECTIONS_OK)
            if worked
            else (names.CORRECTION_FELL, names.CORRECTIONS_FAILED)
        )
        self._note_breaker(tool.name, applied, worked=worked)
        # Whoever listens is told how it went; what the caller wrote is for the audit log alone.
        told = {name: each for name, each in outcome.items() if name != "audit"}
        if worked:
            self._teller.succeeded(call, tool.name, told)
        else:
            actions = [f"Read the schema with tool_help {tool.name}."]
            self._teller.failed(call, tool.name, {**told, "suggestedActions": actions})
        lessons = _lessons(applied, worked=worked) if applied.policy.enable_learning else []
        self._count(tool, call, lessons, [Draft(kind, outcome, space)], held=worked)
        if not worked or self._told:
            self._look_at(tool.name, call.branch, outcome["patterns"])

    def refused(
        self,
        tool: Tool,
        call: Call,
        found: Correction,
        candidates: Sequence[Candidate],
        *,
        withheld: str | None,
        took: float,
        audited: bool,
    ) -> None:
        """Count a call that could not be corrected unasked."""
        content = {
            **_about(tool, call, found),
            "offered": len(candidates),
            "strategies": sorted({each.strategy.value for each in candidates}),
            "withheld": withheld,
            "took": round(took, 3),
            "at": self._foundation.store.now(),
        }
        if audited:
            content["audit"] = _audited(call.arguments, found, None)
        told = {
            **{name: each for name, each in content.items() if name != "audit"},
            "error": withheld or "No correction is certain.",
            "strategiesAttempted": content["strategies"],
            "suggestedActions": ["Confirm an offered correction."]
            if candidates
            else [f"Read the schema with tool_help {tool.name}."],
        }
        self._teller.failed(call, tool.name, told)
        drafts = [Draft(names.CORRECTION_WITHHELD, content, names.CORRECTIONS_REFUSED)]
        self._recorder.write(call.branch, drafts)

    def taught(self, tool: Tool, call: Call, lessons: list[Lesson], policy: Policy) -> None:
        """Count what a caller taught by calling again; `policy` is the one it was refused by."""
        if self._examiner.policy_at_hand(call.branch, tool.name, policy).enable_learning:
            self._count(tool, call, lessons, [], held=True)

    def _count(
        self, tool: Tool, call: Call, lessons: list[Lesson], drafts: list[Draft], *, held: bool
    ) -> None:
        """Write events, with those that count lessons, and tell of what these change."""
        if lessons:
            # Names of a caller's own are values, and teach nothing about other calls.
            names_known = names_of(tool.content["inputSchema"])
            lessons = [each for each in lessons if is_of_schema(each.path, names_known)]
        if not lessons and not drafts:
            return
        teacher = counting.teacher_of(call.caller.actor, call.context.get("agentId"))
        with self._counting:
            known = self._examiner.lessons_at_hand(call.branch) if lessons else None
            self._examiner.unwritten[call.branch] += 1
            for lesson in lessons if known is not None else ():
                assert known is not None
                before, after = known.note(tool.name, lesson, teacher, held=held)
                self._teller.learned(tool.name, lesson, before, after)
        counted = counting.drafts(tool.name, teacher, lessons, held=held)
        self._write(call.branch, [*drafts, *counted])
        if lessons and known is None:
            self._tell_later(tool.name, call.branch, lessons, held=held)

    def _tell_later(self, tool: str, branch: str, lessons: list[Lesson], *, held: bool) -> None:
        """Tell what lessons changed once they are written, from what is written."""

        def tell() -> None:
            known = self._examiner.lessons(branch)
            counts = known.of(tool).counts if known is not None else {}
            for lesson in lessons:
                if (after := counts.get(lesson)) is not None:
                    before = after.plus(held=held, count=-1)
                    self._teller.learned(tool, lesson, before, after)

        self._recorder.do(tell)

    def _note_breaker(self, tool: str, applied: Applied, *, worked: bool) -> None:
        if not applied.policy.enable_circuit_breaker:
            return
        if worked:
            self._breakers.succeed(tool)
        else:
            self._breakers.fail(tool, f"{applied.candidate.pattern} did not help")

    def _unjudged(
        self, tool: Tool, call: Call, record: Mapping[str, Any], applied: Applied
    ) -> None:
        """Record a correction that nothing is known of, where each has to be recorded."""
        if applied.given is not None:
            outcome = self._outcome(tool, call, record, applied)
            draft = Draft(names.CORRECTION_LEFT_OPEN, outcome, names.CORRECTIONS_OPEN)
            self._recorder.write(call.branch, [draft])

    def _outcome(
        self, tool: Tool, call: Call, record: Mapping[str, Any], applied: Applied
    ) -> dict[str, Any]:
        candidate = applied.candidate
        outcome = {
            **_about(tool, call, applied.found),
            "pattern": pattern_id(candidate.leading),
            "patterns": list(dict.fromkeys(map(pattern_id, candidate.changes))),
            "strategy": candidate.strategy.value,
            "strategies": [each.value for each in candidate.strategies],
            "confidence": round(candidate.confidence, 4),
            "risk": candidate.risk.value,
            "confirmed": applied.confirmed,
            "attempt": applied.attempt,
            "executionId": record["executionId"],
            "duration": record["duration"],
            "took": round(applied.took, 3),
            "at": record["startedAt"],
            "error": (record.get("error") or {}).get("code"),
        }
        if applied.given is not None:
            outcome["audit"] = _audited(applied.given, applied.found, candidate)
        return outcome

    def _look_at(self, tool: str, branch: str, patterns: Sequence[str]) -> None:
        """Tell of patterns that have stopped working, once their failure is written."""

        def look() -> None:
            for pattern in patterns:
                standing = self._examiner.standing(branch, tool, pattern)
                key = (branch, tool, pattern)
                if not standing.deprecated:
                    self._told.discard(key)
                elif key not in self._told:
                    self._told.add(key)
                    self._teller.deprecated(tool, pattern, standing.held, standing.fell)

        self._recorder.do(look)

    def _write(self, branch: str, drafts: list[Draft]) -> None:
        recorder = self._recorder
        try:
            recorder.write(branch, drafts)
        finally:
            recorder.do(lambda: self._written(branch))

    def _written(self, branch: str) -> None:
        """Have everything read anew: what was learned counts as soon as it is written.

        Not while more waits to be written, for whoever read it before would count from there.
        """
        with self._counting:
            self._examiner.unwritten[branch] -= 1
            if not self._examiner.unwritten[branch]:
                del self._examiner.unwritten[branch]
                self._examiner.forget(branch)


def _lessons(applied: Applied, *, worked: bool) -> list[Lesson]:
    """Return what a correction teaches: its confirmation for it, its failure against it."""
    changes = applied.candidate.changes
    if worked and applied.confirmed:
        return teaching.from_changes(changes)
    if not worked and not applied.confirmed:
        followed = [each for each in changes if each.pattern in teaching.LEARNED_PATTERNS]
        return teaching.from_changes(followed)
    return []


def _about(tool: Tool, call: Call, found: Correction) -> dict[str, Any]:
    """Return what every record of a correction says, without anybody's values."""
    return {
        "tool": tool.name,
        "category": tool.category,
        "errorTypes": sorted({fault.type.value for fault in found.errors}),
        "caller": call.caller.actor,
        "agentId": call.context.get("agentId"),
        "channelId": call.context.get("channelId"),
        "requestId": call.context.get("requestId"),
    }


def _audited(given: Any, found: Correction, candidate: Candidate | None) -> dict[str, Any]:
    """Return the record that `requireAuditLog` asks for: what was given, and each step.

    What was given is masked when it is written.
    """
    return {
        "given": given,
        "faults": [{"type": each.type.value, "path": each.path} for each in found.errors],
        "steps": [
            {"path": each.path, "pattern": each.pattern, "reasoning": each.reasoning}
            for each in (candidate.changes if candidate else ())
        ],
    }
