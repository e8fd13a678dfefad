"""The one path that every call takes, whatever surface it came from.

resolve → authorise → rate limit → validate → correct and validate again → guardrails → cache →
breaker → run (timeout, retries, cancellation, progress) → check the output → guardrails → record →
learn
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Protocol

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.lineage import View
from stratagem.errors import (
    Blame,
    ExecutionFailed,
    ExecutionTimeout,
    GuardrailBlocked,
    GuardrailFailed,
    InternalFault,
    PermissionDenied,
    StratagemError,
    ToolUnavailable,
    ValidationFailed,
    blame_of,
)
from stratagem.gateway.calls import result_cache as caching
from stratagem.gateway.calls import tracing
from stratagem.gateway.calls.answers import (
    CallMetadata,
    CallProgress,
    CorrectionNote,
    ExecutionRecord,
    ExecutionStatus,
    McpContent,
    RecordedError,
)
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.call import BegunElsewhereError, Call, FinishedCall
from stratagem.gateway.calls.concurrency import ConcurrencyLimits, RateLimits
from stratagem.gateway.calls.guardrails import (
    GUARDRAIL_CALLER,
    CheckedResult,
    Guardrail,
    Guardrails,
)
from stratagem.gateway.calls.recorder import PendingExecution
from stratagem.gateway.calls.result_cache import Cache
from stratagem.gateway.calls.rights import Admission, ToolRights, refuse_inactive
from stratagem.gateway.calls.work import (
    WorkInProgress,
    WorkItem,
    cancellation_error,
    item_of,
)
from stratagem.gateway.correction import Ready, name_slips, ready, remarks
from stratagem.gateway.definitions.contract import ContentResult, Run, Runner
from stratagem.gateway.definitions.questions import current_asker, deadline
from stratagem.gateway.definitions.schemas import Violation, pointer
from stratagem.gateway.handlers.operation import CheckOperation
from stratagem.gateway.registry.secrets import GrantedSecrets
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.sandbox.permissions import read_permissions
from stratagem.operation import Caller

__all__ = ["CorrectionDecision", "Corrector", "Executor", "ExecutorParts"]

logger = logging.getLogger(__name__)

_DEPTH_MAX: Final = 8
_BACKOFF_SECONDS: Final = 0.1
# Handlers whose answers depend on nothing about the caller. An MCP server may ask the caller.
_SAME_FOR_ALL: Final = frozenset({"builtin", "code", "openapi", "webhook"})


@dataclass(frozen=True, slots=True)
class CorrectionDecision:
    """The decision about arguments that do not fit: corrected ones, or why there are none.

    `note` describes the correction in the answer. `refusal` are details of the error otherwise.

    The call carries it to its end, and the corrector learns from both: its own state stands in a
    class of its own below this one.
    """

    applied: Mapping[str, Any] | None
    note: CorrectionNote | None
    refusal: Mapping[str, Any]


class Corrector(Protocol):
    """Corrects arguments, and learns from how calls end."""

    async def correct(
        self, tool: Tool, call: Call, violations: list[Violation]
    ) -> CorrectionDecision:
        """Return arguments that fit, or what could be offered instead."""
        ...

    def learn(
        self,
        tool: Tool,
        call: Call,
        arguments: Any,
        record: ExecutionRecord,
        *,
        decision: CorrectionDecision | None,
        error: StratagemError | None,
    ) -> None:
        """Take note of how a call ended."""
        ...

    def abandon(self, decision: CorrectionDecision) -> None:
        """Forget a correction whose call was not run here."""
        ...

    async def advise(self, tool: Tool, call: Call, error: StratagemError) -> dict[str, Any] | None:
        """Return what is known to help against an error."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutorParts:
    """The components that the executor needs."""

    resolve: Callable[[str, str, Caller], Awaitable[tuple[Tool, View]]]
    check_operation: CheckOperation
    rights: ToolRights
    guardrails: Guardrails
    secrets: Callable[[Tool], Awaitable[GrantedSecrets]]
    runners: Mapping[str, Runner]
    cache: Cache
    # When a tool's cached results were last cleared, on any server.
    forgotten: Callable[[str], Awaitable[tuple[int, int, int]]]
    breakers: Breakers
    # Closes the breaker of a tool that somebody has reset in another process.
    apply_reset: Callable[[str], Awaitable[None]]
    lanes: ConcurrencyLimits
    work: WorkInProgress
    record: Callable[[PendingExecution], None]
    publish_progress: Callable[[CallProgress], None]
    publish_end: Callable[[ExecutionRecord], None]
    microseconds: Callable[[], int]
    new_id: Callable[[str], str]
    rates: RateLimits = field(default_factory=lambda: RateLimits(time.monotonic))
    monotonic: Callable[[], float] = time.monotonic
    corrector: Corrector | None = None


