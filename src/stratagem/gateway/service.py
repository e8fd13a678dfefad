"""The gateway for one caller: the registry, calls and what was recorded of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, TypeVar

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import MissingRequired, PermissionDenied, StratagemError, ValidationFailed
from stratagem.gateway import inputs
from stratagem.gateway.calls import cache_settings, history
from stratagem.gateway.calls.call import Call, call_of
from stratagem.gateway.definitions.contract import ProgressReport
from stratagem.gateway.handlers.python import PythonRunner
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.person import call_command, runs_outside
from stratagem.gateway.registry import secrets
from stratagem.gateway.registry.tools import Tool, detailed, listed
from stratagem.operation import Caller
from stratagem.parameters import Input
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Gateway"]

T = TypeVar("T")
Answer = dict[str, Any]

# What everybody who may look at executions sees of those of others.
_METADATA = frozenset(
    {
        "executionId",
        "tool",
        "toolId",
        "revision",
        "caller",
        "status",
        "startedAt",
        "duration",
        "cached",
        "provider",
        "attempts",
    }
)
# Registering one of these is running code of one's choice on the server, if in a sandbox. Those
# that run outside of it take more: `person` has them.
_RUNS_CODE = frozenset({"python", "code", "mcp", "operation"})


class Gateway:
    """The operations of the gateway, for one caller."""

    def __init__(self, parts: GatewayParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller
        self._foundation = parts.foundation
        self._registry = parts.registry

    # --- the registry

    def register(self, given: inputs.RegisterInput) -> Answer:
        """Add a tool."""
        self._may_handle(given.handler)
        definition = _definition(given)
        new_id = self._parts.new_id("tool")

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool, warnings = self._registry.register(
                transaction, view, definition, new_id, owner=self._caller.actor
            )
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

    def update(self, given: inputs.UpdateInput) -> Answer:
        """Change a tool."""
        if given.handler is not None:
            self._may_handle(given.handler)
        changes = _definition(given)
        changes.pop("toolId")

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool, changed, warnings = self._registry.update(
                transaction,
                view,
                given.tool_id,
                changes,
                expected_version=given.expected_version,
            )
            self._may_replace(tool)
            self._may_change(tool, changed)
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
            told = {
                "toolId": answer["toolId"],
                "name": answer["name"],
                "changes": answer["changes"],
            }
            self._parts.events.publish("updated", told)
        return answer

    def remove(self, given: inputs.RemoveInput) -> Answer:
        """Take a tool out of the registry; its history stays."""

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            tool = self._registry.remove(transaction, view, given.tool_id)
            self._may_replace(tool)
            return {"toolId": tool.id, "name": tool.name, "removed": True}

        answer = self._write(work, given.request_id, "tool_remove", {"id": given.tool_id})
        self._parts.events.publish("unavailable", answer)
        return answer

    def list(self, given: inputs.ListToolsInput) -> Answer:
        """Return the tools that fit every filter."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            every = self._registry.all(reader.records, view)
            fitting = [tool for tool in every if _fits(tool, given)]
            page = fitting[given.offset : given.offset + given.limit]
            figures = history.performances(reader, view, [tool.name for tool in page])
            shown = [
                {**listed(tool), **self._refusal(tool), "performance": figures[tool.name]}
                for tool in page
            ]
        return {
            "tools": shown,
            "total": len(fitting),
            "categories": sorted({tool.category for tool in every}),
        }

    def get(self, given: inputs.ToolInput) -> Answer:
        """Return everything about a tool."""
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            tool = self._registry.find(reader, view, given.tool_id)
            figures = history.statistics(reader, view, tool.name)
        figures["lastUsed"] = _iso(figures["lastUsed"])
        return {"tool": {**detailed(tool), **self._refusal(tool), "statistics": figures}}

    def help(self, given: inputs.HelpInput) -> Answer:
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
                name: figures[name] for name in ("totalCalls", "successRate", "avgLatency")
            },
            "usage": f"tool_execute with toolName {tool.name!r} and its arguments.",
        }

    # --- calls

    async def execute(
        self,
        given: inputs.ExecuteInput,
        progress: ProgressReport | None = None,
        execution_id: str | None = None,
    ) -> Answer:
        """Run a tool."""
        call = replace(self._call(given, progress), execution_id=execution_id)
        request_id = given.request_id
        if request_id is None:
            return (await self._parts.home.join(lambda: self._parts.executor.execute(call))).plain()
        return await self._parts.home.join(
            lambda: self._parts.idempotency.execute(call, request_id)
        )

    def execute_now(
        self, given: inputs.ExecuteInput, progress: ProgressReport | None = None
    ) -> Answer:
        """Run a tool, from a thread that has no event loop."""
        return self._parts.home.run(lambda: self.execute(given, progress))

    async def batch(self, given: inputs.BatchInput) -> Answer:
        """Run several calls, at once or in order; each has a result of its own."""

        async def run() -> list[Answer]:
            calls = [self._item(each, given) for each in given.executions]
            if given.parallel:
                return list(await asyncio.gather(*map(self._settled, calls)))
            results: list[Answer] = []
            for call in calls:
                results.append(await self._settled(call))
                if given.stop_on_error and not results[-1]["success"]:
                    break
            return results

        results = await self._parts.home.join(run)
        worked = sum(each["success"] for each in results)
        return {
            "results": results,
            "total": len(given.executions),
            "succeeded": worked,
            "failed": len(results) - worked,
            "skipped": len(given.executions) - len(results),
        }

    async def pipeline(self, given: inputs.PipelineInput) -> Answer:
        """Run a pipeline, say what it would do, go on with one, or save it as a tool."""
        definition = _pipeline(given)
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
        run_id, result = await self._parts.home.join(
            lambda: (
                pipelines.resume(given.resume, call)
                if given.resume is not None
                else pipelines.run(definition, given.input, call)
            )
        )
        answer = {"runId": run_id, **result.as_json()}
        self._parts.events.publish("pipeline_complete", answer)
        return answer

    def _save(self, definition: Answer, given: inputs.PipelineInput) -> Answer:
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

    def cancel(self, execution_id: str) -> bool:
        """Stop a call that is under way."""
        return self._parts.executor.cancel(execution_id, self._caller)

    def executions(self, given: inputs.ExecutionsInput) -> Answer:
        """Return what was recorded of calls."""
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch))
            if given.execution_id is not None:
                return {"executions": [self._seen(reader, view, given.execution_id)]}
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
        answer: Answer = {"executions": [_shown(each, self._caller) for each in page]}
        return answer | ({"next": str(following)} if following is not None else {})

    def _seen(self, reader: Reader, view: View, execution_id: str) -> Answer:
        return _shown(history.find(reader, view, execution_id), self._caller)

    # --- upkeep

    def configure_cache(self, given: inputs.CacheInput) -> Answer:
        """Change how results are kept."""
        size = _bytes(given.max_size) if given.max_size is not None else None
        changes = {"enabled": given.enabled, "seconds": given.ttl, "bytes_max": size}

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, "default")
            return cache_settings.configure(transaction, view, changes)

        self._parts.cache.configure(**self._write(work, None, "cache_configure", {}))
        return self._parts.cache.figures()

    def clear_cache(self, given: inputs.CacheClearInput) -> Answer:
        """Forget the results of a tool, or of all."""
        name = None
        if given.tool_id is not None:
            reader = self._foundation.store.reader()
            view = self._foundation.views.view(reader, self._caller.branch)
            name = self._registry.find(reader, view, given.tool_id).name
        self._forget_results(name)
        return {"cleared": self._parts.cache.clear(name)}

    def grant(self, given: inputs.GrantInput) -> Answer:
        """Let a tool send a secret to a host."""

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, "default")
            grant = {"tool": given.tool, "name": given.name, "host": given.host}
            secrets.grant(transaction, view, **grant)
            return {**grant, "granted": True}

        return self._write(work, None, "secret_grant", {})

    def withdraw(self, given: inputs.WithdrawInput) -> Answer:
        """Take a secret away from a tool."""
        tool, name = given.tool, given.name

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, "default")
            count = secrets.withdraw(transaction, view, tool=tool, name=name)
            # What was computed with it goes with it, on every server.
            cache_settings.forget(transaction, view, tool)
            return {"tool": tool, "name": name, "withdrawn": count}

        answer = self._write(work, None, "secret_withdraw", {})
        self._parts.cache.clear(tool)
        return answer

    def grants(self, _given: inputs.NothingInput) -> Answer:
        """Return which secrets were granted to which tools."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, "default")
            return {"grants": secrets.grants(reader.records, view)}

    # --- inside

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

    async def _settled(self, call: Call) -> Answer:
        """Run a call of a batch; what goes wrong is its result."""
        try:
            finished = await self._parts.executor.execute(call)
        except StratagemError as error:
            return {"toolName": call.tool, "success": False, "error": error.gateway_body()}
        return {"toolName": call.tool, "success": True, **finished.plain()}

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
            cache_settings.forget(
                transaction, self._foundation.views.view(transaction, "default"), tool
            )

        self._write(work, None, "cache_clear", {})

    def _refusal(self, tool: Tool) -> Answer:
        """Return why a tool can be seen and not called, where the operator allows no more."""
        if tool.handler.get("type") != "python":
            return {}
        runner = self._parts.runners["python"]
        assert isinstance(runner, PythonRunner)
        refusal = runner.refusal(tool.handler)
        return {} if refusal is None else {"callable": False, "refusal": refusal}

    def _may_handle(self, handler: Mapping[str, Any]) -> None:
        """Refuse code from whoever is no administrator."""
        kind = handler.get("type")
        if kind in _RUNS_CODE:
            self._caller.require_known(f"A handler of type {kind!r}")
        if kind == "operation":
            # Under another name it would reach what is no tool, and what a person called in error.
            raise ValidationFailed(
                "Operations are tools already: no other tool runs one.",
                field="handler.type",
                hint="Call the operation by its own name, or save a pipeline with it as a step.",
            )

    def _may_replace(self, tool: Tool) -> None:
        """Refuse that somebody takes away a tool that another caller's client hosts."""
        hosted = tool.handler.get("type") == "client" and tool.owner is not None
        if hosted and tool.owner != self._caller.actor and not self._caller.may("gateway", "admin"):
            raise PermissionDenied(
                f"{tool.name} is hosted by another caller's client.",
                field="toolId",
                required="gateway:admin",
                hint="Ask its owner or an administrator.",
            )

    def _may_change(self, tool: Tool, changed: Mapping[str, Any]) -> None:
        """Refuse that somebody lifts a quarantine, or changes what runs code."""
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

    def _tell(self, what: str, name: str, branch: str | None) -> None:
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, self._branch(branch))
        tool = self._registry.get(reader, view, name)
        if tool is not None:
            self._parts.events.publish(what, listed(tool))

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
        raise ValidationFailed(f"`{field}` is a time, such as 2026-01-31 or 1h ago.", field=field)


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


