"""Commands for operations that have none written for them, made from their parameters."""

from __future__ import annotations

import inspect
import re
from keyword import iskeyword
from typing import Annotated, Any, Final

import typer

from stratagem.operation import Operation
from stratagem.surfaces.cli.app import COMMANDS
from stratagem.surfaces.cli.inputs import read_json, read_value
from stratagem.surfaces.cli.session import Session, command, shared_parameters

__all__ = ["command_of", "dashed", "generated_command", "generated_names"]

_PREFIX: Final = "strata_"
_TYPES: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool}
_REPEATED: Final = {"type": "array", "items": {"type": "string"}}


def command_of(operation: str) -> str:
    """Return the command that runs an operation."""
    return operation.removeprefix(_PREFIX).replace("_", "-")


def generated_names() -> list[str]:
    """Return the commands that are made from the table."""
    from stratagem.operations import TABLE

    return [name for name in map(command_of, TABLE) if name not in COMMANDS]


def generated_command(name: str) -> Any:
    """Return the command of that name, or None where no operation has it."""
    from stratagem.operations import TABLE

    for operation in TABLE.values():
        if name in {command_of(operation.name), operation.name}:
            return _made(operation)
    return None


def _made(operation: Operation) -> Any:
    from stratagem.operations import input_schema

    schema = input_schema(operation.name)
    properties: dict[str, dict[str, Any]] = schema["properties"]
    properties |= {name: properties[name] | _REPEATED for name in _text_or_list(operation)}
    shared = {parameter.name for parameter in shared_parameters()}
    own = [
        _parameter(name, described, required=name in schema.get("required", ()))
        for name, described in properties.items()
        if name not in shared
    ]

    # By position only: an operation may have a parameter of any name.
    def run(context: Session, /, **given: Any) -> None:
        named = {name.removesuffix("_"): each for name, each in given.items() if each is not None}
        arguments = {
            name: each if each in _words(operation, name) else _value(name, each, properties[name])
            for name, each in named.items()
        }
        _answer(context, operation, context.call(operation.name, **arguments))

    first = inspect.Parameter("session_of_command", inspect.Parameter.POSITIONAL_ONLY)
    run.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = operation.name, operation.description
    made = typer.Typer(add_completion=False)
    made.command(command_of(operation.name), rich_help_panel="More")(command(run))
    return typer.main.get_command(made)


def _parameter(name: str, described: dict[str, Any], *, required: bool) -> inspect.Parameter:
    flag, kind = f"--{dashed(name)}", _type(described)
    if kind is bool:
        flag = _switch(flag, described.get("default"))
    option = typer.Option(flag, help=_help(described), show_default=False)
    return inspect.Parameter(
        f"{name}_" if iskeyword(name) else name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[kind if required else kind | None, option],
    )


def _switch(flag: str, default: Any) -> str:
    """Return the flag that says something: off where it is on, on where it is off."""
    off = f"--no-{flag[2:]}"
    if default is None:
        return f"{flag}/{off}"
    return f" /{off}" if default else flag


def dashed(name: str) -> str:
    """Return `tool-name` for `tool_name` and for `toolName`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()


def _type(described: dict[str, Any]) -> Any:
    if _is_list_of_text(described):
        return list[str]
    kind = described.get("type")
    return _TYPES.get(kind, str) if isinstance(kind, str) else str


def _is_list_of_text(described: dict[str, Any]) -> bool:
    items = described.get("items") or {}
    return described.get("type") == "array" and items.get("type") == "string"


def _help(described: dict[str, Any]) -> str:
    words = described.get("description", "")
    if described.get("type") in {"object", "array", None} and not _is_list_of_text(described):
        words = f"{words} (JSON)".strip()
    if choices := described.get("enum"):
        words = f"{words}: {', '.join(map(str, choices))}".lstrip(": ")
    return str(words)


def _text_or_list(operation: Operation) -> list[str]:
    """Return the parameters that take one text or several: their options can be repeated."""
    described = operation.parameters["properties"]
    return [
        name
        for name, each in described.items()
        if {"string", "array"} <= {choice.get("type") for choice in each.get("anyOf", ())}
    ]


def _words(operation: Operation, name: str) -> list[Any]:
    """Return the words that a parameter takes in the place of JSON, such as `auto`."""
    described = operation.parameters["properties"][name]
    return [each["const"] for each in described.get("anyOf", ()) if "const" in each]


def _value(name: str, given: Any, described: dict[str, Any]) -> Any:
    if isinstance(given, str) and described.get("type") in {"object", "array", None}:
        return read_json(given, field=name)
    if isinstance(given, list):
        return [read_value(each, text=True) for each in given]
    # A log is longer than what a shell passes on: `-` reads it from stdin.
    return read_value(given, text=True) if isinstance(given, str) else given


def _answer(session: Session, operation: Operation, answer: dict[str, Any]) -> None:
    from stratagem.surfaces.cli.rendering import renderer_of

    render = renderer_of(operation.name)
    if session.output.json:
        session.output.data(answer)
    elif render is not None:
        session.output.answer(answer, render)
    else:
        session.output.prose(operation.summarise(answer))