@dataclass(slots=True)
class _CallState:
    """The state of one call."""

    call: Call
    execution_id: str
    started_at: int
    started: float
    tool: Tool | None = None
    admission: Admission = field(default_factory=Admission)
    arguments: Any = None
    attempts: int = 0
    cached: bool = False
    asked: bool = False
    decision: CorrectionDecision | None = None
    error: StratagemError | None = None
    span: Any = None
    item: WorkItem | None = None
    mcp: McpContent | None = None
    guardrails: Sequence[Guardrail] = ()


class Executor:
    """Takes calls along the path. Runs on the home loop."""

    def __init__(self, parts: ExecutorParts) -> None:
        self._parts = parts

    async def execute(self, call: Call) -> FinishedCall:
        """Run a call to its end.

        Raises:
            StratagemError: It did not work; its details have the `executionId`.
        """
        parts = self._parts
        state = _CallState(
            call,
            call.execution_id or parts.new_id("exec"),
            parts.microseconds(),
            parts.monotonic(),
            arguments=call.arguments,
        )
        with tracing.span_of(call, state.execution_id) as state.span:
            return await self._run_recorded(state)

    async def _run_recorded(self, state: _CallState) -> FinishedCall:
        """Run the call; its end is recorded whatever happens."""
        call = state.call
        item = item_of(call, "call", state.execution_id, state.started_at)
        with self._parts.work.track(item) as state.item:
            return await self._run_tracked(state, call, state.item)

    async def _run_tracked(self, state: _CallState, call: Call, item: WorkItem) -> FinishedCall:
        try:
            result, data = await self._follow(state)
        except asyncio.CancelledError:
            if item.was_cancelled():
                # This call alone was to end, not whatever it is a part of.
                error = cancellation_error(f"The call of {call.tool}", state.execution_id)
                raise await self._record_failure(state, error) from None
            self._close(
                state,
                "failed",
                {"code": "cancelled", "message": "It was cancelled.", "blame": "nobody"},
            )
            raise
        except BegunElsewhereError:
            if state.decision is not None and self._parts.corrector is not None:
                self._parts.corrector.abandon(state.decision)
            raise
        except StratagemError as error:
            checked = await self._check_error(state, error)
            raise await self._record_failure(state, checked) from checked.__cause__
        except Exception as error:
            # A defect of a runner must not hurt more than its own call.
            fault = InternalFault(f"{call.tool} failed inside the gateway: {type(error).__name__}.")
            raise await self._record_failure(state, fault) from error
        self._close(state, "success", None, data)
        return FinishedCall(state.execution_id, result, self._metadata(state), state.mcp)

    async def _follow(self, state: _CallState) -> tuple[Any, bytes]:
        parts, call = self._parts, state.call
        tool, view = await parts.resolve(call.branch, call.tool, call.caller)
        state.tool = tool
        _authorise(tool, call)
        state.admission = await parts.rights.admit(tool, call)
        self._check_operation(tool, None, state)
        per_minute = tool.configuration.calls_per_minute or limits.CALLS_PER_MINUTE_DEFAULT
        if call.caller.actor != GUARDRAIL_CALLER.actor:
            parts.rates.take(call.caller.actor, tool.name, per_minute)
        state.arguments = await self._valid_arguments(state, tool)
        await self._check_arguments(state, tool)
        # Before the cache is read: it may hold a result that this caller may not see.
        self._check_operation(tool, state.arguments, state)
        await self._require_approval(state, tool, uses=False)
        key = await self._cache_key(tool, state, view)
        if key is not None:
            found, kept = parts.cache.get(key)
            if found:
                await self._require_approval(state, tool, uses=True)
                state.cached = True
                state.mcp = kept["mcp"]
                result = kept["result"]
                return await self._release(state, tool, result, orjson.dumps(result))
        circuit = tool.circuit(state.arguments)
        if parts.breakers.is_open(circuit):
            await parts.apply_reset(circuit)
        parts.breakers.enter(circuit)
        await self._begin(state, tool, circuit)
        try:
            result = _separate(await self._run(state, tool), state)
            data = _encode_output(tool, result, state.mcp)
        except asyncio.CancelledError:
            parts.breakers.leave(circuit)
            raise
        except Exception as error:
            _excuse(error, tool, state)
            self._note_failure(circuit, error)
            raise
        parts.breakers.succeed(circuit)
        if key is not None and not state.asked:
            kept = {"result": result, "mcp": state.mcp}
            parts.cache.put(key, tool.name, kept, tool.configuration.cache_seconds)
        return await self._release(state, tool, result, data)

    async def _check_arguments(self, state: _CallState, tool: Tool) -> None:
        """Have the guardrails check the arguments of a call."""
        guardrails, call = self._parts.guardrails, state.call
        state.guardrails = await guardrails.select(tool, call, state.admission.on_default)
        if state.guardrails:
            state.arguments, asked = await guardrails.check_arguments(
                state.guardrails, tool, call, state.arguments
            )
            if asked is not None:
                state.admission = replace(state.admission, approval=True, why=asked)

    async def _release(
        self, state: _CallState, tool: Tool, result: Any, data: bytes
    ) -> tuple[Any, bytes]:
        """Have the guardrails check a result; the cache holds the result before that check."""
        if not state.guardrails:
            return result, data
        given = CheckedResult(result, state.mcp, changed=False)
        checked = await self._parts.guardrails.check_result(
            state.guardrails, tool, state.call, state.arguments, given
        )
        if not checked.changed:
            return result, data
        state.mcp = checked.mcp
        try:
            return checked.value, _encode_output(tool, checked.value, checked.mcp)
        except ExecutionFailed as error:
            raise GuardrailFailed(
                f"A guardrail has changed the result of {tool.name} into something that its "
                "schema does not allow. The tool was called; its result is withheld.",
                reason="guardrail",
                tool=tool.name,
                ran=True,
                **error.details,
            ) from error

    async def _check_error(self, state: _CallState, error: StratagemError) -> StratagemError:
        """Have the guardrails check the error of a tool that was run."""
        if state.tool is None or not state.guardrails or not state.attempts:
            return error
        if isinstance(error, GuardrailBlocked | GuardrailFailed):
            return error
        try:
            await self._parts.guardrails.check_error(
                state.guardrails, state.tool, state.call, state.arguments, error
            )
        except (GuardrailBlocked, GuardrailFailed) as refusal:
            # The tool's own message is in neither, and is not chained as the cause either.
            refusal.__cause__, refusal.__suppress_context__ = None, True
            return refusal
        return error

    def _check_operation(self, tool: Tool, arguments: Any, state: _CallState) -> None:
        """Refuse an operation that the caller could not run; without arguments, ever."""
        if tool.handler.get("type") == "operation":
            caller = state.call.caller
            if state.admission.read_only:
                caller = replace(caller, read_only=True)
            self._parts.check_operation(tool.handler["operation"], arguments, caller)

    async def _require_approval(self, state: _CallState, tool: Tool, *, uses: bool) -> None:
        await self._parts.rights.require_approval(
            state.admission, tool, state.arguments, state.call, uses=uses
        )

    async def _begin(self, state: _CallState, tool: Tool, circuit: str) -> None:
        """Ask whether the tool may be run; a refusal is no evidence about the tool."""
        try:
            await self._parts.rights.charge(state.admission, tool, state.arguments)
            if state.call.begin is not None:
                await state.call.begin(state.execution_id)
            await self._require_approval(state, tool, uses=True)
        except BaseException:
            self._parts.breakers.leave(circuit)
            raise

    async def _valid_arguments(self, state: _CallState, tool: Tool) -> Mapping[str, Any]:
        """Return arguments that the schema accepts: as given, or corrected."""
        given, call = state.call.arguments, state.call
        # Whoever confirms an offer means its arguments, even where the given ones would do.
        confirms = call.correction_id is not None
        corrected = confirms or (call.correct and tool.input.is_quick(given))
        # Arguments of operations that erase for good are never corrected.
        corrected = corrected and not tool.handler.get("erases")
        if isinstance(given, Mapping) and not confirms and tool.input.accepts(given):
            violations = _slips(tool, given) if corrected else []
            if not violations:
                return given
        else:
            violations = (
                tool.input.violations(given)
                if isinstance(given, Mapping)
                else [
                    {
                        "path": "$",
                        "message": "the arguments are text, not an object",
                        "rule": "type",
                    }
                ]
            )
        details: dict[str, Any] = {}
        if corrected and self._parts.corrector is not None:
            decision = await self._parts.corrector.correct(tool, call, violations)
            details = dict(decision.refusal)
            if decision.applied is not None:
                state.decision = decision
                return decision.applied
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise ValidationFailed(
            f"The arguments of {tool.name} do not fit: {first['path']}: {first['message']}{more}.",
            **pointer(first),
            violations=violations,
            hint=details.pop("hint", None)
            or first.get("hint", f"Read the schema with tool_help {tool.name}."),
            **details,
        )

    async def _cache_key(self, tool: Tool, state: _CallState, view: View) -> bytes | None:
        call = state.call
        if not tool.configuration.cache or call.skip_cache:
            return None
        forgotten = await self._parts.forgotten(tool.name)
        if not self._parts.cache.enabled:
            return None
        # A caller's permissions may narrow what the tool does, so they are part of the key; what
        # the caller may do is too, wherever the tool may run operations on the caller's behalf or
        # ask who is calling. Only of these kinds is it known that they do not.
        kind = tool.handler.get("type")
        own = None if kind in _SAME_FOR_ALL else [call.caller.reach(), _askable()]
        narrowed = call.permissions
        return caching.key_of(
            [tool.name, tool.revision, state.arguments, view.branch.name, own, narrowed, forgotten]
        )

    async def _run(self, state: _CallState, tool: Tool) -> Any:
        """Run a call in its lane, within its time, as often as is safe."""
        call, parts = state.call, self._parts
        seconds = min(call.seconds or tool.configuration.seconds, limits.EXECUTION_SECONDS_MAX)
        until = parts.monotonic() + seconds
        retries = tool.configuration.retries if call.retries is None else call.retries
        try:
            async with (
                deadline(seconds) as own,
                parts.lanes.turn(
                    tool.name, tool.configuration.concurrency, call.priority
                ) as own.place,
            ):
                while True:
                    state.attempts += 1
                    try:
                        result = await self._attempt(state, tool, until - parts.monotonic())
                        state.asked = own.asked
                        return result
                    except ExecutionFailed as error:
                        last = state.attempts > min(retries, limits.RETRIES_MAX)
                        if last or not (error.safe or tool.configuration.idempotent):
                            raise
                        pause = _pause_seconds(state.attempts, error)
                        if pause >= until - parts.monotonic():
                            # It says when to come back, and that is after the end of the call.
                            raise
                        await asyncio.sleep(pause)
        except TimeoutError as error:
            if not state.attempts:
                raise ExecutionTimeout(
                    f"{tool.name} was not called: it waited {seconds:g} seconds for other calls.",
                    limit=seconds,
                    attempts=0,
                    reason="not_begun",
                    hint="Call it again later; nothing was done.",
                ) from error
            raise ExecutionTimeout(
                f"{tool.name} did not answer within {seconds:g} seconds and was stopped.",
                limit=seconds,
                attempts=state.attempts,
            ) from error

    async def _attempt(self, state: _CallState, tool: Tool, seconds: float) -> Any:
        call = state.call
        runner = self._parts.runners.get(tool.handler.get("type", ""))
        if runner is None:
            raise ExecutionFailed(f"{tool.name} cannot run here: its handler is unknown.")
        permissions = tool.permissions
        if call.permissions is not None:
            permissions = permissions.intersect(read_permissions(call.permissions))
        secrets = await self._parts.secrets(tool)
        run = Run(
            execution_id=state.execution_id,
            tool=tool.name,
            arguments=state.arguments,
            seconds=seconds,
            permissions=permissions,
            secrets=secrets,
            caller=call.caller,
            progress=self._progress(state, tool),
            attempt=state.attempts,
            request_key=call.request_key or state.execution_id,
            branch=call.branch,
            depth=call.depth,
            context=call.context,
        )
        try:
            result = await runner.run(tool.handler, run)
            if isinstance(result, ContentResult):
                return result.map(secrets.scrub)
            return secrets.scrub(result)
        except StratagemError as error:
            error.reword(secrets.scrub(error.message), secrets.scrub(error.details))
            raise

    def _progress(
        self, state: _CallState, tool: Tool
    ) -> Callable[[float | None, str | None], None]:
        def report(fraction: float | None, message: str | None) -> None:
            state.call.progress(fraction, message)
            percentage = None if fraction is None else round(100 * fraction, 1)
            if state.item is not None:
                state.item.percentage, state.item.message = percentage, message
            self._parts.publish_progress(
                {
                    "executionId": state.execution_id,
                    "requestId": state.call.context.get("requestId"),
                    "toolName": tool.name,
                    "percentage": percentage,
                    "message": message,
                    "caller": state.call.caller.actor,
                }
            )

        return report

    def _note_failure(self, circuit: str, error: Exception) -> None:
        if isinstance(error, ExecutionFailed) and error.answered:
            # The service answered, so it is reachable.
            self._parts.breakers.succeed(circuit)
        elif _blame(error) != "tool":
            self._parts.breakers.leave(circuit)
        else:
            # Its words may repeat one caller's arguments; others are told of what kind it was.
            code = error.code if isinstance(error, StratagemError) else InternalFault.code
            self._parts.breakers.fail(circuit, code)

    async def _record_failure(self, state: _CallState, error: StratagemError) -> StratagemError:
        """Record a failed call; return its error with the execution's id and a known fix."""
        error.details = {**error.details, "executionId": state.execution_id}
        state.error = error
        recorded: RecordedError = {
            "code": error.code,
            "message": error.message,
            "blame": _blame(error),
        }
        if (advice := await self._advice(state, error)) is not None:
            error.details["knownFix"] = advice
            # By these a later success finds what it may owe it to.
            known = ("solutionId", "lookupId", "tool")
            recorded["knownFix"] = {name: advice.get(name) for name in known}
        if isinstance(body := error.details.get("body"), str):
            recorded["body"] = body
        self._close(state, "timeout" if isinstance(error, ExecutionTimeout) else "failed", recorded)
        return error

    def _close(
        self,
        state: _CallState,
        status: ExecutionStatus,
        error: RecordedError | None,
        data: bytes | None = None,
    ) -> None:
        tool, call = state.tool, state.call
        if tool is None:
            return
        metadata = self._metadata(state)
        record: ExecutionRecord = {
            "executionId": state.execution_id,
            "tool": tool.name,
            "toolId": tool.id,
            "revision": tool.revision,
            "caller": call.caller.actor,
            "context": dict(call.context),
            # The record of an erasure must not name the erased content.
            "arguments": {} if tool.handler.get("erases") else state.arguments,
            "status": status,
            "startedAt": state.started_at,
            "duration": metadata["duration"],
            "cached": metadata["cached"],
            "provider": metadata["provider"],
            "attempts": metadata["attempts"],
        }
        if "correction" in metadata:
            record["correction"] = metadata["correction"]
            # The original arguments are not recorded if a guardrail removed something from them.
            if state.decision is not None and state.arguments == state.decision.applied:
                record["originalArguments"] = call.arguments
        if "warnings" in metadata:
            record["warnings"] = metadata["warnings"]
        if error is not None:
            record["error"] = error
        self._learn(state, tool, record)
        tracing.describe(state.span, tool, record, data)
        self._parts.publish_end(record)
        self._parts.record(PendingExecution(call.branch, record, status == "success", data))

    def _learn(self, state: _CallState, tool: Tool, record: ExecutionRecord) -> None:
        if self._parts.corrector is None:
            return
        try:
            self._parts.corrector.learn(
                tool,
                state.call,
                state.arguments,
                record,
                decision=state.decision,
                error=state.error,
            )
        except Exception:  # the call has ended; what it taught is not worth failing it
            logger.exception("nothing was learned from a call of %s", tool.name)

    async def _advice(self, state: _CallState, error: StratagemError) -> dict[str, Any] | None:
        if state.tool is None or self._parts.corrector is None:
            return None
        try:
            return await self._parts.corrector.advise(state.tool, state.call, error)
        except Exception:  # the error itself is what the caller has to see
            logger.exception("no advice was found for a call of %s", state.tool.name)
            return None

    def _metadata(self, state: _CallState) -> CallMetadata:
        tool = state.tool
        duration = (self._parts.monotonic() - state.started) * 1000
        metadata: CallMetadata = {
            "duration": round(duration, 3),
            "cached": state.cached,
            "provider": tool.provider if tool else None,
            "attempts": state.attempts,
        }
        if state.decision is not None and state.decision.note is not None:
            metadata["correction"] = state.decision.note
        if tool is not None and (warnings := _warnings(tool, state.arguments)):
            metadata["warnings"] = warnings
        return metadata


