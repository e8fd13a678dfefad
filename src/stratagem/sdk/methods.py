"""The methods of the systems, made to call a server: same names, same parameters, same models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_type_hints

from stratagem.sdk.restoring import restored

__all__ = ["Methods", "Prepared"]


@dataclass(frozen=True, slots=True)
class _Other:
    """A method whose operation has another name. `part` of the answer is what it returns."""

    operation: str
    given: Mapping[str, Any] | None = None
    part: str | None = None


_BRANCH: Final = "strata_branch"
_OTHER: Final[Mapping[str, _Other]] = {
    "recall_many": _Other("strata_recall", part="results"),
    "time_range": _Other("strata_history"),
    "purge": _Other("strata_purge", part="erased"),
    "erase": _Other("strata_purge"),
    "branches": _Other(_BRANCH, {"action": "list"}),
    **{
        action: _Other(_BRANCH, {"action": action})
        for action in ("create", "delete", "diff", "fork", "merge", "restore", "switch")
    },
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call of a method, ready to be sent."""

    operation: str
    arguments: dict[str, Any]
    kind: Any
    part: str | None

    def result(self, answer: Any) -> Any:
        """Return what the method returns for an answer."""
        if self.part is not None:
            return restored(self.kind, answer[self.part])
        is_miss = isinstance(answer, Mapping) and answer.get("found") is False
        return None if is_miss else restored(self.kind, answer)


class Methods:
    """A system on a server. `send` returns what the method returns, or what can be awaited."""

    def __init__(self, system: type, prefix: str, send: Callable[[Prepared], Any]) -> None:
        self._system = system
        self._prefix = prefix
        self._send = send

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = None if name.startswith("_") else getattr(self._system, name, None)
        if not callable(method):
            raise AttributeError(f"{self._system.__name__} has no method {name!r}")  # noqa: TRY004
        return lambda *given, **named: self._send(self._prepared(name, method, given, named))

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._system) if not name.startswith("_")]

    def _prepared(
        self, name: str, method: Any, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Prepared:
        signature = _signature(method)
        arguments = signature.bind(None, *given, **named).arguments
        arguments.pop("self")
        for each in signature.parameters.values():
            if each.kind is each.VAR_KEYWORD:
                arguments |= arguments.pop(each.name, {})
        if arguments.get("env") == "auto":
            # Where it was tried is where this program runs, not where the server does.
            arguments["env"] = _here()
        other = _OTHER.get(name) or _Other(f"{self._prefix}{name}")
        return Prepared(
            other.operation, {**(other.given or {}), **arguments}, _returns(method), other.part
        )


def _here() -> dict[str, str]:
    from stratagem.debugging.detection import detect

    return detect()


@cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _returns(method: Any) -> Any:
    return get_type_hints(method).get("return", Any)
