"""The one path that every call takes, whatever surface it came from.

resolve → authorise → rate limit → validate → correct and validate again → cache → breaker → run
(timeout, retries, cancellation, progress) → check the output → record → learn
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from stratagem import limits
from stratagem.engine.lineage import View
from stratagem.errors import (
    Blame,
    ExecutionFailed,
    ExecutionTimeout,
    InternalFault,
    PermissionDenied,
    StratagemError,
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
    RecordedError,
)
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.call import BegunElsewhereError, Call, Finished
from stratagem.gateway.calls.concurrency import Lanes
from stratagem.gateway.calls.rate_limits import Rates
from stratagem.gateway.calls.recorder import Entry
from stratagem.gateway.calls.result_cache import Cache
from stratagem.gateway.definitions.contract import Run, Runner
from stratagem.gateway.definitions.schemas import Violation, pointer
from stratagem.gateway.handlers.operation import CheckOperation
from stratagem.gateway.registry.secrets import GrantedSecrets
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.sandbox.permissions import read_permissions
from stratagem.operation import Caller

__all__ = ["CorrectionDecision", "Corrector", "Executor", "Parts"]

logger = logging.getLogger(__name__)

_DEPTH_MAX: Final = 8
_BACKOFF_SECONDS: Final = 0.1
# Handlers whose answers depend on nothing about the caller.
_SAME_FOR_ALL: Final = frozenset({"builtin", "code", "mcp", "openapi", "webhook"})


@dataclass(frozen=True, slots=True)
class CorrectionDecision:
    """What becomes of arguments that do not fit: corrected ones, or why there are none.

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
class Parts:
    """What the path is made of."""

    resolve: Callable[[str, str], Awaitable[tuple[Tool, View]]]
    check_operation: CheckOperation
    secrets: Callable[[Tool], Awaitable[GrantedSecrets]]
    runners: Mapping[str, Runner]
    cache: Cache
    # What was forgotten last of a tool's results, on any server.
    forgotten: Callable[[str], Awaitable[tuple[int, int, int]]]
    breakers: Breakers
    lanes: Lanes
    record: Callable[[Entry], None]
    publish_progress: Callable[[CallProgress], None]
    publish_end: Callable[[ExecutionRecord], None]
    microseconds: Callable[[], int]
    new_id: Callable[[str], str]
    rates: Rates = field(default_factory=lambda: Rates(time.monotonic))
    monotonic: Callable[[], float] = time.monotonic
    corrector: Corrector | None = None


@dataclass(slots=True)
class _Course:
    """How one call goes."""

    call: Call
    execution_id: str
    started_at: int
    started: float
    tool: Tool | None = None
    arguments: Any = None
    attempts: int = 0
    cached: bool = False
    decision: CorrectionDecision | None = None
    error: StratagemError | None = None
    span: Any = None
    cancelled: bool = False


