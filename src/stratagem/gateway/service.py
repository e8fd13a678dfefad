"""The gateway for one caller: the registry, calls and what was recorded of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, TypeVar, cast

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.engine import moments
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, View
from stratagem.errors import (
    ExecutionNotFound,
    MissingRequired,
    PermissionDenied,
    StratagemError,
    ValidationFailed,
)
from stratagem.gateway import inputs, names
from stratagem.gateway.calls import history, result_cache
from stratagem.gateway.calls.answers import (
    BatchAnswer,
    BatchFailure,
    BatchSuccess,
    BreakerReset,
    CacheRules,
    CallAnswer,
    ClearedCache,
    ExecutionDetails,
    ExecutionFacts,
    ExecutionPage,
    ExecutionRecord,
    RecordedError,
    ResultCacheFigures,
    ToolAnswer,
    ToolBreaker,
    ToolBreakers,
    ToolDescription,
    ToolEntry,
    ToolHelp,
    ToolList,
)
from stratagem.gateway.calls.call import Call, call_of, request_ids_of
from stratagem.gateway.calls.guardrails import guardrails_of
from stratagem.gateway.calls.work import ProgressOfParts, WorkItem, cancellation_error, item_of
from stratagem.gateway.definitions.contract import ProgressReport
from stratagem.gateway.handlers.python import PythonRunner
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.person import call_command, runs_outside
from stratagem.gateway.pipelines.answers import PipelinePreview, PipelineRun
from stratagem.gateway.pipelines.definition import parse_pipeline
from stratagem.gateway.registry.answers import (
    RemovedTool,
    ToolRefusal,
    ToolRegistration,
    ToolUpdate,
)
from stratagem.gateway.registry.secrets import references
from stratagem.gateway.registry.tool_sets import refuse_limited
from stratagem.gateway.registry.tools import Tool, details_of, summary_of
from stratagem.gateway.secret_grants import effective_state, grants_of
from stratagem.operation import Caller
from stratagem.parameters import Input
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Gateway"]

_SECOND = 1_000_000
# No more digits: `int` raises on thousands of them.
_SIZE = re.compile(r"([0-9]{1,18})\s*+(B|KB|MB|GB|)")
_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}

BatchResultT = TypeVar("BatchResultT", BatchSuccess, BatchFailure)
T = TypeVar("T")
BatchResults = list[BatchSuccess | BatchFailure]

# What everybody who may look at executions sees of those of others.
_FACTS = frozenset({*ExecutionFacts.__annotations__, "startedAt"})
# Registering one of these runs the caller's code on the server, even if in a sandbox. Handlers that
# run outside of it need more: see `person`.
_RUNS_CODE = frozenset({"python", "code", "mcp", "operation"})


class Gateway:
    """The operations of the gateway, for one caller."""

    def __init__(self, parts: GatewayParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller
        self._foundation = parts.foundation
        self._registry = parts.registry.limited_to(caller, parts.foundation)

    # --- the registry

    def register(self, given: inputs.RegisterInput) -> ToolRegistration:
        """Add a tool."""
        refuse_limited(self._caller, "registering a tool")
        self._may_handle(given.handler)
        definition = _definition(given)
        new_id = self._parts.new_id("tool")

        def work(transaction: Transaction) -> ToolRegistration:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool, warnings = self._registry.register(
                transaction, view, definition, new_id, owner=self._caller.actor
            )
            warnings += [*_secrets_to_grant(tool), *self._server_to_add(transaction, tool)]
            return {
                "toolId": tool.id,
                "name": tool.name,
                "status": tool.status,
                "version": tool.revision,
                "validation": {"passed": True, "warnings": warnings},
            }

        answer = self._write(work, given.request_id, "tool_register", definition)
        self._tell("available", answer["name"], given.branch)
        return answer

    def update(self, given: inputs.UpdateInput) -> ToolUpdate:
        """Change a tool."""
        refuse_limited(self._caller, "changing a tool")
        if given.handler is not None:
            self._may_handle(given.handler)
        changes = _definition(given)
        changes.pop("toolId")

        def work(transaction: Transaction) -> ToolUpdate:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            before = self._registry.find(transaction, view, given.tool_id)
            tool, changed, warnings = self._registry.update(
                transaction,
                view,
                given.tool_id,
                changes,
                expected_version=given.expected_version,
            )
            self._may_replace(tool)
            self._may_change(tool, changed)
            command = call_command("tool_update", given.to_arguments())
            if "rights" in changed:
                self._may_drop_rights(before, "tool_update", command)
            if tool.cost < before.cost:
                self._may_lower_price(before, "tool_update", command)
            warnings += self._server_to_add(transaction, tool)
            return {
                "toolId": tool.id,
                "name": tool.name,
                "status": tool.status,
                "version": tool.revision,
                "changes": changed,
                "validation": {"passed": True, "warnings": warnings},
            }

        answer = self._write(
            work, given.request_id, "tool_update", {"id": given.tool_id, **changes}
        )
        if answer["changes"]:
            changed = {
                "toolId": answer["toolId"],
                "name": answer["name"],
                "changes": answer["changes"],
            }
            self._parts.events.publish("updated", changed)
        return answer

    def remove(self, given: inputs.RemoveInput) -> RemovedTool:
        """Remove a tool from the registry; its history stays."""

        def work(transaction: Transaction) -> RemovedTool:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool = self._registry.remove(transaction, view, given.tool_id)
            self._may_replace(tool)
            # Registered anew it would have none.
            command = ["tools", "rm", tool.name]
            self._may_drop_rights(tool, "tool_remove", command)
            self._may_lower_price(tool, "tool_remove", command)
            return {"toolId": tool.id, "name": tool.name, "removed": True}

        answer = self._write(work, given.request_id, "tool_remove", {"id": given.tool_id})
        self._parts.events.publish("unavailable", answer)
        return answer

    def restore(self, given: inputs.RemoveInput) -> ToolRegistration:
        """Restore a removed tool as it was."""
        refuse_limited(self._caller, "restoring a tool")

        def work(transaction: Transaction) -> ToolRegistration:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool = self._registry.restore(transaction, view, given.tool_id)
            self._may_replace(tool)
            if tool.handler.get("type") in _RUNS_CODE:
                self._may_handle(tool.handler)
                self._caller.require_person(
                    "gateway",
                    "tool_restore",
                    f"brings back {tool.name}, which runs code",
                    ["tools", "restore", tool.name],
                    of_host=runs_outside(tool.handler),
                )
            return {
                "toolId": tool.id,
                "name": tool.name,
                "status": tool.status,
                "version": tool.revision,
                "validation": {"passed": True, "warnings": _secrets_to_grant(tool)},
            }

        answer = self._write(work, given.request_id, "tool_restore", {"id": given.tool_id})
        self._tell("available", answer["name"], given.branch)
        return answer

    def list(self, given: inputs.ListToolsInput) -> ToolList:
        """Return the tools that fit every filter."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            every = self._registry.all(reader, view)
            fitting = [tool for tool in every if _matches(tool, given)]
            page = fitting[given.offset : given.offset + given.limit]
            figures = history.performances(reader, view, [tool.name for tool in page])
            entries: list[ToolEntry] = [
                {
                    **summary_of(tool),
                    **self._refusal(tool),
                    **self._suspended_secrets(reader, tool),
                    "performance": figures[tool.name],
                }
                for tool in page
            ]
        return {
            "tools": entries,
            "total": len(fitting),
            "categories": sorted({tool.category for tool in every}),
        }

    def get(self, given: inputs.ToolInput) -> ToolAnswer:
        """Return everything about a tool."""
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            tool = self._registry.find(reader, view, given.tool_id)
            figures = history.statistics(reader, view, tool.name)
            suspended = self._suspended_secrets(reader, tool)
            guardrails = guardrails_of(self._foundation, reader, tool)
        details: ToolDescription = {
            **details_of(tool),
            **self._refusal(tool),
            **suspended,
            "guardrails": guardrails,
            "statistics": figures,
        }
        return {"tool": details}

    def help(self, given: inputs.HelpInput) -> ToolHelp:
        """Return what a model needs to call a tool: its schema in words, and examples."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch))
            tool = self._registry.find(reader, view, given.tool_name)
            figures = history.statistics(reader, view, tool.name)
        schema = tool.content["inputSchema"]
        required = schema.get("required") or []
        return {
            "toolName": tool.name,
            "description": tool.description,
            "longDescription": tool.content.get("longDescription"),
            "category": tool.category,
            "status": tool.status,
            "inputSchema": schema,
            "outputSchema": tool.content.get("outputSchema"),
            "required": required,
            "examples": tool.content.get("examples") or [],
            "statistics": {
                "totalCalls": figures["totalCalls"],
                "successRate": figures["successRate"],
                "avgLatency": figures["avgLatency"],
            },
            "usage": f"tool_execute with toolName {tool.name!r} and its arguments.",
        }

    # --- calls

    async def execute(
        self,
        given: inputs.ExecuteInput,
        progress: ProgressReport | None = None,
        execution_id: str | None = None,
    ) -> CallAnswer:
        """Run a tool."""
        call = replace(self._call(given, progress), execution_id=execution_id)
        request_id = given.request_id
        if given.async_:
            return await self._parts.home.join(lambda: self._start_call(call, request_id))
        if request_id is None:
            finished = await self._parts.home.join(lambda: self._parts.executor.execute(call))
            return finished.answer()
        return await self._parts.home.join(
            lambda: self._parts.idempotency.execute(call, request_id)
        )

    async def _start_call(self, call: Call, request_id: str | None) -> CallAnswer:
        """Begin a call that nobody waits for."""
        parts = self._parts
        # A call that is refused before it is recorded must be refused here, where its caller still
        # listens.
        await parts.registry.resolve(parts.foundation, call.branch, call.tool, call.caller)
        if request_id is not None:
            earlier = await parts.idempotency.find_earlier(call, request_id)
            if earlier is not None:
                return _start_answer(earlier)
        id_ = call.execution_id or parts.new_id("exec")
        call = replace(call, execution_id=id_)

        async def run() -> None:
            if request_id is None:
                await parts.executor.execute(call)
            else:
                await parts.idempotency.execute(call, request_id)

        await parts.work.detach(item_of(call, "call", id_, parts.foundation.store.now()), run)
        return _start_answer(id_)

    async def batch(self, given: inputs.BatchInput) -> BatchAnswer:
        """Run several calls, at once or in order; each has a result of its own."""
        parts, total = self._parts, len(given.executions)
        item = WorkItem(
            parts.new_id("batch"),
            "batch",
            f"{total} calls",
            self._caller,
            parts.foundation.store.now(),
            request_ids_of(None, given.context),
            detached=given.async_,
        )
        if not given.async_:
            return await parts.home.join(lambda: self._run_batch(given, item))
        branch = self._branch(given.branch)
        await parts.home.join(
            lambda: self._detach(item, branch, lambda: self._run_batch(given, item))
        )
        return {**_batch_answer(item.id, [], total), "skipped": 0, "running": True}

    async def _run_batch(self, given: inputs.BatchInput, item: WorkItem) -> BatchAnswer:
        calls = [replace(self._item(each, given), parent=item.id) for each in given.executions]
        progress = ProgressOfParts(len(calls), item, calls[0].progress)
        calls = [replace(call, progress=progress.part(number)) for number, call in enumerate(calls)]
        with self._parts.work.track(item):
            try:
                results = await self._batch_results(given, calls, progress)
            except asyncio.CancelledError:
                if item.was_cancelled():
                    raise cancellation_error("The batch", item.id) from None
                raise
        return _batch_answer(item.id, results, len(calls))

    async def _batch_results(
        self, given: inputs.BatchInput, calls: Sequence[Call], progress: ProgressOfParts
    ) -> BatchResults:
        async def run(number: int) -> BatchSuccess | BatchFailure:
            result = await self._batch_result(calls[number])
            progress.end_part(number, f"{calls[number].tool} ended")
            return result

        if given.parallel:
            return [*await asyncio.gather(*map(run, range(len(calls))))]
        results: BatchResults = []
        for number in range(len(calls)):
            results.append(await run(number))
            if given.stop_on_error and not results[-1]["success"]:
                break
        return results

    async def _detach(
        self, item: WorkItem, branch: str, run: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]]
    ) -> None:
        """Begin work that nobody waits for, and keep what comes of it."""
        work = self._parts.work

        async def run_and_keep() -> None:
            try:
                answer = await run()
            except StratagemError as error:
                failed: RecordedError = {"code": error.code, "message": error.message}
                work.keep_outcome(
                    item, branch, {"executionId": item.id, "state": "failed", "error": failed}
                )
                return
            work.keep_outcome(
                item, branch, {"executionId": item.id, "state": "finished", "answer": answer}
            )

        await work.detach(item, run_and_keep)

    async def pipeline(
        self, given: inputs.PipelineInput
    ) -> PipelineRun | PipelinePreview | ToolRegistration:
        """Run a pipeline, say what it would do, go on with one, or save it as a tool."""
        definition = _pipeline_definition(given)
        call = self._call(
            inputs.ExecuteInput(
                tool_name=given.name or "pipeline", context=given.context, branch=given.branch
            ),
            None,
        )
        pipelines = self._parts.pipelines
        if given.dry_run:
            return await self._parts.home.join(
                lambda: pipelines.preview(definition, given.input, call)
            )
        if given.save_as is not None:
            return await asyncio.to_thread(self._save, definition, given)

        async def run(call: Call) -> PipelineRun:
            run_id, result = await (
                pipelines.resume(given.resume, call)
                if given.resume is not None
                else pipelines.run(definition, given.input, call)
            )
            answer = result.answer(run_id)
            self._parts.events.publish("pipeline_complete", answer)
            return answer

        if not given.async_:
            return await self._parts.home.join(lambda: run(call))
        if given.resume is None:
            parse_pipeline(definition)
        return await self._parts.home.join(lambda: self._start_pipeline(given, call, run))

    async def _start_pipeline(
        self,
        given: inputs.PipelineInput,
        call: Call,
        run: Callable[[Call], Coroutine[Any, Any, PipelineRun]],
    ) -> PipelineRun:
        """Begin a pipeline that nobody waits for."""
        id_ = given.resume or self._parts.new_id("run")
        call = replace(call, execution_id=id_, detached=True)
        item = item_of(call, "pipeline", id_, self._parts.foundation.store.now())
        item.keeps_note = True
        await self._detach(item, call.branch, lambda: run(call))
        return {
            "runId": id_,
            "name": call.tool,
            "success": False,
            "output": None,
            "steps": [],
            "error": None,
            "running": True,
        }

    def _save(self, definition: dict[str, Any], given: inputs.PipelineInput) -> ToolRegistration:
        self._caller.require("gateway", "write", "saving a pipeline as a tool")
        return self.register(
            inputs.RegisterInput(
                name=given.save_as or "",
                description=given.description or f"The pipeline {definition.get('name')}.",
                input_schema={"type": "object"},
                handler={"type": "pipeline", "definition": definition},
                category="pipeline",
                branch=given.branch,
            )
        )

    def executions(self, given: inputs.ExecutionsInput) -> ExecutionPage:
        """Return what was recorded of calls."""
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch))
            if given.execution_id is not None:
                record = history.find(reader, view, given.execution_id)
                if not self._may_know(reader, view, record):
                    raise ExecutionNotFound(
                        f"There is no execution {given.execution_id!r}.", field="executionId"
                    )
                return {"executions": [_visible_to(self._caller, record)]}
            tool = given.tool_id
            if tool is not None:
                known = self._registry.get(reader, view, tool)
                tool = known.name if known is not None else tool
            page, following = history.history(
                reader,
                view,
                tool=tool,
                agent=given.agent_id,
                status=given.status,
                since=self._moment(given.from_, "from"),
                until=self._moment(given.to, "to"),
                before=read_cursor(given.cursor, start=OPEN_END),
                limit=given.limit,
            )
            if not page and tool is not None and given.cursor is None:
                # Calls of a tool that was removed are still there; of one that never was, none.
                self._registry.find(reader, view, tool)
            shown = [each for each in page if self._may_know(reader, view, each)]
        answer: ExecutionPage = {"executions": [_visible_to(self._caller, each) for each in shown]}
        if following is not None:
            answer["next"] = str(following)
        return answer

    # --- upkeep

    def configure_cache(self, given: inputs.CacheInput) -> ResultCacheFigures:
        """Change how results are kept."""
        changes: CacheRules = {}
        if given.enabled is not None:
            changes["enabled"] = given.enabled
        if given.ttl is not None:
            changes["seconds"] = given.ttl
        if given.max_size is not None:
            changes["bytes_max"] = _bytes(given.max_size)

        def work(transaction: Transaction) -> CacheRules:
            view = self._foundation.views.view(transaction, "default")
            return result_cache.configure_cache(transaction, view, changes)

        self._parts.cache.configure(**self._write(work, None, "cache_configure", {}))
        return self._parts.cache.figures()

    def clear_cache(self, given: inputs.CacheClearInput) -> ClearedCache:
        """Forget the results of a tool, or of all."""
        name = None
        if given.tool_id is not None:
            reader = self._foundation.store.reader()
            view = self._foundation.views.view(reader, self._caller.branch)
            name = self._registry.find(reader, view, given.tool_id).name
        self._forget_results(name)
        return {"cleared": self._parts.cache.clear(name)}

    async def list_breakers(self, given: inputs.NothingInput) -> ToolBreakers:
        """Return the breakers of tools that failed lately, and those that are open elsewhere."""
        del given
        return await self._parts.home.join(self._list_breakers)

    async def _list_breakers(self) -> ToolBreakers:
        breakers, now = self._parts.breakers, self._foundation.store.now()
        own: list[ToolBreaker] = [
            {
                "toolName": each["toolName"],
                "status": each["status"],
                "failures": each["failures"],
                "reason": each["reason"],
                "lastFailure": None if age is None else moments.iso(now - int(age * _SECOND)),
                "retryAfter": None if left is None else max(0, round(left)),
            }
            for each in breakers.list()
            for age, left in [(breakers.age(each["lastFailure"]), each["retryAfter"])]
        ]
        shown = {each["toolName"]: each for each in own}
        for each in self._parts.breaker_notes.others():
            # Of several processes, the one that lets nothing through.
            known = shown.get(each["toolName"])
            if known is None or known["status"] != "open":
                shown[each["toolName"]] = each
        listed = await self._foundation.read_async(lambda: self._known_breakers(shown))
        return {"breakers": [shown[name] for name in listed]}

    def _known_breakers(self, every: Iterable[str]) -> Sequence[str]:
        """Return the breakers of tools that the caller may know of."""
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        # One of a tool whose callers choose the host is named by both.
        return [
            name
            for name in sorted(every)
            if self._registry.knows(reader, view, name.partition(" ")[0])
        ]

    async def reset_breaker(self, given: inputs.BreakerResetInput) -> BreakerReset:
        """Close the breaker of a tool, whose service works again."""
        return await self._parts.home.join(lambda: self._reset_breaker(given))

    async def _reset_breaker(self, given: inputs.BreakerResetInput) -> BreakerReset:
        # What another process has opened is reset by removing its note.
        noted = await asyncio.to_thread(self._parts.breaker_notes.reset, given.tool_name)
        reset = self._parts.breakers.reset(given.tool_name, given.reason or "reset by hand")
        return {"toolName": given.tool_name, "reset": reset or noted}

    # --- inside

    def _may_know(self, reader: Reader, view: View, record: ExecutionRecord) -> bool:
        """Whether the caller may know of a call: of its own, and of those of tools it is shown."""
        own = record["caller"] == self._caller.actor
        return own or self._registry.knows(reader, view, record["tool"])

    def _branch(self, branch: str | None) -> str:
        return branch or self._caller.branch

    def _call(self, given: inputs.ExecuteInput, progress: ProgressReport | None) -> Call:
        return call_of(given, self._caller, progress)

    def _item(self, item: inputs.BatchItem, batch: inputs.BatchInput) -> Call:
        given = inputs.ExecuteInput(
            tool_name=item.tool_name,
            arguments=item.arguments,
            options=item.options,
            correction_id=item.correction_id,
            confirm=item.confirm,
            context=batch.context,
            branch=batch.branch,
        )
        return call_of(given, self._caller)

    async def _batch_result(self, call: Call) -> BatchSuccess | BatchFailure:
        """Run a call of a batch; what goes wrong is its result."""
        try:
            finished = await self._parts.executor.execute(call)
        except StratagemError as error:
            failure: BatchFailure = {
                "toolName": call.tool,
                "success": False,
                "error": error.gateway_body(),
            }
            return _with_request_id(failure, call)
        answer = {"toolName": call.tool, "success": True, **finished.answer()}
        success = cast("BatchSuccess", answer)
        return _with_request_id(success, call)

    def _write(
        self,
        work: Callable[[Transaction], T],
        request_id: str | None,
        operation: str,
        arguments: Mapping[str, Any],
    ) -> T:
        return self._foundation.write(
            self._caller, work, request_id=request_id, operation=operation, arguments=arguments
        )

    def _forget_results(self, tool: str | None) -> None:
        def work(transaction: Transaction) -> None:
            result_cache.forget_results(
                transaction, self._foundation.views.view(transaction, "default"), tool
            )

        self._write(work, None, "cache_clear", {})

    def _refusal(self, tool: Tool) -> ToolRefusal:
        """Return why a tool can be seen and not called, where the operator allows no more."""
        if tool.handler.get("type") != "python":
            return {}
        runner = self._parts.runners["python"]
        assert isinstance(runner, PythonRunner)
        refusal = runner.refusal(tool.handler)
        return {} if refusal is None else {"callable": False, "refusal": refusal}

    def _suspended_secrets(self, reader: Reader, tool: Tool) -> ToolRefusal:
        """Return which secrets a tool may not send any more, because it was changed."""
        if not tool.has_references:
            return {}
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        suspended = [
            each["name"]
            for each in grants_of(reader.records, view, tool.name)
            if effective_state(each, "tool", tool.handler_fingerprint)[0] == "suspended"
        ]
        return {"suspendedSecrets": sorted(set(suspended))} if suspended else {}

    def _server_to_add(self, reader: Reader, tool: Tool) -> Sequence[str]:
        """Return a warning where a tool names an upstream server that was not added."""
        if tool.handler.get("type") != "mcp":
            return []
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        server = str(tool.handler["server"])
        known = reader.records.current(view.lineage, names.SERVERS, server)
        if known is not None and known.payload is not None:
            return []
        words = f"There is no upstream server {server!r}, so the tool cannot be called until one is"
        return [f"{words} added: stratagem tools add {server} --mcp COMMAND"]

    def _may_handle(self, handler: Mapping[str, Any]) -> None:
        """Refuse code from whoever is no administrator."""
        kind = handler.get("type")
        if kind in _RUNS_CODE:
            self._caller.require_known(f"A handler of type {kind!r}")
        if kind == "operation":
            # Under another name it would reach what is no tool, and what a person called in error.
            raise ValidationFailed(
                "Operations are tools already: another tool cannot run one as its handler.",
                field="handler.type",
                hint="Call the operation by its own name, or save a pipeline with it as a step.",
            )

    def _may_replace(self, tool: Tool) -> None:
        """Refuse to let a caller change or remove a tool that another has registered."""
        if tool.owner != self._caller.actor and not self._caller.may("gateway", "admin"):
            raise PermissionDenied(
                f"{tool.name} was registered by another caller, who owns it.",
                field="toolId",
                required="gateway:admin",
                hint="Ask its owner or an administrator.",
            )

    def _may_change(self, tool: Tool, changed: Mapping[str, Any]) -> None:
        """Refuse to let a caller lift a quarantine, or change a tool that runs code."""
        if changed.get("status") == "active" and tool.handler.get("type") in _RUNS_CODE:
            self._caller.require_person(
                "gateway",
                "tool_update",
                f"approves {tool.name}, which runs code",
                call_command("tool_update", {"toolId": tool.name, "status": "active"}),
                of_host=runs_outside(tool.handler),
            )
        if "permissions" in changed and not self._caller.may("gateway", "admin"):
            raise PermissionDenied(
                "Only an administrator may change the permissions of a tool.",
                required="gateway:admin",
            )

    def _may_drop_rights(self, tool: Tool, operation: str, command: Sequence[str]) -> None:
        """Refuse to let a model drop the rights of a tool."""
        if tool.content.get("rights"):
            reason = f"changes who may call {tool.name}, or how much"
            self._caller.require_person("gateway", operation, reason, command)

    def _may_lower_price(self, tool: Tool, operation: str, command: Sequence[str]) -> None:
        """Refuse to let a caller bypass a budget by making a tool cheaper."""
        if tool.cost:
            reason = f"lowers what a call of {tool.name} costs, which budgets count"
            self._caller.require_person("gateway", operation, reason, command)

    def _tell(self, what: str, name: str, branch: str | None) -> None:
        if self._caller.transaction is not None:
            # Nobody else can see it yet.
            return
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, self._branch(branch))
        tool = self._registry.get(reader, view, name)
        if tool is not None:
            self._parts.events.publish(what, summary_of(tool))

    def _moment(self, words: str | None, field: str) -> int | None:
        if words is None:
            return None
        now, zone = self._foundation.store.now(), self._foundation.views.zone
        if exact := _exactly(words, zone, end=field == "to"):
            return exact
        moment = moments.parse(words, now=now, zone=zone, field=field)
        if isinstance(moment, moments.AtTime):
            return moment.at
        if isinstance(moment, moments.Latest):
            return now
        raise ValidationFailed(
            f"`{field}` must be a time, such as 2026-01-31 or 1h ago.", field=field
        )


def _secrets_to_grant(tool: Tool) -> list[str]:
    """Return what is still to be done before a new tool may send the secrets it refers to."""
    return [
        f"The secret {name} has to be granted: stratagem tools grant {tool.name} {name}"
        for name in (sorted(references(tool.handler)) if tool.has_references else ())
    ]


def _exactly(words: str, zone: tzinfo, *, end: bool) -> int | None:
    """Read an ISO date or time; the end of a day lies after everything that happened on it."""
    try:
        moment = datetime.fromisoformat(words.strip())
    except ValueError:
        return None
    if "T" not in words and ":" not in words and end:
        moment += timedelta(days=1, microseconds=-1)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return int(moment.timestamp() * 1_000_000)


def _start_answer(execution_id: str) -> CallAnswer:
    """Return the answer to a call that nobody waits for."""
    return {
        "executionId": execution_id,
        "result": None,
        "metadata": {"duration": 0.0, "cached": False, "provider": None, "attempts": 0},
        "running": True,
    }


def _with_request_id(result: BatchResultT, call: Call) -> BatchResultT:
    """Return a result with the id that its caller knows the call by, if it gave one."""
    request = call.context.get("requestId")
    if request is not None:
        result["requestId"] = request
    return result


def _batch_answer(id_: str, results: BatchResults, total: int) -> BatchAnswer:
    worked = sum(each["success"] for each in results)
    return {
        "executionId": id_,
        "results": results,
        "total": total,
        "succeeded": worked,
        "failed": len(results) - worked,
        "skipped": total - len(results),
    }


def _pipeline_definition(given: inputs.PipelineInput) -> dict[str, Any]:
    if given.resume is not None:
        return {}
    if given.steps is None:
        raise MissingRequired("A pipeline needs `steps`.", field="steps")
    definition: dict[str, Any] = {
        "name": given.name or given.save_as or "pipeline",
        "steps": given.steps,
    }
    return definition | ({"output": given.output} if given.output is not None else {})


def _definition(given: Input) -> dict[str, Any]:
    left_out = {"branch", "request_id", "expected_version"}
    return given.to_arguments(leave_out=left_out)


def _matches(tool: Tool, given: inputs.ListToolsInput) -> bool:
    content = tool.content
    words = (given.search or "").casefold().split()
    text = f"{tool.name} {tool.description}".casefold()
    return (
        # An empty word in an address filters nothing.
        (not given.category or given.category == tool.category)
        and (not given.provider or given.provider == tool.provider)
        and given.status in {None, tool.status}
        and set(given.capabilities or ()) <= set(content.get("capabilities", ()))
        and set(given.tags or ()) <= set(content.get("tags", ()))
        and all(word in text for word in words)
    )


def _visible_to(caller: Caller, record: ExecutionRecord) -> ExecutionDetails:
    """Return an execution: the caller's own as it was recorded, another's without its contents."""
    visible: dict[str, Any] = {**record, "startedAt": moments.iso(record["startedAt"])}
    visible.pop("sequence", None)
    if not caller.sees_contents_of(record["caller"]):
        visible = {name: value for name, value in visible.items() if name in _FACTS}
        if error := record.get("error"):
            visible["error"] = {"code": error["code"]}
        visible["withheld"] = (
            "Arguments and results are shown only to the caller and to administrators."
        )
    return cast("ExecutionDetails", visible)


def _bytes(size: int | str) -> int:
    """Read a size such as "100MB"."""
    count = size if isinstance(size, int) else _parse_size(size)
    if not 0 <= count <= limits.CACHE_BYTES_MAX:
        raise ValidationFailed(
            f"`maxSize` is at most {limits.CACHE_BYTES_MAX:,} bytes.",
            field="maxSize",
            limit=limits.CACHE_BYTES_MAX,
        )
    return count


def _parse_size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip().upper())
    if found is None:
        raise ValidationFailed(
            'A size is a number of bytes or a text such as "100MB".', field="maxSize"
        )
    return int(found[1]) * _UNITS[found[2]]
