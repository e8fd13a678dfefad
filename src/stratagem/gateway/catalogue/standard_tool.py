"""What a standard tool is: its definition, what it needs, and what runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ToolUnavailable, ValidationFailed
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.threads import Threads

if TYPE_CHECKING:
    from stratagem.gateway.outbound import Outbound
    from stratagem.search.embedding import Embedder

__all__ = ["CatalogueParts", "Settings", "StandardTool", "ToolRun", "define", "examples"]

Settings = Mapping[str, Any]

_RETRIES_PAID: Final = 2


@dataclass(frozen=True, slots=True)
class CatalogueParts:
    """What the standard tools use of the gateway; what is a function is made when first needed."""

    outbound: Callable[[], Outbound]
    embedder: Embedder | None
    clock: Callable[[], int]
    threads: Threads


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One call of a standard tool: arguments, the connections it may use, and the parts."""

    arguments: Mapping[str, Any]
    call: Run
    connections: Mapping[str, Settings]
    models: Mapping[str, Settings]
    parts: CatalogueParts

    @property
    def seconds(self) -> float:
        """How much is left of the call's time."""
        return self.call.seconds

    def connection(self, name: str | None = None, *, field: str = "connection") -> Settings:
        """Return the settings of a connection: the one that is named, else the only one.

        Raises:
            ValidationFailed: There is none of that name, or several to choose from.
        """
        return self._choose(self.connections, name, field)

    def model(self, name: str | None = None) -> tuple[str, Settings]:
        """Return the model provider that is named, else the only one, and its settings."""
        settings = self._choose(self.models, name, "provider")
        return str(settings["provider"]), settings

    def secret(self, text: str, origin: str) -> str:
        """Return a text with references to secrets replaced, for where they were granted for."""
        return self.call.secrets.resolve(text, origin=origin)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Run a function away from the event loop."""
        return await self.parts.threads.call(work, name=self.call.tool)

    def _choose(self, known: Mapping[str, Settings], name: str | None, field: str) -> Settings:
        if not known:
            raise ToolUnavailable(f"{self.call.tool} has no {field} to use.")
        if name is None and len(known) > 1:
            raise ValidationFailed(
                f"There are several: choose one with `{field}`.", field=field, allowed=sorted(known)
            )
        chosen = name or next(iter(known))
        if chosen not in known:
            raise ValidationFailed(
                f"There is no {field} {chosen!r}.",
                field=field,
                allowed=sorted(known),
                hint=f"There are: {', '.join(sorted(known))}.",
            )
        return known[chosen]


@dataclass(frozen=True, slots=True)
class StandardTool:
    """A standard tool.

    `packages` are the modules it imports. `connection` is the kind of connection it uses; `serves`
    tells which of that kind; `optional` ones add to what it can do without. `model` says what kind
    of model it asks, and `asks_model` which calls ask one at all.
    """

    definition: Mapping[str, Any]
    run: Callable[[ToolRun], Awaitable[Any]]
    packages: tuple[str, ...] = ()
    connection: str | None = None
    serves: Callable[[Settings], bool] = field(default=lambda _settings: True)
    optional: bool = False
    model: Literal["text", "image"] | None = None
    asks_model: Callable[[Mapping[str, Any]], bool] = field(default=lambda _arguments: True)

    @property
    def name(self) -> str:
        """Return its name."""
        return str(self.definition["name"])


def define(
    name: str,
    description: str,
    *,
    category: str,
    details: str,
    takes: Mapping[str, Any],
    required: tuple[str, ...] = (),
    gives: Mapping[str, Any],
    gives_always: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    shown: list[dict[str, Any]],
    internet: bool = False,
    changes: bool = False,
    destructive: bool = False,
    cache: bool = False,
    paid: bool = False,
    seconds: float | None = None,
    permissions: tuple[str, ...] = (),
    resources: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = (),
    output_bytes: int | None = None,
) -> dict[str, Any]:
    """Return the definition of a tool, in the form in which tools are registered.

    `paid`: what was done costs something, so that only what did nothing is tried again.
    """
    configuration = {
        "cache": cache,
        "idempotent": not (changes or paid),
        "retries": _RETRIES_PAID if paid else None,
        "timeout": round(seconds * 1000) if seconds else None,
        "maxOutput": output_bytes,
    }
    return {
        "name": name,
        "description": description,
        "longDescription": details,
        "category": category,
        "tags": list(tags),
        "capabilities": list(capabilities),
        "inputSchema": {**_object(takes, required), "additionalProperties": False},
        "outputSchema": _object(gives, gives_always),
        "annotations": {
            "readOnlyHint": not changes,
            "destructiveHint": destructive,
            "idempotentHint": not changes,
            "openWorldHint": internet,
        },
        "examples": shown,
        "configuration": _without_none(configuration),
        "requirements": {
            "permissions": [*(["internet_access"] if internet else []), *permissions],
            "resources": list(resources),
        },
    }


def examples(*pairs: tuple[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return examples: a description and an input each."""
    return [{"description": words, "input": dict(given)} for words, given in pairs]


def _object(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
