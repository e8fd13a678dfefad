"""The operations on corrections, as rows of the table that every surface is made from."""

from __future__ import annotations

from dataclasses import replace

from stratagem.gateway import services
from stratagem.gateway.learning import answers, inputs
from stratagem.gateway.learning.service import Analysis, Corrections, Curating
from stratagem.gateway.rows import row
from stratagem.operation import Operation, SdkMethod

__all__ = ["OPERATIONS"]


def _say_diagnosis(answer: answers.CallDiagnosis) -> str:
    diagnosed = answer["diagnosis"]
    lines = [f"{diagnosed['errorType']}: {diagnosed['rootCause']}"]
    lines += [
        f"{each['correctionId']} ({each['confidence']:.2f}): {each['reasoning']}"
        for each in answer["autoCorrection"]["corrections"]
    ]
    return "\n".join([*lines, *answer["preventionTips"]])


def _say_status(answer: answers.CorrectionStatus) -> str:
    system, metrics = answer["systemStatus"], answer.get("metrics")
    state = "on" if system["enabled"] else "off"
    said = f"Corrections are {state} and {'healthy' if system['healthy'] else 'limited'}."
    if not metrics:
        return said
    return (
        f"{said} {metrics['successfulCorrections']} of {metrics['totalCorrections']} held, "
        f"{metrics['refusedCalls']} calls were refused."
    )


def _say_policy_update(answer: answers.PolicyUpdate) -> str:
    return "\n".join(answer["changesApplied"]) or "Nothing changed."


def _say_tests(answer: answers.CorrectionTestReport) -> str:
    overall = answer["overallResults"]
    failed = [each["testName"] for each in answer["testResults"] if not each["passed"]]
    said = f"{overall['passed']} of {overall['totalTests']} passed."
    return f"{said} Failed: {', '.join(failed)}." if failed else said


def _say_insights(answer: answers.CorrectionInsights) -> str:
    overall = answer["overallMetrics"]
    said = (
        f"{overall['successfulCorrections']} of {overall['totalCorrections']} corrections held in "
        f"{answer['timeRange']['duration']}."
    )
    return "\n".join([said, *answer["recommendations"]])


OPERATIONS: tuple[Operation, ...] = (
    row(
        "error_diagnose",
        "Diagnose error",
        "What is wrong with a call, how it could be corrected, and what is known to help.",
        inputs.DiagnoseInput,
        services.analysis,
        Analysis.diagnose,
        says=_say_diagnosis,
        answer_fields=(
            "diagnosis",
            "autoCorrection",
            "alternatives",
            "preventionTips",
            "learningInsights",
        ),
        reads=True,
        sdk=SdkMethod("error_diagnose", ("error",)),
    ),
    row(
        "auto_correction_status",
        "Correction status",
        "How the corrections of calls are doing: health, figures, what is under way.",
        inputs.StatusInput,
        services.corrections,
        Corrections.status,
        says=_say_status,
        answer_fields=(
            "systemStatus",
            "metrics",
            "activeCorrections",
            "strategyPerformance",
            "healthChecks",
        ),
        reads=True,
        sdk=SdkMethod("auto_correction_status"),
    ),
    row(
        "auto_correction_configure",
        "Configure corrections",
        "Change what corrections may do, for all tools or for one; effective at once.",
        inputs.ConfigureInput,
        services.corrections,
        Corrections.configure,
        says=_say_policy_update,
        answer_fields=("configurationUpdated", "newSettings", "changesApplied"),
        right="admin",
        sdk=SdkMethod("auto_correction_configure", ("settings",)),
    ),
    row(
        "auto_correction_test",
        "Test corrections",
        "Try corrections out on given calls or on a named suite; nothing is run.",
        inputs.TestInput,
        services.corrections,
        Corrections.test,
        says=_say_tests,
        answer_fields=("testResults", "overallResults"),
        reads=True,
        sdk=SdkMethod("auto_correction_test", ("test_cases",)),
    ),
    row(
        "auto_correction_insights",
        "Correction insights",
        "What the records of a time say about corrections: patterns, agents, tools, trends.",
        inputs.InsightsInput,
        services.analysis,
        Analysis.insights,
        says=_say_insights,
        answer_fields=("timeRange", "overallMetrics", "topPatterns", "trends", "recommendations"),
        reads=True,
        sdk=SdkMethod("auto_correction_insights"),
    ),
    replace(
        row(
            "auto_correction_patterns",
            "Correction patterns",
            "List what corrections have learned, show what a tool is usually called with, back "
            "patterns up and restore them.",
            inputs.PatternsInput,
            services.curating,
            Curating.patterns,
            answer_fields=("patterns", "profile", "backup"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_patterns", ("action",)),
        ),
        reading_actions=("list", "profile", "backup"),
    ),
    replace(
        row(
            "auto_correction_circuits",
            "Correction breakers",
            "List the breakers that keep corrections from tools where they failed, or reset one.",
            inputs.CircuitsInput,
            services.curating,
            Curating.circuits,
            answer_fields=("circuitBreakers", "reset"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_circuits", ("action",)),
        ),
        reading_actions=("list",),
    ),
)
