"""How corrections are described to callers and published to listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from stratagem.gateway.calls.call import Call
from stratagem.gateway.correction import Candidate, Correction, Risk
from stratagem.gateway.learning.answers import (
    CallRefusal,
    CorrectionOffer,
    CorrectionQuestion,
    RiskLevel,
)
from stratagem.gateway.learning.attempts import offer_id
from stratagem.gateway.learning.lessons import (
    EvidenceCount,
    Lesson,
    belief_of,
    mask_unknown_names,
    property_names,
)
from stratagem.gateway.registry.tools import Tool

__all__ = ["CorrectionPublisher", "describe_offer", "describe_refusal", "lesson_name", "questions"]

_RISK_LEVELS: Final[Mapping[Risk, RiskLevel]] = {
    Risk.LOW: "low",
    Risk.MEDIUM: "medium",
    Risk.HIGH: "high",
}
_BREAKER_EVENTS = {"open": "circuit:opened", "half-open": "circuit:half_open"}


def describe_offer(tool: str, candidate: Candidate) -> CorrectionOffer:
    """Return a correction in the documented form."""
    return {
        "type": candidate.strategy.value,
        "strategies": [each.value for each in candidate.strategies],
        "description": candidate.leading.reasoning,
        "correctedParameters": candidate.arguments,
        "confidence": round(candidate.confidence, 4),
        "reasoning": candidate.reasoning,
        "riskLevel": _RISK_LEVELS[candidate.risk],
        "appliedPattern": candidate.pattern,
        "correctionId": offer_id(tool, candidate.arguments),
    }


def describe_refusal(
    tool: str, found: Correction, candidates: Sequence[Candidate], reason: str | None
) -> CallRefusal:
    """Return why a call was not corrected, with the offers, in the documented form."""
    refusal: CallRefusal = {
        "errors": [
            {"type": fault.type.value, "path": fault.path, "message": fault.message}
            for fault in found.errors
        ]
    }
    if candidates:
        refusal["corrections"] = [describe_offer(tool, each) for each in candidates]
        refusal["hint"] = (
            "If one of the corrections is what you meant, call again with its correctionId and "
            "confirm: true."
        )
    if found.ambiguous:
        refusal["choices"] = questions(found)
    if reason is not None:
        refusal["withheld"] = reason
    return refusal


def questions(found: Correction) -> list[CorrectionQuestion]:
    """Return what only the caller can decide, in the documented form."""
    return [
        {"path": each.path, "question": each.question, "options": list(each.options)}
        for each in found.ambiguous
    ]


def lesson_name(tool: str, lesson: Lesson) -> str:
    """Return a lesson in words, without what the caller wrote."""
    what = "a name" if lesson.kind.value == "alias" else f"a word for {lesson.path}"
    return f"{tool}: {what} means {lesson.meaning}"


class CorrectionCounts(TypedDict):
    """How corrections went since the process began.

    As in `auto_correction_status`, `successRate` is the share of the corrected calls that worked;
    `refusedCalls` were not corrected, and are no part of it.
    """

    attempts: int
    successes: int
    failures: int
    refusedCalls: int
    successRate: float | None
    averageCorrectionTime: float | None


class CorrectionPublisher:
    """Publishes events of corrections, without values of callers, and counts them."""

    def __init__(self, publish: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._publish = publish
        self._attempts = self._successes = self._failures = self._refusals = 0
        self._milliseconds = 0.0

    def metrics(self) -> CorrectionCounts:
        """Return how corrections went since the process began."""
        ended = self._successes + self._failures
        return {
            "attempts": self._attempts,
            "successes": self._successes,
            "failures": self._failures,
            "refusedCalls": self._refusals,
            "successRate": round(self._successes / ended, 4) if ended else None,
            "averageCorrectionTime": round(self._milliseconds / ended, 3) if ended else None,
        }

    def publish_start(
        self, call: Call, tool: Tool, attempt: int, violations: Sequence[Mapping[str, Any]]
    ) -> None:
        """Publish that the arguments of a call did not fit."""
        self._attempts += 1
        names = property_names(tool.content["inputSchema"])
        places = [mask_unknown_names(str(each.get("path")), names) for each in violations]
        self._publish_call(
            "attempt:started", call, tool.name, {"attempt": attempt, "paths": places}
        )

    def publish_success(self, call: Call, tool: str, outcome: Mapping[str, Any]) -> None:
        """Publish that a corrected call worked."""
        self._successes += 1
        self._milliseconds += outcome["took"]
        self._publish_call(
            "attempt:success", call, tool, {**_summary(outcome), "correctionResult": outcome}
        )

    def publish_failure(self, call: Call, tool: str, outcome: Mapping[str, Any]) -> None:
        """Publish that a corrected call failed."""
        self._failures += 1
        self._milliseconds += outcome["took"]
        self._publish_failed_attempt(call, tool, outcome)

    def publish_refusal(self, call: Call, tool: str, outcome: Mapping[str, Any]) -> None:
        """Publish that a call could not be corrected."""
        self._refusals += 1
        self._publish_failed_attempt(call, tool, outcome)

    def publish_lesson(
        self, tool: str, lesson: Lesson, before: EvidenceCount, after: EvidenceCount
    ) -> None:
        """Publish that there is a new pattern, or how one evolved."""
        old, new = belief_of(*before), belief_of(*after)
        pattern = {
            "patternId": f"{tool}:{lesson.id}",
            "name": lesson_name(tool, lesson),
            "applicableTools": [tool],
            "toolName": tool,
            "confidence": round(new.mean, 4),
        }
        if before == EvidenceCount():
            self._publish("pattern:learned", pattern)
            return
        changes = {
            "successes": [before.held, after.held],
            "failures": [before.fell, after.fell],
            "confidence": [round(old.mean, 4), round(new.mean, 4)],
            "certainty": [round(old.low, 4), round(new.low, 4)],
        }
        self._publish("pattern:evolved", {**pattern, "changes": changes})

    def publish_deprecation(self, tool: str, pattern: str, held: int, fell: int) -> None:
        """Publish that a pattern has stopped working for a tool."""
        self._publish(
            "pattern:deprecated",
            {
                "patternId": f"{tool}:{pattern}",
                "name": f"{tool}: {pattern}",
                "applicableTools": [tool],
                "toolName": tool,
                "successes": held,
                "failures": fell,
                "successRate": round(held / (held + fell), 4),
            },
        )

    def publish_breaker(self, tool: str, state: str, reason: str) -> None:
        """Publish that the breaker of a tool's corrections changed."""
        what = _BREAKER_EVENTS.get(state, "circuit:closed")
        self._publish(what, {"toolName": tool, "state": state, "reason": reason})

    def _publish_failed_attempt(self, call: Call, tool: str, outcome: Mapping[str, Any]) -> None:
        self._publish_call(
            "attempt:failed", call, tool, {**_summary(outcome), "error": outcome["error"]}
        )

    def _publish_call(self, what: str, call: Call, tool: str, data: Mapping[str, Any]) -> None:
        labels = {name: call.context.get(name) for name in ("agentId", "channelId", "requestId")}
        self._publish(what, {"toolName": tool, **labels, **data, "metrics": self.metrics()})


def _summary(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an outcome that the document has at the top of an event."""
    names = {"risk": "riskLevel", "took": "processingTime"}
    wanted = ("strategy", "strategies", "confidence", "pattern", "errorTypes", "executionId")
    found = {name: outcome[name] for name in wanted if name in outcome}
    found |= {shown: outcome[name] for name, shown in names.items() if name in outcome}
    extra = ("strategiesAttempted", "suggestedActions")
    return found | {name: outcome[name] for name in extra if name in outcome}
