"""Operations as tools: what a client is shown, and what a call answers."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool, ToolAnnotations

from stratagem.errors import InternalFault, ReadOnly, StratagemError
from stratagem.operation import Caller, Operation
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings

__all__ = ["Tools", "encodable", "failure", "in_words"]

logger = logging.getLogger(__name__)

# What a model can read at once; programs get all of it in the object.
_CONFLICTS_SAID: Final = 20
_VALUE_CHARS: Final = 200


class Tools:
    """The operations of the chosen toolsets; those that only read, on a server that only reads."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._settings = settings
        self._database = database

    @cached_property
    def listing(self) -> list[Tool]:
        """What a client is shown."""
        return [
            self._tool(operation)
            for operation in self._table.values()
            if operation.toolset in self._settings.toolsets and self._is_allowed(operation)
        ]

    def call(self, name: str, arguments: dict[str, Any], caller: Caller) -> CallToolResult:
        """Run a tool. What goes wrong in it is a result that the model can act on.

        Raises:
            MCPError: This server has no such tool.
        """
        operation = self._find(name)
        try:
            self._refuse_writing(operation, arguments)
            answer = self._database.call(name, arguments, caller)
            text = operation.summarise(answer)
        except StratagemError as error:
            return failure(error)
        except Exception:  # the outermost frame: a client must not see the inside
            logger.exception("%s failed", name)
            return failure(InternalFault(f"{name} failed; the server's log says how."))
        return CallToolResult(content=[TextContent(text=text)], structured_content=answer)

    @cached_property
    def _table(self) -> dict[str, Operation]:
        from stratagem.operations import TABLE

        return TABLE

    def _find(self, name: str) -> Operation:
        operation = self._table.get(name)
        if operation is not None and operation.toolset in self._settings.toolsets:
            return operation
        if operation is not None:
            near, advice = [], f"It belongs to the toolset {operation.toolset!r}."
        else:
            near = get_close_matches(name, [tool.name for tool in self.listing], n=3)
            advice = f"Did you mean {' or '.join(near)}?" if near else "List the tools."
        raise MCPError(INVALID_PARAMS, f"There is no tool {name!r}. {advice}", {"similar": near})

    def _is_allowed(self, operation: Operation) -> bool:
        reads = operation.read_only or bool(operation.reading_actions)
        return reads or not self._settings.read_only

    def _refuse_writing(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        if operation.read_only or not self._settings.read_only:
            return
        what = operation.name
        if operation.reading_actions:
            action = arguments.get("action")
            # What is no action at all is the operation's to complain about.
            if action in operation.reading_actions or not _is_action(operation, action):
                return
            what = f"{operation.name} {action}"
        raise ReadOnly(f"This server only reads; {what} writes.")

    def _tool(self, operation: Operation) -> Tool:
        from stratagem.operations import input_schema

        schema, reads = input_schema(operation.name), operation.read_only
        if self._settings.read_only and not reads:
            schema, reads = _reading(schema, operation.reading_actions), True
        return Tool(
            name=operation.name,
            title=operation.title,
            description=operation.description,
            input_schema=schema,
            output_schema=_lenient(operation.output_schema),
            annotations=_annotations(operation, read_only=reads),
        )


def failure(error: StratagemError) -> CallToolResult:
    """Return an error as a result: for the model in words, for programs as an object."""
    return CallToolResult(
        content=[TextContent(text=in_words(error))],
        structured_content=encodable(error.envelope()),
        is_error=True,
    )


def in_words(error: StratagemError) -> str:
    """Return an error as text that can be acted on without seeing its details."""
    said = " ".join(filter(None, (error.message, error.hint)))
    details = error.details
    lines = [said, *_conflicts(details.get("conflicts") or [])]
    for label in ("allowed", "similar", "limit"):
        given = details.get(label) or ()
        shown = map(str, given) if isinstance(given, list | tuple) else [_figure(given)]
        # Mostly the hint has them already.
        unsaid = ", ".join(each for each in shown if each not in said)
        lines += [f"{label}: {unsaid}"] if unsaid else []
    text: str = encodable("\n".join(lines))
    return text


def _figure(given: object) -> str:
    # Other forms of a limit are said by the message.
    return f"{given:,}" if isinstance(given, int) else ""


def _conflicts(conflicts: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"conflict {each['id']} at {each['path']}: "
        f"ours {_side(each, 'ours')}, theirs {_side(each, 'theirs')}"
        for each in conflicts[:_CONFLICTS_SAID]
    ]
    rest = len(conflicts) - len(lines)
    return [*lines, f"and {rest:,} more"] if rest else lines


def _side(conflict: Mapping[str, Any], side: str) -> str:
    if side not in conflict:
        return "nothing"
    text = json.dumps(conflict[side], ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"


def _annotations(operation: Operation, *, read_only: bool) -> ToolAnnotations:
    if read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ToolAnnotations(
        read_only_hint=False,
        destructive_hint=operation.destructive,
        idempotent_hint=operation.idempotent,
        open_world_hint=False,
    )


def _is_action(operation: Operation, action: object) -> bool:
    from stratagem.operations import input_schema

    return action in input_schema(operation.name)["properties"]["action"]["enum"]


def _reading(schema: dict[str, Any], actions: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of an operation whose writing actions are left out."""
    narrowed = copy.deepcopy(schema)
    narrowed["properties"]["action"]["enum"] = list(actions)
    return narrowed


def _lenient(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an output schema that an error fits too.

    Some clients hold errors to the schema of the answer, and show a complaint about the
    schema instead of the error.
    """
    return {name: value for name, value in schema.items() if name != "required"}


def encodable(value: Any) -> Any:
    """Return JSON that can be sent: errors quote input that may not be valid Unicode."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {encodable(name): encodable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    return value
