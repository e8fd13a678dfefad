"""tools_recommend_on_error: what to do after a call that failed."""

from __future__ import annotations

import logging
import re
import time
from typing import Any, Final

from stratagem.errors import StratagemError
from stratagem.gateway.advice.advice_service import AdviceContext, AdviceService, milliseconds_since
from stratagem.gateway.advice.answers import (
    ArgumentCorrection,
    ErrorRecovery,
    RelatedFailures,
    ToolRecommendation,
)
from stratagem.gateway.advice.execution_records import Execution, ExecutionRecords
from stratagem.gateway.advice.inputs import OnErrorInput, labels
from stratagem.gateway.advice.recommendations import recommendation
from stratagem.gateway.advice.recommender import ToolChoice
from stratagem.gateway.correction import Correction, FaultType
from stratagem.gateway.correction.model import tips
from stratagem.gateway.registry.tools import Tool

__all__ = ["ErrorRecoveryService"]

logger = logging.getLogger(__name__)

# Below this a tool is no alternative, only another tool.
_RELEVANT_MIN: Final = 0.35
_CORRECTIONS_MAX: Final = 5
# What an error is, by what its text says, where the arguments do not tell.
_WORDS: Final = (
    ("timeout", re.compile(r"time[d]?[ -]?out|did not answer within", re.IGNORECASE)),
    (
        "permissionDenied",
        re.compile(r"permission|denied|forbidden|authori|authenti", re.IGNORECASE),
    ),
    ("rateLimited", re.compile(r"rate limit|too many requests|\b429\b", re.IGNORECASE)),
    ("notFound", re.compile(r"not found|no such|does not exist|\b404\b", re.IGNORECASE)),
    ("missingRequired", re.compile(r"required|missing", re.IGNORECASE)),
    (
        "typeMismatch",
        re.compile(
            r"(?m:^(?=(?P<until>.*?expected ))(?P=until).* (?:but )?(?:got|received))|\btypes?\b",
            re.IGNORECASE,
        ),
    ),
)
_OF_ARGUMENTS: Final = frozenset({"missingRequired", "typeMismatch"})


