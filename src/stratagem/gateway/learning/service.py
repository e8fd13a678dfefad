"""The operations on corrections, for one caller."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import CorrectionUnavailable, InvalidInput, MissingRequired, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.correction import (
    Candidate,
    Correction,
    Hint,
    HintKind,
    Policy,
    correct,
    ready,
)
from stratagem.gateway.correction.model import tip
from stratagem.gateway.definitions.schemas import Schema
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.learning import answers, diagnosis, inputs, insights, policies, trials
from stratagem.gateway.learning.corrector import LearningCorrector
from stratagem.gateway.learning.evidence import (
    Outcomes,
    count_new_lessons,
    read_outcomes,
    read_reliability,
)
from stratagem.gateway.learning.lessons import (
    LEARNED_PATTERNS,
    EvidenceCount,
    Lesson,
    Lessons,
    belief_of,
    drafts,
    pattern_id,
    teacher_of,
)
from stratagem.gateway.learning.messages import describe_offer, lesson_name, questions
from stratagem.gateway.learning.trials import SUITES, SuiteCase
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = [
    "CorrectionAnalysis",
    "CorrectionService",
    "LearningParts",
    "LearningService",
    "PatternAdministration",
]

# A correction that has to work wherever the engine does.
_PROBE: Final = {"type": "object", "properties": {"n": {"type": "integer"}}}


@dataclass(frozen=True, slots=True)
class LearningParts:
    """What the operations on corrections work on."""

    foundation: Foundation
    registry: Registry
    recorder: Recorder
    home: HomeLoop
    corrector: LearningCorrector


class LearningService:
    """The base of the services for corrections: their parts, and the caller."""

    def __init__(self, parts: LearningParts, caller: Caller) -> None:
        self._parts = parts
        self._foundation = parts.foundation
        self._caller = caller
        self._corrector = parts.corrector

    def _branch(self, branch: str | None) -> str:
        return branch or self._caller.branch

    def _view(self, reader: Reader, branch: str | None, as_of: str | int | None = None) -> View:
        return self._foundation.views.view(reader, self._branch(branch), as_of)

    def _tool(self, name: str, branch: str | None) -> Tool:
        with self._foundation.store.snapshot() as reader:
            return self._parts.registry.find(reader, self._view(reader, branch), name)

    def _tool_filter(self, reader: Reader, view: View) -> Callable[[str], bool]:
        """Return what says whether the caller may know of a tool."""
        return lambda name: self._parts.registry.knows(reader, view, name)

    def _now(self) -> str:
        return moments.iso(self._foundation.store.now())


class CorrectionService(LearningService):
    """Status, configuration and tests of corrections."""

    def status(self, given: inputs.StatusInput) -> answers.CorrectionStatus:
        """Return how the corrections are doing."""
        length = moments.duration(given.time_range, field="timeRange")
        health = self._check_health(self._branch(given.branch))
        settings, tool_settings = self._settings(given)
        answer: answers.CorrectionStatus = {
            "systemStatus": self._system_status(given.branch),
            "healthChecks": health,
            "fallbackMode": self._corrector.health.fallback,
            "serviceStatus": health,
            "settings": settings,
            "toolSettings": tool_settings,
        }
        if faults := self._corrector.health.faults():
            answer["faults"] = faults
        if given.include_metrics:
            outcomes, learned = self._outcomes(given, length)
            answer["metrics"] = self._metrics(given, outcomes, learned)
            answer["strategyPerformance"] = insights.strategies(outcomes)
            answer["cache"] = self._corrector.evaluator.cache.figures()
        if given.include_active_corrections:
            answer["activeCorrections"] = self._corrector.attempts.active
        return answer

    def configure(self, given: inputs.ConfigureInput) -> answers.PolicyUpdate:
        """Change the policy for all, or for one tool."""
        tool = self._tool(given.tool_name, given.branch).name if given.tool_name else None

        def work(transaction: Transaction) -> answers.PolicyChange:
            view = self._view(transaction, given.branch)
            before, after, version = policies.change(
                transaction,
                view,
                given.settings,
                tool=tool,
                preset_name=given.preset,
                reset=given.reset,
            )
            return _policy_change(before, after, version, tool)

        if not given.apply_immediately:
            answer = self._preview(given, tool)
        else:
            answer = self._foundation.write(
                self._caller,
                work,
                request_id=given.request_id,
                operation="auto_correction_configure",
                arguments=given.to_arguments(),
            )
            self._corrector.evaluator.forget()
        return {**answer, "timestamp": self._now()}

    def test(self, given: inputs.TestInput) -> answers.CorrectionTestReport:
        """Try corrections out; nothing is run."""
        cases = [self._trial(case, at, given.branch) for at, case in enumerate(given.test_cases)]
        if given.test_suite is not None:
            cases += self._suite(given.test_suite, given.branch)
        if not cases:
            raise MissingRequired(
                "A test needs `testCases` or a `testSuite`.",
                field="testCases",
                hint=f"The suites are: {', '.join(SUITES)}.",
            )
        results = [trials.run(trial) for trial in cases]
        answer: answers.CorrectionTestReport = {
            "testResults": results,
            "overallResults": trials.overall(results),
        }
        if given.test_suite is not None:
            answer["testSuite"] = given.test_suite
        if given.include_performance:
            answer["performance"] = trials.performance(results)
        if given.run_diagnostics:
            answer["diagnostics"] = self._diagnostics(results)
        return answer

    # --- inside

    def _system_status(self, branch: str | None) -> answers.SystemStatus:
        health, started = self._corrector.health, self._corrector.started_at
        enabled: bool | None = None
        if "policyService" not in health.faults():
            enabled = self._corrector.evaluator.policy(self._branch(branch)).policy.enabled
        return {
            "enabled": enabled,
            "healthy": not health.fallback,
            "version": self._foundation.version,
            "uptime": round((self._foundation.store.now() - started) / 1_000_000),
            "lastRestart": moments.iso(started),
        }

    def _settings(
        self, given: inputs.StatusInput
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]] | tuple[None, None]:
        """Return the policy for all, and what tools have of their own; None if unreadable."""
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            try:
                policy = policies.read(reader.records, view).policy
            except ValidationFailed:
                return None, None
            return policy.settings(), policies.overrides(reader.records, view)

    def _check_health(self, branch: str) -> dict[str, answers.ServiceHealth]:
        """Use every part once, so that what is said about it is true now."""
        evaluator, health = self._corrector.evaluator, self._corrector.health
        evaluator.forget(branch)
        evaluator.lessons(branch)
        try:
            policy = evaluator.policy(branch).policy
        except CorrectionUnavailable:
            # Noted already.
            policy = Policy()
        self._probe()
        self._corrector.check_recorder()
        learning = health.status()["learningPipeline"]
        if self._foundation.store.read_only or not policy.enable_learning:
            learning = "disabled"
        return {**health.status(), "learningPipeline": learning}

    def _probe(self) -> None:
        """Try validation and the engine on a call that both have to manage."""
        health = self._corrector.health
        try:
            schema = Schema(_PROBE)
            probed = schema.accepts({"n": 1}) and not schema.accepts({"n": "1"})
            assert probed, "validation did not distinguish valid from invalid arguments"
        except Exception as error:  # noqa: BLE001 -- any failure is an answer here
            health.record_failure("validationService", error)
        else:
            health.record_success("validationService")
        try:
            probed = correct(ready(_PROBE), {"n": "1"}, policy=Policy()).applied == {"n": 1}
            assert probed, "the engine did not correct what it can"
        except Exception as error:  # noqa: BLE001 -- as above
            health.record_failure("correctionEngine", error)
        else:
            health.record_success("correctionEngine")

    def _outcomes(self, given: inputs.StatusInput, length: int) -> tuple[Outcomes, int]:
        """Return the outcomes of a time, and how many lessons were first taught in it."""
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            start = max(0, view.time - length)
            return read_outcomes(reader, view, start), count_new_lessons(reader, view, start)

    def _metrics(
        self, given: inputs.StatusInput, outcomes: Outcomes, learned: int
    ) -> answers.CorrectionMetrics:
        overall = insights.overall(outcomes)
        today = insights.day_of(outcomes.end, self._foundation.views.zone)
        return {
            "totalCorrections": overall["totalCorrections"],
            "successfulCorrections": overall["successfulCorrections"],
            "successRate": overall["successRate"],
            "averageCorrectionTime": overall["averageLatency"],
            "correctionsToday": self._count_today(given, outcomes, today),
            "patternMatches": sum(":" in row["pattern"] for row in outcomes.applied),
            "newPatternsLearned": learned,
            "refusedCalls": overall["refusedCalls"],
            "truncated": outcomes.truncated,
        }

    def _count_today(self, given: inputs.StatusInput, outcomes: Outcomes, today: str) -> int:
        day = moments.duration("1d")
        zone = self._foundation.views.zone
        if outcomes.end - outcomes.start < day:
            with self._foundation.store.snapshot() as reader:
                view = self._view(reader, given.branch, given.as_of)
                outcomes = read_outcomes(reader, view, max(0, view.time - day))
        return sum(insights.day_of(row["at"], zone) == today for row in outcomes.applied)

    def _preview(self, given: inputs.ConfigureInput, tool: str | None) -> answers.PolicyChange:
        with self._foundation.store.snapshot() as reader:
            before, after = policies.preview(
                reader,
                self._view(reader, given.branch),
                given.settings,
                tool=tool,
                preset_name=given.preset,
                reset=given.reset,
            )
        return _policy_change(before, after, None, tool)

    def _trial(self, case: inputs.TestCase, at: int, branch: str | None) -> trials.CorrectionTrial:
        name = case.tool_name or case.tool
        if name is None:
            raise MissingRequired(
                "A test case must name its tool.", field=f"testCases.{at}.toolName"
            )
        tool = self._tool(name, branch)
        given = case.parameters
        if given is None:
            given = trials.make_faulty_arguments(tool, case) if case.type else {}
        if given is None:
            raise ValidationFailed(
                f"No error of the type {case.type!r} can be made for {name}.",
                field=f"testCases.{at}.type",
                hint=f"There are: {', '.join(trials.ERROR_TYPES)}. "
                "Or give the `parameters` yourself.",
            )
        evaluator, where = self._corrector.evaluator, self._branch(branch)
        teacher = teacher_of(self._caller.actor, None)
        return trials.CorrectionTrial(
            case.name or f"{name}: {case.type or at}",
            given,
            lambda arguments: evaluator.foresee(tool, arguments, where, teacher)[0],
            case.expected_error or case.type,
            case.expected_correction,
            case.expected_success,
        )

    def _suite(self, name: str, branch: str | None) -> list[trials.CorrectionTrial]:
        if name not in SUITES:
            raise ValidationFailed(
                f"There is no test suite {name!r}.",
                field="testSuite",
                hint=f"There are: {', '.join(SUITES)}.",
            )
        policy = self._corrector.evaluator.look(None, self._branch(branch)).policy
        return [_suite_trial(case, policy) for case in SUITES[name]]

    def _diagnostics(self, results: list[answers.TestResult]) -> answers.EngineDiagnostics:
        cache = self._corrector.evaluator.cache.figures()
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        failed = {kind for each in results if not each["passed"] for kind in each["errorTypes"]}
        return {
            "systemLoad": "normal" if load < 1 else "high",
            "loadPerCore": round(load, 3),
            "patternCacheHitRate": cache["hitRate"],
            "correctionEngineLatency": self._corrector.evaluator.latency,
            "recommendedOptimizations": [tip(kind) for kind in sorted(failed)],
        }


def _suite_trial(case: SuiteCase, policy: Policy) -> trials.CorrectionTrial:
    schema = ready(case.schema)
    return trials.CorrectionTrial(
        case.name,
        case.given,
        lambda arguments: correct(schema, arguments, policy=policy),
        case.error,
        case.meant,
        case.meant is not None,
    )


def _policy_change(
    before: Policy | None, after: Policy, version: int | None, tool: str | None
) -> answers.PolicyChange:
    updated = version is not None
    answer: answers.PolicyChange = {
        "configurationUpdated": updated,
        "previousSettings": before.settings() if before is not None else None,
        "newSettings": after.settings(),
        "changesApplied": policies.describe_changes(before, after),
        "restartRequired": False,
        "effectiveImmediately": updated,
        "version": version,
    }
    if tool is not None:
        answer["toolName"] = tool
    return answer


_SIMILAR_MAX: Final = 1_000
_ALTERNATIVES_MAX: Final = 3
_COMPARED_MAX: Final = 300
_OFTEN: Final = 5
_GOOD: Final = 0.9


class CorrectionAnalysis(LearningService):
    """The diagnosis of one error, and insights into the corrections of a time."""

    def diagnose(self, given: inputs.DiagnoseInput) -> answers.CallDiagnosis:
        """Return what is wrong with a call and how it could be corrected. Nothing is run."""
        started = time.perf_counter()
        self._parts.recorder.settle()
        branch = self._branch(given.branch)
        tool = self._find_tool(given.tool_name, branch)
        found, certain = self._evaluate(tool, given, branch)
        error = diagnosis.diagnose(given.error, found)
        if given.tool_name is not None and tool is None:
            error["errorType"] = "toolNotFound"
            error["errorCategory"] = "resolution"
        types = error.get("errorTypes") or [error["errorType"]]
        answer: answers.CallDiagnosis = {
            "diagnosis": error,
            "autoCorrection": _corrections(tool, given, found, certain),
            "preventionTips": list(dict.fromkeys(map(tip, types))),
            "learningInsights": self._insights(tool, found, types, branch),
            "processingTime": 0.0,
            "timestamp": self._now(),
        }
        if self._corrector.health.fallback:
            answer["fallbackMode"] = True
            answer["serviceStatus"] = self._corrector.health.status()
        if given.include_alternatives:
            answer["alternatives"] = self._alternatives(tool, given, branch)
        fix = self._known_fix(tool, given, branch)
        if fix is not None:
            answer["knownFix"] = fix
        answer["processingTime"] = round((time.perf_counter() - started) * 1000, 3)
        return answer

    def insights(self, given: inputs.InsightsInput) -> answers.CorrectionInsights:
        """Return what the records of a time say about corrections."""
        self._parts.recorder.settle()
        length = moments.duration(given.time_range, field="timeRange")
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            start = max(0, view.time - length)
            outcomes = read_outcomes(reader, view, start).of_tools(self._tool_filter(reader, view))
            learned = count_new_lessons(reader, view, start)
            deprecated = self._deprecated_patterns(reader, view, outcomes)
        trends = insights.trends(outcomes, self._foundation.views.zone)
        return {
            "timeRange": {
                "start": moments.iso(start),
                "end": moments.iso(view.time),
                "duration": _describe_duration(length),
            },
            "overallMetrics": insights.overall(outcomes),
            "trends": {
                **trends,
                "newPatternsLearned": learned,
                "patternsDeprecated": len(deprecated),
            },
            "recommendations": _recommendations(outcomes, deprecated),
            **_breakdowns(outcomes, given),
        }

    # --- inside

    def _find_tool(self, name: str | None, branch: str) -> Tool | None:
        if name is None:
            return None
        with self._foundation.store.snapshot() as reader:
            return self._parts.registry.get(reader, self._view(reader, branch), name)

    def _evaluate(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> tuple[Correction | None, Candidate | None]:
        """Return what would become of the call, and the correction that would be applied."""
        if tool is None or given.parameters is None:
            return None, None
        agent = given.context.agent_id if given.context else None
        teacher = teacher_of(self._caller.actor, agent)
        try:
            return self._corrector.evaluator.foresee(tool, given.parameters, branch, teacher)
        except CorrectionUnavailable:
            # The words of the error are left, and the answer says what is missing.
            return None, None

    def _insights(
        self, tool: Tool | None, found: Correction | None, types: list[str], branch: str
    ) -> answers.EarlierErrors:
        """Return what earlier corrections of the tool say about errors of this shape."""
        rows = self._earlier_records(tool, branch) if tool is not None else []
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

    def _earlier_records(self, tool: Tool, branch: str) -> list[tuple[str, Mapping[str, Any]]]:
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, branch)
            facet = names.facet_corrected(tool.name)
            newest = reader.catalogue.with_facet(view, facet, limit=_SIMILAR_MAX, before=OPEN_END)
            return [
                (hit.kind, orjson.loads(hit.payload))
                for hit in reader.log.contents(newest).values()
                if hit.payload
            ]

    def _alternatives(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> list[answers.AlternativeTool]:
        """Return tools of the same category that would take the call as it is, or corrected."""
        if tool is None or given.parameters is None:
            return []
        with self._foundation.store.snapshot() as reader:
            every = self._parts.registry.all(reader, self._view(reader, branch))
        near = [
            each
            for each in every
            if each.category == tool.category
            and each.name != tool.name
            and each.status == "active"
            and _only_reads(each) == _only_reads(tool)
        ]
        found: list[answers.AlternativeTool] = []
        for each in near[:_COMPARED_MAX]:
            try:
                taken = self._corrector.evaluator.evaluate(each, given.parameters, branch)
            except CorrectionUnavailable:
                break
            # A tool that takes anything says nothing by taking this: it has to know each parameter.
            known = set(each.content["inputSchema"].get("properties", {}))
            if taken.applied and set(taken.applied) <= known:
                how = "as it is" if taken.valid else "corrected"
                reasoning = f"It is a {each.category} tool too, and takes the call {how}."
                found.append(
                    {"toolName": each.name, "reasoning": reasoning, "parameters": taken.applied}
                )
            if len(found) == _ALTERNATIVES_MAX:
                break
        return found

    def _known_fix(
        self, tool: Tool | None, given: inputs.DiagnoseInput, branch: str
    ) -> dict[str, Any] | None:
        if not given.error or self._caller.read_only or self._foundation.store.read_only:
            return None
        name = tool.name if tool is not None else given.tool_name or "unknown"
        text = f"{name}: {given.error}"
        return self._corrector.advice.look_up(text, name, branch, self._caller)

    def _deprecated_patterns(
        self, reader: Reader, view: View, outcomes: Outcomes
    ) -> list[tuple[str, str]]:
        """Return the patterns that stopped working in this time, with their tools."""
        pairs = {(row["tool"], pattern) for row in outcomes.fell for pattern in row["patterns"]}
        return sorted(pair for pair in pairs if read_reliability(reader, view, *pair).deprecated)


def _only_reads(tool: Tool) -> bool:
    """Whether a tool says that it changes nothing: such a one does not stand in for another."""
    return (tool.content.get("annotations") or {}).get("readOnlyHint") is True


def _corrections(
    tool: Tool | None,
    given: inputs.DiagnoseInput,
    found: Correction | None,
    certain: Candidate | None,
) -> answers.OfferedCorrections:
    if tool is None or found is None or not given.enable_auto_correction:
        return {"available": False, "corrections": [], "appliedCorrection": None}
    offered = [
        describe_offer(tool.name, each) for each in found.candidates[: given.max_corrections]
    ]
    answer: answers.OfferedCorrections = {
        "available": bool(found.candidates),
        "corrections": offered,
        "appliedCorrection": describe_offer(tool.name, certain) if certain is not None else None,
    }
    if found.withheld is not None:
        answer["withheld"] = found.withheld
    if found.ambiguous:
        answer["choices"] = questions(found)
    return answer


def _breakdowns(outcomes: Outcomes, given: inputs.InsightsInput) -> answers.InsightBreakdowns:
    answer: answers.InsightBreakdowns = {}
    if given.include_patterns:
        answer["topPatterns"] = insights.patterns(outcomes, usage_min=given.min_pattern_usage)
    if given.include_agent_breakdown:
        answer["agentBreakdown"] = insights.agents(outcomes)
    if given.include_tool_breakdown:
        answer["toolBreakdown"] = insights.tools(outcomes)
    if given.include_failures:
        answer["failurePatterns"] = insights.failures(outcomes)
    if outcomes.truncated:
        answer["truncated"] = True
    return answer


def _recommendations(outcomes: Outcomes, deprecated: list[tuple[str, str]]) -> list[str]:
    said = []
    for each in insights.tools(outcomes):
        errors = ", ".join(each["commonErrors"])
        if each["correctionsApplied"] + each["refusedCalls"] >= _OFTEN:
            said.append(
                f"Calls of {each['toolName']} often do not fit ({errors}): review its schema and "
                "description."
            )
    said += [
        f"{each['agentId']}: {each['improvementSuggestions'][0]}"
        for each in insights.agents(outcomes)
        if each["correctionsUsed"] + each["refusedCalls"] >= _OFTEN
    ]
    said += [f"The pattern {pattern} stopped working for {tool}." for tool, pattern in deprecated]
    rate = insights.overall(outcomes)["successRate"]
    if rate is not None and rate < _GOOD and len(outcomes.applied) >= _OFTEN:
        said.append("Corrections fail too often: raise confidenceThreshold.")
    return said


def _describe_duration(length: int) -> str:
    """Return a length of time in words."""
    seconds = length // 1_000_000
    for name, unit in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= unit and seconds % unit == 0:
            count = seconds // unit
            return f"{count} {name}{'s' if count != 1 else ''}"
    return f"{seconds} seconds"


_FORMAT: Final = "stratagem-correction-patterns"
_SECOND: Final = 1_000_000


class PatternAdministration(LearningService):
    """Lists, backs up and restores patterns; lists and resets breakers."""

    def patterns(self, given: inputs.PatternsInput) -> answers.CorrectionPatterns:
        """List patterns, show a tool's profile, make a backup or bring one back."""
        if given.action == "profile":
            return self._profile(given)
        if given.action == "restore":
            return self._restore(given)
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            if given.action == "backup":
                return {"backup": self._backup(reader, view, given)}
            is_shown = self._tool_filter(reader, view)
            found = [
                each
                for each in (*_learned_patterns(reader, view), *_built_in_patterns(reader, view))
                if each["usageCount"] >= given.min_usage
                and given.tool_name in {None, each["toolName"]}
                and is_shown(each["toolName"])
            ]
        found.sort(key=lambda each: (-each["usageCount"], each["patternId"]))
        return {"patterns": found, "total": len(found)}

    async def circuits(self, given: inputs.CircuitsInput) -> answers.CorrectionBreakers:
        """List the breakers of corrections, or close one; they live on the home loop."""
        return await self._parts.home.join(lambda: self._circuits(given))

    async def _circuits(self, given: inputs.CircuitsInput) -> answers.CorrectionBreakers:
        if given.action == "reset":
            return self._reset(given)
        shown = await self._foundation.read_async(self._shown_breakers)
        return {"circuitBreakers": shown}

    # --- inside

    def _shown_breakers(self) -> list[answers.CorrectionBreaker]:
        reader = self._foundation.store.reader()
        is_shown = self._tool_filter(reader, self._view(reader, None))
        return [each for each in self._breakers() if is_shown(each["toolName"])]

    def _breakers(self) -> list[answers.CorrectionBreaker]:
        breakers, now = self._corrector.breakers, self._foundation.store.now()
        return [
            {
                "toolName": each["toolName"],
                "status": each["status"],
                "failures": each["failures"],
                "reason": each["reason"],
                # As the document has it: milliseconds since 1970.
                "lastFailure": (now - int(age * _SECOND)) // 1000 if age is not None else None,
                "coolDownSeconds": limits.CORRECTION_BREAKER_SECONDS,
            }
            for each in breakers.list()
            for age in [breakers.age(each["lastFailure"])]
        ]

    def _reset(self, given: inputs.CircuitsInput) -> answers.CorrectionBreakers:
        """Close a breaker, once its cool-down is over or where it is forced."""
        name = given.tool_name
        if given.force:
            self._caller.require("gateway", "admin", "forcing a breaker")
        if name is None:
            raise MissingRequired("A breaker is named by its tool.", field="toolName")
        breakers = self._corrector.breakers
        known = next((each for each in breakers.list() if each["toolName"] == name), None)
        age = breakers.age(known["lastFailure"]) if known else None
        left = limits.CORRECTION_BREAKER_SECONDS - (age if age is not None else 1e9)
        if known is not None and known["status"] == "open" and left > 0 and not given.force:
            raise ValidationFailed(
                f"The breaker of {name} opened less than five minutes ago.",
                field="toolName",
                retry_after=round(left),
                hint="Wait, or say force: true.",
            )
        reason = given.reason or "reset by hand"
        return {"toolName": name, "reset": breakers.reset(name, reason), "reason": reason}

    def _profile(self, given: inputs.PatternsInput) -> answers.CorrectionPatterns:
        if given.tool_name is None:
            raise MissingRequired("A profile is one tool's.", field="toolName")
        self._parts.recorder.settle()
        tool = self._tool(given.tool_name, given.branch)
        self._corrector.evaluator.forget()
        found = self._corrector.evaluator.profile(tool, self._branch(given.branch))
        return {"toolName": tool.name, "profile": found.to_json()}

    def _backup(
        self, reader: Reader, view: View, given: inputs.PatternsInput
    ) -> answers.PatternBackup:
        return {
            "format": _FORMAT,
            "version": 1,
            "lessons": [
                {
                    "tool": tool,
                    "kind": lesson.kind.value,
                    "path": lesson.path,
                    "form": lesson.form,
                    "meaning": lesson.meaning,
                    "teacher": teacher,
                    "held": count.held,
                    "fell": count.fell,
                }
                for tool, lesson, taught in Lessons.read(reader.catalogue, view).by_teacher()
                for teacher, count in taught.items()
                if sum(map(sum, taught.values())) >= given.min_usage
                and given.tool_name in {None, tool}
            ],
        }

    def _restore(self, given: inputs.PatternsInput) -> answers.CorrectionPatterns:
        """Bring evidence back that is not there; what is there stays."""
        # A backup says who taught what: whoever writes one speaks for everybody.
        self._caller.require("gateway", "admin", "restoring patterns")
        wanted = _read_backup(given.backup)

        def work(transaction: Transaction) -> answers.CorrectionPatterns:
            view = self._view(transaction, given.branch)
            present = {
                (tool, lesson, teacher): count
                for tool, lesson, taught in Lessons.read(transaction.catalogue, view).by_teacher()
                for teacher, count in taught.items()
            }
            restored = 0
            for tool, lesson, teacher, count in wanted:
                known = present.get((tool, lesson, teacher), EvidenceCount())
                rows = [
                    draft
                    for held, more in (
                        (True, count.held - known.held),
                        (False, count.fell - known.fell),
                    )
                    for _each in range(max(0, more))
                    for draft in drafts(tool, teacher, [lesson], held=held)
                ]
                if rows:
                    transaction.append(view.branch, rows)
                    restored += 1
            return {"restored": restored, "unchanged": len(wanted) - restored}

        answer = self._foundation.write(
            self._caller,
            work,
            request_id=given.request_id,
            operation="auto_correction_patterns",
            arguments=given.to_arguments(),
        )
        self._corrector.evaluator.forget()
        return answer


