"""Correcting calls on the path: under the policy, with what was learned, and learning from it.

A correction that was applied, or confirmed, is judged by how its call ended; both outcomes are
counted in the log. A tool whose corrections keep failing is left uncorrected for a while.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from stratagem.engine.events import Draft
from stratagem.errors import ExecutionFailed, ExecutionTimeout, StratagemError, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.breaker import Breakers
from stratagem.gateway.calls import Call
from stratagem.gateway.correction import Candidate, Correction, Policy, correct, ready
from stratagem.gateway.execution import Correction as Corrected
from stratagem.gateway.repair import lessons as teaching
from stratagem.gateway.repair.lessons import Lessons
from stratagem.gateway.repair.offers import Offers, offer_id
from stratagem.gateway.repair.policies import Policies
from stratagem.gateway.tools import Tool

if TYPE_CHECKING:
    from stratagem.gateway.switchboard import Switchboard

__all__ = ["Advisor", "LearningCorrector", "shown"]

logger = logging.getLogger(__name__)

# What other processes taught is seen within this time; one's own lessons at once.
_LESSONS_SECONDS: Final = 2.0
_BREAKER_FAILURES: Final = 3
_BREAKER_SECONDS: Final = 300.0
_REMEMBERED_MAX: Final = 10_000
# So many failures of one kind without a known fix make an incident of it.
_REPEATED: Final = 3
_OFFERED_MAX: Final = 5


class Advisor(Protocol):
    """The debugging memory, as the gateway asks it. Its answers come from another system."""

    def known_fix(self, text: str, tool: str, branch: str) -> dict[str, Any] | None:
        """Return the best known fix for an error, with the lookup it was found by."""
        ...

    def worked(self, fix: Mapping[str, Any], branch: str) -> None:
        """Record that a fix which was recommended led to success."""
        ...

    def draft(self, text: str, tool: str, branch: str) -> str | None:
        """Note an error that keeps coming back and that nobody knows a fix for."""
        ...


class LearningCorrector:
    """The corrector of a gateway. Everything but advice happens on the home loop."""

    def __init__(self, switchboard: Switchboard, advisor: Advisor | None) -> None:
        self._switchboard = switchboard
        self._advisor = advisor
        self._policies = Policies()
        self._offers = Offers()
        self._ready: dict[tuple[str, int], Any] = {}
        self._lessons: dict[str, tuple[float, Lessons]] = {}
        self._applied: OrderedDict[str, tuple[Candidate, Correction, float]] = OrderedDict()
        self._refused: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._fixes: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._failures: OrderedDict[tuple[str, str], int] = OrderedDict()
        self.active: dict[str, dict[str, Any]] = {}
        self.breakers = Breakers(
            time.monotonic,
            failures=_BREAKER_FAILURES,
            seconds=_BREAKER_SECONDS,
            listener=self._breaker_changed,
        )

    def policy(self, branch: str, tool: str | None = None) -> Policy:
        """Return the policy that holds on a branch."""
        foundation = self._switchboard.foundation
        reader = foundation.store.reader()
        return self._policies.policy(reader, foundation.views.view(reader, branch), tool)

    def lessons(self, branch: str) -> Lessons:
        """Return what was learned, as a branch shows it."""
        known = self._lessons.get(branch)
        now = time.monotonic()
        if known is None or known[0] < now:
            foundation = self._switchboard.foundation
            with foundation.store.snapshot() as reader:
                found = Lessons.read(reader, foundation.views.view(reader, branch))
            known = self._lessons[branch] = (now + _LESSONS_SECONDS, found)
        return known[1]

    def examine(self, tool: Tool, arguments: Any, branch: str) -> Correction:
        """Return what the engine makes of arguments; nothing is run or noted."""
        return correct(
            self._schema(tool),
            arguments,
            policy=self.policy(branch, tool.name),
            learned=self.lessons(branch).of(tool.name),
            tool=tool.name,
            categories=(tool.category,),
        )

    def correct(self, tool: Tool, call: Call, violations: list[dict[str, Any]]) -> Corrected:  # noqa: ARG002 -- the engine finds them itself
        """Return arguments that fit, or what could be offered instead."""
        policy = self.policy(call.branch, tool.name)
        self._tell("attempt:started", call, tool, {})
        found = self.examine(tool, call.arguments, call.branch)
        confirmed = self._confirmed(tool, call, found)
        if confirmed is not None:
            return self._apply(tool, call, confirmed, found, confirmed=True)
        if found.applied is not None and found.chosen is not None:
            if self._is_open(tool, policy):
                return self._offer(tool, call, found, "Corrections of this tool failed lately.")
            return self._apply(tool, call, found.chosen, found, confirmed=False)
        return self._offer(tool, call, found, found.withheld)

    def learn(self, tool: Tool, call: Call, arguments: Any, record: Mapping[str, Any]) -> None:
        """Take note of how a call ended."""
        worked = record["status"] == "success"
        execution = record["executionId"]
        self.active.pop(execution, None)
        applied = self._applied.pop(self._key(call), None)
        policy = self.policy(call.branch, tool.name)
        drafts: list[Draft] = []
        if applied is not None and not _is_refusal(record):
            drafts += self._judged(tool, call, record, applied, worked=worked)
        caller = (call.caller.actor, tool.name)
        if worked and policy.enable_learning:
            refused = self._refused.pop(caller, None)
            if refused is not None and applied is None:
                schema = tool.content["inputSchema"]
                found = teaching.from_retry(refused, arguments, schema)
                drafts += teaching.drafts(tool.name, found, held=True)
                self._told_lessons(tool, found)
        if worked and (fix := self._fixes.pop(caller, None)) is not None:
            self._report(fix, call.branch)
        if drafts:
            self._write(call.branch, drafts)

    async def advise(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return the best known fix for a tool's failure, from the debugging memory."""
        if self._advisor is None or not isinstance(error, ExecutionFailed | ExecutionTimeout):
            return None
        text = f"{tool.name}: {error.message}"
        try:
            fix = await asyncio.to_thread(self._advisor.known_fix, text, tool.name, call.branch)
            if fix is not None:
                _remember(self._fixes, (call.caller.actor, tool.name), fix)
                return fix
            await self._note_repeated(tool, call, text)
        except StratagemError as fault:
            # Advice is a courtesy: its absence must not hide the error itself.
            logger.info("no advice for %s: %s", tool.name, fault)
        return None

    # --- inside

    def _schema(self, tool: Tool) -> Any:
        key = (tool.name, tool.revision)
        known = self._ready.get(key)
        if known is None:
            if len(self._ready) >= _REMEMBERED_MAX:
                self._ready.clear()
            known = self._ready[key] = ready(tool.content["inputSchema"])
        return known

    def _confirmed(self, tool: Tool, call: Call, found: Correction) -> Candidate | None:
        """Return the offer that a caller confirms.

        Raises:
            ValidationFailed: There is no such offer, or it was not confirmed.
        """
        if call.correction_id is None:
            return None
        offers = {offer_id(tool.name, each.arguments): each for each in found.candidates}
        chosen = offers.get(call.correction_id) or self._offers.get(
            call.caller.actor, call.correction_id
        )
        if chosen is None:
            raise ValidationFailed(
                f"There is no offer {call.correction_id}.",
                field="correctionId",
                hint="Call again with the arguments it was made for.",
            )
        if not call.confirm:
            raise ValidationFailed(
                "An offered correction is applied when it is confirmed.",
                field="confirm",
                hint="Call again with confirm: true.",
            )
        return chosen

    def _apply(
        self,
        tool: Tool,
        call: Call,
        candidate: Candidate,
        found: Correction,
        *,
        confirmed: bool,
    ) -> Corrected:
        _remember(self._applied, self._key(call), (candidate, found, time.monotonic()))
        told = {**shown(tool.name, candidate), "confirmed": confirmed}
        told["errors"] = sorted({fault.type.value for fault in found.errors})
        return Corrected(candidate.arguments, told)

    def _offer(self, tool: Tool, call: Call, found: Correction, reason: str | None) -> Corrected:
        _remember(self._refused, (call.caller.actor, tool.name), call.arguments)
        offered = [
            {
                **shown(tool.name, each),
                "correctionId": self._offers.put(call.caller.actor, tool.name, each),
            }
            for each in found.candidates[:_OFFERED_MAX]
        ]
        told: dict[str, Any] = {
            "errors": [
                {"type": fault.type.value, "path": fault.path, "message": fault.message}
                for fault in found.errors
            ]
        }
        if offered:
            told["corrections"] = offered
            told["hint"] = (
                "If one of the corrections is what you meant, call again with its correctionId "
                "and confirm: true."
            )
        if found.ambiguous:
            told["choices"] = [
                {"path": each.path, "question": each.question, "options": list(each.options)}
                for each in found.ambiguous
            ]
        if reason is not None:
            told["withheld"] = reason
        self._tell("attempt:failed", call, tool, {"error": reason or "Nothing fits."})
        return Corrected(None, told)

    def _judged(
        self,
        tool: Tool,
        call: Call,
        record: Mapping[str, Any],
        applied: tuple[Candidate, Correction, float],
        *,
        worked: bool,
    ) -> list[Draft]:
        """Count a correction by how its call ended."""
        candidate, found, _since = applied
        content = {
            "tool": tool.name,
            "pattern": candidate.pattern,
            "patterns": list(candidate.patterns),
            "strategy": candidate.strategy.value,
            "strategies": [each.value for each in candidate.strategies],
            "confidence": candidate.confidence,
            "risk": candidate.risk.value,
            "errorTypes": sorted({fault.type.value for fault in found.errors}),
            "executionId": record["executionId"],
            "caller": call.caller.actor,
            "agentId": call.context.get("agentId"),
            "duration": record["duration"],
            "at": record["startedAt"],
            "error": (record.get("error") or {}).get("code"),
        }
        kind, space = (
            (names.CORRECTION_HELD, names.CORRECTIONS_OK)
            if worked
            else (names.CORRECTION_FELL, names.CORRECTIONS_FAILED)
        )
        policy = self.policy(call.branch, tool.name)
        drafts = [Draft(kind, content, space)]
        if policy.enable_learning:
            learned = teaching.from_changes(candidate.changes)
            drafts += teaching.drafts(tool.name, learned, held=worked)
            if worked:
                self._told_lessons(tool, learned)
        if worked:
            self.breakers.succeed(tool.name)
            self._tell("attempt:success", call, tool, {"correctionResult": content, **content})
        else:
            self.breakers.fail(tool.name, f"{candidate.pattern} did not help")
            self._tell("attempt:failed", call, tool, {"error": content["error"], **content})
        return drafts

    def _is_open(self, tool: Tool, policy: Policy) -> bool:
        if not policy.enable_circuit_breaker:
            return False
        try:
            self.breakers.enter(tool.name)
        except ExecutionFailed:
            return True
        return False

    async def _note_repeated(self, tool: Tool, call: Call, text: str) -> None:
        key = (tool.name, text)
        count = self._failures.get(key, 0) + 1
        _remember(self._failures, key, count)
        if count == _REPEATED and self._advisor is not None:
            await asyncio.to_thread(self._advisor.draft, text, tool.name, call.branch)

    def _report(self, fix: dict[str, Any], branch: str) -> None:
        advisor = self._advisor
        if advisor is not None:
            self._in_background(lambda: advisor.worked(fix, branch))

    def _write(self, branch: str, drafts: list[Draft]) -> None:
        self._lessons.pop(branch, None)
        self._switchboard.recorder.write(branch, drafts)

    def _in_background(self, work: Callable[[], object]) -> None:
        self._switchboard.recorder.do(work)

    def _key(self, call: Call) -> str:
        return str(id(call))

    def _told_lessons(self, tool: Tool, learned: list[teaching.Lesson]) -> None:
        for lesson in learned:
            self._switchboard.tell(
                "pattern:learned",
                {
                    "name": f"{tool.name}: {lesson.kind.value} means {lesson.meaning}",
                    "patternId": f"{tool.name}:{lesson.kind.value}:{lesson.form}",
                    "applicableTools": [tool.name],
                },
            )

    def _tell(self, what: str, call: Call, tool: Tool, data: Mapping[str, Any]) -> None:
        self._switchboard.tell(
            what,
            {
                "toolName": tool.name,
                "agentId": call.context.get("agentId"),
                "channelId": call.context.get("channelId"),
                "requestId": call.context.get("requestId"),
                **data,
            },
        )

    def _breaker_changed(self, tool: str, state: str, reason: str) -> None:
        event = {"open": "circuit:opened", "half-open": "circuit:half_open"}
        what = event.get(state, "circuit:closed")
        self._switchboard.tell(what, {"toolName": tool, "state": state, "reason": reason})


def shown(tool: str, candidate: Candidate) -> dict[str, Any]:
    """Return a correction in the documented form."""
    return {
        "type": candidate.strategy.value,
        "strategies": [each.value for each in candidate.strategies],
        "description": candidate.leading.reasoning,
        "correctedParameters": candidate.arguments,
        "confidence": round(candidate.confidence, 4),
        "reasoning": candidate.reasoning,
        "riskLevel": candidate.risk.value,
        "appliedPattern": candidate.pattern,
        "correctionId": offer_id(tool, candidate.arguments),
    }


def _is_refusal(record: Mapping[str, Any]) -> bool:
    """Whether a call ended before the tool saw the arguments, which says nothing about them."""
    code = (record.get("error") or {}).get("code")
    return code in {"rate_limited", "permission_denied", "CANCELLED"}


def _remember(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _REMEMBERED_MAX:
        kept.popitem(last=False)
