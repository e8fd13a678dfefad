"""The six meta tools, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem.gateway import services
from stratagem.gateway.advice import answers, inputs
from stratagem.gateway.advice.looking import Looking
from stratagem.gateway.advice.planning import Planning
from stratagem.gateway.advice.recommending import Recommending
from stratagem.gateway.advice.recovering import Recovering
from stratagem.gateway.rows import row
from stratagem.operation import Operation, SdkMethod, object_schema

__all__ = ["OPERATIONS"]


def _say_recommended(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['name']} ({each['relevanceScore']:.2f}): {each['description']} {each['reasoning']}"
        for each in answer["recommendedTools"]
    ]
    return "\n".join(lines) or "No tool fits."


def _say_recovery(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['failedTool']}: {answer['errorType']}."]
    if fix := answer["knownFix"]:
        lines.append(f"Known fix: {fix.get('steps')}")
    lines += [
        f"Try {each['suggested']}: {each['reason']}"
        for each in answer.get("parameterCorrections", ())
    ]
    lines += [f"Or {each['name']}: {each['description']}" for each in answer["alternatives"]]
    return "\n".join([*lines, *answer["preventionTips"]])


def _say_validated(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['toolName']}: "
        + ("available" if each["available"] else each.get("reason", "not configured"))
        for each in answer["results"]
    ]
    return "\n".join(lines)


def _say_discovered(answer: Mapping[str, Any]) -> str:
    lines = [f"{each['name']}: {each['description']}" for each in answer["tools"]]
    head = f"{answer['filteredCount']} of {answer['totalAvailable']} tools."
    return "\n".join([head, *lines])


def _say_compared(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['name']}: {', '.join(each['parameters'])}; {each['evidence']}"
        for each in answer["tools"]
    ]
    lines += [f"{each['to']}: {each['difference']}" for each in answer["differences"]]
    return "\n".join(lines)


def _say_plan(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{at}. {each['tool']} {each['arguments']}" for at, each in enumerate(answer["steps"], 1)
    ]
    if answer["missing"]:
        lines.append(f"To be given: {', '.join(answer['missing'])}.")
    return "\n".join(lines) or "No tool fits."


OPERATIONS: tuple[Operation, ...] = (
    row(
        "tools_recommend",
        "Recommend tools",
        "Which registered tools do what is to be done, and why.",
        inputs.RecommendInput,
        services.recommending,
        Recommending.recommend,
        says=_say_recommended,
        gives=object_schema(
            required=("recommendedTools",),
            recommendedTools="array",
            totalAvailableTools="integer",
            fallbackMode="boolean",
        ),
        reads=True,
        sdk=SdkMethod("recommend", ("intent",), returns=answers.Recommended),
    ),
    row(
        "tools_recommend_on_error",
        "Recover from error",
        "After a failed call: corrected arguments, known fixes, other tools.",
        inputs.OnErrorInput,
        services.recovering,
        Recovering.recommend,
        says=_say_recovery,
        gives=object_schema(
            required=("failedTool", "errorType", "alternatives"),
            failedTool="string",
            errorType="string",
            alternatives="array",
            parameterCorrections="array",
        ),
        reads=True,
        sdk=SdkMethod(
            "recommend_on_error", ("failed_tool", "error_message"), returns=answers.Recovery
        ),
    ),
    row(
        "tools_validate",
        "Validate tools",
        "Whether tools can be called now.",
        inputs.ValidateInput,
        services.looking,
        Looking.validate,
        says=_say_validated,
        gives=object_schema(
            required=("results", "allAvailable"), results="array", allAvailable="boolean"
        ),
        reads=True,
        sdk=SdkMethod("validate", ("tool_names",), returns=answers.Validated),
    ),
    row(
        "tools_discover",
        "Discover tools",
        "Registered tools by category, source and name.",
        inputs.DiscoverInput,
        services.looking,
        Looking.discover,
        says=_say_discovered,
        gives=object_schema(
            required=("tools", "filteredCount"), tools="array", filteredCount="integer"
        ),
        reads=True,
        sdk=SdkMethod("discover", ("name_pattern",), returns=answers.Discovered),
    ),
    row(
        "tools_compare",
        "Compare tools",
        "How tools for the same job differ: parameters, evidence, latency.",
        inputs.CompareInput,
        services.looking,
        Looking.compare,
        says=_say_compared,
        gives=object_schema(
            required=("tools", "differences"), tools="array", differences="array", best="object"
        ),
        reads=True,
        sdk=SdkMethod("compare", ("tool_names",), returns=answers.Comparison),
    ),
    row(
        "workflow_plan",
        "Plan workflow",
        "Chain tools to a goal; the definition can be run by tools_pipeline.",
        inputs.PlanInput,
        services.planning,
        Planning.plan,
        says=_say_plan,
        gives=object_schema(
            required=("steps", "runnable"),
            steps="array",
            definition=None,
            missing="array",
            runnable="boolean",
        ),
        reads=True,
        sdk=SdkMethod("workflow_plan", ("goal",), returns=answers.Plan),
    ),
)