def _askable() -> list[str]:
    """Return which questions the caller's client can answer; upstream servers are told."""
    asker = current_asker()
    return [] if asker is None else sorted(asker.capabilities)


def _slips(tool: Tool, arguments: Mapping[str, Any]) -> list[Violation]:
    """Return names that the schema of a tool takes, and that certainly are slips for others."""
    schema = _schema_to_correct_by(tool)
    return [
        {"path": each.path, "message": each.message, "rule": "unknownName"}
        for each in (name_slips(schema, arguments) if schema is not None else ())
    ]


def _warnings(tool: Tool, arguments: Any) -> list[str]:
    """Return what a caller should know about a call that was run."""
    found = [f"{tool.name} is deprecated."] if tool.status == "deprecated" else []
    schema = _schema_to_correct_by(tool)
    return [*found, *(remarks(schema, arguments) if schema is not None else ())]


def _schema_to_correct_by(tool: Tool) -> Ready | None:
    """Return the schema of a tool as corrections read it; some are too large for that."""
    try:
        return ready(tool.content["inputSchema"])
    except ValidationFailed:
        return None


def _blame(error: Exception) -> Blame:
    if not isinstance(error, StratagemError):
        return blame_of(InternalFault.code)
    return blame_of(error.code, error.details.get("reason"))