class Executor:
    """Takes calls along the path. Runs on the home loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._running: dict[str, tuple[asyncio.Task[Any], _Course]] = {}

    async def execute(self, call: Call) -> Finished:
        """Run a call to its end.

        Raises:
            StratagemError: It did not work; its details have the `executionId`.
        """
        parts = self._parts
        course = _Course(
            call,
            call.execution_id or parts.new_id("exec"),
            parts.microseconds(),
            parts.monotonic(),
            arguments=call.arguments,
        )
        with tracing.span_of(call.tool) as course.span:
            return await self._guarded(course)

    async def _guarded(self, course: _Course) -> Finished:
        """Follow the path; whatever happens on it, the call is recorded as ended."""
        call, task = course.call, asyncio.current_task()
        assert task is not None
        self._running[course.execution_id] = task, course
        try:
            result, data = await self._follow(course)
        except asyncio.CancelledError:
            if course.cancelled and not task.uncancel():
                # This call alone was to end, not whatever it is a part of.
                raise await self._failed(course, _cancelled(call.tool)) from None
            self._close(
                course,
                "failed",
                {"code": "cancelled", "message": "It was cancelled.", "blame": "nobody"},
            )
            raise
        except BegunElsewhereError:
            if course.decision is not None and self._parts.corrector is not None:
                self._parts.corrector.abandon(course.decision)
            raise
        except StratagemError as error:
            raise await self._failed(course, error) from error.__cause__
        except Exception as error:
            # A defect of a runner must not hurt more than its own call.
            fault = InternalFault(f"{call.tool} failed inside the gateway: {type(error).__name__}.")
            raise await self._failed(course, fault) from error
        finally:
            self._running.pop(course.execution_id, None)
        self._close(course, "success", None, data)
        return Finished(course.execution_id, result, self._metadata(course))

    def cancel(self, execution_id: str, caller: Caller) -> bool:
        """Stop a call of a caller's own; return whether it was running."""
        task, course = self._running.get(execution_id, (None, None))
        if task is None or course is None or course.cancelled:
            return False
        if course.call.caller.actor != caller.actor and not caller.may("gateway", "admin"):
            return False
        course.cancelled = task.cancel()
        return course.cancelled

    @property
    def active(self) -> list[str]:
        """The executions that are under way."""
        return list(self._running)

    async def _follow(self, course: _Course) -> tuple[Any, bytes]:
        parts, call = self._parts, course.call
        tool, view = await parts.resolve(call.branch, call.tool)
        course.tool = tool
        _authorise(tool, call)
        self._check_operation(tool, None, call)
        per_minute = tool.configuration.calls_per_minute or limits.CALLS_PER_MINUTE_DEFAULT
        parts.rates.take(call.caller.actor, tool.name, per_minute)
        course.arguments = await self._fitting(course, tool)
        # Before the cache is looked at: it may hold what this caller could not have been told.
        self._check_operation(tool, course.arguments, call)
        key = await self._cache_key(tool, course, view)
        if key is not None:
            found, kept = parts.cache.get(key)
            if found:
                course.cached = True
                return kept, orjson.dumps(kept)
        circuit = tool.circuit(course.arguments)
        parts.breakers.enter(circuit)
        await self._begin(course, circuit)
        try:
            result = await self._run(course, tool)
            data = _checked_output(tool, result)
        except asyncio.CancelledError:
            parts.breakers.leave(circuit)
            raise
        except Exception as error:
            _excuse(error, tool, course)
            self._note_failure(circuit, error)
            raise
        parts.breakers.succeed(circuit)
        if key is not None:
            parts.cache.put(key, tool.name, result, tool.configuration.cache_seconds)
        return result, data

    def _check_operation(self, tool: Tool, arguments: Any, call: Call) -> None:
        """Refuse an operation that the caller could not run; without arguments, ever."""
        if tool.handler.get("type") == "operation":
            self._parts.check_operation(tool.handler["operation"], arguments, call.caller)

    async def _begin(self, course: _Course, circuit: str) -> None:
        """Ask whether the tool may be run; that it may not says nothing about the tool."""
        if course.call.begin is None:
            return
        try:
            await course.call.begin(course.execution_id)
        except BaseException:
            self._parts.breakers.leave(circuit)
            raise

    async def _fitting(self, course: _Course, tool: Tool) -> Mapping[str, Any]:
        """Return arguments that fit the schema: as given, or corrected."""
        given, call = course.call.arguments, course.call
        # Whoever confirms an offer means its arguments, even where the given ones would do.
        confirms = call.correction_id is not None
        if isinstance(given, Mapping) and not confirms and tool.input.accepts(given):
            return given
        violations: list[Violation] = (
            tool.input.violations(given)
            if isinstance(given, Mapping)
            else [{"path": "$", "message": "the arguments are text, not an object", "rule": "type"}]
        )
        details: dict[str, Any] = {}
        corrected = confirms or (call.correct and tool.input.is_quick(given))
        # Nobody guesses what is to be erased for good.
        corrected = corrected and not tool.handler.get("erases")
        if corrected and self._parts.corrector is not None:
            decision = await self._parts.corrector.correct(tool, call, violations)
            details = dict(decision.refusal)
            if decision.applied is not None:
                course.decision = decision
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

    async def _cache_key(self, tool: Tool, course: _Course, view: View) -> bytes | None:
        call = course.call
        if not tool.configuration.cache or call.skip_cache:
            return None
        forgotten = await self._parts.forgotten(tool.name)
        if not self._parts.cache.enabled:
            return None
        # A caller's permissions may narrow what the tool does, so they are part of the key; what
        # the caller may do is too, wherever the tool may run operations on the caller's behalf or
        # ask who is calling. Only of these kinds is it known that they do not.
        kind = tool.handler.get("type")
        own = None if kind in _SAME_FOR_ALL else call.caller.reach()
        narrowed = call.permissions
        return caching.key_of(
            [tool.name, tool.revision, course.arguments, view.branch.name, own, narrowed, forgotten]
        )

    async def _run(self, course: _Course, tool: Tool) -> Any:
        """Run a call in its lane, within its time, as often as is safe."""
        call, parts = course.call, self._parts
        seconds = min(call.seconds or tool.configuration.seconds, limits.EXECUTION_SECONDS_MAX)
        until = parts.monotonic() + seconds
        retries = tool.configuration.retries if call.retries is None else call.retries
        try:
            async with (
                asyncio.timeout(seconds),
                parts.lanes.turn(tool.name, tool.configuration.concurrency, call.priority),
            ):
                while True:
                    course.attempts += 1
                    try:
                        return await self._attempt(course, tool, until - parts.monotonic())
                    except ExecutionFailed as error:
                        last = course.attempts > min(retries, limits.RETRIES_MAX)
                        if last or not (error.safe or tool.configuration.idempotent):
                            raise
                        await _pause(course.attempts, error)
        except TimeoutError as error:
            raise ExecutionTimeout(
                f"{tool.name} did not answer within {seconds:g} seconds and was stopped.",
                limit=seconds,
                attempts=course.attempts,
            ) from error

    async def _attempt(self, course: _Course, tool: Tool, seconds: float) -> Any:
        call = course.call
        runner = self._parts.runners.get(tool.handler.get("type", ""))
        if runner is None:
            raise ExecutionFailed(f"Nothing here can run {tool.name}: its handler is unknown.")
        permissions = tool.permissions
        if call.permissions is not None:
            permissions = permissions.intersect(read_permissions(call.permissions))
        secrets = await self._parts.secrets(tool)
        run = Run(
            execution_id=course.execution_id,
            tool=tool.name,
            arguments=course.arguments,
            seconds=seconds,
            permissions=permissions,
            secrets=secrets,
            caller=call.caller,
            progress=self._progress(course, tool),
            attempt=course.attempts,
            request_key=call.request_key or course.execution_id,
            branch=call.branch,
            depth=call.depth,
            context=call.context,
        )
        try:
            return secrets.scrub(await runner.run(tool.handler, run))
        except StratagemError as error:
            error.message = secrets.scrub(error.message)
            error.details = secrets.scrub(error.details)
            raise

    def _progress(self, course: _Course, tool: Tool) -> Callable[[float | None, str | None], None]:
        def report(fraction: float | None, message: str | None) -> None:
            course.call.progress(fraction, message)
            self._parts.publish_progress(
                {
                    "executionId": course.execution_id,
                    "requestId": course.call.context.get("requestId"),
                    "toolName": tool.name,
                    "percentage": None if fraction is None else round(100 * fraction, 1),
                    "message": message,
                    "caller": course.call.caller.actor,
                }
            )

        return report

    def _note_failure(self, circuit: str, error: Exception) -> None:
        answered = isinstance(error, ExecutionFailed) and error.answered
        if answered or _blame(error) != "tool":
            self._parts.breakers.leave(circuit)
        else:
            # Its words may repeat one caller's arguments; others are told of what kind it was.
            code = error.code if isinstance(error, StratagemError) else InternalFault.code
            self._parts.breakers.fail(circuit, code)

    async def _failed(self, course: _Course, error: StratagemError) -> StratagemError:
        """Return the error as the caller sees it: with the execution's id, and what may help."""
        error.details = {**error.details, "executionId": course.execution_id}
        course.error = error
        recorded: RecordedError = {
            "code": error.code,
            "message": error.message,
            "blame": _blame(error),
        }
        if (advice := await self._advice(course, error)) is not None:
            error.details["knownFix"] = advice
            # By these a later success finds what it may owe it to.
            known = ("solutionId", "lookupId", "tool")
            recorded["knownFix"] = {name: advice.get(name) for name in known}
        if isinstance(body := error.details.get("body"), str):
            recorded["body"] = body
        self._close(
            course, "timeout" if isinstance(error, ExecutionTimeout) else "failed", recorded
        )
        return error

    def _close(
        self,
        course: _Course,
        status: ExecutionStatus,
        error: RecordedError | None,
        data: bytes | None = None,
    ) -> None:
        tool, call = course.tool, course.call
        if tool is None:
            return
        metadata = self._metadata(course)
        record: ExecutionRecord = {
            "executionId": course.execution_id,
            "tool": tool.name,
            "toolId": tool.id,
            "revision": tool.revision,
            "caller": call.caller.actor,
            "context": dict(call.context),
            # What is erased must not be named by the record of its erasure.
            "arguments": {} if tool.handler.get("erases") else course.arguments,
            "status": status,
            "startedAt": course.started_at,
            "duration": metadata["duration"],
            "cached": metadata["cached"],
            "provider": metadata["provider"],
            "attempts": metadata["attempts"],
        }
        if "correction" in metadata:
            record["correction"] = metadata["correction"]
        if "warnings" in metadata:
            record["warnings"] = metadata["warnings"]
        if error is not None:
            record["error"] = error
        self._learn(course, tool, record)
        tracing.describe(course.span, record)
        self._parts.publish_end(record)
        self._parts.record(Entry(call.branch, record, status == "success", data))

    def _learn(self, course: _Course, tool: Tool, record: ExecutionRecord) -> None:
        if self._parts.corrector is None:
            return
        try:
            self._parts.corrector.learn(
                tool,
                course.call,
                course.arguments,
                record,
                decision=course.decision,
                error=course.error,
            )
        except Exception:  # the call has ended; what it taught is not worth failing it
            logger.exception("nothing was learned from a call of %s", tool.name)

    async def _advice(self, course: _Course, error: StratagemError) -> dict[str, Any] | None:
        if course.tool is None or self._parts.corrector is None:
            return None
        try:
            return await self._parts.corrector.advise(course.tool, course.call, error)
        except Exception:  # the error itself is what the caller has to see
            logger.exception("no advice was found for a call of %s", course.tool.name)
            return None

    def _metadata(self, course: _Course) -> CallMetadata:
        tool = course.tool
        duration = (self._parts.monotonic() - course.started) * 1000
        metadata: CallMetadata = {
            "duration": round(duration, 3),
            "cached": course.cached,
            "provider": tool.provider if tool else None,
            "attempts": course.attempts,
        }
        if course.decision is not None and course.decision.note is not None:
            metadata["correction"] = course.decision.note
        if tool is not None and tool.status == "deprecated":
            metadata["warnings"] = [f"{tool.name} is deprecated."]
        return metadata


