"""How a call is written where somebody reads of it: as a tool, as a command, as a method.

Hints and notes name operations as tools are named: `strata_branch with action "list"`. At the
command line that call is `stratagem branch list`, and in a Python program `memory.branches()`. A
server that lists other tools has `strata_branch_list` for it, or nothing: then the command is
named, and the toolset that has the tool. A surface rewords the text when it shows it, so the author
of a hint need not think of that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from stratagem.operation import CommandHint, Operation
from stratagem.operations import TABLE
from stratagem.schemas import operation_schemas

__all__ = [
    "CallForm",
    "command_words",
    "names_operations",
    "reword",
    "reword_answer",
    "reword_for_tools",
]

CallForm = Literal["command", "method"]

_NAME: Final = re.compile(r"(?<![\w'\"-])[a-z]++(?:_[a-z]++){1,6}(?![\w'\"])")
# At most 600 characters: what is quoted is a name, a key or a moment.
_ARGUMENT: Final = re.compile(
    r"(?:,| with| and) ([a-z_]{1,30})(?: |=)(?:'([^'\n]{0,600})'|\"([^\"\n]{0,600})\")"
)
_OPTION: Final = re.compile(r"\b(as_of|cursor|prefix)(?: |=)'([^'\n]{0,600})'")
# Operations that list where no key is given; programs and people have one for that alone.
_WITHOUT_KEY: Final = {"strata_recall": "strata_list", "strata_history": "strata_events"}
# The methods of the SDK for what is an action of one operation.
_ACTIONS: Final = {"list": "branches"}
_PREFIX: Final = "strata_"
# The tools of developer mode that do the same, by what they are given.
_GRANULAR: Final[Mapping[tuple[str, str | None], str]] = {
    ("strata_branch", None): "strata_branch_list",
    ("strata_branch", "switch"): "strata_branch_use",
    **{
        ("strata_branch", action): f"strata_branch_{action}"
        for action in ("create", "delete", "diff", "fork", "list", "merge")
    },
    ("strata_recall", None): "strata_kv_list",
    ("strata_recall", "key"): "strata_kv_get",
    ("strata_history", None): "strata_event_list",
    ("strata_history", "key"): "strata_kv_history",
    ("strata_store", None): "strata_kv_put",
    ("strata_store", "key"): "strata_kv_put",
    ("strata_forget", None): "strata_kv_delete",
    ("strata_forget", "key"): "strata_kv_delete",
    ("strata_log", None): "strata_event_append",
    ("strata_status", None): "strata_db_info",
}


def reword(text: str, form: CallForm) -> str:
    """Return a text in which calls are written as they are made on a surface."""
    said = _replace_calls(text, lambda operation, given: _write_call(operation, given, form))
    if form == "command":
        return _OPTION.sub(lambda option: _option(option[1], option[2]), said)
    return said


def reword_for_tools(text: str, listed: Collection[str]) -> str:
    """Return a text that names no tool but those that a server lists.

    In place of another it names the command, and the toolset if the server has none of its tools.
    """

    def write(operation: Operation, given: Mapping[str, str]) -> str | None:
        if operation.name in listed:
            return None
        if call := _granular_call(operation.name, given, listed):
            return call
        command = _write_call(operation, given, "command")
        offered = operation.confidential or operation.toolset in {
            TABLE[each].toolset for each in listed if each in TABLE
        }
        return command if offered else f"{command} (toolset {operation.toolset!r})"

    return _replace_calls(text, write)


def names_operations(text: str) -> bool:
    """Whether a text names an operation."""
    return any(operation_schemas(found[0]) is not None for found in _NAME.finditer(text))


def reword_answer(answer: Mapping[str, Any], words: Callable[[str], str]) -> dict[str, Any]:
    """Return an answer whose advice is in the words of whoever reads it; its data stays as it is.

    Advice is the note, the notices of a merge, and what debugging says to do next.
    """
    said = dict(answer)
    if isinstance(note := said.get("note"), str):
        said["note"] = words(note)
    if isinstance(notices := said.get("notices"), list):
        said["notices"] = [words(each) for each in notices]
    match said.get("next_action"):
        case {"instructions": str(instructions), **rest}:
            said["next_action"] = {**rest, "instructions": words(instructions)}
    return said


def _replace_calls(text: str, write: Callable[[Operation, Mapping[str, str]], str | None]) -> str:
    """Return a text with its calls written anew; a call that is to stay is None."""
    pieces: list[str] = []
    position = 0
    for found in _NAME.finditer(text):
        # Most words that look like a name are none, and to read the table is to import everything.
        is_operation = operation_schemas(found[0]) is not None
        if not is_operation or found.start() < position:
            continue
        operation = TABLE[found[0]]
        arguments, end = _arguments(text, found.end())
        call = write(operation, arguments)
        pieces += [
            text[position : found.start()],
            text[found.start() : end] if call is None else call,
        ]
        position = end
    return "".join(pieces) + text[position:]


def command_words(operation: Operation, arguments: Mapping[str, str]) -> list[str]:
    """Return the words of the command that runs an operation with some arguments."""
    hint = _command(operation, arguments)
    if hint is None:
        words = [operation.name.removeprefix(_PREFIX).replace("_", "-")]
        return [*words, *_options(arguments)]
    # A command that takes several of something takes one of them in the same place.
    several = {one: many for many, one in hint.single.items()}
    given = {several.get(name, name): value for name, value in arguments.items()}
    by_name = given.keys() & operation.parameters["properties"].keys()
    rest = {
        name: value
        for name, value in given.items()
        if name in by_name and name not in hint.fixed and name not in hint.positional
    }
    by_position = [given[name] for name in hint.positional if name in given]
    return [*hint.path, *by_position, *_options(rest)]


def _arguments(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return the arguments that are named behind an operation, and where they end."""
    arguments: dict[str, str] = {}
    while found := _ARGUMENT.match(text, position):
        arguments[found[1]] = found[2] if found[2] is not None else found[3]
        position = found.end()
    return arguments, position


