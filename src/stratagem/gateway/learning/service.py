"""The operations on corrections, for one caller: status, configuration and tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stratagem.engine import moments
from stratagem.engine.lineage import View
from stratagem.errors import CorrectionUnavailable, MissingRequired, ValidationFailed
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.correction import Policy, correct, ready
from stratagem.gateway.definitions.schemas import Schema
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.learning import figures, inputs, policies, testing
from stratagem.gateway.learning.corrector import LearningCorrector
from stratagem.gateway.learning.lessons import teacher_of
from stratagem.gateway.learning.outcomes import Outcomes, new_lessons, read_outcomes
from stratagem.gateway.learning.suites import SUITES, Case
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Answer", "Bound", "Corrections", "LearningParts"]

Answer = dict[str, Any]
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


class Bound:
    """What operations on corrections share: the parts, and who asks."""

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

    def _now(self) -> str:
        return moments.iso(self._foundation.store.now())


class Corrections(Bound):
    """Status, configuration and tests."""

    def status(self, given: inputs.StatusInput) -> Answer:
        """Return how the corrections are doing."""
        length = moments.duration(given.time_range, field="timeRange")
        health = self._checked(self._branch(given.branch))
        answer: Answer = {
            "systemStatus": self._system(given.branch),
            "healthChecks": health,
            "fallbackMode": self._corrector.health.fallback,
            "serviceStatus": health,
            **self._settings(given),
        }
        if faults := self._corrector.health.faults():
            answer["faults"] = faults
        if given.include_metrics:
            answer |= self._metrics(given, length)
        if given.include_active_corrections:
            answer["activeCorrections"] = self._corrector.attempts.active
        return answer

    def configure(self, given: inputs.ConfigureInput) -> Answer:
        """Change the policy for all, or for one tool."""
        tool = self._tool(given.tool_name, given.branch).name if given.tool_name else None

        def work(transaction: Transaction) -> Answer:
            view = self._view(transaction, given.branch)
            before, after, version = policies.change(
                transaction,
                view,
                given.settings,
                tool=tool,
                preset_name=given.preset,
                reset=given.reset,
            )
            return _configured(before, after, version, tool)

        if not given.apply_immediately:
            answer = self._previewed(given, tool)
        else:
            answer = self._foundation.write(
                self._caller,
                work,
                request_id=given.request_id,
                operation="auto_correction_configure",
                arguments=given.given(),
            )
            self._corrector.examiner.forget()
        return {**answer, "timestamp": self._now()}

    def test(self, given: inputs.TestInput) -> Answer:
        """Try corrections out; nothing is run."""
        trials = [self._trial(case, at, given.branch) for at, case in enumerate(given.test_cases)]
        if given.test_suite is not None:
            trials += self._suite(given.test_suite, given.branch)
        if not trials:
            raise MissingRequired(
                "A test needs `testCases` or a `testSuite`.",
                field="testCases",
                hint=f"There are the suites: {', '.join(SUITES)}.",
            )
        results = [testing.run(trial) for trial in trials]
        answer: Answer = {"testResults": results, "overallResults": testing.overall(results)}
        if given.test_suite is not None:
            answer["testSuite"] = given.test_suite
        if given.include_performance:
            answer["performance"] = testing.performance(results)
        if given.run_diagnostics:
            answer["diagnostics"] = self._diagnostics(results)
        return answer

    # --- inside

    def _system(self, branch: str | None) -> Answer:
        health, started = self._corrector.health, self._corrector.started_at
        enabled: bool | None = None
        if "policyService" not in health.faults():
            enabled = self._corrector.examiner.policy(self._branch(branch)).policy.enabled
        return {
            "enabled": enabled,
            "healthy": not health.fallback,
            "version": self._foundation.version,
            "uptime": round((self._foundation.store.now() - started) / 1_000_000),
            "lastRestart": moments.iso(started),
        }

    def _settings(self, given: inputs.StatusInput) -> Answer:
        """Return the policy for all, and what tools have of their own; null if unreadable."""
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            try:
                policy = policies.Policies().read(reader, view).policy
            except ValidationFailed:
                return {"settings": None, "toolSettings": None}
            return {
                "settings": policy.settings(),
                "toolSettings": policies.overrides(reader, view),
            }

    def _checked(self, branch: str) -> Answer:
        """Use every part once, so that what is said about it is true now."""
        examiner, health = self._corrector.examiner, self._corrector.health
        examiner.forget(branch)
        examiner.lessons(branch)
        try:
            policy = examiner.policy(branch).policy
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
            assert probed, "validation did not tell right from wrong"
        except Exception as error:  # noqa: BLE001 -- any failure is an answer here
            health.failed("validationService", error)
        else:
            health.worked("validationService")
        try:
            probed = correct(ready(_PROBE), {"n": "1"}, policy=Policy()).applied == {"n": 1}
            assert probed, "the engine did not correct what it can"
        except Exception as error:  # noqa: BLE001 -- as above
            health.failed("correctionEngine", error)
        else:
            health.worked("correctionEngine")

    def _metrics(self, given: inputs.StatusInput, length: int) -> Answer:
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            outcomes = read_outcomes(reader, view, max(0, view.time - length))
            learned = new_lessons(reader, view, max(0, view.time - length))
        overall = figures.overall(outcomes)
        zone = self._foundation.views.zone
        today = figures.day_of(view.time, zone)
        return {
            "metrics": {
                "totalCorrections": overall["totalCorrections"],
                "successfulCorrections": overall["successfulCorrections"],
                "successRate": overall["successRate"],
                "averageCorrectionTime": overall["averageLatency"],
                "correctionsToday": self._today(given, outcomes, today),
                "patternMatches": sum(":" in row["pattern"] for row in outcomes.applied),
                "newPatternsLearned": learned,
                "refusedCalls": overall["refusedCalls"],
                "truncated": outcomes.truncated,
            },
            "strategyPerformance": figures.strategies(outcomes),
            "cache": self._corrector.examiner.kept.figures(),
        }

    def _today(self, given: inputs.StatusInput, outcomes: Outcomes, today: str) -> int:
        day = moments.duration("1d")
        zone = self._foundation.views.zone
        if outcomes.end - outcomes.start < day:
            with self._foundation.store.snapshot() as reader:
                view = self._view(reader, given.branch, given.as_of)
                outcomes = read_outcomes(reader, view, max(0, view.time - day))
        return sum(figures.day_of(row["at"], zone) == today for row in outcomes.applied)

    def _previewed(self, given: inputs.ConfigureInput, tool: str | None) -> Answer:
        with self._foundation.store.snapshot() as reader:
            before, after = policies.preview(
                reader,
                self._view(reader, given.branch),
                given.settings,
                tool=tool,
                preset_name=given.preset,
                reset=given.reset,
            )
        return _configured(before, after, None, tool)

    def _trial(self, case: inputs.TestCase, at: int, branch: str | None) -> testing.Trial:
        name = case.tool_name or case.tool
        if name is None:
            raise MissingRequired("A test case names its tool.", field=f"testCases.{at}.toolName")
        tool = self._tool(name, branch)
        given = case.parameters
        if given is None:
            given = testing.damaged(tool, case) if case.type else {}
        if given is None:
            raise ValidationFailed(
                f"No error of the type {case.type!r} can be made for {name}.",
                field=f"testCases.{at}.type",
                hint=f"There are: {', '.join(testing.MADE)}. Or give the `parameters` yourself.",
            )
        examiner, where = self._corrector.examiner, self._branch(branch)
        teacher = teacher_of(self._caller.actor, None)
        return testing.Trial(
            case.name or f"{name}: {case.type or at}",
            given,
            lambda arguments: examiner.foreseen(tool, arguments, where, teacher)[0],
            case.expected_error or case.type,
            case.expected_correction,
            case.expected_success,
        )

    def _suite(self, name: str, branch: str | None) -> list[testing.Trial]:
        if name not in SUITES:
            raise ValidationFailed(
                f"There is no test suite {name!r}.",
                field="testSuite",
                hint=f"There are: {', '.join(SUITES)}.",
            )
        policy = self._corrector.examiner.look(None, self._branch(branch)).policy
        return [_of_suite(case, policy) for case in SUITES[name]]

    def _diagnostics(self, results: list[Answer]) -> Answer:
        cache = self._corrector.examiner.kept.figures()
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        failed = {kind for each in results if not each["passed"] for kind in each["errorTypes"]}
        return {
            "systemLoad": "normal" if load < 1 else "high",
            "loadPerCore": round(load, 3),
            "patternCacheHitRate": cache["hitRate"],
            "correctionEngineLatency": self._corrector.examiner.latency,
            "recommendedOptimizations": [figures.tip(kind) for kind in sorted(failed)],
        }


def _of_suite(case: Case, policy: Policy) -> testing.Trial:
    schema = ready(case.schema)
    return testing.Trial(
        case.name,
        case.given,
        lambda arguments: correct(schema, arguments, policy=policy),
        case.error,
        case.meant,
        case.meant is not None,
    )


def _configured(
    before: Policy | None, after: Policy, version: int | None, tool: str | None
) -> Answer:
    updated = version is not None
    said: Mapping[str, Any] = {"toolName": tool} if tool else {}
    return {
        "configurationUpdated": updated,
        "previousSettings": before.settings() if before is not None else None,
        "newSettings": after.settings(),
        "changesApplied": policies.changes(before, after),
        "restartRequired": False,
        "effectiveImmediately": updated,
        "version": version,
        **said,
    }
