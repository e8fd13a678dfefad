"""The contract of runners, for every type of handler.

A runner makes one attempt at one call: it turns arguments into a result, and stops its work
when it is cancelled. Everything else (permissions, limits, validation, cache, breaker, retries,
records) is done by the path of a call around it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller

__all__ = [
    "ContentResult",
    "Handler",
    "ListedTool",
    "ProgressReport",
    "Run",
    "Runner",
    "Runners",
    "ScrubbingSecrets",
    "Secrets",
]

# A handler as it is registered: plain JSON with a `type`, never holding a secret itself.
Handler = Mapping[str, Any]
# Called with how much is done (0 to 1, None where that is unknown) and what is being done.
ProgressReport = Callable[[float | None, str | None], None]
logger = logging.getLogger(__name__)


class Secrets(Protocol):
    """The secrets that an administrator granted to one tool."""

    def resolve(self, text: str, *, origin: str) -> str:
        """Return a text with each `${NAME}` replaced by its value.

        Raises:
            PermissionDenied: The name was not granted to this tool, or not for this origin.
            SecretUnavailable: It was granted, and its value cannot be had.
        """
        ...


@runtime_checkable
class ScrubbingSecrets(Protocol):
    """Secrets that can be taken out of what is answered."""

    def scrub(self, value: Any) -> Any:
        """Return an answer without the secrets that were sent."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at running a tool.

    `seconds` is what is left of the call's time; the path cancels the attempt when it is over.
    `attempt` begins at 1. `request_key` is the same for each attempt of one call, so that
    a service that understands such keys does nothing twice.
    """

    execution_id: str
    tool: str
    arguments: Mapping[str, Any]
    seconds: float
    permissions: Permissions
    secrets: Secrets
    caller: Caller
    progress: ProgressReport
    attempt: int = 1
    request_key: str = ""
    branch: str = "default"
    depth: int = 0
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool that a source (an OpenAPI document, an upstream server) offers.

    `said` are the texts and schemas as they were sent, before anything was taken out of them.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    handler: Handler
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None
    tags: Sequence[str] = ()
    annotations: Mapping[str, Any] | None = None
    icons: Sequence[Mapping[str, Any]] = ()
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContentResult:
    """What a tool of an MCP server answered, as it was sent, and what that is as plain JSON.

    `value` is its `structuredContent` (`is_structured`), else its only text where that is JSON,
    else `{"content": [...]}`.
    """

    value: Any
    content: list[dict[str, Any]]
    is_structured: bool = False
    meta: Mapping[str, Any] | None = None

    def map(self, change: Callable[[Any], Any]) -> ContentResult:
        """Return it with everything in it changed."""
        return ContentResult(
            change(self.value), change(self.content), self.is_structured, change(self.meta)
        )


class Runner(Protocol):
    """Runs handlers of one type."""

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered, without touching the network; return warnings.

        Raises:
            ValidationFailed: It cannot work; `field` begins with "handler".
        """
        ...

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return the result: plain JSON, or content as an MCP server sent it.

        Raises:
            ExecutionFailed: The tool failed; `retryable` says whether nothing was done yet.
            PermissionDenied: The handler may not do this.
        """
        ...

    async def close(self) -> None:
        """End connections and processes."""
        ...


class Runners(Mapping[str, Runner]):
    """Runners by the type of their handler, each created when it is first needed."""

    def __init__(self, makers: Mapping[str, Callable[[], Runner]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Runner] = {}
        self._shared: list[Callable[[], Awaitable[None]]] = []

    def __getitem__(self, kind: str) -> Runner:
        runner = self._made.get(kind)
        if runner is None:
            runner = self._made.setdefault(kind, self._makers[kind]())
        return runner

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered; return warnings.

        Raises:
            ValidationFailed: It cannot work.
        """
        kind = handler.get("type")
        if not isinstance(kind, str) or kind not in self._makers:
            raise ValidationFailed(
                f"There is no handler of type {kind!r}.",
                field="handler.type",
                allowed=sorted(self._makers),
                hint=f"Choose one of: {', '.join(sorted(self._makers))}.",
            )
        return self[kind].check(handler)

    def close_after(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something that runners share, once they are closed themselves."""
        self._shared.append(close)

    async def close(self) -> None:
        """Close the runners that were used, then what they share."""
        for close in (*(runner.close for runner in self._made.values()), *self._shared):
            try:
                await close()
            except Exception:  # the others must be ended too
                logger.exception("a runner did not end well")
