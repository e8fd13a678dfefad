"""How a call is written where somebody reads of it: as a tool, as a command, as a method.

Hints and notes name operations as tools are named: `strata_branch with action "list"`. At the
command line that call is `stratagem branch list`, and in a Python program `memory.branches()`. A
surface rewords the text when it shows it; whoever writes a hint need not think of that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final, Literal

from stratagem.operation import CommandHint, Operation
from stratagem.operations import TABLE
from stratagem.schemas import operation_schemas

__all__ = ["CallForm", "command_words", "reword"]

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


def reword(text: str, form: CallForm) -> str:
    """Return a text in which calls are written as they are made on a surface."""
    pieces: list[str] = []
    position = 0
    for found in _NAME.finditer(text):
        # Most words that look like a name are none, and to read the table is to import everything.
        is_operation = operation_schemas(found[0]) is not None
        if not is_operation or found.start() < position:
            continue
        operation = TABLE[found[0]]
        arguments, end = _arguments(text, found.end())
        pieces += [text[position : found.start()], _write_call(operation, arguments, form)]
        position = end
    said = "".join(pieces) + text[position:]
    if form == "command":
        return _OPTION.sub(lambda option: _option(option[1], option[2]), said)
    return said


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