def _write_call(operation: Operation, arguments: Mapping[str, str], form: CallForm) -> str:
    if arguments and not {"key", "keys"} & arguments.keys():
        operation = TABLE[_WITHOUT_KEY.get(operation.name, operation.name)]
    if form == "command":
        if arguments.get("action") == "switch":
            # A command remembers no branch; each is told which one it is about.
            return f"`--branch {arguments.get('name', 'NAME')}`"
        return f"`{shlex.join(['stratagem', *command_words(operation, arguments)])}`"
    return _method(operation, arguments)


def _granular_call(name: str, given: Mapping[str, str], listed: Collection[str]) -> str | None:
    """Return the call of the tool of developer mode that does the same; None where none is."""
    which = given.get("action") or ("key" if "key" in given else None)
    tool = _GRANULAR.get((name, which))
    if tool is None or tool not in listed:
        return None
    rest = [f"{each} {value!r}" for each, value in given.items() if each != "action"]
    return f"{tool} with {' and '.join(rest)}" if rest else tool


def _command(operation: Operation, arguments: Mapping[str, str]) -> CommandHint | None:
    """Return the command of an operation that always passes what is passed here."""
    fitting = [hint for hint in operation.commands if hint.fixed.items() <= arguments.items()]
    if fitting:
        return max(fitting, key=lambda hint: len(hint.fixed))
    # Each action has a command: without one the group that they form is meant.
    return CommandHint(operation.commands[0].path[:1]) if operation.commands else None


def _options(arguments: Mapping[str, str]) -> list[str]:
    return [
        word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", value)
    ]


def _option(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')} {shlex.quote(value)}"


def _method(operation: Operation, arguments: Mapping[str, str]) -> str:
    system = operation.method.__module__.split(".")[1]
    if system == "gateway" and operation.sdk is None:
        return f'call("{operation.name}")'
    name = operation.sdk.name if operation.sdk else operation.name.removeprefix(_PREFIX)
    if operation.sdk and operation.sdk.group:
        system = operation.sdk.group
    given = dict(arguments)
    if "action" in given:
        action = given.pop("action")
        name = _ACTIONS.get(action, action)
    # The name of what is worked on needs no name itself.
    first = [repr(given.pop(each)) for each in ("key", "name", "prefix") if each in given][:1]
    return f"{system}.{name}({', '.join([*first, *(f'{n}={v!r}' for n, v in given.items())])})"
