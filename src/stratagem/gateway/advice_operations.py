"""The six meta tools, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stratagem.gateway import services
from stratagem.gateway.advice import answers, inputs
from stratagem.gateway.advice.error_recovery import ErrorRecoveryService
from stratagem.gateway.advice.recommendations import RecommendationService
from stratagem.gateway.advice.tool_inspection import ToolInspection
from stratagem.gateway.advice.workflow_planner import WorkflowPlanner
from stratagem.gateway.rows import row
from stratagem.operation import CommandHint, Operation, SdkMethod, advise

__all__ = ["OPERATIONS"]


def _say_recommendations(answer: answers.ToolRecommendations) -> str:
    lines = [
        f"{each['name']} ({each['relevanceScore']:.2f}): {each['description']} {each['reasoning']}"
        for each in answer["recommendedTools"]
    ]
    return "\n".join([*lines, *filter(None, [answer["note"]])])


def _say_recovery(answer: answers.ErrorRecovery) -> str:
    lines = [f"{answer['failedTool']}: {answer['errorType']}."]
    if fix := answer["knownFix"]:
        lines.append(f"Known fix: {fix.get('steps')}")
    lines += [
        f"Try {each['suggested']}: {each['reason']}"
        for each in answer.get("parameterCorrections", ())
    ]
    lines += [f"Or {each['name']}: {each['description']}" for each in answer["alternatives"]]
    return "\n".join([*lines, *answer["preventionTips"]])


def _say_validation(answer: answers.ToolValidation) -> str:
    lines = [
        f"{each['toolName']}: "
        + ("available" if each["available"] else each.get("reason", "not configured"))
        for each in answer["results"]
    ]
    return "\n".join(lines)


def _say_discovery(answer: answers.ToolDiscovery) -> str:
    lines = [f"{each['name']}: {each['description']}" for each in answer["tools"]]
    head = f"{answer['filteredCount']} of {answer['totalAvailable']} tools."
    return "\n".join([head, *lines])


def _say_comparison(answer: answers.ToolComparison) -> str:
    lines = [
        f"{each['name']}: {', '.join(each['parameters'])}; {each['evidence']}"
        for each in answer["tools"]
    ]
    lines += [f"{each['to']}: {each['difference']}" for each in answer["differences"]]
    return "\n".join(lines)


def _say_plan(answer: answers.WorkflowPlan) -> str:
    lines = [
        line for at, each in enumerate(answer["steps"], 1) for line in _say_plan_step(at, each)
    ]
    if answer["missing"]:
        lines.append(f"Still needed: {', '.join(answer['missing'])}.")
    lines += [f"{name} cannot be used: {why}" for name, why in answer["invalid"].items()]
    lines += [f"No tool does this: {part}" for part in answer["unmatched"]]
    lines += [f"Beyond maxSteps: {part}" for part in answer["omitted"]]
    lines += [f"Not proven: {each}" for each in answer["unproven"]]
    if answer["runnable"]:
        run = advise("give the definition and the inputs to tools_pipeline.")
        lines.append(f"It can be run: {run}")
    return "\n".join(lines) or "No tool fits."


def _say_plan_step(at: int, step: answers.PlanStep) -> Iterator[str]:
    score = "" if step["score"] is None else f" ({step['score']:.2f})"
    yield f"{at}. {step['tool']}{score} {step['arguments']}"
    for other in step["alternatives"]:
        needs = f", needs {', '.join(other['open'])}" if other["open"] else ""
        yield f"   or {other['tool']} ({other['score']:.2f}{needs})"


_ADVICE: Final = "Which tool, and why not"

OPERATIONS: tuple[Operation, ...] = (
    row(
        "tools_recommend",
        "Recommend tools",
        "Which registered tools do a task, and why.",
        inputs.RecommendInput,
        services.recommendations,
        RecommendationService.recommend,
        says=_say_recommendations,
        answer_fields=("recommendedTools", "note", "totalAvailableTools", "fallbackMode"),
        reads=True,
        sdk=SdkMethod("recommend", ("intent",)),
        commands=(
            CommandHint(
                ("tools", "recommend"),
                "Show which tools do a task, best first, and why.",
                panel=_ADVICE,
                positional=("intent",),
                joined="intent",
                flags={"maxRecommendations": ("--limit",)},
                renderer="advice_tables.show_recommended",
            ),
        ),
        example={"intent": "work out a sum"},
    ),
    row(
        "tools_recommend_on_error",
        "Recover from error",
        "After a failed call: corrected arguments, known fixes, other tools.",
        inputs.OnErrorInput,
        services.error_recovery,
        ErrorRecoveryService.recommend,
        says=_say_recovery,
        answer_fields=("failedTool", "errorType", "alternatives", "parameterCorrections"),
        reads=True,
        sdk=SdkMethod("recommend_on_error", ("failed_tool", "error_message")),
        commands=(
            CommandHint(
                ("tools", "recover"),
                "After a call that failed: show corrected arguments, known fixes and other tools.",
                panel=_ADVICE,
                positional=("failedTool", "failedParameters"),
                flags={"errorMessage": ("--error",), "maxAlternatives": ("--limit",)},
                renderer="advice_tables.show_recovery",
            ),
        ),
        example={"failedTool": "calculator", "errorMessage": "division by zero"},
    ),
    row(
        "tools_validate",
        "Validate tools",
        "Whether tools can be called now.",
        inputs.ValidateInput,
        services.tool_inspection,
        ToolInspection.validate,
        says=_say_validation,
        answer_fields=("results", "allAvailable"),
        reads=True,
        sdk=SdkMethod("validate", ("tool_names",)),
        commands=(
            CommandHint(
                ("tools", "validate"),
                "Show which tools can be called now, and why others cannot.",
                panel=_ADVICE,
                positional=("toolNames",),
                flags={"checkConfiguration": ("--configuration",)},
                renderer="advice_tables.show_validated",
            ),
        ),
        example={"toolNames": ["calculator"]},
    ),
    row(
        "tools_discover",
        "Discover tools",
        "Registered tools by category, source and name.",
        inputs.DiscoverInput,
        services.tool_inspection,
        ToolInspection.discover,
        says=_say_discovery,
        answer_fields=("tools", "filteredCount"),
        reads=True,
        sdk=SdkMethod("discover", ("name_pattern",)),
        commands=(
            CommandHint(
                ("tools", "discover"),
                "Show tools by name, category and source.",
                panel=_ADVICE,
                positional=("namePattern",),
                flags={"includeSchema": ("--schema",)},
                renderer="advice_tables.show_discovered",
            ),
        ),
    ),
    row(
        "tools_compare",
        "Compare tools",
        "How tools for the same job differ: parameters, evidence, latency.",
        inputs.CompareInput,
        services.tool_inspection,
        ToolInspection.compare,
        says=_say_comparison,
        answer_fields=("tools", "differences", "best"),
        reads=True,
        sdk=SdkMethod("compare", ("tool_names",)),
        commands=(
            CommandHint(
                ("tools", "compare"),
                "Show tools side by side: what they take, how their calls went, what differs.",
                panel=_ADVICE,
                positional=("toolNames",),
                renderer="advice_tables.show_compared",
            ),
        ),
        example={"toolNames": ["calculator", "date_time"]},
    ),
    row(
        "workflow_plan",
        "Plan workflow",
        "Split a goal into steps with their best tools; tools_pipeline can run the definition.",
        inputs.PlanInput,
        services.workflow_planner,
        WorkflowPlanner.plan,
        says=_say_plan,
        answer_fields=("steps", "definition", "missing", "runnable"),
        reads=True,
        sdk=SdkMethod("workflow_plan", ("goal",)),
        commands=(
            CommandHint(
                ("tools", "plan"),
                "Show which sequence of tools reaches a goal, and where their arguments come from.",
                panel=_ADVICE,
                positional=("goal",),
                joined="goal",
                flags={"tools": ("--tool",), "maxSteps": ("--steps",)},
                renderer="advice_tables.show_plan",
                handler="tools.plan",
            ),
        ),
        example={"goal": "work out a sum"},
    ),
)
