"""The operations on corrections, as rows of the table that every surface is made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from stratagem.gateway import services
from stratagem.gateway.learning import answers, inputs
from stratagem.gateway.learning.service import (
    CorrectionAnalysis,
    CorrectionService,
    PatternAdministration,
)
from stratagem.gateway.rows import row
from stratagem.operation import CommandHint, Operation, SdkMethod

__all__ = ["OPERATIONS"]


def _say_diagnosis(answer: answers.CallDiagnosis) -> str:
    diagnosis = answer["diagnosis"]
    lines = [f"{diagnosis['errorType']}: {diagnosis['rootCause']}"]
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
        f"{said} {metrics['successfulCorrections']} of {metrics['totalCorrections']} "
        f"worked, {metrics['refusedCalls']} calls were refused."
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
        f"{overall['successfulCorrections']} of {overall['totalCorrections']} corrections "
        f"worked in {answer['timeRange']['duration']}."
    )
    return "\n".join([said, *answer["recommendations"]])


_PATTERN_COMMANDS: Final = (
    CommandHint(
        ("corrections", "patterns"),
        "Show what was learned, and how well each pattern works.",
        only=("toolName", "minUsage", "asOf"),
        flags={"toolName": ("--tool",), "minUsage": ("--used",)},
        fixed={"action": "list"},
        renderer="correction_tables.show_patterns",
    ),
    CommandHint(
        ("corrections", "profile"),
        "Show what a tool is usually called with: parameters, types, forms.",
        positional=("toolName",),
        required=("toolName",),
        only=("toolName", "asOf"),
        fixed={"action": "profile"},
        renderer="correction_tables.show_patterns",
    ),
    CommandHint(
        ("corrections", "backup"),
        "Print the lessons as JSON, for `corrections restore`.",
        only=("toolName", "minUsage", "asOf"),
        flags={"toolName": ("--tool",), "minUsage": ("--used",)},
        fixed={"action": "backup"},
        handler="corrections.backup",
    ),
    CommandHint(
        ("corrections", "restore"),
        "Restore missing lessons; existing ones are kept.",
        positional=("backup",),
        required=("backup",),
        only=("backup", "requestId"),
        fixed={"action": "restore"},
        renderer="correction_tables.show_patterns",
    ),
)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "error_diagnose",
        "Diagnose error",
        "What is wrong with a call, how to correct it, and what is known to help.",
        inputs.DiagnoseInput,
        services.correction_analysis,
        CorrectionAnalysis.diagnose,
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
        commands=(
            CommandHint(
                ("tools", "diagnose"),
                "Show what is wrong with a call and how it could be corrected; nothing is called.",
                panel="Which tool, and why not",
                positional=("toolName", "parameters"),
                flags={"includeAlternatives": ("--alternatives",)},
                renderer="correction_tables.show_diagnosis",
                handler="corrections.diagnose",
            ),
        ),
    ),
    row(
        "auto_correction_status",
        "Correction status",
        "How well corrections of calls work: health, figures, corrections under way.",
        inputs.StatusInput,
        services.corrections,
        CorrectionService.status,
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
        commands=(
            CommandHint(
                ("corrections", "status"),
                "Show whether corrections work, their figures and what they may do.",
                flags={"timeRange": ("--range",)},
                renderer="correction_tables.show_status",
            ),
        ),
    ),
    row(
        "auto_correction_configure",
        "Configure corrections",
        "Change what corrections may do, for all tools or for one; effective at once.",
        inputs.ConfigureInput,
        services.corrections,
        CorrectionService.configure,
        says=_say_policy_update,
        answer_fields=("configurationUpdated", "newSettings", "changesApplied"),
        right="admin",
        sdk=SdkMethod("auto_correction_configure", ("settings",)),
        commands=(
            CommandHint(
                ("corrections", "configure"),
                "Change what corrections may do, for all tools or for one; effective at once.",
                flags={"toolName": ("--tool",)},
                renderer="correction_tables.show_configured",
                handler="corrections.configure",
            ),
        ),
    ),
    row(
        "auto_correction_test",
        "Test corrections",
        "Test corrections on given calls or on a named suite; no tool is called.",
        inputs.TestInput,
        services.corrections,
        CorrectionService.test,
        says=_say_tests,
        answer_fields=("testResults", "overallResults"),
        reads=True,
        sdk=SdkMethod("auto_correction_test", ("test_cases",)),
        commands=(
            CommandHint(
                ("corrections", "test"),
                "Test corrections on a suite, on cases or on a tool; no tool is called.",
                positional=("testSuite",),
                flags={
                    "testCases": ("--cases",),
                    "includePerformance": ("--performance",),
                    "runDiagnostics": ("--diagnostics",),
                },
                renderer="correction_tables.show_tested",
                handler="corrections.try_out",
            ),
        ),
    ),
    row(
        "auto_correction_insights",
        "Correction insights",
        "Statistics of corrections over a period: patterns, agents, tools, trends.",
        inputs.InsightsInput,
        services.correction_analysis,
        CorrectionAnalysis.insights,
        says=_say_insights,
        answer_fields=("timeRange", "overallMetrics", "topPatterns", "trends", "recommendations"),
        reads=True,
        sdk=SdkMethod("auto_correction_insights"),
        commands=(
            CommandHint(
                ("corrections", "insights"),
                "Show statistics of a period by tool, pattern and agent.",
                flags={
                    "timeRange": ("--range",),
                    "includeFailures": ("--failures",),
                    "minPatternUsage": ("--used",),
                },
                renderer="correction_tables.show_insights",
            ),
        ),
    ),
    replace(
        row(
            "auto_correction_patterns",
            "Correction patterns",
            "List what corrections have learned, show what a tool is usually called with, back "
            "patterns up and restore them.",
            inputs.PatternsInput,
            services.pattern_administration,
            PatternAdministration.patterns,
            answer_fields=("patterns", "profile", "backup"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_patterns", ("action",)),
            commands=_PATTERN_COMMANDS,
        ),
        reading_actions=("list", "profile", "backup"),
    ),
    replace(
        row(
            "auto_correction_circuits",
            "Correction breakers",
            "List the breakers that pause corrections for tools where they failed, or reset one.",
            inputs.CircuitsInput,
            services.pattern_administration,
            PatternAdministration.circuits,
            answer_fields=("circuitBreakers", "reset"),
            toolset="registry",
            sdk=SdkMethod("auto_correction_circuits", ("action",)),
            commands=(
                CommandHint(
                    ("corrections", "circuits"),
                    "Show the breakers that pause corrections, or close one.",
                    renderer="correction_tables.show_circuits",
                    handler="corrections.circuits",
                ),
            ),
        ),
        reading_actions=("list",),
    ),
)
