"""What the methods of the gateway are made with: something that runs an operation by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Answer", "Call", "Calling", "listed"]

Answer = dict[str, Any]
Call = Callable[[str, dict[str, Any]], Answer]


class Calling:
    """Methods that call operations. Where the call is awaited, so is what they return."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def _ask(self, name: str, /, **given: Any) -> Any:
        """Run an operation with what was given; None stands for what was not."""
        return self._call(name, {each: value for each, value in given.items() if value is not None})


def listed(names: str | Iterable[str]) -> list[str]:
    """Return names as a list: one alone is not meant letter by letter."""
    return [names] if isinstance(names, str) else list(names)