def _excuse(error: Exception, tool: Tool, state: _CallState) -> None:
    """Note where time ran out that the caller had chosen, or that the caller's own code took."""
    seconds = state.call.seconds
    chosen = seconds is not None and seconds < tool.configuration.seconds
    chosen = chosen or (tool.target == "url" and "timeout" in state.arguments)
    if isinstance(error, ExecutionTimeout) and (chosen or tool.target == "code"):
        error.details.setdefault("reason", "callers_time")


def _authorise(tool: Tool, call: Call) -> None:
    call.caller.require("gateway", "execute", f"calling {tool.name}")
    refuse_inactive(tool)
    if tool.fault is not None:
        raise PermissionDenied(
            f"{tool.name} cannot be called: {tool.fault}",
            reason="schema_refused",
            tool=tool.name,
            hint="Its owner has to update it with a simpler schema.",
        )
    if (lacking := tool.unavailable) is not None:
        raise ToolUnavailable(
            f"{tool.name} cannot be called yet: {lacking['reason']}",
            reason="unavailable",
            tool=tool.name,
            hint=lacking["nextStep"],
        )
    if call.depth > _DEPTH_MAX:
        raise ValidationFailed(
            f"{tool.name} is called from within {_DEPTH_MAX} nested calls.",
            field="toolName",
            limit=_DEPTH_MAX,
            hint="A pipeline must not call itself.",
        )


