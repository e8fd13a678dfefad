"""The contracts of a provider's format and of a custom provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from stratagem.deferred_dataclasses import dataclass

__all__ = ["CustomProvider", "Format", "ProviderCall", "ResultOrError"]

# A result as plain JSON, or the exception that was raised instead.
ResultOrError = Any


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call that a model asks for.

    `id` is the provider's own, None if it gave none. `arguments` are an object, or the original
    text if that is not a JSON object: correction may be able to repair it. `sent_name` is the name
    under which the provider knows the tool.
    """

    id: str | None
    name: str
    arguments: dict[str, Any] | str
    sent_name: str = ""


class Format(Protocol):
    """One provider's format of tools, calls and results."""

    @property
    def name(self) -> str:
        """Return the name of the format."""
        ...

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return tools in the provider's format.

        Each is given as `{name, description, inputSchema}`; other fields are left out.

        Raises:
            ValidationFailed: One of them is no tool, or there are too many.
        """
        ...

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Return the calls in a response of the provider: a complete one, or any part of it.

        `known` are the registered names, to which the names of the calls are mapped back.

        Raises:
            ValidationFailed: The payload is not what the provider sends.
        """
        ...

    def results(
        self, outcomes: Sequence[tuple[ProviderCall, ResultOrError]]
    ) -> list[dict[str, Any]]:
        """Return the results in the provider's format: messages or items, in order.

        An exception is sent as an error.
        """
        ...

    def configure(self, config: Any) -> dict[str, Any]:
        """Check and return settings of the provider.

        Raises:
            ValidationFailed: A setting cannot be taken; `field` begins with "config".
        """
        ...


class CustomProvider(Protocol):
    """A user-defined provider, which lists and runs its own tools."""

    async def initialise(self, config: Mapping[str, Any]) -> None:
        """Make ready; called once, before anything else."""
        ...

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """Return its tools, each as `{name, description, inputSchema, outputSchema}`."""
        ...

    async def execute(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run one of its tools and return a result in plain JSON."""
        ...