def _blame(error: Exception) -> Blame:
    if not isinstance(error, StratagemError):
        return blame_of(InternalFault.code)
    return blame_of(error.code, error.details.get("reason"))


def _excuse(error: Exception, tool: Tool, course: _Course) -> None:
    """Note where time ran out that the caller had chosen, or that the caller's own code took."""
    seconds = course.call.seconds
    chosen = seconds is not None and seconds < tool.configuration.seconds
    chosen = chosen or (tool.target == "url" and "timeout" in course.arguments)
    if isinstance(error, ExecutionTimeout) and (chosen or tool.target == "code"):
        error.details.setdefault("reason", "callers_time")


def _authorise(tool: Tool, call: Call) -> None:
    call.caller.require("gateway", "execute", f"calling {tool.name}")
    if tool.status in {"disabled", "quarantined"}:
        reason = (
            "its definition changed and waits for approval"
            if tool.status == "quarantined"
            else "it was switched off"
        )
        raise PermissionDenied(
            f"{tool.name} cannot be called: {reason}.", reason=tool.status, tool=tool.name
        )
    if tool.fault is not None:
        raise PermissionDenied(
            f"{tool.name} cannot be called: {tool.fault}",
            reason="schema_refused",
            tool=tool.name,
            hint="Its owner has to update it with a simpler schema.",
        )
    if call.depth > _DEPTH_MAX:
        raise ValidationFailed(
            f"{tool.name} is called from inside {_DEPTH_MAX} other calls.",
            field="toolName",
            limit=_DEPTH_MAX,
            hint="A pipeline must not call itself.",
        )