def _separate(result: Any, state: _CallState) -> Any:
    """Return a result as plain JSON, with the other content of an MCP server beside it."""
    if not isinstance(result, ContentResult):
        return result
    state.mcp = {"structured": result.is_structured}
    if result.value != {"content": result.content}:
        state.mcp["content"] = result.content
    if result.meta:
        state.mcp["_meta"] = dict(result.meta)
    return result.value


def _encode_output(tool: Tool, result: Any, beside: McpContent | None) -> bytes:
    """Return a result as JSON, checked against the tool's limit and output schema.

    Raises:
        ExecutionFailed: It is not JSON, too large, or does not match the output schema.
    """
    try:
        data = orjson.dumps(result)
    except (orjson.JSONEncodeError, TypeError, ValueError) as error:
        raise ExecutionFailed(f"The result of {tool.name} is not JSON: {error}.") from error
    limit = tool.configuration.output_bytes
    size = len(data) + (len(orjson.dumps(beside)) if beside else 0)
    if size > limit:
        raise ExecutionFailed(
            f"{tool.name} was called, but its result has {size:,} bytes; {limit:,} are allowed.",
            answered=True,
            reason="too_large",
            limit=limit,
            hint="Its effects remain. To see a result, ask for less, or raise "
            "configuration.maxOutput of the tool.",
        )
    if tool.output is not None and not tool.output.accepts(result):
        raise ExecutionFailed(
            f"The result of {tool.name} does not fit its own outputSchema.",
            violations=tool.output.violations(result),
            hint="The tool or its outputSchema has to be corrected.",
        )
    return data


def _pause_seconds(attempt: int, error: ExecutionFailed) -> float:
    """Return how long to wait before the next attempt: longer each time, and not all at once."""
    wished = error.details.get("retry_after")
    most = _BACKOFF_SECONDS * 2 ** min(attempt, 10)
    jittered = random.uniform(most / 2, most)  # noqa: S311 -- spreads load, guards nothing
    return max(jittered, wished if isinstance(wished, int | float) else 0)
