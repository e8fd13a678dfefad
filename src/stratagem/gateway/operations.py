"""The operations of the gateway, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem.errors import GatewayErrorBody
from stratagem.gateway import inputs, services
from stratagem.gateway.advice_operations import OPERATIONS as META
from stratagem.gateway.calls.answers import (
    BatchAnswer,
    CallAnswer,
    CancelledWork,
    ToolHelp,
    WorkList,
)
from stratagem.gateway.calls.work_service import WorkService
from stratagem.gateway.learning_operations import OPERATIONS as CORRECTIONS
from stratagem.gateway.pipelines.answers import (
    PipelinePreview,
    PipelineRun,
    StepPreview,
    StepReport,
)
from stratagem.gateway.registry.answers import ToolRegistration
from stratagem.gateway.registry_operations import OPERATIONS as REGISTRY
from stratagem.gateway.registry_operations import say_registered
from stratagem.gateway.rows import row
from stratagem.gateway.service import Gateway
from stratagem.operation import CommandHint, Operation, SdkMethod, advise

__all__ = ["OPERATIONS"]


# Values of a parameter that are told in words; the schema has all of them.
_ENUM_SAID: Final = 30


def _say_started(execution_id: str) -> str:
    look = advise("work_list shows its result, work_cancel stops it.")
    return f"It continues as {execution_id}: {look}"


def _say_work(answer: WorkList) -> str:
    if "outcome" in answer:
        outcome = answer["outcome"]
        said = outcome.get("answer") or outcome.get("error")
        return f"{outcome['executionId']} {outcome['state']}: {orjson.dumps(said).decode()}"
    lines = [
        f"{each['executionId']} {each['kind']} {each['name']}: {each['state']} for "
        f"{each['duration'] / 1000:.1f} s" + (f", {each['message']}" if each["message"] else "")
        for each in answer["work"]
    ]
    return "\n".join(lines) or "Nothing is running."


def _say_cancelled(answer: CancelledWork) -> str:
    if answer["cancelled"]:
        return f"{answer['executionId']} will end."
    return f"You have no running call {answer['executionId']}: {advise('see work_list.')}"


def _say_result(answer: CallAnswer) -> str:
    if answer.get("running"):
        return _say_started(answer["executionId"])
    text = _as_json(answer["result"])
    notes = answer["metadata"]
    correction = notes.get("correction")
    # Whoever is not told what was changed makes the same mistake again.
    corrected = f"\n[Arguments corrected: {correction['reasoning']}]" if correction else ""
    warned = "".join(f"\n[{each}]" for each in notes.get("warnings", ()))
    return f"{text}\n[{answer['executionId']}, {notes['duration']:.0f} ms]{corrected}{warned}"


def _say_batch(answer: BatchAnswer) -> str:
    if answer.get("running"):
        return _say_started(answer["executionId"])
    lines = [
        f"{each['toolName']}: "
        + (_as_json(each["result"]) if each["success"] else _say_error(each["error"]))
        for each in answer["results"]
    ]
    return "\n".join([f"{answer['succeeded']} of {answer['total']} worked.", *lines])


def _say_error(error: GatewayErrorBody) -> str:
    """Say what failed and the next step, as the answer to a single call does."""
    return " ".join(filter(None, (error["code"], error["message"], error["hint"])))


def _say_pipeline(answer: PipelineRun | PipelinePreview | ToolRegistration) -> str:
    if "steps" not in answer:
        return say_registered(answer)
    if "valid" in answer:
        planned = ["It can run." if answer["valid"] else "It cannot run as it is."]
        return "\n".join([*planned, *map(_say_planned, answer["steps"])])
    if answer.get("running"):
        return _say_started(answer["runId"])
    lines = [_say_step(each) for each in answer["steps"]]
    if answer["output"] is not None:
        lines.append(f"Output: {_as_json(answer['output'])}")
    return "\n".join(["It worked." if answer["success"] else "It did not work.", *lines])


def _say_planned(step: StepPreview) -> str:
    return " ".join([f"{step['id']}: planned", *step["problems"]])


def _say_step(step: StepReport) -> str:
    line = f"{step['id']}: {step['status']}"
    failed = [each["error"] for each in step.get("items", ()) if "error" in each]
    error = step.get("error") or next(iter(failed), None)
    return f"{line}, {error['code']} {error['message']}" if error else line


def _as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _say_help(answer: ToolHelp) -> str:
    schema = answer["inputSchema"]
    required = set(answer["required"])
    lines = [f"{answer['toolName']}: {answer['description']}"]
    for name, each in (schema.get("properties") or {}).items():
        lines.append(_say_parameter(name, each, required=name in required))
    return "\n".join(lines)


def _say_parameter(name: str, schema: Any, *, required: bool) -> str:
    """Say what a parameter is, with the values that it may have where they are few."""
    schema = schema if isinstance(schema, Mapping) else {}
    kind = schema.get("type", "any")
    kind = " or ".join(map(str, kind)) if isinstance(kind, list) else kind
    within = schema.get("items") if isinstance(schema.get("items"), Mapping) else {}
    values = schema.get("enum") or within.get("enum")
    if not isinstance(values, list):
        values = [schema["const"]] if "const" in schema else []
    shown = [orjson.dumps(each).decode() for each in values[:_ENUM_SAID]]
    more = f" and {len(values) - _ENUM_SAID} more" if len(values) > _ENUM_SAID else ""
    allowed = f" One of: {', '.join(shown)}{more}." if shown else ""
    usual = f" Default: {orjson.dumps(schema['default']).decode()}." if "default" in schema else ""
    need = ", required" if required else ""
    return f"  {name} ({kind}{need}) {schema.get('description', '')}{allowed}{usual}".rstrip()


OPERATIONS: tuple[Operation, ...] = (
    row(
        "tool_help",
        "Tool help",
        "How to call a registered tool: parameters, examples, how well its calls worked.",
        inputs.HelpInput,
        services.gateway,
        Gateway.help,
        says=_say_help,
        answer_fields=("toolName", "inputSchema"),
        reads=True,
        sdk=SdkMethod("help", ("tool_name",)),
        example={"toolName": "calculator"},
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
        right="execute",
        calls_tools=True,
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
        example={"toolName": "calculator", "arguments": {"expression": "6 * 7"}},
    ),
    row(
        "tools_batch",
        "Execute batch",
        "Call several registered tools, at once or in order; each has its own result.",
        inputs.BatchInput,
        services.gateway,
        Gateway.batch,
        says=_say_batch,
        answer_fields=("results", "succeeded"),
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("batch", ("executions",)),
        example={"executions": [{"toolName": "calculator", "arguments": {"expression": "6 * 7"}}]},
    ),
    row(
        "tools_pipeline",
        "Execute pipeline",
        "Call tools one after another; ${{ steps.a.result.x }} refers to earlier results.",
        inputs.PipelineInput,
        services.gateway,
        Gateway.pipeline,
        says=_say_pipeline,
        answer_fields=("runId", "success", "steps", "output"),
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("pipeline"),
    ),
    row(
        "work_list",
        "Work in progress",
        "Running calls, batches and pipelines: your own; administrators see all. With "
        "`executionId`, the result of one that was started with `async`.",
        inputs.WorkListInput,
        services.work,
        WorkService.find,
        says=_say_work,
        answer_fields=("work", "outcome"),
        reads=True,
        sdk=SdkMethod("work", ("execution_id",)),
        commands=(
            CommandHint(
                ("tools", "running"),
                "Show running calls, batches and pipelines, on any server.",
                positional=("executionId",),
                renderer="tools.show_work",
            ),
        ),
        example={},
    ),
    row(
        "work_cancel",
        "Cancel work",
        "Stop a call, batch or pipeline by its executionId, or by the requestId you gave it.",
        inputs.WorkCancelInput,
        services.work,
        WorkService.cancel,
        says=_say_cancelled,
        right="execute",
        destructive=True,
        sdk=SdkMethod("cancel", ("execution_id",)),
        commands=(
            CommandHint(
                ("tools", "cancel"),
                "Stop a call, batch or pipeline, on any server.",
                positional=("executionId",),
            ),
        ),
    ),
    *CORRECTIONS,
    *META,
    *REGISTRY,
)
