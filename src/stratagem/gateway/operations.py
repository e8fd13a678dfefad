"""The operations of the gateway, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from stratagem.gateway import inputs, services
from stratagem.gateway.advice_operations import OPERATIONS as META
from stratagem.gateway.learning_operations import OPERATIONS as CORRECTIONS
from stratagem.gateway.registry_operations import OPERATIONS as REGISTRY
from stratagem.gateway.registry_operations import say_registered
from stratagem.gateway.rows import row
from stratagem.gateway.service import Gateway
from stratagem.operation import CommandHint, Operation, SdkMethod, object_schema

__all__ = ["OPERATIONS"]


def _say_result(answer: Mapping[str, Any]) -> str:
    text = orjson.dumps(answer["result"]).decode()
    notes = answer["metadata"]
    correction = notes.get("correction")
    # Whoever is not told what was changed makes the same mistake again.
    corrected = f"\n[Arguments corrected: {correction['reasoning']}]" if correction else ""
    return f"{text}\n[{answer['executionId']}, {notes['duration']:.0f} ms]{corrected}"


def _say_batch(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['toolName']}: {'ok' if each['success'] else _say_failure(each['error'])}"
        for each in answer["results"]
    ]
    return "\n".join([f"{answer['succeeded']} of {answer['total']} worked.", *lines])


def _say_failure(error: Mapping[str, Any]) -> str:
    """Say what failed and the next step, as the answer to a single call does."""
    return " ".join(filter(None, (error["code"], error["message"], error.get("hint"))))


def _say_pipeline(answer: Mapping[str, Any]) -> str:
    if "steps" not in answer:
        return say_registered(answer)
    lines = [_say_step(each) for each in answer["steps"]]
    head = "It worked." if answer.get("success", answer.get("valid")) else "It did not work."
    return "\n".join([head, *lines])


def _say_step(step: Mapping[str, Any]) -> str:
    error = step.get("error")
    line = f"{step.get('id') or step.get('tool')}: {step.get('status', 'planned')}"
    return f"{line}, {_say_failure(error)}" if error else line


def _say_help(answer: Mapping[str, Any]) -> str:
    schema = answer["inputSchema"]
    required = set(answer["required"])
    lines = [f"{answer['toolName']}: {answer['description']}"]
    for name, each in (schema.get("properties") or {}).items():
        kind = each.get("type", "any") if isinstance(each, Mapping) else "any"
        said = each.get("description", "") if isinstance(each, Mapping) else ""
        lines.append(f"  {name} ({kind}{', required' if name in required else ''}) {said}")
    return "\n".join(lines)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "tool_help",
        "Tool help",
        "How to call a registered tool: parameters, examples, how it has been doing.",
        inputs.HelpInput,
        services.gateway,
        Gateway.help,
        says=_say_help,
        gives=object_schema(
            required=("toolName", "inputSchema"), toolName="string", inputSchema="object"
        ),
        reads=True,
        sdk=SdkMethod("help", ("tool_name",)),
    ),
    row(
        "tool_execute",
        "Execute tool",
        "Call a registered tool. Arguments that do not fit its schema are corrected where only one "
        "reading is possible; otherwise the answer says what to change.",
        inputs.ExecuteInput,
        services.gateway,
        Gateway.execute,
        says=_say_result,
        gives=object_schema(
            required=("executionId", "result", "metadata"),
            executionId="string",
            result=None,
            metadata="object",
        ),
        right="execute",
        sdk=SdkMethod("execute", ("tool_name", "arguments")),
        commands=(
            CommandHint(
                ("tools", "call"),
                "Call a tool; arguments are corrected where only one reading is possible.",
                positional=("toolName", "arguments"),
                renderer="tools.show_result",
                handler="tools.call_tool",
            ),
        ),
    ),
    row(
        "tools_batch",
        "Execute batch",
        "Call several registered tools, at once or in order; each has its own result.",
        inputs.BatchInput,
        services.gateway,
        Gateway.batch,
        says=_say_batch,
        gives=object_schema(required=("results",), results="array", succeeded="integer"),
        right="execute",
        sdk=SdkMethod("batch", ("executions",)),
    ),
    row(
        "tools_pipeline",
        "Execute pipeline",
        "Call tools one after another; ${{ steps.a.result.x }} refers to earlier results.",
        inputs.PipelineInput,
        services.gateway,
        Gateway.pipeline,
        says=_say_pipeline,
        gives=object_schema(runId="string", success="boolean", steps="array", output=None),
        right="execute",
        sdk=SdkMethod("pipeline"),
    ),
    *CORRECTIONS,
    *META,
    *REGISTRY,
)
