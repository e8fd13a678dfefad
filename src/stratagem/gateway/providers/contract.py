"""What a provider's format is, and what a provider of one's own has to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["CustomProvider", "Format", "Outcome", "ProviderCall"]

# A result as plain JSON, or the error that there was instead.
Outcome = Any


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call that a model asks for.

    `id` is the provider's own, None where it gave none. `arguments` are an object, or the text
    as it came where that is no JSON object: whoever validates it may be able to mend it.
    `sent_name` is the name the provider knows the tool by.
    """

    id: str | None
    name: str
    arguments: dict[str, Any] | str
    sent_name: str = ""


class Format(Protocol):
    """How one provider writes tools, calls and results."""

    @property
    def name(self) -> str:
        """Return what the format is called."""
        ...

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return what the provider takes as `tools`.

        Each is given as `{name, description, inputSchema}`; other fields are left out.

        Raises:
            ValidationFailed: One of them is no tool, or there are too many.
        """
        ...

    def calls(self, payload: Any, known: Collection[str] = ()) -> list[ProviderCall]:
        """Return the calls in an answer of the provider: a whole one, or any part of it.

        `known` are names of registered tools, among which the names of the calls are found.

        Raises:
            ValidationFailed: The payload is not what the provider sends.
        """
        ...

    def results(self, outcomes: Sequence[tuple[ProviderCall, Outcome]]) -> list[dict[str, Any]]:
        """Return what is sent back to the provider: messages or items, in order.

        An outcome that is an exception is told as an error.
        """
        ...

    def configure(self, config: Any) -> dict[str, Any]:
        """Return settings for the provider, checked.

        Raises:
            ValidationFailed: A setting cannot be taken; `field` begins with "config".
        """
        ...


class CustomProvider(Protocol):
    """A provider of one's own: tools that it lists and runs itself."""

    async def initialise(self, config: Mapping[str, Any]) -> None:
        """Make ready; called once, before anything else."""
        ...

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """Return its tools, each as `{name, description, inputSchema, outputSchema}`."""
        ...

    async def execute(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run one of its tools and return a result in plain JSON."""
        ...
