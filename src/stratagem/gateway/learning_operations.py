"""The operations on corrections, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stratagem.gateway import services
from stratagem.gateway.learning import answers, inputs
from stratagem.gateway.learning.service import Analysis, Corrections, Curating
from stratagem.gateway.rows import row
from stratagem.operation import Operation, SdkMethod, object_schema

__all__ = ["OPERATIONS"]


def _say_diagnosis(answer: Mapping[str, Any]) -> str:
    diagnosed = answer["diagnosis"]
    lines = [f"{diagnosed['errorType']}: {diagnosed['rootCause']}"]
    lines += [
        f"{each['correctionId']} ({each['confidence']:.2f}): {each['reasoning']}"
        for each in answer["autoCorrection"]["corrections"]
    ]
    return "\n".join([*lines, *answer["preventionTips"]])


def _say_status(answer: Mapping[str, Any]) -> str:
    system, metrics = answer["systemStatus"], answer.get("metrics")
    state = "on" if system["enabled"] else "off"
    said = f"Corrections are {state} and {'healthy' if system['healthy'] else 'limited'}."
    if not metrics:
        return said
    return (
        f"{said} {metrics['successfulCorrections']} of {metrics['totalCorrections']} held, "
        f"{metrics['refusedCalls']} calls were refused."
    )


def _say_configured(answer: Mapping[str, Any]) -> str:
    return "\n".join(answer["changesApplied"]) or "Nothing changed."


def _say_tests(answer: Mapping[str, Any]) -> str:
    overall = answer["overallResults"]
    failed = [each["testName"] for each in answer["testResults"] if not each["passed"]]
    said = f"{overall['passed']} of {overall['totalTests']} passed."
    return f"{said} Failed: {', '.join(failed)}." if failed else said


def _say_insights(answer: Mapping[str, Any]) -> str:
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
        gives=object_schema(
            required=("diagnosis", "autoCorrection"),
            diagnosis="object",
            autoCorrection="object",
            alternatives="array",
            preventionTips="array",
            learningInsights="object",
        ),
        reads=True,
        sdk=SdkMethod("error_diagnose", ("error",), returns=answers.Diagnosis),
    ),
    row(
        "auto_correction_status",
        "Correction status",
        "How the corrections of calls are doing: health, figures, what is under way.",
        inputs.StatusInput,
        services.corrections,
        Corrections.status,
        says=_say_status,
        gives=object_schema(
            required=("systemStatus", "healthChecks"),
            systemStatus="object",
            metrics="object",
            activeCorrections="array",
            strategyPerformance="object",
            healthChecks="object",
        ),
        reads=True,
        sdk=SdkMethod("auto_correction_status", returns=answers.CorrectionStatus),
    ),
    row(
        "auto_correction_configure",
        "Configure corrections",
        "Change what corrections may do, for all tools or for one; effective at once.",
        inputs.ConfigureInput,
        services.corrections,
        Corrections.configure,
        says=_say_configured,
        gives=object_schema(
            required=("configurationUpdated", "newSettings"),
            configurationUpdated="boolean",
            newSettings="object",
            changesApplied="array",
        ),
        right="admin",
        sdk=SdkMethod("auto_correction_configure", ("settings",), returns=answers.Configured),
    ),
    row(
        "auto_correction_test",
        "Test corrections",
        "Try corrections out on given calls or on a named suite; nothing is run.",
        inputs.TestInput,
        services.corrections,
        Corrections.test,
        says=_say_tests,
        gives=object_schema(
            required=("testResults", "overallResults"), testResults="array", overallResults="object"
        ),
        reads=True,
        sdk=SdkMethod("auto_correction_test", ("test_cases",), returns=answers.Tested),
    ),
    row(
        "auto_correction_insights",
        "Correction insights",
        "What the records of a time say about corrections: patterns, agents, tools, trends.",
        inputs.InsightsInput,
        services.analysis,
        Analysis.insights,
        says=_say_insights,
        gives=object_schema(
            required=("timeRange", "overallMetrics"),
            timeRange="object",
            overallMetrics="object",
            topPatterns="array",
            trends="object",
            recommendations="array",
        ),
        reads=True,
        sdk=SdkMethod("auto_correction_insights", returns=answers.Insights),
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
            gives=object_schema(patterns="array", profile="object", backup="object"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_patterns", ("action",), returns=answers.Patterns),
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
            gives=object_schema(circuitBreakers="array", reset="boolean"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_circuits", ("action",), returns=answers.Circuits),
        ),
        reading_actions=("list",),
    ),
)
