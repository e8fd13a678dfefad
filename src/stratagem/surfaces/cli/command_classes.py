"""Commands of operations, and groups of them, as the library that parses command lines has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from typer import TyperException
from typer.core import TyperCommand, TyperGroup

from stratagem.operation import CommandHint, Operation
from stratagem.parameters import ALIASES
from stratagem.surfaces.cli.operation_commands import (
    POSITIONAL_OPTION,
    find_operation,
    make_command,
    operations_in_order,
)

__all__ = ["OperationCommand", "OperationGroup"]


class OperationCommand(TyperCommand):
    """A command whose positional arguments can be given by their flags, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, requiring of an argument and its flag one; a switch needs no value."""
        given = {each.partition("=")[0] for each in args}
        options = {each.name: each for each in self.params}
        for argument in self.params:
            option = options.get(f"{argument.name}{POSITIONAL_OPTION}")
            if option is not None and given.intersection(option.opts):
                argument.required = False
        try:
            return super().parse_args(ctx, list(self._with_values(args)))
        except TyperException as error:
            self._name_meant(error)
            raise

    def _name_meant(self, error: Any) -> None:
        """Name the option that goes by another name elsewhere: `-k` for `--limit`."""
        if not hasattr(error, "possibilities"):
            # The option is known; it is its value that is missing.
            return
        wrong = error.option_name.lstrip("-").replace("-", "_")
        found = find_operation(self.name or "")
        if not wrong or found is None:
            return
        properties = found[0].parameters["properties"]
        meant = {name for name, each in properties.items() if wrong in each.get(ALIASES, ())}
        option = next((each for each in self.params if each.name in meant), None)
        if option is not None:
            is_letter = option.name is not None and len(option.name) == 1
            flag = min(option.opts, key=len) if is_letter else option.opts[0]
            error.message = f"{error.message}. Did you mean {flag}?"
            # These are only spelt alike.
            error.possibilities = None

    def _with_values(self, args: list[str]) -> Iterator[str]:
        # Typer knows no option whose value can be left out; here its metavar says so.
        flags = {
            flag
            for each in self.params
            if (each.metavar or "").startswith("[")
            for flag in each.opts
        }
        for place, each in enumerate(args, 1):
            has_value = place < len(args) and not args[place].startswith("-")
            yield f"{each}=" if each in flags and not has_value else each


class OperationGroup(TyperGroup):
    """Commands that were written for a group, and those that the table has for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *self._operations]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None where there is none of that name."""
        if cmd_name not in self.commands and cmd_name in self._operations:
            self.commands[cmd_name] = make_command(*self._operations[cmd_name])
        return super().get_command(ctx, cmd_name)

    @cached_property
    def _operations(self) -> dict[str, tuple[Operation, CommandHint]]:
        """The operations with a command in this group, by the name that the command has here."""
        return {
            hint.path[1]: (operation, hint)
            for operation in operations_in_order()
            for hint in operation.commands
            if hint.path[0] == self.name and len(hint.path) > 1
        }
