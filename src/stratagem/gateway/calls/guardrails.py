"""Guardrails: checks before and after a call, which mask, block, rewrite, or ask a person.

A guardrail is a record: when it is run, which calls it is about, and what it does. It may be a
rule by itself (mask, block, ask), a Python function that the operator allows, or a registered tool;
these get the call as JSON and return a decision. They run in order, each on the output of the one
before it. Any error in a guardrail refuses the call: guardrails fail closed.

The first one is built in and cannot be removed: it removes the secrets of a call from its result
(`GrantedSecrets.scrub`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import GuardrailBlocked, GuardrailFailed, StratagemError
from stratagem.gateway import names
from stratagem.gateway.calls.answers import McpContent
from stratagem.gateway.calls.call import Call, Execute
from stratagem.gateway.definitions.contract import Run, Runner
from stratagem.gateway.registry.answers import GuardrailDocument, ToolGuardrail
from stratagem.gateway.registry.secrets import GrantedSecrets
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller
from stratagem.redaction import mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = [
    "BUILT_IN",
    "GUARDRAIL_CALLER",
    "CheckRunner",
    "CheckedResult",
    "Guardrail",
    "Guardrails",
    "RunCheck",
    "guardrails_of",
    "read_guardrails",
]

When = Literal["before", "after"]
# What a check is run as: it speaks for nobody, and may call any tool.
GUARDRAIL_CALLER: Final = Caller(actor="guardrail")
_FIELDS: Final = {"before": "arguments", "after": "result"}
# Listed first wherever guardrails are shown.
BUILT_IN: Final[ToolGuardrail] = {
    "name": "sent-secrets",
    "when": "after",
    "action": "mask",
    "builtIn": True,
}
# Runs a check, a Python function or a tool, with what it is told, for so many seconds.
RunCheck = Callable[[Mapping[str, Any], Mapping[str, Any], float], Awaitable[Any]]


class CheckedResult(NamedTuple):
    """A result that the guardrails let pass, and what an MCP server said beside it."""

    value: Any
    mcp: McpContent | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Guardrail:
    """One guardrail, read from its record."""

    document: GuardrailDocument

    @property
    def name(self) -> str:
        """Its name."""
        return self.document["name"]

    @property
    def when(self) -> When:
        """Whether it is run before or after a call."""
        return self.document["when"]

    @property
    def action(self) -> str:
        """What it does, or what is run to decide."""
        return self.document["check"]["type"]

    def applies(self, tool: Tool, actor: str | None) -> bool:
        """Whether it is about the calls of a tool, by a caller; by anybody where that is None."""
        match = self.document.get("match") or {}
        source = tool.handler.get("source") or tool.provider
        tags = tool.content.get("tags") or ()
        return (
            _fits(match.get("tools"), tool.name)
            and _fits(match.get("sources"), source)
            and (not match.get("tags") or any(_fits(match["tags"], each) for each in tags))
            and (actor is None or _fits(match.get("callers"), actor, actor.removeprefix("token:")))
        )


def _fits(patterns: Sequence[str] | None, *values: str) -> bool:
    return not patterns or any(fnmatchcase(each, one) for one in patterns for each in values)


def read_guardrails(foundation: Foundation, reader: Reader) -> list[Guardrail]:
    """Return all guardrails, in the order in which they are run."""
    view = foundation.views.view(reader, DEFAULT_BRANCH)
    page, _next = reader.records.page(view.lineage, names.GUARDRAILS, limit=limits.GUARDRAILS_MAX)
    found = [Guardrail(orjson.loads(each.payload)) for _key, each in page if each.payload]
    return sorted(found, key=lambda each: (each.document["order"], each.name))


def guardrails_of(foundation: Foundation, reader: Reader, tool: Tool) -> list[ToolGuardrail]:
    """Return what is shown of the guardrails of a tool."""
    shown: list[ToolGuardrail] = [BUILT_IN]
    for each in read_guardrails(foundation, reader):
        if each.applies(tool, None):
            entry: ToolGuardrail = {"name": each.name, "when": each.when, "action": each.action}
            match = each.document.get("match") or {}
            if match.get("callers"):
                entry["callers"] = list(match["callers"])
            shown.append(entry)
    return shown


@dataclass(slots=True)
class Guardrails:
    """Runs the guardrails of calls."""

    foundation: Foundation
    run_check: RunCheck
    _known: tuple[tuple[int, ...], list[Guardrail]] = field(default_factory=lambda: ((), []))

    async def select(
        self, tool: Tool, call: Call, on_default: Tool | None = None
    ) -> list[Guardrail]:
        """Return the guardrails of a call, in order; none where it is a guardrail's own call.

        `on_default` is the tool as the default branch has it, where the call is about another: a
        branch that lacks its tags is checked as well.
        """
        if call.caller.actor == GUARDRAIL_CALLER.actor:
            return []
        every = await self.foundation.read_async(self._read)
        tools = [tool] if on_default is None else [tool, on_default]
        actor = call.caller.actor
        return [each for each in every if any(each.applies(one, actor) for one in tools)]

    async def check_arguments(
        self, chain: Sequence[Guardrail], tool: Tool, call: Call, arguments: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], str | None]:
        """Return the arguments that a call may be made with, and why a person has to approve it.

        Raises:
            GuardrailBlocked: It may not be made.
            GuardrailFailed: A guardrail did not work.
        """
        asked: str | None = None
        for each in chain:
            if each.when != "before":
                continue
            decision = await self._decide(each, tool, call, {"arguments": arguments})
            if decision.action == "ask":
                asked = decision.reason or f"the guardrail {each.name} asks for it"
            elif decision.action == "rewrite":
                arguments = _rewritten_arguments(each, tool, decision.value)
        return arguments, asked

    async def check_result(
        self,
        chain: Sequence[Guardrail],
        tool: Tool,
        call: Call,
        arguments: Mapping[str, Any],
        result: CheckedResult,
    ) -> CheckedResult:
        """Return the result that a caller may have.

        Raises:
            GuardrailBlocked: The caller may have nothing of it.
            GuardrailFailed: A guardrail did not work.
        """
        for each in chain:
            if each.when != "after":
                continue
            told = {"arguments": arguments, "result": result.value}
            if result.mcp is not None:
                told["content"] = result.mcp
            decision = await self._decide(each, tool, call, told)
            if decision.action == "ask":
                raise _failure(each, "asks for approval of a call that was made already")
            if decision.action == "rewrite":
                # What a server said beside the result may hold what was taken out of it.
                result = CheckedResult(decision.value, decision.mcp, changed=True)
        return result

    async def check_error(
        self,
        chain: Sequence[Guardrail],
        tool: Tool,
        call: Call,
        arguments: Mapping[str, Any],
        error: StratagemError,
    ) -> None:
        """Remove from the error of a failed call what the caller may not see.

        Raises:
            GuardrailBlocked: The caller may have nothing of it.
            GuardrailFailed: A guardrail did not work.
        """
        words = {"code": error.code, "message": error.message, "details": error.details}
        said: dict[str, Any] = orjson.loads(orjson.dumps(words, default=str))
        for each in chain:
            if each.when != "after":
                continue
            told = {"arguments": arguments, "result": None, "error": said}
            decision = await self._decide(each, tool, call, told)
            if decision.action == "ask":
                raise _failure(each, "asks for approval of a call that was made already")
            if decision.action == "rewrite":
                said = _rewritten_error(each, decision.value, said)
                error.reword(said["message"], said["details"])

    async def _decide(
        self, guardrail: Guardrail, tool: Tool, call: Call, told: Mapping[str, Any]
    ) -> _Decision:
        check = guardrail.document["check"]
        about = {
            "when": guardrail.when,
            "tool": tool.name,
            "source": tool.handler.get("source") or tool.provider,
            "tags": list(tool.content.get("tags") or ()),
            "caller": call.caller.actor,
            "context": dict(call.context),
            **told,
        }
        if check["type"] == "mask":
            return _mask(guardrail, told)
        if check["type"] in {"block", "ask"}:
            said: Any = {"action": check["type"], "reason": check.get("reason")}
        else:
            said = await self._run(guardrail, check, about)
        decision = _read_decision(guardrail, said, told)
        if decision.action == "block":
            raise GuardrailBlocked(
                f"The guardrail {guardrail.name} blocks this call of {tool.name}"
                f"{': ' + decision.reason if decision.reason else ''}.",
                reason="guardrail",
                guardrail=guardrail.name,
                when=guardrail.when,
                tool=tool.name,
                ran=guardrail.when == "after",
            )
        return decision

    async def _run(
        self, guardrail: Guardrail, check: Mapping[str, Any], about: Mapping[str, Any]
    ) -> Any:
        seconds = check.get("timeout", limits.GUARDRAIL_SECONDS_DEFAULT * 1000) / 1000
        try:
            async with asyncio.timeout(seconds):
                return await self.run_check(check, about, seconds)
        except TimeoutError:
            raise _failure(guardrail, f"did not decide within {seconds:g} seconds") from None
        except StratagemError as error:
            raise _failure(guardrail, f"failed: {error.message.rstrip('.')}") from error
        except Exception as error:
            raise _failure(guardrail, f"failed: {type(error).__name__}") from error

    def _read(self) -> list[Guardrail]:
        reader = self.foundation.store.reader()
        view = self.foundation.views.view(reader, DEFAULT_BRANCH)
        page, _next = reader.records.page(
            view.lineage, names.GUARDRAILS, limit=limits.GUARDRAILS_MAX
        )
        state = tuple(version.sequence for _key, version in page)
        if state != self._known[0]:
            self._known = (state, read_guardrails(self.foundation, reader))
        return self._known[1]


class _Decision(NamedTuple):
    action: Literal["allow", "block", "ask", "rewrite"]
    reason: str | None = None
    value: Any = None
    mcp: McpContent | None = None


def _mask(guardrail: Guardrail, told: Mapping[str, Any]) -> _Decision:
    level = guardrail.document["check"].get("level", "basic")
    subject = _subject(guardrail, told)
    masked = mask_json(told[subject], level)
    content = told.get("content")
    masked_content = None if content is None else mask_json(content, level)
    if masked == told[subject] and masked_content == content:
        return _Decision("allow")
    return _Decision("rewrite", value=masked, mcp=masked_content)


def _read_decision(guardrail: Guardrail, said: Any, told: Mapping[str, Any]) -> _Decision:
    """Return the decision of a check; anything but a valid decision refuses the call."""
    if said is None:
        return _Decision("allow")
    action = said.get("action") if isinstance(said, Mapping) else None
    reason = said.get("reason") if isinstance(said, Mapping) else None
    reason = reason[: limits.GUARDRAIL_REASON_CHARS_MAX] if isinstance(reason, str) else None
    subject = _subject(guardrail, told)
    if action in {"allow", "block", "ask"}:
        return _Decision(action, reason)
    if action == "rewrite" and subject in said:
        return _Decision("rewrite", reason, said[subject])
    if action == "mask":
        level = said.get("level", "basic")
        if level in {"basic", "strict"}:
            content = told.get("content")
            return _Decision(
                "rewrite",
                reason,
                mask_json(told[subject], level),
                None if content is None else mask_json(content, level),
            )
    raise _failure(
        guardrail,
        "returned no decision: null, or an object with `action` allow, block, ask, mask or rewrite "
        f"(with `{subject}`)",
    )


def _subject(guardrail: Guardrail, told: Mapping[str, Any]) -> str:
    """Return the part of a call that a guardrail decides about."""
    return "error" if "error" in told else _FIELDS[guardrail.when]


def _rewritten_error(guardrail: Guardrail, value: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error in other words; what kind of error it is stays as it was."""
    message = value.get("message") if isinstance(value, Mapping) else None
    details = value.get("details", {}) if isinstance(value, Mapping) else None
    if not isinstance(message, str) or not isinstance(details, Mapping):
        raise _failure(guardrail, "wrote an error without a `message`")
    kind = {name: before["details"][name] for name in ("reason",) if name in before["details"]}
    return {"code": before["code"], "message": message, "details": {**details, **kind}}


