"""Plain command lines, read without the library that parses command lines.

Importing that library and describing the options to it takes longer than a recall. A line is plain
where it can only mean one thing: a command of the table of operations, words, and options by their
full names that take a text, a whole number or nothing. Everything else (help, short flags, what is
unknown, missing or given twice, options from files and most of the environment) is left to the
library, which also says what is wrong. Both read the options of a command from an `OperationRun`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.surfaces.cli.command_names import COMMANDS

if TYPE_CHECKING:
    from stratagem.surfaces.cli.operation_commands import OperationRun
    from stratagem.surfaces.cli.session import Options

__all__ = ["PlainLine", "read_plain_line", "run_plain_line"]

# By which a shell asks for completions.
_COMPLETION: Final = "_STRATAGEM_COMPLETE"
_INTERRUPTED: Final = 130
# No number that a command takes has more; Python refuses to read one of thousands of digits.
_DIGITS_MAX: Final = 18


class _Option(NamedTuple):
    """An option: the name and the type of its value, and what a switch sets."""

    name: str
    kind: Any
    switched: bool = True


# Of the options of every command those that are given most.
_SHARED_TEXTS: Final = ("db", "namespace", "branch")
_SHARED: Final = {
    **{f"--{name}": _Option(name, str) for name in _SHARED_TEXTS},
    "--read-only": _Option("read_only", bool),
    "--json": _Option("json", bool),
}


class PlainLine(NamedTuple):
    """A line that was read: the operation to run, where, and with what."""

    operation: OperationRun
    options: Options
    given: dict[str, Any]

    @property
    def extra(self) -> dict[str, Any]:
        """What the function that runs the operation takes besides: nothing of it was given."""
        return {each.name: each.default for each in self.operation.extras}

    def run(self) -> int:
        """Run the operation to the last byte of its answer; return the code to exit with."""
        from stratagem.surfaces.cli.output import complete_answer
        from stratagem.surfaces.cli.session import Session

        session = Session(self.options, self.given)
        try:
            with complete_answer(), session.output.reporting():
                self.operation.run(session, self.given, self.extra)
        except KeyboardInterrupt:
            return _INTERRUPTED
        return 0


def run_plain_line(words: Sequence[str]) -> int | None:
    """Run a line, and return the code to exit with; None where it is not plain."""
    line = read_plain_line(words, os.environ)
    if line is None:
        return None
    from stratagem.surfaces.cli.output import Output, exit_code_of

    return exit_code_of(Output(json=bool(line.options.json)), line.run)


def read_plain_line(words: Sequence[str], environment: Mapping[str, str]) -> PlainLine | None:
    """Return what a line means; None where it is not plain."""
    # On Windows the library expands patterns of file names.
    if os.name == "nt" or _COMPLETION in environment or not all(words):
        return None
    place = next((at for at, word in enumerate(words) if COMMANDS.get(word, "") is None), None)
    if place is None:
        return None
    root = _read_options(words[:place], _SHARED)
    if root is None or root.rest:
        return None
    operation = _find_run(words[place])
    own = _options_of(operation)
    line = _read_options(words[place + 1 :], {**_SHARED, **own})
    options = None if line is None else _merge_options(root.values, line.values, environment)
    if line is None or options is None:
        return None
    named = {option.name for option in own.values()}
    given = {name: value for name, value in line.values.items() if name in named}
    positional = _read_positional(operation, line.rest)
    if positional is None or not operation.parameters.required_options <= given.keys():
        return None
    return PlainLine(operation, options, {**positional, **given})


class _Words(NamedTuple):
    """The options among some words, and the other words."""

    values: dict[str, Any]
    rest: list[str]


def _read_options(words: Sequence[str], options: Mapping[str, _Option]) -> _Words | None:
    values: dict[str, Any] = {}
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            rest.append(word)
            continue
        flag, has_value, text = word.partition("=")
        option = options.get(flag)
        if option is None or (option.name in values and option.kind != list[str]):
            return None
        if option.kind is bool:
            value: Any = None if has_value else option.switched
        else:
            text = text if has_value else next(left, "-")
            value = None if text.startswith("-") else _read_value(text, option.kind)
        if value is None:
            return None
        if option.kind == list[str]:
            value = [*values.get(option.name, ()), value]
        values[option.name] = value
    return _Words(values, rest)


def _read_value(text: str, kind: Any) -> str | int | None:
    """Return a value; None where the library has to decide what it is."""
    if kind is int:
        is_plain = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
        return int(text) if is_plain else None
    return text if kind in {str, list[str]} else None


def _find_run(command: str) -> OperationRun:
    from stratagem.surfaces.cli.operation_commands import OperationRun, find_operation

    found = find_operation(command)
    assert found is not None, f"no operation has the command {command}"
    return OperationRun(*found)


def _options_of(operation: OperationRun) -> dict[str, _Option]:
    """Return the options of a command by their flags; what is given by position has none here."""
    options: dict[str, _Option] = {}
    extras = {each.name for each in operation.extras}
    for described in operation.parameters.described.values():
        name = described.python_name
        if described.name in operation.hint.positional or name in extras:
            continue
        for flags in operation.parameters.flags_of(described):
            on, _, off = flags.partition("/")
            if not on.startswith("--"):
                continue
            options[on] = _Option(name, described.type)
            if off:
                options[off] = _Option(name, described.type, switched=False)
    return options


def _read_positional(operation: OperationRun, words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that are given by position; None where they are too few or too many."""
    values: dict[str, Any] = {}
    left = list(words)
    for name, kind, required in operation.parameters.positional():
        if kind == list[str]:
            values[name], left = left, []
        elif left:
            values[name] = _read_value(left.pop(0), kind)
            if values[name] is None:
                return None
        if required and not values.get(name):
            return None
    return None if left else values


def _merge_options(
    root: Mapping[str, Any], line: Mapping[str, Any], environment: Mapping[str, str]
) -> Options | None:
    """Return the options of every command, from the line, the environment and the files."""
    from dataclasses import replace

    from stratagem.errors import StratagemError
    from stratagem.surfaces.cli.session import SHARED_NAMES, Options
    from stratagem.surfaces.cli.settings import PREFIX, FileSettings

    if any(f"{PREFIX}{name.upper()}" in environment for name in SHARED_NAMES - {*_SHARED_TEXTS}):
        return None
    try:
        files = FileSettings.read()
    except (OSError, StratagemError):
        return None
    if files.defaults(shared=True):
        return None
    variables = {name: environment.get(f"{PREFIX}{name.upper()}") for name in _SHARED_TEXTS}
    given = {name: text for name, text in variables.items() if text} | dict(root)
    try:
        options = Options(file_settings=files).overridden(given)
        if "namespace" not in root:
            options = replace(options, namespace_asked=False)
        return options.overridden({name: line[name] for name in SHARED_NAMES if name in line})
    except StratagemError:
        return None
