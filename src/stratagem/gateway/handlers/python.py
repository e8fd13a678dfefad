"""Runs Python functions: added in this process, offered by installed packages, or importable.

A handler names its function in one of two ways: `{"type": "python", "name": NAME}` is a function
that was added in this process or that an installed package offers in the entry point group
`stratagem.tools`; `{"type": "python", "callable": "package.module:function"}` is imported when it
is first called, and only if the operator allows it (`CallableList`). Listing the functions imports
nothing.

A coroutine function runs on the event loop, any other in a thread; both are stopped when the
attempt is cancelled (`threads.py` describes the limits of that).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module, metadata
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from stratagem import limits
from stratagem.engine import values
from stratagem.errors import (
    ExecutionFailed,
    PermissionDenied,
    StratagemError,
    ToolNotFound,
    ValidationFailed,
)
from stratagem.gateway.definitions.argument_models import refusal
from stratagem.gateway.definitions.contract import Handler, ProgressReport, Run
from stratagem.gateway.handlers.functions import PythonTool, describe_function, tool
from stratagem.gateway.handlers.threads import Threads

__all__ = [
    "ENTRY_POINTS",
    "CallableList",
    "PythonRunner",
    "PythonTool",
    "describe_function",
    "tool",
]

ENTRY_POINTS: Final = "stratagem.tools"
_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_CAUGHT: Final = (Exception, SystemExit, KeyboardInterrupt)
SETTING = "STRATAGEM_ALLOW_CALLABLES"


class PythonRunner:
    """Runs functions as tools."""

    def __init__(
        self, threads: Threads | None = None, *, allowed: Sequence[str] | None = None
    ) -> None:
        """Run functions; `allowed` are those that a handler may name, None is any."""
        self._threads = threads or Threads()
        self._allowed = CallableList(allowed)
        self._tools: dict[str, PythonTool] = {}
        self._entry_points: dict[str, metadata.EntryPoint] | None = None

    @property
    def threads_abandoned(self) -> int:
        """The number of threads that hang and could not be stopped."""
        return self._threads.abandoned_count

    def add(self, function: Callable[..., Any], name: str | None = None) -> PythonTool:
        """Add a function of this process; a handler refers to it by its tool's name.

        Raises:
            ValidationFailed: It cannot be a tool.
        """
        made = describe_function(function)
        if name is not None:
            made = replace(made, name=name)
        self._tools[made.name] = made
        return made

    def find(self, handler: Handler) -> PythonTool:
        """Return the function that a handler names; import it if necessary.

        Raises:
            ToolNotFound: There is no such function.
            ExecutionFailed: Importing it failed.
            ValidationFailed: It exists, but cannot be a tool.
        """
        key = _tool_key(handler)
        if key not in self._tools:
            self._tools[key] = self._load_tool(handler, key)
        return self._tools[key]

    def check(self, handler: Handler) -> list[str]:
        """Check a handler without importing anything."""
        name, place = handler.get("name"), handler.get("callable")
        if (name is None) == (place is None):
            raise ValidationFailed(
                "A Python handler has either a `name` or a `callable`.", field="handler"
            )
        if place is not None and not (isinstance(place, str) and _PLACE.fullmatch(place)):
            raise ValidationFailed(
                "`handler.callable` must be written as package.module:function.",
                field="handler.callable",
            )
        if name is None:
            self._allowed.require(str(place))
            return []
        if not isinstance(name, str):
            raise ValidationFailed("`handler.name` is text.", field="handler.name")
        known = name in self._tools or name in self._find_entry_points()
        return [] if known else [f"No function named {name!r} was added here yet."]

    async def run(self, handler: Handler, run: Run) -> Any:
        """Call the function and return its result as plain JSON."""
        if "callable" in handler:
            self._allowed.require(_tool_key(handler))
        found = self._tools.get(_tool_key(handler))
        if found is None:
            # An import may take long and runs arbitrary code.
            found = await self._threads.call(lambda: self.find(handler), name=run.tool)
        try:
            call = found.bind(run.arguments, _with_threadsafe_progress(run))
        except ValidationError as error:
            raise refusal(error, found.input_schema.get("properties", {})) from error
        try:
            result = await (
                _await_call(call) if found.is_async else self._threads.call(call, name=run.tool)
            )
        except StratagemError:
            raise
        except _CAUGHT as error:
            raise _failure(error) from error
        return _result_as_json(found, result)

    def refusal(self, handler: Handler) -> str | None:
        """Return why the function of a handler may not be called, or None."""
        if "callable" not in handler:
            return None
        try:
            self._allowed.require(_tool_key(handler))
        except PermissionDenied as error:
            return f"{error.message} {error.hint}"
        return None

    async def close(self) -> None:
        """Do nothing: remaining threads end with the process."""

    def _find_entry_points(self) -> dict[str, metadata.EntryPoint]:
        if self._entry_points is None:
            points = metadata.entry_points(group=ENTRY_POINTS)
            self._entry_points = {point.name: point for point in points}
        return self._entry_points

    def _load_tool(self, handler: Handler, key: str) -> PythonTool:
        if "callable" in handler:
            self._allowed.require(key)
            found = _import(lambda: _import_callable(key), key)
            self._allowed.require(key, found)
            return describe_function(found)
        point = self._find_entry_points().get(key)
        if point is None:
            raise ToolNotFound(
                f"There is no function named {key!r} here.",
                hint="Add it in this process, or install the package that provides it.",
            )
        return describe_function(_import(point.load, key))


def _tool_key(handler: Handler) -> str:
    return str(handler.get("name") or handler.get("callable"))


def _import_callable(place: str) -> Any:
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _import(load: Callable[[], Any], key: str) -> Any:
    try:
        return load()
    except _CAUGHT as error:
        failure = _failure(error)
        message = f"{key} cannot be imported: {failure.message}"
        raise ExecutionFailed(message, safe=True, **failure.details) from error


async def _await_call(call: Callable[[], Any]) -> Any:
    try:
        return await call()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ExecutionFailed("CancelledError: the function cancelled itself.") from None


def _with_threadsafe_progress(run: Run) -> Run:
    """Return the attempt with a progress function that any thread may call."""
    loop = asyncio.get_running_loop()
    report: ProgressReport = run.progress

    def progress(done: float | None, words: str | None = None) -> None:
        loop.call_soon_threadsafe(report, done, words)

    return replace(run, progress=progress)


def _failure(error: BaseException) -> ExecutionFailed:
    name = type(error).__name__
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 -- the exception is not ours, nor is what it says of itself
        words = ""
    text = f"{name}: {words}" if words else name
    if len(text) > limits.FAILURE_CHARS_MAX:
        text = f"{text[: limits.FAILURE_CHARS_MAX]}…"
    return ExecutionFailed(text, exception=name)


def _result_as_json(found: PythonTool, result: Any) -> Any:
    try:
        plain = found.as_json(result)
        values.encode(plain, field="result", bytes_max=limits.OUTPUT_BYTES_MAX)
    except (PydanticSerializationError, ValueError, ValidationFailed) as error:
        reason = error.message if isinstance(error, ValidationFailed) else str(error)
        raise ExecutionFailed(
            f"{found.name} returned something that is not JSON: "
            f"{reason[: limits.FAILURE_CHARS_MAX]}",
            hint="Return objects, lists, texts, numbers, booleans or null.",
        ) from error
    return plain


class CallableList:
    """The functions that an operator allows stored tools to name; None allows any.

    A pattern is `package.module:function` or `package.module:*`. An asterisk matches functions that
    the module itself defines, not those it imports: a module that has imported `os` does not allow
    `os.system`. Functions that a program adds, and those of installed packages with an entry point,
    need no entry, because a stored tool cannot introduce them.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._exact = None if patterns is None else frozenset(patterns)
        self._patterns = [each.partition(":") for each in patterns or () if "*" in each]
        self._bare = [each for each in patterns or () if ":" not in each]

    def require(self, place: str, function: Any = None) -> None:
        """Refuse a function that is not on the list.

        With the function itself, a pattern allows it only if its module defines it.

        Raises:
            PermissionDenied: The operator does not allow it.
        """
        if self._exact is None or place in self._exact:
            return
        module, _, path = place.partition(":")
        defined = function is None or getattr(function, "__module__", None) == module
        if defined and "." not in path and any(self._matches(module, path)):
            return
        raise PermissionDenied(
            f"The operator does not allow Python tools to call {place}.",
            callable=place,
            setting=SETTING,
            hint=f"To allow it: {SETTING}={place}, or --allow-callable {place} with serve and mcp."
            + self._advice(),
        )

    def _advice(self) -> str:
        """Return a hint about an entry that allows nothing because it names only a module."""
        if not self._bare:
            return ""
        module = self._bare[0]
        return f" The entry {module!r} allows nothing: for a module write {module}:*."

    def _matches(self, module: str, path: str) -> list[bool]:
        return [
            fnmatchcase(module, of) and fnmatchcase(path, name)
            for of, _colon, name in self._patterns
        ]
