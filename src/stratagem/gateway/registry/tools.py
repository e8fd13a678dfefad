"""A registered tool: its definition, and the forms in which it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, cast
from urllib.parse import urlsplit

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.definitions.documents import Status
from stratagem.gateway.definitions.schemas import Schema, excess
from stratagem.gateway.registry.answers import (
    EffectiveConfiguration,
    MissingPart,
    ToolDetails,
    ToolSummary,
)
from stratagem.gateway.sandbox.permissions import Permissions, read_permissions
from stratagem.gateway.secret_grants import fingerprint

__all__ = [
    "CATEGORY_DEFAULT",
    "Configuration",
    "Status",
    "Tool",
    "details_of",
    "summary_of",
]

CATEGORY_DEFAULT: Final = "utility"
# A description that begins with it, or a sentence of it that says so: "DEPRECATED: use …",
# "(deprecated)", "This tool is deprecated". Tools about deprecated packages are not meant.
_DEPRECATED: Final = re.compile(
    r"\A[\[(*]{0,3}(?i:deprecated)\b"
    r"|[.!?;\n\[(*][ \t\[(*]{0,4}(?:DEPRECATED\b|[Dd]eprecated(?:[:!\])*]| [-\u2013\u2014]))"
    r"|\b[Tt]his (?:tool|function|method|operation|endpoint) (?:is|has been) (?:now )?deprecated\b"
)

# What a list shows of a tool; the rest is one look at its details away.
_SUMMARY_FIELDS: Final = tuple(ToolSummary.__annotations__)


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the calls of a tool are run.

    `cache` is only for tools that give the same answer to the same arguments. `idempotent`
    tools may be tried again after a failure that may have happened halfway.
    """

    seconds: float = limits.EXECUTION_SECONDS_DEFAULT
    retries: int = 0
    cache: bool = False
    cache_seconds: float = limits.CACHE_SECONDS_DEFAULT
    idempotent: bool = False
    concurrency: int = limits.TOOL_CONCURRENCY_DEFAULT
    calls_per_minute: int | None = None
    output_bytes: int = limits.OUTPUT_BYTES_DEFAULT

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Configuration:
        """Read the documented form, whose times are milliseconds."""
        given = content.get("configuration") or {}
        # A cached tool is idempotent: its result may be reused.
        return cls(
            seconds=given.get("timeout", limits.EXECUTION_SECONDS_DEFAULT * 1000) / 1000,
            retries=given.get("retries", 0),
            cache=given.get("cache", False),
            cache_seconds=given.get("cacheTtl", limits.CACHE_SECONDS_DEFAULT),
            idempotent=given.get("idempotent", given.get("cache", False)),
            concurrency=given.get("concurrency", limits.TOOL_CONCURRENCY_DEFAULT),
            calls_per_minute=given.get("rateLimit"),
            output_bytes=given.get("maxOutput", limits.OUTPUT_BYTES_DEFAULT),
        )

    def as_json(self) -> EffectiveConfiguration:
        """Return the documented form, with what nobody has set."""
        return {
            "timeout": round(self.seconds * 1000),
            "retries": self.retries,
            "cache": self.cache,
            "cacheTtl": self.cache_seconds,
            "idempotent": self.idempotent,
            "concurrency": self.concurrency,
            "rateLimit": self.calls_per_minute or limits.CALLS_PER_MINUTE_DEFAULT,
            "maxOutput": self.output_bytes,
        }