def _checked_output(tool: Tool, result: Any) -> bytes:
    """Return a result as JSON that fits the tool's own promises.

    Raises:
        ExecutionFailed: It is no JSON, too large, or not what the output schema says.
    """
    try:
        data = orjson.dumps(result)
    except (orjson.JSONEncodeError, TypeError, ValueError) as error:
        raise ExecutionFailed(f"The result of {tool.name} is no JSON: {error}.") from error
    limit = tool.configuration.output_bytes
    if len(data) > limit:
        raise ExecutionFailed(
            f"The result of {tool.name} has {len(data):,} bytes; {limit:,} are allowed.",
            limit=limit,
            hint="Ask for less, or raise configuration.maxOutput of the tool.",
        )
    if tool.output is not None and not tool.output.accepts(result):
        raise ExecutionFailed(
            f"The result of {tool.name} does not fit its own outputSchema.",
            violations=tool.output.violations(result),
            hint="The tool, or its outputSchema, has to be mended.",
        )
    return data


def _cancelled(tool: str) -> ExecutionFailed:
    return ExecutionFailed(f"The call of {tool} was cancelled.", answered=True, reason="cancelled")


async def _pause(attempt: int, error: ExecutionFailed) -> None:
    """Wait before the next attempt: longer each time, and not all at once."""
    wished = error.details.get("retry_after")
    most = _BACKOFF_SECONDS * 2 ** min(attempt, 10)
    jittered = random.uniform(most / 2, most)  # noqa: S311 -- spreads load, guards nothing
    await asyncio.sleep(max(jittered, wished if isinstance(wished, int | float) else 0))
