"""The operations that look into corrections, for one caller: diagnosis and insights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END
from stratagem.errors import CorrectionUnavailable
from stratagem.gateway import names
from stratagem.gateway.correction import Candidate, Correction
from stratagem.gateway.learning import diagnosis, figures, inputs
from stratagem.gateway.learning.lessons import teacher_of
from stratagem.gateway.learning.outcomes import Outcomes, new_lessons, read_outcomes
from stratagem.gateway.learning.service import Answer, Bound
from stratagem.gateway.learning.standing import read_standing
from stratagem.gateway.learning.teaching import pattern_id
from stratagem.gateway.learning.telling import shown
from stratagem.gateway.registry.tools import Tool
from stratagem.storage.contract import Reader

__all__ = ["Analysis"]

_SIMILAR_MAX: Final = 1_000
_ALTERNATIVES_MAX: Final = 3
_COMPARED_MAX: Final = 300
_OFTEN: Final = 5
_GOOD: Final = 0.9


class Analysis(Bound):
    """Diagnosis of one error, and insights into all of them."""

    def diagnose(self, given: inputs.DiagnoseInput) -> Answer:
        """Return what is wrong with a call and how it could be mended. Nothing is run."""
        started = time.perf_counter()
        self._parts.recorder.settle()
        branch = self._branch(given.branch)
        tool = self._known(given.tool_name, branch)
        found, certain = self._examined(tool, given, branch)
        diagnosed = diagnosis.diagnosed(given.error, found)
        if given.tool_name is not None and tool is None:
            diagnosed |= {"errorType": "toolNotFound", "errorCategory": "resolution"}
        types = diagnosed.get("errorTypes") or [diagnosed["errorType"]]
        answer: Answer = {
            "diagnosis": diagnosed,
            "autoCorrection": _corrections(tool, given, found, certain),
            "preventionTips": diagnosis.tips(types),
            "learningInsights": self._insights(tool, found, types, branch),
            **self._corrector.health.told(),
        }
        if given.include_alternatives:
            answer["alternatives"] = self._alternatives(tool, given, branch)
        fix = self._fix(tool, given, branch)
        if fix is not None:
            answer["knownFix"] = fix
        took = (time.perf_counter() - started) * 1000
        return {**answer, "processingTime": round(took, 3), "timestamp": self._now()}

    def insights(self, given: inputs.InsightsInput) -> Answer:
        """Return what the records of a time say about corrections."""
        self._parts.recorder.settle()
        length = moments.duration(given.time_range, field="timeRange")
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            start = max(0, view.time - length)
            outcomes = read_outcomes(reader, view, start)
            learned = new_lessons(reader, view, start)
            deprecated = self._deprecated(reader, view, outcomes)
        trends = figures.trends(outcomes, self._foundation.views.zone)
        answer: Answer = {
            "timeRange": {
                "start": moments.iso(start),
                "end": moments.iso(view.time),
                "duration": _words(length),
            },
            "overallMetrics": figures.overall(outcomes),
            "trends": {
                **trends,
                "newPatternsLearned": learned,
                "patternsDeprecated": len(deprecated),
            },
            "recommendations": _recommendations(outcomes, deprecated),
        }
        return answer | _parts(outcomes, given)

    # --- inside

    def _known(self, name: str | None, branch: str) -> Tool | None:
        if name is None:
            return None
        with self._foundation.store.snapshot() as reader:
            return self._parts.registry.get(reader, self._view(reader, branch), name)

    def _examined(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> tuple[Correction | None, Candidate | None]:
        """Return what would become of the call, and the correction that would be applied."""
        if tool is None or given.parameters is None:
            return None, None
        agent = given.context.agent_id if given.context else None
        teacher = teacher_of(self._caller.actor, agent)
        try:
            return self._corrector.examiner.foreseen(tool, given.parameters, branch, teacher)
        except CorrectionUnavailable:
            # The words of the error are left, and the answer says what is missing.
            return None, None

    def _insights(
        self, tool: Tool | None, found: Correction | None, types: list[str], branch: str
    ) -> Answer:
        """Return what earlier corrections of the tool say about errors of this shape."""
        rows = self._earlier(tool, branch) if tool is not None else []
        alike = [row for kind, row in rows if set(row["errorTypes"]) == set(types)]
        best = found.candidates[0] if found is not None and found.candidates else None
        held = best is not None and any(
            kind == names.CORRECTION_HELD and pattern_id(best.leading) in row["patterns"]
            for kind, row in rows
        )
        actions = []
        if found is not None and found.corrected:
            actions.append("Call it as it is: the correction is applied on the way.")
        elif best is not None:
            actions.append("Confirm the correction by its correctionId with confirm: true.")
        if len(alike) >= _OFTEN:
            actions.append("This keeps happening: look at the tool's description and examples.")
        return {
            "similarErrors": len(alike),
            "successfulPattern": held,
            "recommendedActions": actions,
        }

    def _earlier(self, tool: Tool, branch: str) -> list[tuple[str, Mapping[str, Any]]]:
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, branch)
            facet = names.facet_corrected(tool.name)
            newest = reader.faceted(view, facet, limit=_SIMILAR_MAX, before=OPEN_END)
            return [
                (hit.kind, orjson.loads(hit.payload))
                for hit in reader.hits(newest).values()
                if hit.payload
            ]

    def _alternatives(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> list[Answer]:
        """Return tools of the same category that would take the call as it is, or corrected."""
        if tool is None or given.parameters is None:
            return []
        with self._foundation.store.snapshot() as reader:
            every = self._parts.registry.all(reader, self._view(reader, branch))
        near = [
            each
            for each in every
            if each.category == tool.category and each.name != tool.name and each.status == "active"
        ]
        found = []
        for each in near[:_COMPARED_MAX]:
            try:
                taken = self._corrector.examiner.examine(each, given.parameters, branch)
            except CorrectionUnavailable:
                break
            # A tool that takes anything says nothing by taking this.
            if taken.applied and set(taken.applied) & set(
                each.content["inputSchema"].get("properties", {})
            ):
                how = "as it is" if taken.valid else "corrected"
                reasoning = f"It is a {each.category} tool too, and takes the call {how}."
                found.append(
                    {"toolName": each.name, "reasoning": reasoning, "parameters": taken.applied}
                )
            if len(found) == _ALTERNATIVES_MAX:
                break
        return found

    def _fix(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> dict[str, Any] | None:
        if not given.error or self._caller.read_only or self._foundation.store.read_only:
            return None
        name = tool.name if tool is not None else given.tool_name or "unknown"
        text = f"{name}: {given.error}"
        return self._corrector.advice.look_up(text, name, branch, self._caller)

    def _deprecated(self, reader: Reader, view: Any, outcomes: Outcomes) -> list[tuple[str, str]]:
        """Return the patterns that stopped working in this time, with their tools."""
        pairs = {(row["tool"], pattern) for row in outcomes.fell for pattern in row["patterns"]}
        return sorted(pair for pair in pairs if read_standing(reader, view, *pair).deprecated)


def _corrections(
    tool: Tool | None,
    given: inputs.DiagnoseInput,
    found: Correction | None,
    certain: Candidate | None,
) -> Answer:
    if tool is None or found is None or not given.enable_auto_correction:
        return {"available": False, "corrections": [], "appliedCorrection": None}
    offered = [shown(tool.name, each) for each in found.candidates[: given.max_corrections]]
    answer: Answer = {
        "available": bool(found.candidates),
        "corrections": offered,
        "appliedCorrection": shown(tool.name, certain) if certain is not None else None,
    }
    if found.withheld is not None:
        answer["withheld"] = found.withheld
    if found.ambiguous:
        answer["choices"] = [
            {"path": each.path, "question": each.question, "options": list(each.options)}
            for each in found.ambiguous
        ]
    return answer


def _parts(outcomes: Outcomes, given: inputs.InsightsInput) -> Answer:
    answer: Answer = {}
    if given.include_patterns:
        answer["topPatterns"] = figures.patterns(outcomes, usage_min=given.min_pattern_usage)
    if given.include_agent_breakdown:
        answer["agentBreakdown"] = figures.agents(outcomes)
    if given.include_tool_breakdown:
        answer["toolBreakdown"] = figures.tools(outcomes)
    if given.include_failures:
        answer["failurePatterns"] = figures.failures(outcomes)
    return answer | ({"truncated": True} if outcomes.truncated else {})


def _recommendations(outcomes: Outcomes, deprecated: list[tuple[str, str]]) -> list[str]:
    said = []
    for each in figures.tools(outcomes):
        errors = ", ".join(each["commonErrors"])
        if each["correctionsApplied"] + each["refusedCalls"] >= _OFTEN:
            said.append(
                f"Calls of {each['toolName']} often do not fit ({errors}): review its schema and "
                "description."
            )
    said += [
        f"{each['agentId']}: {each['improvementSuggestions'][0]}"
        for each in figures.agents(outcomes)
        if each["correctionsUsed"] + each["refusedCalls"] >= _OFTEN
    ]
    said += [f"The pattern {pattern} stopped working for {tool}." for tool, pattern in deprecated]
    rate = figures.overall(outcomes)["successRate"]
    if rate is not None and rate < _GOOD and len(outcomes.applied) >= _OFTEN:
        said.append("Corrections fail too often: raise confidenceThreshold.")
    return said


def _words(length: int) -> str:
    """Return a length of time in words."""
    seconds = length // 1_000_000
    for name, unit in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= unit and seconds % unit == 0:
            count = seconds // unit
            return f"{count} {name}{'s' if count != 1 else ''}"
    return f"{seconds} seconds"