def _learned_patterns(reader: Reader, view: View) -> Iterator[answers.CorrectionPattern]:
    for tool, lesson, count in Lessons.read(reader.catalogue, view).totals():
        belief = belief_of(*count)
        reliability = read_reliability(reader, view, tool, lesson.id)
        certain = Hint(lesson.meaning, belief).certain and not reliability.deprecated
        yield {
            "patternId": f"{tool}:{lesson.id}",
            "name": lesson_name(tool, lesson),
            "toolName": tool,
            "learned": True,
            "usageCount": sum(count),
            "successRate": insights.rate(count.held, sum(count)),
            "confidence": round(belief.mean, 4),
            "certain": certain,
            "status": "deprecated" if reliability.deprecated or belief.mean < 0.5 else "active",  # noqa: PLR2004 -- more against it than for it
            "path": lesson.path,
            "meaning": lesson.meaning,
        }


def _built_in_patterns(reader: Reader, view: View) -> Iterator[answers.CorrectionPattern]:
    """Yield the engine's own patterns, with how each did at each tool."""
    counts: dict[tuple[str, str], EvidenceCount] = {}
    for kind, held in ((names.CORRECTION_OK, True), (names.CORRECTION_FAILED, False)):
        for group, number in reader.catalogue.group_counts(view.lineage, kind).items():
            tool, _, pattern = group.partition(names.PART)
            if pattern.partition(":")[0] in LEARNED_PATTERNS:
                continue
            known = counts.get((tool, pattern), EvidenceCount())
            counts[tool, pattern] = known.plus(held=held, count=number)
    for (tool, pattern), count in counts.items():
        reliability = read_reliability(reader, view, tool, pattern)
        name, text = insights.describe_pattern(pattern)
        yield {
            "patternId": f"{tool}:{pattern}",
            "name": name,
            "toolName": tool,
            "learned": False,
            "usageCount": sum(count),
            "successRate": insights.rate(count.held, sum(count)),
            "confidence": round(belief_of(*count).mean, 4),
            "certain": not reliability.deprecated,
            "status": "deprecated" if reliability.deprecated else "active",
            "description": text,
        }