def _pipeline(given: inputs.PipelineInput) -> Answer:
    if given.resume is not None:
        return {}
    if given.steps is None:
        raise MissingRequired("A pipeline needs `steps`.", field="steps")
    definition: Answer = {"name": given.name or given.save_as or "pipeline", "steps": given.steps}
    return definition | ({"output": given.output} if given.output is not None else {})


def _definition(given: Input) -> dict[str, Any]:
    left_out = {"branch", "request_id", "expected_version"}
    return given.given(leave_out=left_out)


def _fits(tool: Tool, given: inputs.ListToolsInput) -> bool:
    content = tool.content
    words = (given.search or "").casefold().split()
    text = f"{tool.name} {tool.description}".casefold()
    return (
        given.category in {None, tool.category}
        and given.provider in {None, tool.provider}
        and given.status in {None, tool.status}
        and set(given.capabilities or ()) <= set(content.get("capabilities", ()))
        and set(given.tags or ()) <= set(content.get("tags", ()))
        and all(word in text for word in words)
    )


def _shown(record: Mapping[str, Any], caller: Caller) -> Answer:
    """Return an execution: the caller's own as it was recorded, another's without its contents."""
    own = caller.sees_contents_of(record["caller"])
    names = [name for name in record if name != "sequence" and (own or name in _METADATA)]
    shown = {**{name: record[name] for name in names}, "startedAt": _iso(record["startedAt"])}
    if own:
        return shown
    if error := record.get("error"):
        shown["error"] = {"code": error["code"]}
    return {**shown, "withheld": "Contents are shown to whoever called, and to administrators."}


def _iso(microseconds: int | None) -> str | None:
    return None if microseconds is None else moments.iso(microseconds)


def _bytes(size: int | str) -> int:
    """Read a size such as "100MB"."""
    count = size if isinstance(size, int) else _sized(size)
    if not 0 <= count <= limits.CACHE_BYTES_MAX:
        raise ValidationFailed(
            f"`maxSize` is at most {limits.CACHE_BYTES_MAX:,} bytes.",
            field="maxSize",
            limit=limits.CACHE_BYTES_MAX,
        )
    return count


def _sized(text: str) -> int:
    units = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "B": 1}
    stripped = text.strip().upper()
    for unit, factor in units.items():
        number = stripped.removesuffix(unit).strip()
        if number != stripped and number.isdecimal():
            return int(number) * factor
    if stripped.isdecimal():
        return int(stripped)
    raise ValidationFailed('A size is a number of bytes, or such as "100MB".', field="maxSize")
