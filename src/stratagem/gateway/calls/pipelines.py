"""Pipelines as the gateway runs them: each step is a call, and each event of a step is in the log.

A run that was interrupted by a crash is resumed from its events: finished steps are never called
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from stratagem.engine.events import Draft
from stratagem.errors import ExecutionFailed, ExecutionNotFound, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.calls.call import Call, Execute
from stratagem.gateway.calls.work import (
    ProgressOfParts,
    WorkInProgress,
    WorkItem,
    cancellation_error,
    ending_note,
    item_of,
)
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.events import Publish
from stratagem.gateway.pipelines.answers import PipelinePreview
from stratagem.gateway.pipelines.definition import Pipeline, parse_pipeline
from stratagem.gateway.pipelines.machine import State, StepCall, StepEvent, resume
from stratagem.gateway.pipelines.preview import dry_run
from stratagem.gateway.pipelines.runner import PipelineResult, run_pipeline
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.redaction import mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import PURGED_AT, Transaction
from stratagem.storage.views import find_branch

__all__ = ["PipelineRunner", "Pipelines"]

# What callers and tools said, of all that is written of a run.
_SAID: Final = ("definition", "input", "result", "error")


class Pipelines:
    """Runs pipelines for callers, on the home loop."""

    def __init__(
        self,
        foundation: Foundation,
        registry: Registry,
        execute: Execute,
        publish: Publish,
        *,
        new_id: Callable[[str], str],
        work: WorkInProgress,
    ) -> None:
        self._foundation = foundation
        self._registry = registry
        self._execute = execute
        self._publish = publish
        self._new_id = new_id
        self._work = work

    async def run(
        self, definition: Mapping[str, Any], input_: Any, call: Call
    ) -> tuple[str, PipelineResult]:
        """Run a pipeline; return the id of the run, and how it ended."""
        pipeline = parse_pipeline(definition)
        run_id = call.execution_id or self._new_id("run")
        begun = {
            "runId": run_id,
            "name": pipeline.name,
            "definition": dict(definition),
            "input": input_,
            "caller": call.caller.actor,
        }
        draft = Draft(names.PIPELINE_STARTED, begun, names.PIPELINE_RUNS, run_id)
        with self._work.track(self._item(run_id, pipeline.name, call)) as item:
            await self._append(call, draft, self._work.note(item))
            return run_id, await self._run_tracked(item, begun, pipeline, None, call)

    async def resume(self, run_id: str, call: Call) -> tuple[str, PipelineResult]:
        """Go on with a run where it was cut off.

        Raises:
            ExecutionNotFound: There is no such run of the caller's own.
            ValidationFailed: It has ended.
        """
        begun, contents, purged = await asyncio.to_thread(self._read_run, run_id, call.branch)
        if not call.caller.sees_contents_of(begun["caller"]):
            # The results of its steps are for the caller who began it.
            raise _unknown_run(run_id)
        if "success" in begun:
            raise ValidationFailed(
                f"The run {run_id} has ended.",
                field="runId",
                hint="Run the pipeline again from the start.",
            )
        if purged:
            # A step whose record is gone would be run a second time.
            raise ValidationFailed(
                f"Data was purged since the run {run_id} began, perhaps results of its steps.",
                field="runId",
                hint="Check what it did, and run the pipeline again from the start.",
            )
        if any(each.pop("masked", False) for each in (begun, *contents)):
            # A masked value would change the arguments of the next call.
            raise ValidationFailed(
                f"The run {run_id} used values that may be secret, so it was not stored.",
                field="runId",
                hint="Run the pipeline again from the start.",
            )
        events = [StepEvent.of(each) for each in contents]
        pipeline = parse_pipeline(begun["definition"])
        required = await self._required_arguments(pipeline, call)
        state = resume(pipeline, begun["input"], events, required)
        # The remaining steps were written by the caller who began the run, perhaps in a saved
        # pipeline.
        call = replace(call, caller=call.caller.without_person())
        with self._work.track(self._item(run_id, pipeline.name, call)) as item:
            await self._append(call, None, self._work.note(item))
            return run_id, await self._run_tracked(item, begun, pipeline, state, call)

    def _item(self, run_id: str, name: str, call: Call) -> WorkItem:
        item = item_of(replace(call, tool=name), "pipeline", run_id, self._foundation.store.now())
        return replace(item, keeps_note=True)

    async def _run_tracked(
        self,
        item: WorkItem,
        begun: Mapping[str, Any],
        pipeline: Pipeline,
        state: State | None,
        call: Call,
    ) -> PipelineResult:
        """Run to the end, or until somebody cancels it: such a run is not resumed.

        A run that ends in any other way keeps its note, so that it can be found and resumed.
        """
        try:
            return await self._continue_run(item, begun, pipeline, state, call)
        except asyncio.CancelledError:
            if not item.was_cancelled():
                raise
            fault = cancellation_error(f"The pipeline {pipeline.name}", item.id)
            error = {"code": fault.code, "message": fault.message, "reason": "cancelled"}
            await self._end(call, item.id, {**begun, "success": False, "error": error})
            raise fault from None

    async def preview(
        self, definition: Mapping[str, Any], input_: Any, call: Call
    ) -> PipelinePreview:
        """Return what a pipeline would do; nothing is run."""
        pipeline = parse_pipeline(definition)
        schemas = await asyncio.to_thread(self._schemas, pipeline, call)
        return dry_run(pipeline, input_, schemas.get)

    async def _continue_run(
        self,
        item: WorkItem,
        begun: Mapping[str, Any],
        pipeline: Pipeline,
        state: State | None,
        call: Call,
    ) -> PipelineResult:
        run_id = item.id
        positions = {step.id: at for at, step in enumerate(pipeline.steps)}
        progress = ProgressOfParts(len(positions), item, call.progress)

        async def execute(step: StepCall) -> Any:
            # All that went before has ended; of a step with many elements each tells of itself.
            at = positions[step.step]
            progress.begin_part(at, f"step {step.step}")
            inner = replace(
                call,
                progress=progress.part(at),
                tool=step.tool,
                arguments=step.arguments,
                seconds=step.timeout,
                retries=0,
                depth=call.depth + 1,
                execution_id=None,
                correction_id=None,
                begin=None,
                parent=run_id,
                detached=False,
                # The same when a run is resumed: a service that knows such keys does nothing twice.
                request_key=f"{run_id}:{step.key}",
                context={**call.context, "pipelineRunId": run_id, "pipelineStep": step.key},
            )
            return (await self._execute(inner)).result

        async def record(event: StepEvent) -> None:
            content = {"runId": run_id, **event.as_json()}
            await self._append(call, Draft(names.STEP_RECORDED, content, names.STEPS))
            self._publish(
                "pipeline_step", {"runId": run_id, "name": pipeline.name, **event.as_json()}
            )

        required = await self._required_arguments(pipeline, call)
        result = await run_pipeline(
            pipeline, begun["input"], execute, record, state, required=required
        )
        ended = {**begun, "success": result.success, "error": result.error}
        await self._end(call, run_id, ended)
        return result

    async def _end(self, call: Call, run_id: str, ended: Mapping[str, Any]) -> None:
        draft = Draft(names.PIPELINE_ENDED, ended, names.PIPELINE_RUNS, run_id)
        await self._append(call, draft, ending_note(run_id))

    async def _append(self, call: Call, draft: Draft | None, note: Draft | None = None) -> None:
        """Write an event of a run, masked like an execution, and wait until it is safe.

        `note` says with it that the run is under way, or is no longer.
        """
        level = self._foundation.redaction

        def write() -> None:
            masked = draft and replace(draft, content=_mask_event(draft.content, level))

            def work(transaction: Transaction) -> None:
                if masked is not None:
                    transaction.append(find_branch(transaction.branches, call.branch), [masked])
                if note is not None:
                    transaction.append(find_branch(transaction.branches, "default"), [note])

            self._foundation.write(call.caller, work)

        await asyncio.to_thread(write)

    async def _required_arguments(self, pipeline: Pipeline, call: Call) -> Any:
        schemas = await asyncio.to_thread(self._schemas, pipeline, call)

        def required_by(tool: str) -> Sequence[str]:
            return (schemas.get(tool) or {}).get("required") or ()

        return required_by

    def _schemas(self, pipeline: Pipeline, call: Call) -> dict[str, Mapping[str, Any]]:
        foundation = self._foundation
        registry = self._registry.limited_to(call.caller, foundation)
        wanted = {step.tool for step in pipeline.steps}
        wanted |= {
            tool for step in pipeline.steps if (tool := getattr(step.on_error, "tool", None))
        }
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, call.branch)
            tools = {name: registry.get(reader, view, name) for name in wanted}
        return {
            name: tool.content["inputSchema"] for name, tool in tools.items() if tool is not None
        }

    def _read_run(
        self, run_id: str, branch: str
    ) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
        """Return a run and its events, and whether anything was purged since it began."""
        foundation = self._foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, branch)
            version = reader.records.current(view.lineage, names.PIPELINE_RUNS, run_id)
            if version is None or version.payload is None:
                raise _unknown_run(run_id)
            hits = reader.log.contents(reader.catalogue.with_facet(view, names.facet_run(run_id)))
            purged = int(reader.settings.number(PURGED_AT) or 0) > version.sequence
        contents = [orjson.loads(hits[each].payload) for each in sorted(hits)]
        for content in contents:
            del content["runId"]
        return orjson.loads(version.payload), contents, purged


class PipelineRunner:
    """Runs a pipeline that was saved as a tool."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines

    def check(self, handler: Handler) -> list[str]:
        """Check the definition."""
        definition = handler.get("definition")
        if not isinstance(definition, Mapping):
            raise ValidationFailed(
                "`handler.definition` is a pipeline.", field="handler.definition"
            )
        parse_pipeline(definition)
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return what came out of the pipeline."""
        call = Call(
            tool=run.tool,
            arguments=run.arguments,
            # The steps were written by the author of the pipeline, not by the person who calls it.
            caller=run.caller.without_person(),
            branch=run.branch,
            depth=run.depth,
            progress=run.progress,
            parent=run.execution_id,
        )
        run_id, result = await self._pipelines.run(handler["definition"], dict(run.arguments), call)
        if not result.success:
            error = result.error
            reason = error["message"] if error else "a step failed"
            raise ExecutionFailed(
                f"The pipeline {result.name} stopped: {reason}",
                answered=True,
                runId=run_id,
                error=error,
            )
        return result.output

    async def close(self) -> None:
        """End nothing."""


def _mask_event(content: Mapping[str, Any], level: Any) -> Mapping[str, Any]:
    """Return an event with secrets masked, marked as such if anything was."""
    said = {name: mask_json(content[name], level) for name in _SAID if name in content}
    if all(content[name] == each for name, each in said.items()):
        return content
    return {**content, **said, "masked": True}


def _unknown_run(run_id: str) -> ExecutionNotFound:
    return ExecutionNotFound(f"There is no run {run_id!r}.", field="runId")