class Tool:
    """One revision of a tool. `revision` is the sequence of the event that wrote it.

    `correction_schema` is what its calls are corrected by, where that says more than the schema
    that callers see: other names of its parameters. `call_cost` says what a call can cost at most,
    where that depends on its arguments.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        revision: int,
        correction_schema: Mapping[str, Any] | None = None,
        *,
        call_cost: Callable[[Mapping[str, Any]], float] | None = None,
    ) -> None:
        self.content = content
        self.revision = revision
        self.correction_schema = correction_schema or content["inputSchema"]
        self._call_cost = call_cost
        self.name: str = content["name"]
        self.id: str = content["id"]
        self.status: Status = content.get("status", "active")
        self.category: str = content.get("category") or CATEGORY_DEFAULT
        self.provider: str = content.get("provider") or "custom"
        self.description: str = content.get("description") or ""
        self.handler: Mapping[str, Any] = content["handler"]
        self.configuration = Configuration.of(content)

    @cached_property
    def input(self) -> Schema:
        """What it takes."""
        return Schema(self.content["inputSchema"], field="inputSchema")

    @cached_property
    def output(self) -> Schema | None:
        """What it gives, where that was said."""
        schema = self.content.get("outputSchema")
        return Schema(schema, field="outputSchema") if schema else None

    @cached_property
    def fault(self) -> str | None:
        """Why it cannot be called, though it is registered: an earlier release took its schema."""
        for name in ("inputSchema", "outputSchema"):
            schema = self.content.get(name)
            if schema and (reason := excess(schema, field=name)) is not None:
                return reason
        return None

    @cached_property
    def has_references(self) -> bool:
        """Whether its handler refers to secrets."""
        return "${" in str(self.handler)

    @cached_property
    def handler_fingerprint(self) -> str:
        """The fingerprint of its handler."""
        return fingerprint(self.handler)

    @property
    def unavailable(self) -> MissingPart | None:
        """What a standard tool lacks, and the next step; None where it can be called."""
        return self.content.get("unavailable")

    @property
    def is_own(self) -> bool:
        """Whether it is an operation of the product itself, offered as a tool."""
        return self.handler.get("type") == "operation"

    @property
    def cost(self) -> float:
        """What a call costs, where its `pricing` says so."""
        cost = (self.content.get("pricing") or {}).get("cost")
        return float(cost) if isinstance(cost, int | float) and cost > 0 else 0.0

    def cost_of(self, arguments: Any) -> float:
        """Return what a call costs, or the most that it can cost."""
        if self._call_cost is None or not isinstance(arguments, Mapping):
            return self.cost
        return self._call_cost(arguments)

    @property
    def is_deprecated(self) -> bool:
        """Whether its status says so, or its description, as servers write it."""
        return self.status == "deprecated" or _DEPRECATED.search(self.description) is not None

    @cached_property
    def permissions(self) -> Permissions:
        """What its handler may do."""
        own = self.content.get("permissions")
        if own is None and self.handler.get("type") == "code":
            # Code says itself what it needs; only an administrator can have registered it.
            own = self.handler.get("permissions")
        return read_permissions(own or {})

    @property
    def owner(self) -> str | None:
        """Who registered it; None for built-in tools, and where it was not noted."""
        owner = self.content.get("owner")
        return owner if isinstance(owner, str) else None

    @property
    def target(self) -> str | None:
        """What a built-in tool works on that is the caller's own: `code` or a `url`."""
        target = self.content.get("target") if self.handler.get("type") == "builtin" else None
        return target if isinstance(target, str) else None

    def circuit(self, arguments: Any) -> str:
        """Return the name of its breaker: the host, if callers choose it."""
        url = arguments.get("url") if isinstance(arguments, Mapping) else None
        if self.target != "url" or not isinstance(url, str):
            return self.name
        try:
            host = urlsplit(url).netloc.rpartition("@")[2].casefold()
        except ValueError:
            host = ""
        return f"{self.name} {host}"[: limits.CIRCUIT_CHARS_MAX]

    @property
    def requirements(self) -> Mapping[str, Any]:
        """What it needs to be run."""
        return self.content.get("requirements") or {}


def summary_of(tool: Tool) -> ToolSummary:
    """Return what a list shows of a tool."""
    stored = {name: tool.content[name] for name in _SUMMARY_FIELDS if name in tool.content}
    summary = cast("ToolSummary", stored)
    if tool.fault is not None:
        summary["fault"] = tool.fault
    return summary


def details_of(tool: Tool) -> ToolDetails:
    """Return everything about a tool; its handler holds references to secrets, never secrets."""
    details = cast(
        "ToolDetails",
        {
            **tool.content,
            "revision": tool.revision,
            "effectiveConfiguration": tool.configuration.as_json(),
        },
    )
    if tool.fault is not None:
        details["fault"] = tool.fault
    return details
