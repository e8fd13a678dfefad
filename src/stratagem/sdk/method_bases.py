"""Base classes of the generated SDK methods: they run the method or operation that is named.

The methods of memory, debugging and knowledge name a method of a service, so that a program that
has the database in its own process gets the result without a detour through JSON. Those of the
gateway name an operation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, Generic, Protocol, TypeVar

from stratagem.operations import find
from stratagem.parameters import MISSING, wire_name
from stratagem.sdk.deserialization import deserialize
from stratagem.sdk.unknown_keywords import suggest_keywords

__all__ = [
    "Answer",
    "AsyncCall",
    "AsyncInvoke",
    "AsyncOperationMethods",
    "AsyncServiceMethods",
    "AsyncTypedMethods",
    "Call",
    "GeneratedMethods",
    "Invoke",
    "OperationMethods",
    "ServiceMethods",
    "TypedMethods",
]

Answer = dict[str, Any]
Call = Callable[[str, dict[str, Any]], Answer]
AsyncCall = Callable[[str, dict[str, Any]], Awaitable[Answer]]
ServiceT = TypeVar("ServiceT")
Service_co = TypeVar("Service_co", covariant=True)
ResultT = TypeVar("ResultT")


class Invoke(Protocol[Service_co]):
    """Runs a method of a service, here or on a server."""

    def __call__(
        self,
        method: Callable[Concatenate[Service_co, ...], ResultT],
        arguments: Mapping[str, Any],
        /,
    ) -> ResultT:
        """Return what the method returns."""


class AsyncInvoke(Protocol[Service_co]):
    """Runs a method of a service on a server."""

    async def __call__(
        self,
        method: Callable[Concatenate[Service_co, ...], ResultT],
        arguments: Mapping[str, Any],
        /,
    ) -> ResultT:
        """Return what the method returns."""


class GeneratedMethods:
    """The common base of generated methods: it suggests the right keyword for a wrong one."""

    def __init_subclass__(cls) -> None:
        """Let public methods say which keyword was meant."""
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if callable(method) and not name.startswith("_"):
                setattr(cls, name, suggest_keywords(method))

    def _run_by(self) -> object:
        raise NotImplementedError

    def __repr__(self) -> str:
        run = self._run_by()
        return f"<{type(self).__name__} of {getattr(run, '__self__', run)!r}>"


class ServiceMethods(GeneratedMethods, Generic[ServiceT]):
    """The base of generated methods that run the methods of a service."""

    def __init__(self, invoke: Invoke[ServiceT]) -> None:
        self._invoke = invoke

    def _run_by(self) -> object:
        return self._invoke


class AsyncServiceMethods(GeneratedMethods, Generic[ServiceT]):
    """The base of generated methods that run the methods of a service, and are awaited."""

    def __init__(self, invoke: AsyncInvoke[ServiceT]) -> None:
        self._invoke = invoke

    def _run_by(self) -> object:
        return self._invoke


class OperationMethods(GeneratedMethods):
    """The base of generated methods that run operations."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def _run_by(self) -> object:
        return self._call

    def _ask(self, name: str, given: Mapping[str, Any]) -> Any:
        return self._call(name, _arguments(name, given))


class AsyncOperationMethods(GeneratedMethods):
    """The base of generated methods that run operations, and are awaited."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    def _run_by(self) -> object:
        return self._call

    async def _ask_async(self, name: str, given: Mapping[str, Any]) -> Any:
        return await self._call(name, _arguments(name, given))


class TypedMethods(GeneratedMethods):
    """The base of generated methods that run operations and return their answers as models."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def _run_by(self) -> object:
        return self._call

    def _ask(self, name: str, given: Mapping[str, Any], model: Any) -> Any:
        return _result(self._call(name, _given_arguments(name, given)), model)


class AsyncTypedMethods(GeneratedMethods):
    """The base of generated methods that return models, and are awaited."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    def _run_by(self) -> object:
        return self._call

    async def _ask_async(self, name: str, given: Mapping[str, Any], model: Any) -> Any:
        return _result(await self._call(name, _given_arguments(name, given)), model)


def _given_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation; None is a value only of what has to be given."""
    required = find(name).parameters.get("required", ())
    return {
        each: _as_json(value)
        for each, value in given.items()
        if value is not None or each in required
    }


def _as_json(value: Any) -> Any:
    """Return an array of numbers as a list, also within a list of objects."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_as_json(each) if not isinstance(each, str | float) else each for each in value]
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return value


def _result(answer: Answer, model: Any) -> Any:
    """Return an answer as its model; None for a miss."""
    return None if answer.get("found") is False else deserialize(model, answer)


def _arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation; None stands for what was not given.

    A single text for a list of texts means a list of one, and not its letters.
    """
    declared = find(name).parameters["properties"]
    return {
        each: [value] if isinstance(value, str) and _takes_list(declared, each) else value
        for each, value in given.items()
        if value is not None and value is not MISSING
    }


def _takes_list(declared: Mapping[str, Any], name: str) -> bool:
    schema = declared.get(wire_name(name)) or declared.get(name) or {}
    choices = schema.get("anyOf", (schema,))
    kinds = {each.get("type") for each in choices}
    return "array" in kinds and "string" not in kinds
