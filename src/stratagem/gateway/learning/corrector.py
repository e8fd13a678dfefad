"""Corrects calls under the policy and with what was learned, and learns from how they end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypedDict

from cachetools import TTLCache

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.errors import (
    CorrectionUnavailable,
    ExecutionFailed,
    ExecutionTimeout,
    InternalFault,
    StratagemError,
    ValidationFailed,
    blame_of,
)
from stratagem.gateway import names
from stratagem.gateway.calls.answers import CorrectionNote
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.call import Call
from stratagem.gateway.calls.executor import CorrectionDecision
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.correction import Candidate, Correction, Policy
from stratagem.gateway.definitions.schemas import Violation
from stratagem.gateway.events import Publish
from stratagem.gateway.learning import lessons
from stratagem.gateway.learning import lessons as counting
from stratagem.gateway.learning.attempts import (
    AttemptCounter,
    AttemptKey,
    OfferCache,
    attempt_key,
    is_brief,
    offer_id,
)
from stratagem.gateway.learning.call_profiles import usual_values
from stratagem.gateway.learning.debugging_advice import Advisor, DebuggingAdvice, FailureHistory
from stratagem.gateway.learning.evaluator import CorrectionEvaluator
from stratagem.gateway.learning.evidence import (
    AuditRecord,
    CorrectionRecord,
    OutcomeRecord,
    RefusalRecord,
)
from stratagem.gateway.learning.lessons import (
    Lesson,
    has_only_names,
    pattern_id,
    property_names,
    teacher_of,
)
from stratagem.gateway.learning.messages import (
    CorrectionPublisher,
    describe_offer,
    describe_refusal,
)
from stratagem.gateway.learning.policies import EffectivePolicy
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import PURGED_AT

__all__ = ["Advisor", "AppliedCorrection", "LearningCorrector", "OutcomeRecorder", "describe_offer"]


@dataclass(frozen=True, slots=True)
class AppliedCorrection:
    """A correction that a call runs with. `given`: what the caller wrote, if that is recorded."""

    candidate: Candidate
    found: Correction
    took: float
    attempt: int
    confirmed: bool
    policy: Policy
    given: Any = None


class OutcomeRecorder:
    """Records how corrected calls ended, and publishes what that changed."""

    def __init__(
        self,
        foundation: Foundation,
        recorder: Recorder,
        evaluator: CorrectionEvaluator,
        breakers: Breakers,
        publisher: CorrectionPublisher,
    ) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._evaluator = evaluator
        self._breakers = breakers
        self._publisher = publisher
        # The patterns that listeners know to be deprecated.
        self._deprecated: set[tuple[str, str, str]] = set()
        self._counting = threading.Lock()

    def record(
        self,
        tool: Tool,
        call: Call,
        record: Mapping[str, Any],
        applied: AppliedCorrection,
        worked: bool | None,  # noqa: FBT001 -- None: the tool said nothing
    ) -> None:
        """Count a correction by the outcome of its call; an unknown outcome is not counted."""
        if worked is None:
            self._breakers.leave(tool.name)
            self._record_unjudged(tool, call, record, applied)
            return
        outcome = self._outcome(tool, call, record, applied)
        kind, space = (
            (names.CORRECTION_HELD, names.CORRECTIONS_OK)
            if worked
            else (names.CORRECTION_FELL, names.CORRECTIONS_FAILED)
        )
        self._note_breaker(tool.name, applied, worked=worked)
        if worked:
            self._publisher.publish_success(call, tool.name, outcome)
        else:
            actions = [f"Read the schema with tool_help {tool.name}."]
            self._publisher.publish_failure(
                call, tool.name, {**outcome, "suggestedActions": actions}
            )
        lessons = _lessons_of(applied, worked=worked) if applied.policy.enable_learning else []
        self._count(
            tool, call, lessons, [Draft(kind, _with_audit(outcome, applied), space)], held=worked
        )
        if not worked or self._deprecated:
            self._publish_deprecations(tool.name, call.branch, outcome["patterns"])

    def record_refusal(
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
        content: RefusalRecord = {
            **_base_record(tool, call, found),
            "offered": len(candidates),
            "strategies": sorted({each.strategy.value for each in candidates}),
            "withheld": withheld,
            "took": round(took, 3),
            "at": self._foundation.store.now(),
        }
        event: dict[str, Any] = {
            **content,
            "error": withheld or "No correction is certain.",
            "strategiesAttempted": content["strategies"],
            "suggestedActions": ["Confirm an offered correction."]
            if candidates
            else [f"Read the schema with tool_help {tool.name}."],
        }
        self._publisher.publish_refusal(call, tool.name, event)
        # What the caller wrote is for the audit log alone: listeners do not get it.
        audit = {"audit": _audit_record(call.arguments, found, None)} if audited else {}
        drafts = [Draft(names.CORRECTION_WITHHELD, {**content, **audit}, names.CORRECTIONS_REFUSED)]
        self._recorder.write(call.branch, drafts)

    def record_lessons(self, tool: Tool, call: Call, lessons: list[Lesson], policy: Policy) -> None:
        """Count what a caller taught by calling again; `policy` is the one it was refused by."""
        if self._evaluator.cached_policy(call.branch, tool.name, policy).enable_learning:
            self._count(tool, call, lessons, [], held=True)

    def _count(
        self, tool: Tool, call: Call, lessons: list[Lesson], drafts: list[Draft], *, held: bool
    ) -> None:
        """Write events together with the counts of lessons, and publish the resulting changes."""
        if lessons:
            # Names of a caller's own are values, and teach nothing about other calls.
            names_known = property_names(tool.content["inputSchema"])
            lessons = [each for each in lessons if has_only_names(each.path, names_known)]
        if not lessons and not drafts:
            return
        teacher = counting.teacher_of(call.caller.actor, call.context.get("agentId"))
        with self._counting:
            known = self._evaluator.cached_lessons(call.branch) if lessons else None
            self._evaluator.unwritten[call.branch] += 1
            for lesson in lessons if known is not None else ():
                assert known is not None
                before, after = known.note(tool.name, lesson, teacher, held=held)
                self._publisher.publish_lesson(tool.name, lesson, before, after)
        counted = counting.drafts(tool.name, teacher, lessons, held=held)
        self._write(call.branch, [*drafts, *counted])
        if lessons and known is None:
            self._publish_later(tool.name, call.branch, lessons, held=held)

    def _publish_later(self, tool: str, branch: str, lessons: list[Lesson], *, held: bool) -> None:
        """Tell what lessons changed once they are written, from what is written."""

        def tell() -> None:
            known = self._evaluator.lessons(branch)
            counts = known.of(tool).counts if known is not None else {}
            for lesson in lessons:
                if (after := counts.get(lesson)) is not None:
                    before = after.plus(held=held, count=-1)
                    self._publisher.publish_lesson(tool, lesson, before, after)

        self._recorder.do(tell)

    def _note_breaker(self, tool: str, applied: AppliedCorrection, *, worked: bool) -> None:
        if not applied.policy.enable_circuit_breaker:
            return
        if worked:
            self._breakers.succeed(tool)
        else:
            self._breakers.fail(tool, f"{applied.candidate.pattern} did not help")

    def _record_unjudged(
        self, tool: Tool, call: Call, record: Mapping[str, Any], applied: AppliedCorrection
    ) -> None:
        """Record a correction that nothing is known of, where each has to be recorded."""
        if applied.given is not None:
            outcome = self._outcome(tool, call, record, applied)
            content = _with_audit(outcome, applied)
            draft = Draft(names.CORRECTION_LEFT_OPEN, content, names.CORRECTIONS_OPEN)
            self._recorder.write(call.branch, [draft])

    def _outcome(
        self, tool: Tool, call: Call, record: Mapping[str, Any], applied: AppliedCorrection
    ) -> OutcomeRecord:
        candidate = applied.candidate
        return {
            **_base_record(tool, call, applied.found),
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

    def _publish_deprecations(self, tool: str, branch: str, patterns: Sequence[str]) -> None:
        """Tell of patterns that have stopped working, once their failure is written."""

        def look() -> None:
            for pattern in patterns:
                reliability = self._evaluator.reliability(branch, tool, pattern)
                key = (branch, tool, pattern)
                if not reliability.deprecated:
                    self._deprecated.discard(key)
                elif key not in self._deprecated:
                    self._deprecated.add(key)
                    self._publisher.publish_deprecation(
                        tool, pattern, reliability.held, reliability.fell
                    )

        self._recorder.do(look)

    def _write(self, branch: str, drafts: list[Draft]) -> None:
        recorder = self._recorder
        try:
            recorder.write(branch, drafts)
        finally:
            recorder.do(lambda: self._mark_written(branch))

    def _mark_written(self, branch: str) -> None:
        """Have everything read anew: what was learned counts as soon as it is written."""
        with self._counting:
            self._evaluator.unwritten[branch] -= 1
            if self._evaluator.unwritten[branch]:
                return
            del self._evaluator.unwritten[branch]
        self._evaluator.renew(branch, self._counting)


def _lessons_of(applied: AppliedCorrection, *, worked: bool) -> list[Lesson]:
    """Return what a correction teaches: its confirmation for it, its failure against it."""
    changes = applied.candidate.changes
    if worked and applied.confirmed:
        return lessons.from_changes(changes)
    if not worked and not applied.confirmed:
        followed = [each for each in changes if each.pattern in lessons.LEARNED_PATTERNS]
        return lessons.from_changes(followed)
    return []


def _base_record(tool: Tool, call: Call, found: Correction) -> CorrectionRecord:
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


def _with_audit(outcome: OutcomeRecord, applied: AppliedCorrection) -> dict[str, Any]:
    """Return the record of an outcome, with what the caller wrote where that is recorded."""
    if applied.given is None:
        return {**outcome}
    return {**outcome, "audit": _audit_record(applied.given, applied.found, applied.candidate)}


def _audit_record(given: Any, found: Correction, candidate: Candidate | None) -> AuditRecord:
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


logger = logging.getLogger(__name__)

_REMEMBERED_MAX: Final = 10_000
_LOSING_SECONDS: Final = 60.0
# These errors blame the tool, although they are no evidence about the arguments.
_NO_ANSWER: Final = (ExecutionTimeout, InternalFault)


_UNAUDITED: Final = "Corrections have to be recorded, but the database is read-only."


class _DebugNote(TypedDict, total=False):
    """How a correction was found, where the policy asks for it."""

    debug: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _AppliedDecision(CorrectionDecision):
    """A correction that a call runs with, until that call ends."""

    correction: AppliedCorrection
    attempt: int


class _RefusedCall(NamedTuple):
    """A call that was refused, until the caller tries again."""

    arguments: Any
    policy: Policy


def _no_refusals() -> TTLCache[AttemptKey, _RefusedCall]:
    return TTLCache(_REMEMBERED_MAX, limits.CORRECTION_BREAKER_SECONDS)


class LearningCorrector:
    """The corrector of a gateway. Everything but advice happens on the home loop."""

    def __init__(
        self,
        foundation: Foundation,
        recorder: Recorder,
        publish: Publish,
        advisor: Advisor | None = None,
    ) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self.started_at = foundation.store.now()
        self.evaluator = CorrectionEvaluator(foundation)
        self.health = self.evaluator.health
        self.attempts = AttemptCounter(time.monotonic)
        self.publisher = CorrectionPublisher(publish)
        self.breakers = Breakers(
            time.monotonic,
            failures=limits.CORRECTION_BREAKER_FAILURES,
            seconds=limits.CORRECTION_BREAKER_SECONDS,
            listener=self.publisher.publish_breaker,
        )
        self._outcomes = OutcomeRecorder(
            foundation, recorder, self.evaluator, self.breakers, self.publisher
        )
        failure_history = FailureHistory(foundation)
        self.advice = DebuggingAdvice(advisor, recorder.do, failure_history)
        self._offers = OfferCache()
        self._refused = _no_refusals()
        # The last purge after which copies were dropped.
        self._purged_at = 0
        # How many records were lost, and until when more may be.
        self._lost = (0, 0.0)

    def forget_copies(self) -> None:
        """Drop all cached copies of arguments and records: something was purged."""
        self._offers.clear()
        self._refused = _no_refusals()
        self.evaluator.cache.clear()
        self.evaluator.forget()
        self.advice.clear()

    async def correct(
        self, tool: Tool, call: Call, violations: list[Violation]
    ) -> CorrectionDecision:
        """Return arguments that fit, or what could be offered instead.

        Raises:
            CorrectionUnavailable: The part that could correct them does not work.
            ValidationFailed: An offer was confirmed that does not exist.
        """
        self.publisher.publish_start(call, tool, self._attempt(tool, call), violations)
        started = time.perf_counter()
        try:
            in_force = await self._read_policy(tool, call)
            found = await self._evaluate(tool, call, in_force)
        except StratagemError as error:
            raise self._unavailable(tool, call, violations, error) from error
        # Everything that deciding takes is read here; then the home loop waits for no network.
        weigh = partial(self._candidates, tool, call, found, in_force.policy)
        await self._foundation.read_async(weigh)
        took = (time.perf_counter() - started) * 1000
        return self._decide(tool, call, found, in_force.policy, took)

    def learn(
        self,
        tool: Tool,
        call: Call,
        arguments: Any,
        record: Mapping[str, Any],
        *,
        decision: CorrectionDecision | None,
        error: StratagemError | None,
    ) -> None:
        """Take note of how a call ended. Never fails."""
        applied = self._end(decision)
        try:
            worked = record["status"] == "success"
            if applied is not None:
                verdict = worked or _verdict(error)
                if verdict is False:
                    self.attempts.record_failure(attempt_key(call, tool.name))
                self._outcomes.record(tool, call, record, applied, verdict)
            if worked:
                self._learn_from_success(tool, call, arguments, applied)
                self.advice.credit_fix(call, tool.name, record["executionId"])
        except Exception as fault:  # noqa: BLE001 -- a call must not fail because learning did
            self.health.record_failure("learningPipeline", fault)
        else:
            self.check_recorder()

    async def advise(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return the best known fix for a tool's failure, from the debugging memory."""
        return await self.advice.ask(tool, call, error)

    def abandon(self, decision: CorrectionDecision) -> None:
        """Forget a correction whose call was not run here: it says nothing about the correction."""
        self._end(decision)

    def _end(self, decision: CorrectionDecision | None) -> AppliedCorrection | None:
        """Note that a corrected call is no longer under way; return what it was corrected by."""
        if not isinstance(decision, _AppliedDecision):
            return None
        self.attempts.end(decision.attempt)
        return decision.correction

    def check_recorder(self) -> None:
        """Note whether records are being lost; for a minute after one was, they may be."""
        lost, now = self._recorder.lost, time.monotonic()
        if lost > self._lost[0]:
            self._lost = (lost, now + _LOSING_SECONDS)
        if self._lost[1] > now:
            self.health.record_failure(
                "learningPipeline", RuntimeError(f"{lost} records were lost")
            )
        else:
            self.health.record_success("learningPipeline")

    # --- inside

    def _attempt(self, tool: Tool, call: Call) -> int:
        return self.attempts.number(attempt_key(call, tool.name))

    async def _read_policy(self, tool: Tool, call: Call) -> EffectivePolicy:
        """Read what the correction of a call needs, without blocking the home loop."""
        return await self._foundation.read_async(
            partial(self._read_current_policy, tool.name, call.branch)
        )

    def _read_current_policy(self, tool: str, branch: str) -> EffectivePolicy:
        found = self.evaluator.look(tool, branch)
        purged_at = self._foundation.store.reader().settings.number(PURGED_AT) or 0
        if purged_at == self._purged_at:
            return found
        # Perhaps by another process, which can clear only its own copies.
        self._purged_at = purged_at
        self.forget_copies()
        return self.evaluator.look(tool, branch)

    async def _evaluate(self, tool: Tool, call: Call, in_force: EffectivePolicy) -> Correction:
        """Return the engine's correction of a call, computed in a thread if that takes long."""
        teacher = teacher_of(call.caller.actor, call.context.get("agentId"))
        evaluate = partial(
            self.evaluator.evaluate, tool, call.arguments, call.branch, teacher, in_force=in_force
        )
        if is_brief(call.arguments, limits.CORRECTION_INLINE_BYTES_MAX):
            found = evaluate(seconds=limits.CORRECTION_INLINE_SECONDS)
            if not found.late:
                return found
        return await asyncio.to_thread(evaluate)

    def _decide(
        self, tool: Tool, call: Call, found: Correction, policy: Policy, took: float
    ) -> CorrectionDecision:
        """Return the decision about a call: it is corrected, or refused with offers."""
        attempt = self._attempt(tool, call)
        if call.correction_id is not None:
            chosen, found = self._find_confirmed(tool, call, found, policy)
            return self._apply(
                tool,
                call,
                AppliedCorrection(chosen, found, took, attempt, confirmed=True, policy=policy),
            )
        if found.valid:
            # Its odd names lead to nothing else.
            return CorrectionDecision(found.applied, None, {})
        candidate, reason = self._choose(tool, call, found, policy, attempt)
        if candidate is not None and reason is None:
            return self._apply(
                tool,
                call,
                AppliedCorrection(candidate, found, took, attempt, confirmed=False, policy=policy),
            )
        return self._offer(tool, call, found, policy, reason=reason, took=took)

    def _choose(
        self, tool: Tool, call: Call, found: Correction, policy: Policy, attempt: int
    ) -> tuple[Candidate | None, str | None]:
        """Return the correction to apply, or why it is only offered."""
        candidate, withheld = self.evaluator.decide(tool, call.branch, found, policy)
        if candidate is None or withheld is not None:
            return candidate, withheld
        if attempt > 1 + policy.max_retries:
            return None, f"{attempt - 1} attempts in a row did not work."
        if policy.require_audit_log and self._cannot_audit():
            return None, _UNAUDITED
        if self._is_open(tool, policy):
            return None, "Corrections of this tool failed recently; they are paused for now."
        return candidate, None

    def _find_confirmed(
        self, tool: Tool, call: Call, found: Correction, policy: Policy
    ) -> tuple[Candidate, Correction]:
        """Return the offer that a caller confirms, and the correction it belongs to."""
        wanted = call.correction_id or ""
        if not policy.enabled:
            raise ValidationFailed("Corrections are switched off.", field="correctionId")
        if policy.require_audit_log and self._cannot_audit():
            raise CorrectionUnavailable(
                _UNAUDITED, field="correctionId", **self.health.degraded_mode()
            )
        offers = {offer_id(tool.name, each.arguments): each for each in found.candidates}
        chosen = offers.get(wanted)
        if chosen is None and (kept := self._offers.get(call.caller.actor, tool.name, wanted)):
            chosen, found = kept[0], Correction(None, (kept[0],), kept[1])
        # The tool may have changed since the offer was made.
        if chosen is None or not tool.input.accepts(chosen.arguments):
            raise ValidationFailed(
                f"There is no offer {wanted}.",
                field="correctionId",
                hint="Call again with the arguments it was made for.",
            )
        if not call.confirm:
            raise ValidationFailed(
                "An offered correction is applied when it is confirmed.",
                field="confirm",
                hint="Call again with confirm: true.",
            )
        return chosen, found

    def _apply(self, tool: Tool, call: Call, applied: AppliedCorrection) -> CorrectionDecision:
        policy = applied.policy
        attempt = self.attempts.start(
            call, tool.name, applied.attempt, self._foundation.store.now()
        )
        debug: _DebugNote = {}
        if policy.debug_mode:
            debug["debug"] = self._debug_report(tool, applied.found, policy)
        note: CorrectionNote = {
            **describe_offer(tool.name, applied.candidate),
            "confirmed": applied.confirmed,
            "errors": sorted({fault.type.value for fault in applied.found.errors}),
            "processingTime": round(applied.took, 3),
            **self.health.degraded_mode(),
            **debug,
        }
        correction = _with_given(applied, call, policy)
        return _AppliedDecision(applied.candidate.arguments, note, {}, correction, attempt)

    def _offer(
        self,
        tool: Tool,
        call: Call,
        found: Correction,
        policy: Policy,
        *,
        reason: str | None,
        took: float,
    ) -> CorrectionDecision:
        self.attempts.record_failure(attempt_key(call, tool.name))
        self._remember_refusal(tool, call, policy)
        candidates = self._candidates(tool, call, found, policy)
        for each in candidates:
            self._offers.put(call.caller.actor, tool.name, (each, found.errors))
        details: dict[str, Any] = {
            **describe_refusal(tool.name, found, candidates, reason),
            **self.health.degraded_mode(),
        }
        if policy.debug_mode:
            details["debug"] = self._debug_report(tool, found, policy)
        self._outcomes.record_refusal(
            tool,
            call,
            found,
            candidates,
            withheld=reason,
            took=took,
            audited=policy.require_audit_log,
        )
        return CorrectionDecision(None, None, details)

    def _candidates(
        self, tool: Tool, call: Call, found: Correction, policy: Policy
    ) -> list[Candidate]:
        """Return the offers, best first, each with its confidence lowered by past failures."""
        candidates = [
            self.evaluator.lower_confidence(tool.name, call.branch, each)[0]
            for each in found.candidates
        ]
        if not candidates and policy.enabled and policy.enable_learning:
            try:
                profile = self.evaluator.profile(tool, call.branch)
                usual = usual_values(tool, call.arguments, found, profile)
            except StratagemError as error:
                self.health.record_failure("patternService", error)
                usual = None
            candidates = [usual] if usual is not None else []
        candidates.sort(key=lambda each: -each.confidence)
        return candidates[: limits.CORRECTIONS_OFFERED_MAX]

    def _learn_from_success(
        self, tool: Tool, call: Call, arguments: Any, applied: AppliedCorrection | None
    ) -> None:
        problem = attempt_key(call, tool.name)
        self.attempts.record_success(problem)
        refused = self._refused.pop(problem, None)
        if refused is None or applied is not None:
            return
        schema = tool.content["inputSchema"]
        taught = lessons.from_retry(refused.arguments, arguments, schema)
        if taught:
            self._outcomes.record_lessons(tool, call, taught, refused.policy)

    def _remember_refusal(self, tool: Tool, call: Call, policy: Policy) -> None:
        problem = attempt_key(call, tool.name)
        if is_brief(call.arguments):
            self._refused[problem] = _RefusedCall(call.arguments, policy)
        else:
            self._refused.pop(problem, None)

    def _unavailable(
        self,
        tool: Tool,
        call: Call,
        violations: list[Violation],
        error: StratagemError,
    ) -> CorrectionUnavailable:
        self.publisher.publish_refusal(call, tool.name, {"error": "Corrections are not available."})
        path = violations[0]["path"] if violations else "$"
        message = violations[0]["message"] if violations else str(error)
        return CorrectionUnavailable(
            f"The arguments of {tool.name} do not fit ({path}: {message}), and "
            "corrections are not available.",
            field=path,
            violations=violations,
            **self.health.degraded_mode(),
        )

    def _debug_report(self, tool: Tool, found: Correction, policy: Policy) -> dict[str, Any]:
        return {
            "candidates": [describe_offer(tool.name, each) for each in found.candidates],
            "faults": [
                {"type": each.type.value, "path": each.path, "message": each.message}
                for each in found.errors
            ],
            "patterns": [
                {"path": change.path, "pattern": change.pattern, "certain": change.certain}
                for each in found.candidates
                for change in each.changes
            ],
            "policy": policy.settings(),
            "services": self.health.status(),
        }

    def _is_open(self, tool: Tool, policy: Policy) -> bool:
        if not policy.enable_circuit_breaker:
            return False
        try:
            self.breakers.enter(tool.name)
        except ExecutionFailed:
            return True
        return False

    def _cannot_audit(self) -> bool:
        store = self._foundation.store
        return store.read_only or "learningPipeline" in self.health.faults()


def _with_given(applied: AppliedCorrection, call: Call, policy: Policy) -> AppliedCorrection:
    """Keep what was given with a correction, where the policy asks for a record of it."""
    return replace(applied, given=call.arguments) if policy.require_audit_log else applied


def _verdict(error: StratagemError | None) -> Literal[False] | None:
    """Return whether a failure is evidence against the corrected arguments, or none."""
    is_silent = (
        error is None
        or isinstance(error, _NO_ANSWER)
        # The tool never looked at them.
        or (isinstance(error, ExecutionFailed) and error.safe)
        or blame_of(error.code, error.details.get("reason")) in {"caller", "nobody"}
    )
    return None if is_silent else False