def _rewritten_arguments(guardrail: Guardrail, tool: Tool, value: Any) -> Mapping[str, Any]:
    """Return arguments that a guardrail wrote; the tool has to take them like any others."""
    if isinstance(value, Mapping) and tool.input.accepts(value):
        return value
    raise _failure(guardrail, f"wrote arguments that {tool.name} does not take")


def _failure(guardrail: Guardrail, what: str) -> GuardrailFailed:
    after = " It was made; its result is withheld." if guardrail.when == "after" else ""
    return GuardrailFailed(
        f"The guardrail {guardrail.name} {what}, so the call is refused.{after}",
        reason="guardrail",
        guardrail=guardrail.name,
        when=guardrail.when,
        ran=bool(after),
    )


@dataclass(frozen=True, slots=True)
class CheckRunner:
    """Runs checks. `execute` is the path of every call, which is put together after this."""

    runners: Callable[[], Mapping[str, Runner]]
    execute: Callable[[], Execute]

    async def __call__(
        self, check: Mapping[str, Any], about: Mapping[str, Any], seconds: float
    ) -> Any:
        """Return what a check says about a call.

        Raises:
            StratagemError: It failed.
        """
        arguments = {"call": about}
        if check["type"] == "tool":
            call = Call(
                check["tool"],
                arguments,
                GUARDRAIL_CALLER,
                DEFAULT_BRANCH,
                seconds=seconds,
                correct=False,
                depth=1,
            )
            return (await self.execute()(call)).result
        run = Run(
            execution_id="guardrail",
            tool="guardrail",
            arguments=arguments,
            seconds=seconds,
            permissions=Permissions(),
            secrets=GrantedSecrets("guardrail"),
            caller=GUARDRAIL_CALLER,
            progress=lambda _done, _words: None,
        )
        named = {key: check[key] for key in ("callable", "name") if key in check}
        return await self.runners()["python"].run({"type": "python", **named}, run)