class ErrorRecoveryService(AdviceService):
    """Recommends what to do after a call that failed: `tools_recommend_on_error`."""

    def recommend(self, given: OnErrorInput) -> ErrorRecovery:
        """Return other tools, corrected arguments and known fixes."""
        started = time.perf_counter()
        services = self._recommender.services()
        branch, caller_labels = self._branch(given.branch), labels(given.context)
        with self._snapshot(given.branch) as (reader, view):
            failed = self._parts.registry.get(reader, view, given.failed_tool)
            found = self._correct_arguments(failed, given, branch)
            context = AdviceContext.of(reader, view, services)
            alternatives = self._alternatives(context, given, failed)
            name = failed.name if failed else given.failed_tool
            insights = self._insights(given, name, context.records, caller_labels)
        kind = _kind(failed, found, given.error_message)
        answer: ErrorRecovery = {
            "failedTool": name,
            "errorType": kind,
            "errorMessage": given.error_message,
            "alternatives": alternatives,
            "preventionTips": _tips(kind, found, name),
            "knownFix": self._known_fix(given, name, branch),
            "processingTime": milliseconds_since(started),
            "agentId": caller_labels.get("agentId"),
            "channelId": caller_labels.get("channelId"),
            "fallbackMode": services.status()["fallbackMode"],
            "serviceStatus": services.status()["serviceStatus"],
        }
        if given.include_parameter_corrections:
            answer["parameterCorrections"] = _corrections(found)
        if given.include_learning_recommendations:
            answer["learningInsights"] = insights
        return answer

    def _correct_arguments(
        self, tool: Tool | None, given: OnErrorInput, branch: str
    ) -> Correction | None:
        if tool is None or given.failed_parameters is None:
            return None
        try:
            return self._recommender.correct_arguments(tool, given.failed_parameters, branch)
        except StratagemError as error:
            logger.info("the arguments of %s were not corrected: %s", tool.name, error)
            return None

    def _alternatives(
        self, context: AdviceContext, given: OnErrorInput, failed: Tool | None
    ) -> list[ToolRecommendation]:
        said = failed.description if failed else ""
        request = f"{given.intent or ''}\n{given.failed_tool} {said}".strip()
        own = failed is not None and failed.is_own
        _view_tools, choices = self._choose(context, request, own=own)
        name = failed.name if failed else given.failed_tool
        fitting = [
            each
            for each in choices
            if each.tool.name != name
            and each.match.score >= _RELEVANT_MIN
            and not _only_reads_instead(each.tool, failed)
        ]
        return [self._alternative(context, each) for each in fitting[: given.max_alternatives]]

    def _alternative(self, context: AdviceContext, choice: ToolChoice) -> ToolRecommendation:
        found = recommendation(choice)
        found["validationInsights"] = context.insights(choice.tool.name, choice.counts)
        found["parameterExamples"] = context.examples(choice.tool, self._caller.actor)
        return found

    def _insights(
        self,
        given: OnErrorInput,
        tool: str,
        records: ExecutionRecords | None,
        caller_labels: dict[str, Any],
    ) -> RelatedFailures | None:
        if records is None:
            return None
        failures = [each for each in records.of(tool=tool) if not each.worked]
        own = [each for each in failures if each.caller == self._caller.actor]
        channel = caller_labels.get("channelId")
        similar = (
            sum(each.labels.get("channelId") == channel for each in failures)
            if channel is not None
            else None
        )
        return {
            # Every failed call is in the log; this says whether this one was.
            "patternStored": any(_is_alike(each, given.error_message) for each in own),
            "similarFailuresInChannel": similar,
            "recommendedLearningActions": [
                f"Read tool_help {tool}.",
                *(
                    [f"Compare it with others by tools_compare: {len(own)} of your calls failed."]
                    if len(own) > 1
                    else []
                ),
            ],
        }

    def _known_fix(self, given: OnErrorInput, tool: str, branch: str) -> dict[str, Any] | None:
        """Ask the debugging memory; whatever is wrong with it, the rest is answered."""
        advisor = self._recommender.advisor
        if advisor is None:
            return None
        try:
            text = f"{tool}: {given.error_message}"
            return advisor.known_fix(text, tool, branch, self._caller)
        except Exception as error:  # noqa: BLE001 -- another system's fault is not the caller's
            logger.warning("the debugging memory does not answer: %s", error)
            return None


def _kind(tool: Tool | None, found: Correction | None, message: str) -> str:
    if tool is None:
        return "toolNotFound"
    said = next((kind for kind, words in _WORDS if words.search(message)), None)
    if found is not None and found.errors:
        kind = found.errors[0].type.value
        # That no form fits says less than what the error says is wrong with one.
        return said if kind == FaultType.NO_MATCHING_FORM and said in _OF_ARGUMENTS else kind
    return said or "executionFailed"


def _corrections(found: Correction | None) -> list[ArgumentCorrection]:
    if found is None:
        return []
    return [
        {
            "suggested": each.arguments,
            "reason": each.reasoning,
            "confidence": round(each.confidence, 4),
        }
        for each in found.candidates[:_CORRECTIONS_MAX]
    ]


def _tips(kind: str, found: Correction | None, tool: str) -> list[str]:
    known = tips([kind, *(each.type.value for each in (found.errors if found else ()))])
    if kind == "toolNotFound":
        return [*known, "Look for tools with tools_discover."]
    return [*known, f"Read the schema with tool_help {tool}."]


def _only_reads_instead(tool: Tool, failed: Tool | None) -> bool:
    """Whether a tool changes nothing where one that does has failed: it is no way round."""
    if failed is None:
        return False
    return _says_read_only(tool) is True and _says_read_only(failed) is False


def _says_read_only(tool: Tool) -> bool | None:
    declared: bool | None = (tool.content.get("annotations") or {}).get("readOnlyHint")
    return declared


def _is_alike(execution: Execution, message: str) -> bool:
    recorded = (execution.message or "").casefold()
    return bool(recorded) and (recorded in message.casefold() or message.casefold() in recorded)