def _read_backup(backup: Mapping[str, Any] | None) -> list[tuple[str, Lesson, str, EvidenceCount]]:
    """Return the lessons of a backup.

    Raises:
        InvalidInput: It is none.
    """
    if backup is None:
        raise MissingRequired("A restore needs the `backup`.", field="backup")
    rows = backup.get("lessons")
    if backup.get("format") != _FORMAT or not isinstance(rows, list):
        raise InvalidInput("This is not a backup of patterns.", field="backup")
    if len(rows) > limits.PATTERNS_RESTORED_MAX:
        raise InvalidInput(
            f"A backup has at most {limits.PATTERNS_RESTORED_MAX:,} patterns.",
            field="backup",
            limit=limits.PATTERNS_RESTORED_MAX,
        )
    return [_read_lesson(row, at) for at, row in enumerate(rows)]


def _read_lesson(row: Any, at: int) -> tuple[str, Lesson, str, EvidenceCount]:
    try:
        texts = [row[name] for name in ("tool", "path", "form", "meaning", "teacher")]
        counts = [row["held"], row["fell"]]
        kind = HintKind(row["kind"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"Pattern {at} of the backup is not valid.", field="backup") from error
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in counts)
    plain = all(isinstance(each, str) and names.PART not in each for each in texts)
    if not whole or not plain or min(counts) < 0:
        raise InvalidInput(f"Pattern {at} of the backup is not valid.", field="backup")
    most = limits.PATTERN_EVIDENCE_RESTORED_MAX
    tool, path, form, meaning, teacher = texts
    held, fell = (min(count, most) for count in counts)
    return tool, Lesson(kind, path, form, meaning), teacher, EvidenceCount(held, fell)
