"""The methods of the systems, made to call a server: same names, same parameters, same models."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_type_hints

from stratagem import limits
from stratagem.operations import find
from stratagem.sdk.restoring import restored

__all__ = ["AsyncMethods", "Methods", "Prepared"]

# Methods whose operation has another name, and the part of its answer that they return.
_OTHER: Final[Mapping[str, tuple[str, str | None]]] = {
    "recall_many": ("strata_recall", "results"),
    "time_range": ("strata_history", None),
    "purge": ("strata_purge", "erased"),
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call of a method, ready to be sent."""

    operation: str
    arguments: dict[str, Any]
    kind: Any
    part: str | None
    # Repeating it under the same request id writes nothing twice.
    repeatable: bool

    def result(self, answer: Any) -> Any:
        """Return what the method returns for an answer."""
        found = answer
        if self.part is not None and isinstance(answer, Mapping):
            found = answer.get(self.part, [] if self.part == "results" else None)
        return restored(self.kind, found)


class _System:
    def __init__(self, system: type, prefix: str) -> None:
        self._system = system
        self._prefix = prefix

    def _prepared(self, name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> Prepared:
        method = getattr(self._system, name)
        bound = _signature(method).bind(None, *given, **named)
        arguments = dict(list(bound.arguments.items())[1:])
        for each in _signature(method).parameters.values():
            if each.kind is each.VAR_KEYWORD:
                arguments |= arguments.pop(each.name, {})
        operation, part = _OTHER.get(name, (f"{self._prefix}{name}", None))
        if "max_chars" in find(operation).input_model.model_fields:
            # An answer to a program is not cut to what fits beside a conversation.
            arguments.setdefault("max_chars", limits.ANSWER_CHARS_MAX)
        repeatable = "request_id" in _signature(method).parameters
        return Prepared(operation, arguments, _returns(method), part, repeatable)

    def _exists(self, name: str) -> None:
        if name.startswith("_") or not callable(getattr(self._system, name, None)):
            raise AttributeError(f"{self._system.__name__} has no method {name!r}")


class Methods(_System):
    """A system on a server."""

    def __init__(self, system: type, prefix: str, send: Callable[[Prepared], Any]) -> None:
        super().__init__(system, prefix)
        self._send = send

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self._exists(name)
        return lambda *given, **named: self._send(self._prepared(name, given, named))


class AsyncMethods(_System):
    """A system on a server, for programs with an event loop."""

    def __init__(
        self, system: type, prefix: str, send: Callable[[Prepared], Awaitable[Any]]
    ) -> None:
        super().__init__(system, prefix)
        self._send = send

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        self._exists(name)
        return lambda *given, **named: self._send(self._prepared(name, given, named))


@cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _returns(method: Any) -> Any:
    return get_type_hints(method).get("return", Any)
