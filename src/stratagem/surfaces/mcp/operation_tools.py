"""Operations as tools, in the form in which the protocol sends them.

Nothing here needs the protocol's library, which takes longer to import than most calls take.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from stratagem.errors import InternalFault, StratagemError
from stratagem.operation import DEVELOPER_TOOLSET, Caller, Operation
from stratagem.surfaces.mcp.error_lines import error_detail_lines
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = [
    "OperationTools",
    "UnlistedTool",
    "error_form",
    "error_text",
]

logger = logging.getLogger(__name__)

# The length of text for a model; programs get everything in the object.
_CONFLICTS_SAID: Final = 20
_VALUE_CHARS: Final = 200


class UnlistedTool(Exception):
    """This server has no such tool; says which may have been meant."""

    def __init__(self, message: str, similar: Sequence[str]) -> None:
        super().__init__(message)
        self.similar: Final = list(similar)


class OperationTools:
    """The operations of the chosen toolsets; those that only read, on a server that only reads."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._settings = settings
        self._database = database

    @cached_property
    def listing(self) -> list[dict[str, Any]]:
        """What a client is shown that may do everything."""
        return [self._form(each) for each in self._operations.values() if self._is_allowed(each)]

    def listing_for(self, caller: Caller) -> list[dict[str, Any]]:
        """Return what a client is shown: the tools that its token lets it call."""
        if caller.scopes is None:
            return self.listing
        from stratagem.operations import may_call

        operations = self._operations
        return [tool for tool in self.listing if may_call(operations[tool["name"]], caller)]

    def call(self, name: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Run a tool. What goes wrong in it is a result that the model can act on.

        Raises:
            UnlistedTool: This server has no such tool.
        """
        operation = self.find(name)
        try:
            answer = self._database.call(name, arguments, caller)
            return self.answer(operation, answer, caller)
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return error_form(self.refusal(name, error, caller))

    def answer(
        self, operation: Operation, answer: dict[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Return an answer as a result, with advice that leads only to tools that are listed."""
        from stratagem.call_forms import reword_answer

        words = self._words_for(caller)
        said = reword_answer(answer, words)
        return _answer_form(operation.describe(said, words), said)

    def refusal(self, name: str, error: Exception, caller: Caller) -> StratagemError:
        """Return an error of ours, whose hint leads only to tools that are listed."""
        masked = _mask_fault(name, error)
        masked.reword_hint(self._words_for(caller))
        return masked

    def _words_for(self, caller: Caller) -> Callable[[str], str]:
        def words(text: str) -> str:
            from stratagem.call_forms import reword_for_tools

            return reword_for_tools(text, {tool["name"] for tool in self.listing_for(caller)})

        return words

    @cached_property
    def _operations(self) -> dict[str, Operation]:
        from stratagem.operations import of_toolsets

        chosen = of_toolsets(self._settings.toolsets)
        return {each.name: each for each in chosen if not each.confidential}

    def has(self, name: str) -> bool:
        """Whether a tool is an operation of the chosen toolsets."""
        return name in self._operations

    def waits(self, name: str) -> bool:
        """Whether a tool mostly waits, so that it needs no thread."""
        operation = self._operations.get(name)
        return operation is not None and operation.run_async is not None

    def find(self, name: str) -> Operation:
        """Return the operation of a tool.

        Raises:
            UnlistedTool: This server has no such tool.
        """
        operation = self._operations.get(name)
        if operation is not None:
            return operation
        from stratagem.operations import TABLE, similar_operations

        listed = [self._operations[tool["name"]] for tool in self.listing]
        elsewhere = TABLE.get(name)
        near = similar_operations(name, listed)
        advice = f"Did you mean {' or '.join(near)}?" if near else "List the tools."
        if elsewhere is not None:
            near = [
                each for each in near if name.removeprefix("strata_") in TABLE[each].also_called
            ]
            advice = (
                "It takes a secret, which models must not see: use the command line or REST."
                if elsewhere.confidential
                else f"It belongs to the toolset {elsewhere.toolset!r}."
            )
            advice += f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnlistedTool(f"There is no tool {name!r}. {advice}", near)

    def _is_allowed(self, operation: Operation) -> bool:
        reads = operation.right_for({}) == "read" or bool(operation.reading_actions)
        return reads or not self._settings.read_only

    def _form(self, operation: Operation) -> dict[str, Any]:
        from stratagem.operations import input_schema

        granular = DEVELOPER_TOOLSET in self._settings.toolsets
        schema = input_schema(operation.name, unlisted=granular)
        reads = operation.read_only
        if self._settings.read_only and not reads:
            # What is left of it on such a server writes nothing.
            reads = True
            if operation.reading_actions:
                schema = _read_only_schema(schema, operation.reading_actions)
        return {
            "name": operation.name,
            "title": operation.title,
            "description": operation.description,
            "inputSchema": schema,
            "outputSchema": _lenient_schema(operation.output_schema),
            "annotations": _annotations(operation, read_only=reads),
        }


def _mask_fault(name: str, error: Exception) -> StratagemError:
    """Return an error of ours; of another, which is logged, a client must not see the inside."""
    if isinstance(error, StratagemError):
        return error
    logger.error("%s failed", name, exc_info=error)
    return InternalFault(f"{name} failed; the server's log says how.")


def _answer_form(text: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as a result: for the model in words, for programs as an object."""
    content = [{"type": "text", "text": text}]
    return {"content": content, "structuredContent": answer, "isError": False}


def error_form(error: StratagemError) -> dict[str, Any]:
    """Return an error as a result: for the model in words, for programs as an object."""
    content = [{"type": "text", "text": error_text(error)}]
    envelope = escape_surrogates(error.envelope())
    return {"content": content, "structuredContent": envelope, "isError": True}


def error_text(error: StratagemError) -> str:
    """Return an error as text that can be acted on without seeing its details."""
    said = " ".join(filter(None, (error.message, error.hint)))
    details = error.details
    lines = [said, *_conflicts(details.get("conflicts") or []), *error_detail_lines(details)]
    for label in ("allowed", "similar", "limit"):
        given = details.get(label) or ()
        listed = isinstance(given, list | tuple)
        shown = [str(each) for each in given] if listed else [_format_limit(given)]
        # Mostly the hint has them already.
        unsaid = [each for each in shown if not _is_said(each, said)]
        # What is allowed is listed whole: a part of it would read like all of it.
        listed_values = shown if label == "allowed" else unsaid
        lines += [f"{label}: {', '.join(listed_values)}"] if unsaid else []
    text: str = escape_surrogates("\n".join(lines))
    return text


def _is_said(value: str, said: str) -> bool:
    """Whether a text has a value as words of their own, or the value is empty."""
    position = said.find(value)
    while value and position >= 0:
        end = position + len(value)
        if not _is_word(said[max(position - 1, 0) : position]) and not _is_word(
            said[end : end + 1]
        ):
            return True
        position = said.find(value, end)
    return not value


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _format_limit(given: object) -> str:
    # Other forms of a limit are said by the message.
    return f"{given:,}" if isinstance(given, int) else ""


def _conflicts(conflicts: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"conflict {each['id']} at {each['path']}: "
        f"target {_side(each, 'ours')}, source {_side(each, 'theirs')}"
        for each in conflicts[:_CONFLICTS_SAID]
    ]
    rest = len(conflicts) - len(lines)
    return [*lines, f"and {rest:,} more"] if rest else lines


def _side(conflict: Mapping[str, Any], side: str) -> str:
    if side not in conflict:
        return "nothing"
    text = json.dumps(conflict[side], ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"


def _annotations(operation: Operation, *, read_only: bool) -> dict[str, bool]:
    if read_only:
        return {"readOnlyHint": True, "openWorldHint": False}
    return {
        "readOnlyHint": False,
        "destructiveHint": operation.destructive or operation.calls_tools,
        "idempotentHint": operation.idempotent,
        # Whatever a registered tool reaches, a call through it reaches too.
        "openWorldHint": operation.calls_tools,
    }


def _read_only_schema(schema: dict[str, Any], actions: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of an operation whose writing actions are left out."""
    narrowed = copy.deepcopy(schema)
    narrowed["properties"]["action"]["enum"] = list(actions)
    return narrowed


def _lenient_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an output schema that an error fits too.

    Some clients hold errors to the schema of the answer, and show a complaint about the
    schema instead of the error.
    """
    return {name: value for name, value in schema.items() if name != "required"}
